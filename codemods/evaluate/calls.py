"""Calls: arguments, and what is called with them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from codemods.callees import CALLEES, Callee
from codemods.evaluate import containers, havoc, mutation, objects, specials
from codemods.evaluate.annotations import refined, unseen
from codemods.evaluate.frameworks import PALLAS, PATCHING
from codemods.evaluate.library import MODELS, Call, Unmodelled
from codemods.evaluate.machine import MAX_DEPTH, MAX_RECURSION, Arrival, Caller, Dies, Exhausted, Frame, Given, Leaves
from codemods.evaluate.program import Scope
from codemods.evaluate.relevance import MUTATORS
from codemods.evaluate.settings import looked_up
from codemods.evaluate.state import UNBOUND
from codemods.evaluate.transforms import call_transformed
from codemods.values import (
    Array,
    Bound,
    Choice,
    Class,
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
    same,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        positional, keywords: their values.
        nodes: the expressions they were written as, by position or keyword.
        spread: whether there may be others, behind a `*` or `**` whose contents are unknown.
        node: the call expression.
    """

    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])
    nodes: Mapping[int | str, ast.expr] = field(default_factory=dict[int | str, ast.expr])
    spread: bool = False
    node: ast.expr | None = None

    def after(self, *first: Value) -> Arguments:
        """Return the arguments with others put in front of them."""
        moved = {key + len(first) if isinstance(key, int) else key: node for key, node in self.nodes.items()}
        return replace(self, positional=(*first, *self.positional), nodes=moved)

    def without_first(self) -> Arguments:
        moved = {key - 1 if isinstance(key, int) else key: node for key, node in self.nodes.items() if key != 0}
        return replace(self, positional=self.positional[1:], nodes=moved)

    def values(self) -> tuple[Value, ...]:
        return (*self.positional, *self.keywords.values())


def evaluate_call(machine: Machine, node: ast.Call) -> Value:
    """Evaluate a call expression."""
    callee = machine.evaluate(node.func)
    return call(machine, callee, _arguments(machine, node))


def _arguments(machine: Machine, node: ast.Call) -> Arguments:
    positional: list[Value] = []
    keywords: dict[str, Value] = {}
    nodes: dict[int | str, ast.expr] = {}
    spread = False
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            parts = _elements(machine, machine.evaluate(argument.value))
            spread = spread or parts is None
            positional += parts or ()
        elif not spread:
            nodes[len(positional)] = argument
            positional.append(machine.evaluate(argument))
        else:
            machine.evaluate(argument)  # its position is not known
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            nodes[keyword.arg] = keyword.value
        elif isinstance(value, DictRef) and (contents := machine.contents(value)) is not None:
            keywords |= {key: held for key, held in contents if isinstance(key, str)}
        else:
            spread = True
    return Arguments(tuple(positional), keywords, nodes, spread, node)


def _elements(machine: Machine, value: Value) -> tuple[Value, ...] | None:
    try:
        return containers.elements(machine, value)
    except Unmodelled:
        return None


def call(machine: Machine, callee: Value, arguments: Arguments) -> Value:
    """Call a value; each of its alternatives under its own condition."""
    machine.step()
    if isinstance(callee, Choice):
        return _call_each(machine, callee, arguments)
    match callee:
        case External(path) if path in CALLEES:
            return _arrive(machine, CALLEES[path], arguments)
        case External(path):
            return _call_external(machine, path, arguments)
        case Contracted():
            return _call_contracted(machine, callee, arguments)
        case Function():
            return call_function(machine, callee, arguments)
        case Class():
            return _attempt(machine, arguments, lambda: objects.construct(machine, callee, arguments))
        case Partial():
            return call(machine, callee.function, _joined(callee, arguments))
        case Transformed():
            return call_transformed(machine, callee, arguments)
        case Bound(receiver, str(name)):
            return _call_method(machine, receiver, name, arguments)
        case Bound(receiver, function):
            return call(machine, function, arguments.after(receiver))
        case Instance():
            method = objects.class_member(machine, callee.cls, "__call__")
            if isinstance(method, Function):
                return call(machine, method, arguments.after(callee))
        case _:
            pass
    return call_unknown(machine, callee, arguments)


