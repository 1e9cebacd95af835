"""Statements: what they do to the state, and where executions part and meet."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import (
    annotations,
    expressions,
    havoc,
    loops,
    methods,
    modules,
    mutation,
    names,
    objects,
    operators,
    patterns,
)
from codemods.evaluate.calls import Arguments, call
from codemods.evaluate.frameworks import MARKS, TRANSPARENT, is_failure_expected
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.memory import Written
from codemods.evaluate.state import UNBOUND
from codemods.values import Array, Choice, Class, DictRef, External, Function, Instance, ListRef, Opaque, Partial, Value

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
    if machine.frame.scope.kind != "function":
        annotations.run(machine, node.annotation)


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    """`x op= y`; a list is extended in place, everything else is made anew."""
    place = names.place(machine, node.target)
    left, right = names.held(machine, place), machine.evaluate(node.value)

    def apply(held: Value, by: Value) -> Value:
        match held:
            case ListRef() if isinstance(node.op, ast.Add):
                methods.METHODS[(ListRef, "extend")](machine, held, Arguments((by,), node=node.value))
            case DictRef() if isinstance(node.op, ast.BitOr):
                methods.METHODS[(DictRef, "update")](machine, held, Arguments((by,), node=node.value))
            case ListRef() | DictRef():
                objects.forget(machine, held, node)
            case Instance():
                name = f"__i{operators.DUNDERS[type(node.op)]}__"
                changed = objects.special(machine, held, name, by)
                return expressions.augmented(machine, node.op, held, by) if changed is UNBOUND else changed
            case _:
                return expressions.augmented(machine, node.op, held, by)
        return held

    if isinstance(left, Choice) and any(isinstance(each, ListRef | DictRef | Instance) for _, each in left.alternatives):
        havoc.leak(machine, left)
        havoc.disturb(machine, "one of several objects is changed in place", node)
    if isinstance(left, Array):
        mutation.method_changes(machine, left, "augmented", node)
    if isinstance(left, Opaque):
        havoc.disturb(machine, "it may be extended in place under another name", node)
    names.put(machine, place, machine.spread(apply, left, right, text=ast.unparse(node)[:60]))


def _if(machine: Machine, node: ast.If) -> None:
    condition = machine.truth(machine.evaluate(node.test))
    machine.part(condition, (lambda: machine.execute(node.body), lambda: machine.execute(node.orelse)))


def _return(machine: Machine, node: ast.Return) -> None:
    value = machine.evaluate(node.value) if node.value is not None else None
    machine.frame.returns.append((machine.state, value))
    raise Dies


def _raise(machine: Machine, node: ast.Raise) -> None:
    raised = machine.evaluate(node.exc) if node.exc is not None else None
    havoc.leak(machine, raised)  # to whoever handles it
    if isinstance(raised, External) and raised.path.rpartition(".")[2] in ("SkipTest", "Skipped"):
        raise Leaves
    raise Dies


def _assert(machine: Machine, node: ast.Assert) -> None:
    formula = machine.truth(machine.evaluate(node.test))
    if node.msg is not None and machine.decide(formula) is not True:  # it is evaluated, for a handler to see, where it fails
        machine.part(formula, (lambda: None, lambda: _fail(machine, node.msg)), branches=(False, False))
    assumed = machine.state.assume(formula, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed


def _fail(machine: Machine, message: ast.expr | None) -> None:
    if message is not None:
        machine.evaluate(message)
    raise Dies


def _with(machine: Machine, node: ast.With | ast.AsyncWith) -> None:
    """Enter the context managers one after the other, and execute the body."""

    def enter(items: Sequence[ast.withitem]) -> None:
        if not items:
            return machine.execute(node.body)
        item, *rest = items
        expected = is_failure_expected(item.context_expr)
        value = machine.evaluate(item.context_expr)
        given = _entered(machine, value, item.context_expr)
        if item.optional_vars is not None:
            names.assign(machine, item.optional_vars, given)
        body: Callable[[], None] = lambda: enter(rest)  # noqa: E731
        if expected:
            return _expecting(machine, body, node)
        if _swallows(machine, value):
            _attempt(machine, lambda: _finally(machine, body, lambda: _left(machine, value), node), [lambda: None], node)
        elif isinstance(value, Instance):
            _finally(machine, body, lambda: _left(machine, value), node)
        else:
            body()
        return None

    enter(node.items)


def _expecting(machine: Machine, body: Callable[[], None], node: ast.AST) -> None:
    """Execute what is expected to fail; where, nobody knows."""
    machine.expected += 1
    base, mark = machine.state, machine.new_id()
    machine.state = base.fork()
    try:
        with machine.memory.watching() as written, suppress(Dies):
            body()
    finally:
        machine.expected -= 1
    machine.state = base.fork()
    havoc.interrupt(machine, written, mark, "an exception may come before it is set", node)


def _entered(machine: Machine, value: Value, node: ast.expr) -> Value:
    """Return what entering a context manager gives."""
    if isinstance(value, Instance):
        given = objects.special(machine, value, "__enter__")
        if given is not UNBOUND:
            return given
    havoc.leak(machine, value)
    return machine.unknown(
        ast.unparse(node)[:60], "what a context manager gives is not followed", node, pure=isinstance(value, External)
    )


def _left(machine: Machine, value: Value) -> None:
    if isinstance(value, Instance):
        unknown = [machine.unknown("an exception", "what leaves the block is not known") for _ in range(3)]
        objects.special(machine, value, "__exit__", *unknown)


def _swallows(machine: Machine, value: Value) -> bool:
    """Say whether a context manager may end an exception: one of the source that handles it, or one made for it."""
    match value:
        case Instance(cls=cls):
            leaving = objects.class_member(machine, cls, "__exit__")
            if not isinstance(leaving, Function):
                return leaving is not UNBOUND
            returns = (part.value for part in ast.walk(leaving.node) if isinstance(part, ast.Return))
            return not all(each is None or (isinstance(each, ast.Constant) and not each.value) for each in returns)
        case Opaque(key=(_, "swallows")):
            return True
        case Opaque(key=(_, "call", str(name))):
            return name in ("contextlib.suppress", "contextlib.ExitStack", "pytest.raises")
        case _:
            return False


def _try(machine: Machine, node: ast.Try | ast.TryStar) -> None:
    """Execute the body, and each handler in an execution in which the body has got nobody knows how far."""

    def handle(handler: ast.ExceptHandler) -> None:
        if handler.type is not None:
            machine.evaluate(handler.type)
        if handler.name:
            names.bind(machine, handler.name, machine.unknown(handler.name, "an exception", handler))
        machine.execute(handler.body)
        if handler.name:
            names.bind(machine, handler.name, UNBOUND)

    def attempt() -> None:
        handlers = [lambda handler=handler: handle(handler) for handler in node.handlers]
        _attempt(machine, lambda: machine.execute(node.body), handlers, node, lambda: machine.execute(node.orelse))

    if node.finalbody:
        _finally(machine, attempt, lambda: machine.execute(node.finalbody), node)
    else:
        attempt()


def _finally(machine: Machine, body: Callable[[], None], final: Callable[[], None], node: ast.AST) -> None:
    """Execute a body, and what follows it for all that leaves it: at its end, by `return`, `break` or `continue`, by raising."""
    base, mark = machine.state, machine.new_id()
    exits = _exits(machine)
    sizes = [len(each) for each in exits]
    ends = True
    with machine.memory.watching() as written:
        try:
            body()
        except Dies:
            ends = False
    after = machine.state
    for kind, size in zip(exits, sizes, strict=True):
        left, kind[size:] = kind[size:], []
        for way in left:  # a state, or with the value that is returned
            machine.state = way[0] if isinstance(way, tuple) else way
            with suppress(Dies):
                final()
                kind.append((machine.state, way[1]) if isinstance(way, tuple) else machine.state)
    raising = base.assume(machine.coin("the block raises"), branch=True)
    assert raising is not None
    machine.state = raising
    havoc.interrupt(machine, written, mark, "the block may be left before or after it is set", node)
    with suppress(Dies, Leaves):
        final()
    machine.state = after
    if not ends:
        raise Dies
    final()


def _exits(machine: Machine) -> list[list[Any]]:
    """Return where the executions are kept that leave the function or the round of a loop."""
    loops = [each for loop in machine.frame.loops[-1:] for each in (loop.breaks, loop.continues)]
    return [machine.frame.returns, *loops]


def _attempt(
    machine: Machine,
    body: Callable[[], None],
    handlers: Sequence[Callable[[], None]],
    node: ast.AST,
    otherwise: Callable[[], None] = lambda: None,
) -> None:
    """Execute a body, and each handler in an execution in which the body has got nobody knows how far."""
    mark = machine.new_id()
    written: Written = {}

    def run() -> None:
        with machine.memory.watching() as log:
            try:
                body()
            finally:
                written.update(log)
        otherwise()

    def handle(handler: Callable[[], None]) -> None:
        havoc.interrupt(machine, written, mark, "an exception may come before it is set", node)
        handler()

    def attempt(left: Sequence[Callable[[], None]]) -> None:
        if not left:
            return run()
        succeeds = formulas.invert(machine.coin("an exception is raised"))
        arms = (lambda: attempt(left[1:]), lambda: handle(left[0]))
        return machine.part(succeeds, arms, branches=(False, True))

    attempt(handlers)


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    value: Value = objects.make_function(machine, node, node.name)
    arguments = node.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    annotations.run(machine, *(each.annotation for each in parameters if each is not None), node.returns)
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Call) and _marks_a_test(machine.evaluate(decorator.func)):
            continue
        value = _decorated(machine, value, machine.evaluate(decorator), decorator)
    names.bind(machine, node.name, value)


def _decorated(machine: Machine, value: Value, decorator: Value, node: ast.expr) -> Value:
    """Apply a decorator: one of a test framework or of typing leaves the function as it is."""
    path = _origin(decorator)
    if path in ("builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property"):
        kind = path.rpartition(".")[2].replace("cached_property", "cached")
        return dataclasses.replace(value, kind=kind) if isinstance(value, Function) else value
    if path in ("functools.lru_cache", "functools.cache") and isinstance(value, Function):
        return dataclasses.replace(value, kind="memoized")
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
    decorators = [machine.evaluate(decorator) for decorator in node.decorator_list]
    cls: Value = objects.make_class(machine, node)
    for decorator, written in zip(reversed(decorators), reversed(node.decorator_list), strict=True):
        if isinstance(decorator, Function | Class | Instance):  # of the source: it may give anything
            cls = call(machine, decorator, Arguments((cls,), node=written))
        elif isinstance(cls, Class):
            cls = objects.decorated_class(cls, _origin(decorator))
    names.bind(machine, node.name, cls)


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            names.bind(machine, target.id, UNBOUND)
        elif isinstance(target, ast.Attribute):
            objects.delete_attribute(machine, machine.evaluate(target.value), target.attr)
        elif isinstance(target, ast.Subscript):
            receiver = machine.evaluate(target.value)
            machine.evaluate(target.slice)
            objects.forget(machine, receiver, node)
            if not isinstance(receiver, ListRef | DictRef):
                havoc.disturb(machine, "it may have been changed under another name", node)


def _marks_a_test(decorator: Value) -> bool:
    """Say whether a decorator only tells the framework of a test: its arguments are conditions that may take long to follow."""
    return isinstance(decorator, External) and decorator.path.startswith(MARKS)


def _match(machine: Machine, node: ast.Match) -> None:
    """Try the cases in order; a pattern of constants is compared, any other may match or not."""
    subject = machine.evaluate(node.subject)

    def attempt(cases: Sequence[ast.match_case]) -> None:
        if not cases:
            return None
        case, *rest = cases
        cells = [names.cell_of(machine, name) for name in patterns.captured(case.pattern)]
        before = [(cell, machine.state.read(cell)) for cell in cells]
        matches = patterns.match(machine, case.pattern, subject)

        def matched() -> None:
            if case.guard is None:
                return machine.execute(case.body)
            guard = machine.truth(machine.evaluate(case.guard))
            return machine.part(guard, (lambda: machine.execute(case.body), lambda: attempt(rest)))

        def failed() -> None:  # then nothing is captured, unlike where a guard fails
            machine.state.cells.update(before)
            attempt(rest)

        return machine.part(matches, (matched, failed))

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
