"""Statements: what they do to the state, and where executions part and meet."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import expressions, loops, methods, modules, mutation, names, objects, patterns
from codemods.evaluate.calls import Arguments, call
from codemods.evaluate.frameworks import TRANSPARENT, is_failure_expected
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.state import UNBOUND, Cell, State
from codemods.values import Array, External, Function, ListRef, Opaque, Partial, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def execute(machine: Machine, statements: Sequence[ast.stmt]) -> None:
    """Execute statements in order; raises `Dies` where no execution gets to their end."""
    for statement in statements:
        machine.step()
        machine.frame.statement = statement
        executor = _EXECUTORS.get(type(statement))
        if executor is not None:
            executor(machine, statement)


def _expression(machine: Machine, node: ast.Expr) -> None:
    machine.evaluate(node.value)


def _assign(machine: Machine, node: ast.Assign) -> None:
    value = machine.evaluate(node.value)
    for target in node.targets:
        names.assign(machine, target, value)


def _annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        names.assign(machine, node.target, machine.evaluate(node.value))


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    """`x op= y`; a list is extended in place, everything else is made anew."""
    target: Any = ast.copy_location(_as_load(node.target), node.target)
    left, right = machine.evaluate(target), machine.evaluate(node.value)
    if isinstance(left, ListRef) and isinstance(node.op, ast.Add):
        methods.METHODS[(ListRef, "extend")](machine, left, Arguments((right,), node=node.value))
        return
    if isinstance(left, ListRef):
        objects.forget(machine, left, node)
        return
    if isinstance(left, Array):
        mutation.method_changes(machine, left, "augmented", node)
    apply: Callable[[Value, Value], Value] = lambda a, b: expressions.augmented(machine, node.op, a, b)  # noqa: E731
    names.assign(machine, node.target, machine.spread(apply, left, right, text=ast.unparse(node)[:60]))


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value, name):
            return ast.Attribute(value, name, ast.Load())
        case ast.Subscript(value, index):
            return ast.Subscript(value, index, ast.Load())
        case _:
            return target


def _if(machine: Machine, node: ast.If) -> None:
    condition = machine.truth(machine.evaluate(node.test))
    machine.part(condition, (lambda: machine.execute(node.body), lambda: machine.execute(node.orelse)))


def _return(machine: Machine, node: ast.Return) -> None:
    value = machine.evaluate(node.value) if node.value is not None else None
    machine.frame.returns.append((machine.state, value))
    raise Dies


def _raise(machine: Machine, node: ast.Raise) -> None:
    raised = machine.evaluate(node.exc) if node.exc is not None else None
    if isinstance(raised, External) and raised.path.rpartition(".")[2] in ("SkipTest", "Skipped"):
        raise Leaves
    raise Dies


def _assert(machine: Machine, node: ast.Assert) -> None:
    formula = machine.truth(machine.evaluate(node.test))
    assumed = machine.state.assume(formula, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed


def _with(machine: Machine, node: ast.With | ast.AsyncWith) -> None:
    """Execute the body; `pytest.raises` and its like swallow what it raises."""
    expected = False
    for item in node.items:
        expected = expected or is_failure_expected(item.context_expr)
        value = machine.evaluate(item.context_expr)
        if item.optional_vars is not None:
            names.assign(machine, item.optional_vars, _entered(machine, value, item.context_expr))
    if not expected:
        machine.execute(node.body)
        return
    machine.expected += 1
    base = machine.state.fork()
    try:
        with suppress(Dies):
            machine.execute(node.body)
    finally:
        machine.expected -= 1
    changed = loops.assigned(machine, base, node.body)
    machine.state = base
    loops.forget(machine, changed, "an exception may come before it is set", node)


def _entered(machine: Machine, value: Value, node: ast.expr) -> Value:
    return machine.unknown(
        ast.unparse(node)[:60], "what a context manager gives is not followed", node, pure=isinstance(value, External)
    )


def _try(machine: Machine, node: Any) -> None:
    """Execute the body, and each handler in an execution in which the body has got nobody knows how far."""
    base = machine.state
    changed: set[Cell] = set()

    def body() -> None:
        try:
            machine.execute(node.body)
        finally:
            changed.update(machine.attempts[-1])
            changed.update(loops.assigned(machine, base, node.body))
        machine.execute(node.orelse)

    def handle(handler: ast.ExceptHandler) -> None:
        loops.forget(machine, changed, "an exception may come before it is set", node)
        if handler.name:
            names.bind(machine, handler.name, machine.unknown(handler.name, "an exception", handler))
        machine.execute(handler.body)

    def attempt(handlers: Sequence[ast.ExceptHandler]) -> None:
        if not handlers:
            return body()
        succeeds = formulas.invert(machine.coin("an exception is raised"))
        arms = (lambda: attempt(handlers[1:]), lambda: handle(handlers[0]))
        return machine.part(succeeds, arms, branches=(False, True))

    machine.attempts.append(set())
    try:
        attempt(node.handlers)
    finally:
        changed |= machine.attempts.pop()
        if node.finalbody:
            _finally(machine, base, changed, node)


def _finally(machine: Machine, base: State, changed: set[Cell], node: ast.Try) -> None:
    """Execute `finally` for what leaves early, nobody knows where, and then for what gets to the end."""
    after = machine.state
    early = base.assume(machine.coin("the block is left early"), branch=True)
    assert early is not None
    machine.state = early
    loops.forget(machine, changed, "the block may be left before or after it is set", node)
    try:
        machine.execute(node.finalbody)
    except Dies:
        pass
    finally:
        machine.state = after
    machine.execute(node.finalbody)


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    value: Value = objects.make_function(machine, node, node.name)
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, value, machine.evaluate(decorator), decorator)
    names.bind(machine, node.name, value)


def _decorated(machine: Machine, value: Value, decorator: Value, node: ast.expr) -> Value:
    """Apply a decorator: one of a test framework or of typing leaves the function as it is."""
    path = _origin(decorator)
    if path in ("builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property"):
        kind = "property" if path.endswith("property") else path.rpartition(".")[2]
        return dataclasses.replace(value, kind=kind) if isinstance(value, Function) else value
    if path.startswith(TRANSPARENT):
        return value
    return call(machine, decorator, Arguments((value,), node=node))


def _origin(decorator: Value) -> str:
    match decorator:
        case External(path) | Partial(External(path)) | Opaque(key=(_, "call", str(path))):
            return path
        case _:
            return ""


def _class(machine: Machine, node: ast.ClassDef) -> None:
    cls: Value = objects.make_class(machine, node)
    for decorator in reversed(node.decorator_list):
        cls = objects.decorated_class(cls, _origin(machine.evaluate(decorator)))
    names.bind(machine, node.name, cls)


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            names.bind(machine, target.id, UNBOUND)
        elif isinstance(target, ast.Attribute):
            objects.set_attribute(machine, machine.evaluate(target.value), target.attr, UNBOUND)
        elif isinstance(target, ast.Subscript):
            objects.forget(machine, machine.evaluate(target.value), node)


def _match(machine: Machine, node: ast.Match) -> None:
    """Try the cases in order; a pattern of constants is compared, any other may match or not."""
    subject = machine.evaluate(node.subject)

    def attempt(cases: Sequence[ast.match_case]) -> None:
        if not cases:
            return None
        case, *rest = cases
        matches = patterns.match(machine, case.pattern, subject)
        if case.guard is not None:
            matches = formulas.both(matches, machine.truth(machine.evaluate(case.guard)))
        return machine.part(matches, (lambda: machine.execute(case.body), lambda: attempt(rest)))

    attempt(node.cases)


_EXECUTORS: Mapping[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: loops.for_loop,
    ast.AsyncFor: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Break: loops.leave,
    ast.Continue: loops.next_round,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Import: modules.statement,
    ast.ImportFrom: modules.statement,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Delete: _delete,
    ast.Match: _match,
}