def _call_each(machine: Machine, callee: Choice, arguments: Arguments) -> Value:
    """Call one of several functions, of which it is not known which."""

    def rest(position: int) -> Value:
        formula, value = callee.alternatives[position]
        if position == len(callee.alternatives) - 1:
            return call(machine, value, arguments)
        return machine.part(formula, (lambda: call(machine, value, arguments), lambda: rest(position + 1)))

    return rest(0)


def _joined(partial: Partial, arguments: Arguments) -> Arguments:
    """Put the arguments of a partial in front; the call's keywords win."""
    moved = arguments.after(*partial.positional)
    nodes = {key: node for key, node in partial.nodes if isinstance(key, int) or key not in arguments.keywords}
    return replace(moved, keywords={**dict(partial.keywords), **moved.keywords}, nodes={**nodes, **moved.nodes})


def _arrive(machine: Machine, callee: Callee, arguments: Arguments) -> Value:
    """Note that an execution reaches a callee, and return what a kernel does: an array like its query."""
    if isinstance(arguments.node, ast.Call):
        machine.arrivals.append(
            Arrival(
                source=(machine.frame.scope.path, arguments.node),
                callee=callee,
                positional=arguments.positional,
                keywords=dict(arguments.keywords),
                nodes=dict(arguments.nodes),
                path=machine.state.path,
                expected=machine.expected > 0,
                spread=arguments.spread,
                cells=machine.state.cells,
                callers=tuple(Caller(frame.function, frame.given) for frame in machine.frames),
            )
        )
    named = {callee.contract_name(name): value for name, value in arguments.keywords.items()}
    query = arguments.positional[0] if arguments.positional else named.get(callee.contract.arrays[0].name)
    if isinstance(query, Array):
        return replace(query, contents=None)
    return machine.unknown(
        f"{callee.name}(...)", f"the shape of what `{callee.name}` gives is not known", arguments.node, pure=True
    )


def _call_contracted(machine: Machine, contracted: Contracted, arguments: Arguments) -> Value:
    """Call a function that checks its contract first: a call that breaks it goes no further."""
    from codemods.evaluate.contracts import assume

    unfollowed = _arrive(machine, contracted.callee, arguments)
    try:
        assume(machine, contracted.callee, bind(machine, contracted.function, arguments))
    except Dies:
        return unfollowed
    return call(machine, contracted.function, arguments)


def _call_external(machine: Machine, path: str, arguments: Arguments) -> Value:
    from codemods.evaluate.standard import INTERPRETED

    if path.startswith(("builtins.", "functools.", "operator.", "itertools.", "math.", "heapq.")):
        specials.may_run(machine, *arguments.values(), node=arguments.node)
    interpreted = INTERPRETED.get(path)
    if interpreted is not None:
        return _attempt(machine, arguments, lambda: interpreted(machine, arguments))
    model = MODELS.get(path)
    if model is not None and not arguments.spread:
        return _apply_model(machine, model, path, arguments)
    return call_unknown(machine, External(path), arguments)


def _attempt(machine: Machine, arguments: Arguments, function: Callable[[], Value]) -> Value:
    try:
        return function()
    except Unmodelled as why:
        _give_up(machine, arguments)
        return machine.unknown(_text(arguments), str(why), arguments.node)
    except LookupError:  # an argument that every sound call gives is not there
        return machine.unknown(_text(arguments), f"the arguments of `{_text(arguments)}` are not followed", arguments.node)


def _give_up(machine: Machine, arguments: Arguments, receiver: Value = None) -> None:
    """Take note that a call is not followed: it may call what it is given, and its result may be what it is given, or a part."""
    for value in arguments.values():
        hand_on(machine, value, arguments)
    havoc.leak_elements(machine, receiver)
    havoc.leak(machine, *arguments.values())


def _apply_model(machine: Machine, model: Callable[[Call], Value], path: str, arguments: Arguments) -> Value:
    """Ask a model, for each combination of the alternatives of the arguments."""
    names = tuple(arguments.keywords)
    text = _text(arguments)

    def ask(*values: Value) -> Value:
        count = len(arguments.positional)
        keywords = dict(zip(names, values[count:], strict=True))
        fresh: Callable[[str], Opaque] = lambda shown: machine.unknown(shown, "its size is not known", arguments.node)  # noqa: E731
        return model(Call(path, values[:count], keywords, lambda value: containers.elements(machine, value), fresh))

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


