"""Calls of what is not of the scanned tree: a library by its models, unknown code by all that it may do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.callees import CALLEES
from codemods.evaluate import foreign, havoc, iteration, mutation, objects, specials
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.configs import KIND
from codemods.evaluate.failures import may_fail
from codemods.evaluate.frameworks import PALLAS, PATCHING
from codemods.evaluate.interpreted import unfollowed
from codemods.evaluate.library import MODELS, Call, Unmodelled
from codemods.evaluate.machine import Exhausted
from codemods.evaluate.memory import Cell
from codemods.evaluate.relevance import MUTATORS
from codemods.evaluate.settings import looked_up
from codemods.evaluate.unseen import Unseen
from codemods.values import (
    Array,
    Bound,
    Choice,
    Contracted,
    DictRef,
    External,
    Function,
    Instance,
    ListRef,
    Names,
    Opaque,
    Partial,
    Quantized,
    Transformed,
    Value,
    is_constant,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

MISTAKEN = (LookupError, TypeError, ValueError)
"""What taking arguments apart raises where a call gives others than a sound one, or gives them by other names."""


def call_external(machine: Machine, path: str, arguments: Arguments) -> Value:
    """Call a function of a library, known by its dotted path."""
    from codemods.evaluate.standard import INTERPRETED

    if path.startswith(("builtins.", "functools.", "operator.", "itertools.", "math.", "heapq.")):
        specials.may_run(machine, *arguments.values(), node=arguments.node)
    interpreted = INTERPRETED.get(path)
    if interpreted is not None:
        return attempt(machine, arguments, lambda: interpreted(machine, arguments), path)
    model = MODELS.get(path)
    if model is not None and not arguments.spread:
        return _apply_model(machine, model, path, arguments)
    return call_unknown(machine, External(path), arguments)


def attempt(machine: Machine, arguments: Arguments, function: Callable[[], Value], path: str = "") -> Value:
    """Return what a call gives; an unknown value where it cannot be followed. `path` is that of a function of a library."""
    before = machine.state
    try:
        return function()
    except Unmodelled as why:
        reason = str(why)
    except MISTAKEN:
        if machine.state is not before:  # in one of several arms perhaps: what holds here is not known
            raise Exhausted from None
        reason = unfollowed(arguments)
    _give_up(machine, arguments)
    may_fail(machine, path.rpartition(".")[2], arguments)
    return machine.unknown(arguments.text, reason, arguments.node)


def _give_up(machine: Machine, arguments: Arguments, receiver: Value = None) -> None:
    """Take note that a call is not followed: it may call what it is given, and its result may be what it is given, or a part."""
    for value in arguments.values():
        hand_on(machine, value, arguments)
    havoc.leak_elements(machine, receiver)
    havoc.leak(machine, *arguments.values())


def _apply_model(machine: Machine, model: Callable[[Call], Value], path: str, arguments: Arguments) -> Value:
    """Ask a model, for each combination of the alternatives of the arguments."""
    names = tuple(arguments.keywords)
    text = arguments.text

    def ask(*values: Value) -> Value:
        count = len(arguments.positional)
        keywords = dict(zip(names, values[count:], strict=True))
        fresh: Callable[[str], Opaque] = lambda shown: machine.unknown(shown, "its size is not known", arguments.node)  # noqa: E731
        try:
            return model(Call(path, values[:count], keywords, lambda value: iteration.elements(machine, value), fresh))
        except MISTAKEN:
            raise Unmodelled(unfollowed(arguments)) from None

    return machine.spread(ask, *(_opened(machine, value) for value in arguments.values()), text=text)


def _opened(machine: Machine, value: Value) -> Value:
    """Return a sequence of which an element has alternatives as one of several sequences: a model sees no alternatives."""
    parts = machine.contents(value) if isinstance(value, ListRef) else value
    if not isinstance(parts, tuple):
        return value
    opened = [_opened(machine, part) for part in parts]
    if not any(isinstance(part, Choice) for part in opened):
        return value
    return machine.spread(lambda *each: each, *opened, text="one of several sequences")


def call_method(machine: Machine, receiver: Value, name: str, arguments: Arguments) -> Value:
    """Call a method of an array, a container, a string or a function."""
    from codemods.evaluate.methods import METHODS
    from codemods.evaluate.standard.patches import monkeypatch

    specials.may_run(machine, *(receiver, *arguments.values()) if not isinstance(receiver, Instance) else (), node=arguments.node)
    model = MODELS.get(f"array.{name}")
    if model is not None and isinstance(receiver, Array | Quantized | Opaque) and not arguments.spread:
        return _apply_model(machine, model, f"array.{name}", arguments.after(receiver))
    if isinstance(receiver, Array):
        mutation.method_changes(machine, receiver, name, arguments.node)
    method = METHODS.get((type(receiver), name))
    if method is not None:
        try:
            return method(machine, receiver, arguments)
        except (Unmodelled, *MISTAKEN) as why:
            if name in MUTATORS:
                objects.forget(machine, receiver, arguments.node)
            _give_up(machine, arguments, receiver)
            text = str(why) if isinstance(why, Unmodelled) else "a call with arguments that are not followed"
            return machine.unknown(arguments.text, text, arguments.node)
    if isinstance(receiver, Names):
        havoc.everything(machine, "names are changed that are not known", arguments.node, names=True)
    if isinstance(receiver, Opaque) and name in PATCHING:
        return monkeypatch(machine, name, arguments)
    return call_unknown(machine, receiver, arguments.after(receiver))


def call_unknown(machine: Machine, callee: Value, arguments: Arguments) -> Value:
    """Call something of which the source is not at hand: it may call what it is given, and change what it is given."""
    match callee, arguments.positional:
        case (External(path), (Instance() as made, *_)) if path.endswith(".__init__"):
            return _initialize(machine, made, External(path.removesuffix(".__init__")), arguments.without_first())
        case (Opaque(key=(_, ".", "__init__", _)) as found, (Instance() as made, *_)):
            base = replace(found, text=found.text.removesuffix(".__init__"))
            return _initialize(machine, made, base, arguments.without_first())
        case _:
            pass
    match callee:
        case External(path):
            may_fail(machine, path.rpartition(".")[2], arguments)
        case Opaque(key=(("instance", _), ".", str(name), _)):  # a method of a base outside the scanned tree
            may_fail(machine, name, arguments)
        case Opaque(key=((_, ".", "f_globals" | "f_locals" | "__globals__" | "__dict__", *_), ".", name, _)) if name in MUTATORS:
            havoc.everything(machine, "a name is set in a dict of names", arguments.node, names=True)
        case _:
            pass
    if any(map(mutation.may_change, arguments.values())):
        mutation.elements_change(machine)
    pure = isinstance(callee, External) or (isinstance(callee, Opaque) and callee.pure)
    if isinstance(callee, Opaque) and (found := _looked_up(machine, callee, arguments)) is not None:
        return found
    text = arguments.text
    writes_a_kernel = isinstance(callee, External) and callee.path.startswith(PALLAS)  # which calls no other kernel
    if not writes_a_kernel and any(isinstance(value, Function | Bound | Partial) for value in arguments.values()):
        data = (value for value in arguments.values() if not isinstance(value, Function | Bound | Partial | Transformed))
        havoc.leak(machine, *data)  # to whom it calls, too
    for value in arguments.values():
        if not writes_a_kernel:
            hand_on(machine, value, arguments)
        why = "unknown code may have changed it"
        sets = not pure or (isinstance(value, Instance) and value.cls.kind == KIND)  # a library does not set our attributes
        havoc.forget_reachable(machine, value, why, arguments.node, instances=sets)
    if isinstance(callee, External):
        havoc.leak_elements(machine, *arguments.values())  # what it gives may be one of them
    else:
        havoc.leak(machine, *arguments.values())
    if not isinstance(callee, External) or any(isinstance(value, Opaque) for value in arguments.values()):
        havoc.disturb(machine, f"`{text}` may change it", arguments.node)
    if not pure:
        machine.state.epoch += 1
    if isinstance(callee, Opaque) and not pure:
        return Opaque((machine.new_id(),), text, callee.reason)
    name = callee.path if isinstance(callee, External) else text
    reason = machine.reason(f"the result of `{name}` is not known", arguments.node)
    return Opaque((machine.new_id(), "call", name), text, reason, pure=pure)


def _initialize(machine: Machine, made: Instance, base: Value, arguments: Arguments) -> None:
    """Call the initializer of a base outside the scanned tree."""
    foreign.initialize(machine, made, base, arguments)
    call_unknown(machine, External("the initializer of a base"), arguments)


def _looked_up(machine: Machine, callee: Opaque, arguments: Arguments) -> Value:
    """Return what `x.get(key, default)` gives of an unknown dict: for the same key the same; None for another call."""
    match callee.key, arguments.positional:
        case (holder, ".", "get", epoch), (str(name), default) if is_constant(default) and default is not None:
            found = looked_up(machine, f"{callee.text}({name!r})", default, arguments.node)
            return replace(found, key=(holder, "get", name, epoch))
        case _:
            return None


def hand_on(machine: Machine, value: Value, arguments: Arguments) -> None:
    """Execute a function that is handed to unknown code, with arguments of which nothing is known.

    A kernel that is handed on is called there: the expression that hands it on is its call site.
    """
    if isinstance(value, Choice):
        for _, each in value.alternatives:
            hand_on(machine, each, arguments)
        return
    inner = value
    while isinstance(inner, Partial | Transformed | Contracted | Bound) and not isinstance(inner.function, str):
        inner = inner.function
    if isinstance(inner, ListRef | DictRef | tuple):
        for each in inner if isinstance(inner, tuple) else machine.contents(inner) or ():
            hand_on(machine, each, arguments)
    elif (isinstance(inner, Bound) and isinstance(inner.receiver, ListRef | DictRef)) or (
        machine.recording and (isinstance(inner, Function) or (isinstance(inner, External) and inner.path in CALLEES))
    ):  # a method that changes its object
        call_unseen(machine, value, arguments.node)


def call_unseen(machine: Machine, value: Value, node: ast.expr | None) -> None:
    """Call a function with unknown arguments, in executions that may happen at any time."""
    from codemods.evaluate.calls import call

    why = "an unknown caller may change it"
    unseen = Unseen(machine, value)
    for cell in unseen.cells:
        machine.named_unseen.setdefault(cell, []).append(value)
    run: Callable[[], object] = lambda: (  # noqa: E731
        unseen.disturb(why) if unseen.harmless else call(machine, value, Arguments(spread=True, node=node))
    )
    havoc.later(machine, run, why, node)


def bound_later(machine: Machine, cell: Cell, value: Value) -> None:
    """Take note that functions which unknown code may call find this under a name from here on."""
    if isinstance(value, Function) or machine.frame.scope.kind != "module":
        havoc.leak(machine, value)
    elif not (is_constant(value) or isinstance(value, Opaque | External)):
        for function in machine.named_unseen.pop(cell):
            call_unseen(machine, function, None)
