"""Calls: what is called, and how a function of the scanned tree is executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codemods.callees import CALLEES, Callee
from codemods.evaluate import containers, generators, havoc, objects, outside
from codemods.evaluate.annotations import refined, unseen
from codemods.evaluate.arguments import Arguments, arguments_of
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.externals import attempt, call_external, call_method, call_unknown
from codemods.evaluate.machine import MAX_DEPTH, MAX_RECURSION, Arrival, Caller, Dies, Exhausted, Frame, Given, Leaves
from codemods.evaluate.program import Scope
from codemods.evaluate.state import UNBOUND
from codemods.evaluate.transforms import call_transformed
from codemods.formulas import Truthy, conjuncts
from codemods.values import (
    Array,
    Bound,
    Choice,
    Class,
    Contracted,
    External,
    Function,
    Instance,
    Opaque,
    Partial,
    Transformed,
    Value,
    ancestry,
    is_constant,
    same,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def evaluate_call(machine: Machine, node: ast.Call) -> Value:
    """Evaluate a call expression."""
    callee = machine.evaluate(node.func)
    return call(machine, callee, arguments_of(machine, node))


def call(machine: Machine, callee: Value, arguments: Arguments) -> Value:
    """Call a value; each of its alternatives under its own condition."""
    machine.step()
    if isinstance(callee, Choice):
        return _call_each(machine, callee, arguments)
    match callee:
        case External(path) if path in CALLEES:
            return _arrive(machine, CALLEES[path], arguments)
        case External(path):
            return call_external(machine, path, arguments)
        case Contracted():
            return _call_contracted(machine, callee, arguments)
        case Function():
            return call_function(machine, callee, arguments)
        case Class():
            return attempt(machine, arguments, lambda: objects.construct(machine, callee, arguments))
        case Partial():
            return call(machine, callee.function, _joined(callee, arguments))
        case Transformed():
            return call_transformed(machine, callee, arguments)
        case Bound(receiver, str(name)):
            return call_method(machine, receiver, name, arguments)
        case Bound(receiver, function):
            return call(machine, function, arguments.after(receiver))
        case Instance():
            method = objects.class_member(machine, callee.cls, "__call__")
            if method is UNBOUND and External("torch.nn.Module") in ancestry(callee.cls):
                method = objects.class_member(machine, callee.cls, "forward")
            if isinstance(method, Function | Contracted):
                return call(machine, method, arguments.after(callee))
        case Opaque() if arguments.node is not None and outside.may_be_as_before(callee):
            machine.program.changed_callees.setdefault(id(arguments.node), callee.reason)
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


def _of_any_width(arguments: Arguments) -> Arguments:
    """Forget the dtypes of arrays that are of 64 bits or of 32, as JAX is told."""

    def seen(value: Value) -> Value:
        wide = isinstance(value, Array) and value.dtype is not None and value.dtype.name in _OF_TWO_WIDTHS
        return replace(value, dtype=None) if wide else value

    keywords = {name: seen(value) for name, value in arguments.keywords.items()}
    return replace(arguments, positional=tuple(map(seen, arguments.positional)), keywords=keywords)


def _with_kinds(machine: Machine, arguments: Arguments) -> Arguments:
    """Take note of the unknown arguments that a guard has found to be integers. It takes True for one, as an annotation does."""
    if not any(isinstance(value, Opaque) for value in (*arguments.positional, *arguments.keywords.values())):
        return arguments
    asked = {each.key for condition in machine.state.path for each in conjuncts(condition.formula) if isinstance(each, Truthy)}

    def seen(value: Value) -> Value:
        is_int = isinstance(value, Opaque) and (value.key, "isinstance", "int") in asked
        return replace(value, kind="int") if is_int else value

    keywords = {name: seen(value) for name, value in arguments.keywords.items()}
    return replace(arguments, positional=tuple(map(seen, arguments.positional)), keywords=keywords)


_OF_TWO_WIDTHS = frozenset({"int32", "int64", "uint32", "uint64"})


def _arrive(machine: Machine, callee: Callee, arguments: Arguments) -> Value:
    """Note that an execution reaches a callee, and return what a kernel does: an array like its query."""
    if any(machine.program.may_be_wide(frame.scope.path) for frame in machine.frames):
        arguments = _of_any_width(arguments)
    arguments = _with_kinds(machine, arguments)
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
                callers=tuple(Caller(frame.function, frame.given) for frame in machine.frames),
                interpreted=machine.tracing > 0,
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


def call_function(machine: Machine, function: Function, arguments: Arguments) -> Value:
    """Execute a function of the scanned tree with these arguments."""
    node = function.node
    machine.called.add(id(node))
    inside = sum(frame.function is node for frame in machine.frames)
    if len(machine.frames) > MAX_DEPTH or inside > MAX_RECURSION:
        raise Exhausted  # an unknown result would leave out what the call does besides
    values = bind(machine, function, arguments)
    if isinstance(node, ast.AsyncFunctionDef) or Bindings.of(node).yields:
        return _defer(machine, function, values, inside, arguments)
    if function.kind == "memoized":
        return _remembered(machine, function, values, arguments)
    return _run(machine, function, values, arguments.nodes)


def _remembered(machine: Machine, function: Function, values: Mapping[str, Value], arguments: Arguments) -> Value:
    """Call a function that keeps its results: what it gives once for constants, it gives again, whatever has changed since."""
    if not all(map(is_constant, values.values())):
        result = _run(machine, function, values, arguments.nodes)
        why = "it may be the result of an earlier call"
        return machine.unknown(arguments.text, why, arguments.node) if is_constant(result) else result
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
    return machine.unknown(arguments.text, why, arguments.node)


def _run(machine: Machine, function: Function, values: Mapping[str, Value], given: Given | None = None) -> Value:
    """Execute the body of a function whose parameters have these values."""
    node = function.node
    scope = open_scope(machine, function)
    if any(isinstance(value, Opaque) for value in values.values()):
        with machine.entered(Frame(scope)):
            values = refined(machine, function, dict(values))
    machine.state.cells.bind(scope.id, values.items())
    result = execute(machine, scope, node, given=given)
    if not Bindings.of(node).inner:  # no closure can see these names any more
        for name in scope.local:
            machine.state.cells.pop((scope.id, name), None)
    return result


def _defer(machine: Machine, function: Function, values: Mapping[str, Value], inside: int, arguments: Arguments) -> Value:
    """Make a generator or a coroutine: its body is executed at unknown times, if at all, and as far as somebody asks for it."""
    if not inside and (
        given := generators.called(machine, function, values, Frame(open_scope(machine, function), function.node))
    ):
        return given
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
    return Opaque(key, arguments.text, machine.reason(why, arguments.node))


def open_scope(machine: Machine, function: Function) -> Scope:
    """Make a scope for one call of a function."""
    parent = machine.program.scopes[function.scope]
    bound = frozenset(Bindings.of(function.node).bound)
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
        machine.frames[-2].skipped += frame.skipped  # a test that a helper skips ends for whoever calls the helper
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