def _text(arguments: Arguments) -> str:
    text = ast.unparse(arguments.node) if arguments.node is not None else "a call"
    return text if len(text) <= 60 else text[:57] + "..."


def _call_method(machine: Machine, receiver: Value, name: str, arguments: Arguments) -> Value:
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
        except (Unmodelled, LookupError) as why:
            if name in MUTATORS:
                objects.forget(machine, receiver, arguments.node)
            _give_up(machine, arguments, receiver)
            text = str(why) if isinstance(why, Unmodelled) else "a call with arguments that are not followed"
            return machine.unknown(_text(arguments), text, arguments.node)
    if isinstance(receiver, Names):
        havoc.everything(machine, "names are changed that are not known", arguments.node, names=True)
    if isinstance(receiver, Opaque) and name in PATCHING:
        return monkeypatch(machine, name, arguments)
    return call_unknown(machine, receiver, arguments.after(receiver))


def call_function(machine: Machine, function: Function, arguments: Arguments) -> Value:
    """Execute a function of the scanned tree with these arguments."""
    node = function.node
    machine.called.add(id(node))
    inside = sum(frame.function is node for frame in machine.frames)
    if len(machine.frames) > MAX_DEPTH or inside > MAX_RECURSION:
        raise Exhausted  # an unknown result would leave out what the call does besides
    values = bind(machine, function, arguments)
    if isinstance(node, ast.AsyncFunctionDef) or machine.program.bindings(node).yields:
        return _defer(machine, function, values, inside, arguments)
    if function.kind == "memoized":
        return _remembered(machine, function, values, arguments)
    return _run(machine, function, values, arguments.nodes)


def _remembered(machine: Machine, function: Function, values: Mapping[str, Value], arguments: Arguments) -> Value:
    """Call a function that keeps its results: what it gives once for constants, it gives again, whatever has changed since."""
    if not all(map(is_constant, values.values())):
        result = _run(machine, function, values, arguments.nodes)
        why = "it may be the result of an earlier call"
        return machine.unknown(_text(arguments), why, arguments.node) if is_constant(result) else result
    given = ", ".join(f"{name}={value!r}" for name, value in values.items())
    cell = (function.scope, f"{function.name}({given})")
    if machine.state.read(cell) is UNBOUND:
        machine.state.cells[cell] = _run(machine, function, values, arguments.nodes)
        return machine.read(cell)
    again: list[Value] = []  # where the cache was cleared, or was too small
    why = "it may be computed anew"
    havoc.maybe(machine, lambda: again.append(_run(machine, function, values, arguments.nodes)), why, arguments.node)
    held = machine.read(cell)
    if not again or same(again[-1], held) or not is_constant(held):
        return held
    return machine.unknown(_text(arguments), why, arguments.node)


def _run(machine: Machine, function: Function, values: Mapping[str, Value], given: Given | None = None) -> Value:
    """Execute the body of a function whose parameters have these values."""
    node = function.node
    scope = open_scope(machine, function)
    if any(isinstance(value, Opaque) for value in values.values()):
        with machine.entered(Frame(scope)):
            values = refined(machine, function, dict(values))
    machine.state.cells.bind(scope.id, values.items())
    result = execute(machine, scope, node, given=given)
    if not machine.program.bindings(node).inner:  # no closure can see these names any more
        for name in scope.local:
            machine.state.cells.pop((scope.id, name), None)
    return result


def _defer(machine: Machine, function: Function, values: Mapping[str, Value], inside: int, arguments: Arguments) -> Value:
    """Make a generator or a coroutine: its body is executed at unknown times, if at all, and as far as somebody asks for it."""
    why = "generators and coroutines are not followed"
    if inside:  # one inside itself stands for all that are deeper
        values = {name: machine.unknown(name, why, arguments.node) for name in values}

    def run() -> None:
        scope = open_scope(machine, function)
        machine.state.cells.bind(scope.id, values.items())
        execute(machine, scope, function.node)

    havoc.leak(machine, *values.values())  # what it gives may be one of them
    if inside < 2:
        havoc.later(machine, run, why, arguments.node)
    swallows = any(isinstance(part, ast.Try) and part.handlers for part in ast.walk(function.node))
    key = (machine.new_id(), "swallows" if swallows else "generator")
    return Opaque(key, _text(arguments), machine.reason(why, arguments.node))


