"""`try` and `with`: blocks that an exception may leave before their end, and what is executed then."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import havoc, names, objects
from codemods.evaluate.frameworks import goes_on_after_failure, is_failure_expected
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.memory import Written
from codemods.evaluate.state import UNBOUND
from codemods.values import Choice, External, Function, Instance, Iterator, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def with_statement(machine: Machine, node: ast.With | ast.AsyncWith) -> None:
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
    if isinstance(value, Iterator) and (given := machine.contents(value)):  # of a generator under `contextmanager`
        return given[0]
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
            return name in ("contextlib.suppress", "contextlib.ExitStack", "pytest.raises") or goes_on_after_failure(value.text)
        case Opaque(text=text):
            return goes_on_after_failure(text)
        case Choice(alternatives):
            return any(_swallows(machine, each) for _, each in alternatives)
        case _:
            return False


def try_statement(machine: Machine, node: ast.Try | ast.TryStar) -> None:
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