def open_scope(machine: Machine, function: Function) -> Scope:
    """Make a scope for one call of a function."""
    parent = machine.program.scopes[function.scope]
    bound = frozenset(machine.program.bindings(function.node).bound)
    scope = Scope(machine.new_id(), function.path, function.name, "function", parent.id, parent.module, bound)
    machine.program.scopes[scope.id] = scope
    return scope


def execute(
    machine: Machine, scope: Scope, node: Any, body: Sequence[ast.stmt] | None = None, given: Given | None = None
) -> Value:
    """Execute the body of a function whose parameters are bound, or the part of it, and return what it returns."""
    base = machine.state
    frame = Frame(scope, node, given)
    with machine.entered(frame):
        if isinstance(node, ast.Lambda):
            return machine.evaluate(node.body)
        machine.state = base.fork()
        try:
            machine.execute(node.body if body is None else body)
            frame.returns.append((machine.state, None))
        except Dies:
            pass
        except Leaves:
            frame.skipped += 1
        return machine.meet(base, frame.returns, elsewhere=frame.skipped > 0)


def bind(machine: Machine, function: Function, arguments: Arguments) -> dict[str, Value]:
    """Bind the arguments of a call to the parameters of a function, as Python does."""
    parameters: ast.arguments = function.node.args
    positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    keyword_only = [parameter.arg for parameter in parameters.kwonlyargs]
    bound = dict(zip(positional, arguments.positional, strict=False))
    surplus = arguments.positional[len(positional) :]
    if surplus and parameters.vararg is None:
        raise Dies
    extra: dict[str, Value] = {}
    for name, value in arguments.keywords.items():
        if name in bound:
            raise Dies
        if name in positional or name in keyword_only:
            bound[name] = value
        elif parameters.kwarg is None:
            raise Dies
        else:
            extra[name] = value
    if parameters.vararg is not None:
        bound[parameters.vararg.arg] = machine.unknown("*args", "it is spread") if arguments.spread else tuple(surplus)
    if parameters.kwarg is not None:
        bound[parameters.kwarg.arg] = containers.make_dict(machine, list(extra.items()))
        if arguments.spread:
            containers.forget(machine, bound[parameters.kwarg.arg], "**kwargs", "it is spread", arguments.node)
    defaults = dict(function.defaults)
    missing: set[str] = set()
    for name in (*positional, *keyword_only):
        if name not in bound:
            if arguments.spread:
                missing.add(name)
            elif defaults.get(name, UNBOUND) is UNBOUND:
                raise Dies
            else:
                bound[name] = defaults[name]
    return bound | _unseen(machine, function, missing, arguments.node) if missing else bound


def _unseen(machine: Machine, function: Function, names: set[str], node: ast.expr | None) -> dict[str, Value]:
    """Return parameters that a call does not show: because of what it spreads, or because it only stands for one."""
    spreads = isinstance(node, ast.Call) and (
        any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords)
    )
    why = machine.reason(f"what is spread into `{function.name}` is not known", node) if spreads else None
    parameters: ast.arguments = function.node.args
    with machine.entered(Frame(open_scope(machine, function))):
        every = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
        return {each.arg: unseen(machine, function, each, why) for each in every if each.arg in names}


def call_unknown(machine: Machine, callee: Value, arguments: Arguments) -> Value:
    """Call something of which the source is not at hand: it may call what it is given, and change what it is given."""
    if any(map(mutation.may_change, arguments.values())):
        mutation.elements_change(machine)
    pure = isinstance(callee, External) or (isinstance(callee, Opaque) and callee.pure)
    if isinstance(callee, Opaque) and (found := _looked_up(machine, callee, arguments)) is not None:
        return found
    text = _text(arguments)
    writes_a_kernel = isinstance(callee, External) and callee.path.startswith(PALLAS)  # which calls no other kernel
    for value in arguments.values():
        if not writes_a_kernel:
            hand_on(machine, value, arguments)
        why = "unknown code may have changed it"
        havoc.forget_reachable(machine, value, why, arguments.node, instances=not pure)  # a library does not set our attributes
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
    run: Callable[[], object] = lambda: call(machine, value, Arguments(spread=True, node=node))  # noqa: E731
    havoc.later(machine, run, "an unknown caller may change it", node)
