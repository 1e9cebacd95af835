"""Loops: round by round where the rounds are known, else one round that stands for any."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from codemods import formulas
from codemods.evaluate import havoc, iteration, names, objects
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Exhausted, Loop
from codemods.evaluate.memory import Cell
from codemods.evaluate.state import UNBOUND, State
from codemods.formulas import Formula
from codemods.values import Choice, Opaque, Term, Value, as_int, same

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

MAX_ROUNDS = 1024  # of a loop whose rounds are known
MAX_UNKNOWN_EXITS = 4  # a `while` that may have ended this often is not followed round by round


def leave(machine: Machine, node: ast.Break) -> NoReturn:
    machine.frame.loops[-1].breaks.append(machine.state)
    raise Dies


def next_round(machine: Machine, node: ast.Continue) -> NoReturn:
    machine.frame.loops[-1].continues.append(machine.state)
    raise Dies


def for_loop(machine: Machine, node: ast.For) -> None:
    """Execute a `for` statement: round by round if its elements are known and its body leaves alone what it walks through."""
    iterated = machine.evaluate(node.iter)
    text = ast.unparse(node.target)
    reason = "its elements are not known"

    def begin() -> Formula:
        if objects.iterates(machine, iterated):
            havoc.everything(machine, "an iterator of the source may change it", node.iter)
        havoc.leak_elements(machine, iterated)  # the target may be one of them
        names.assign(machine, node.target, machine.unknown(text, reason, node.iter))
        return machine.coin(f"there is another {text}")

    try:
        walk = iteration.walk(machine, iterated)
    except Unmodelled as why:
        reason = str(why)

        def enter() -> None:  # what is certain of an element is so only where there is one
            names.assign(machine, node.target, iteration.any_element(machine, iterated, text, reason, node.iter))

        return _any_round(machine, begin, node, enter)

    def rounds() -> Iterator[Callable[[], Formula]]:
        for position in range(MAX_ROUNDS):
            yield lambda position=position: start(position)
        raise Exhausted

    def start(position: int) -> Formula:
        try:
            element = walk(position)
        except Unmodelled:
            raise _Unknown from None
        if element is UNBOUND:
            return False
        names.assign(machine, node.target, element)
        return True

    return _follow(machine, rounds(), begin, node)


def while_loop(machine: Machine, node: ast.While) -> None:
    """Execute a `while` statement."""
    begin: Callable[[], Formula] = lambda: machine.truth(machine.evaluate(node.test))  # noqa: E731
    _follow(machine, (begin for _ in range(MAX_ROUNDS)), begin, node)


def _follow(
    machine: Machine, rounds: Iterable[Callable[[], Formula]], begin: Callable[[], Formula], node: ast.For | ast.While
) -> None:
    """Execute a loop round by round, or, where that cannot be followed, one round that stands for any."""
    base, arrivals, returns = machine.state, len(machine.arrivals), len(machine.frame.returns)
    machine.state = base.fork()
    try:
        _each_round(machine, rounds, node)
    except _Unknown:
        machine.state = base
        del machine.arrivals[arrivals:]
        del machine.frame.returns[returns:]
        _any_round(machine, begin, node)


class _Unknown(Exception):
    """How often a loop goes round cannot be followed."""


def _each_round(machine: Machine, rounds: Iterable[Callable[[], Formula]], node: ast.For | ast.While) -> None:
    """Execute the rounds one after the other, as long as each begins for certain."""
    base, before, mark = machine.state, machine.frame.exits(), machine.new_id()
    machine.state = base.fork()
    loop = Loop()
    ended = False
    exits = 0
    for begin in rounds:
        machine.step()
        more = machine.decide(begin())
        if more is None:
            raise _Unknown
        if more is False:
            ended = True
            break
        started = machine.state
        left = machine.frame.exits()
        alive = _round(machine, loop, started, node.body)
        exits += machine.frame.exits() != left or bool(loop.breaks)
        if not alive:
            ended = False
            break
        if isinstance(node, ast.While) and (
            exits > MAX_UNKNOWN_EXITS
            or not havoc.lasting(machine, machine.state.changes(started), mark)  # so that each round does what this one did
        ):
            raise _Unknown
    else:
        raise _Unknown
    arrived = [(state, None) for state in loop.breaks]
    if ended:
        arrived = _with_else(machine, arrived, machine.state, node.orelse)
    machine.meet(base, arrived, elsewhere=machine.frame.exits() != before)


def _with_else(
    machine: Machine, arrived: list[tuple[State, None]], state: State, orelse: Sequence[ast.stmt]
) -> list[tuple[State, None]]:
    """Execute the `else` of a loop where no `break` ended it."""
    machine.state = state
    try:
        machine.execute(orelse)
    except Dies:
        return arrived
    return [*arrived, (machine.state, None)]


def _round(machine: Machine, loop: Loop, started: State, body: Sequence[ast.stmt]) -> bool:
    """Execute the body once; say whether an execution goes on to the next round."""
    machine.state = started.fork()
    before = machine.frame.exits()
    machine.frame.loops.append(loop)
    try:
        machine.execute(body)
        loop.continues.append(machine.state)
    except Dies:
        pass
    finally:
        machine.frame.loops.pop()
    going_on, loop.continues = loop.continues, []
    if not going_on:
        return False
    elsewhere = bool(loop.breaks) or machine.frame.exits() != before
    machine.meet(started, [(state, None) for state in going_on], elsewhere=elsewhere)
    return True


def _any_round(
    machine: Machine, begin: Callable[[], Formula], node: ast.For | ast.While, enter: Callable[[], None] = lambda: None
) -> None:
    """Execute one round that stands for any: everything that a round changes is unknown when it starts.

    What a round changes is found by executing it until it changes nothing that was not already unknown.
    """
    base, before = machine.state, machine.frame.exits()
    arrivals, returns, mark = len(machine.arrivals), len(machine.frame.returns), machine.new_id()
    carried: dict[Cell, Value] = {}  # what a round finds in the cells that an earlier one may have changed
    positive: set[Cell] = set()  # those that hold an unknown integer of at least 1 whenever a round starts
    for attempt in range(12):
        del machine.arrivals[arrivals:]
        del machine.frame.returns[returns:]
        machine.state = base.fork()
        for cell, value in sorted(carried.items(), key=str):
            if value is not UNBOUND:
                machine.state.cells[cell] = value
                continue
            named = "a container" if cell[1] == "contents" else f"`{cell[1]}`"
            havoc.forget(machine, [cell], f"{named}: a loop changes it", node)
            if cell in positive:
                machine.state.cells[cell] = replace(machine.state.cells[cell], at_least=1, kind="int")
        start = machine.state.fork()
        more = begin()
        head = machine.state
        loop = Loop()
        entered = head.assume(more, branch=True)
        alive = False
        if entered is not None:
            machine.state = entered
            enter()
            alive = _round(machine, loop, machine.state, node.body)
        ends = [head, *loop.breaks, *([machine.state] if alive else [])]
        found = {cell: carried.get(cell) for cell in carried}
        for end in ends:
            for cell in havoc.lasting(machine, end.changes(start), mark):
                havoc.leak(machine, end.read(cell))
                found[cell] = _carry(machine, base, cell, end, found.get(cell, base))
        kept = {cell for cell in positive if attempt < 4 and all(_is_positive(end, end.read(cell)) for end in ends)}
        if found == carried and kept == positive:
            break
        new = {cell for cell, value in found.items() if value is UNBOUND and carried.get(cell) is not UNBOUND}
        positive = kept | {cell for cell in new if _is_positive(base, base.read(cell))}
        carried = found
    else:
        raise Exhausted
    arrived = [(state, None) for state in loop.breaks]
    ended = head.assume(formulas.invert(more), branch=False)
    if ended is not None:
        arrived = _with_else(machine, arrived, ended, node.orelse)
    machine.meet(base, arrived, elsewhere=machine.frame.exits() != before)


def _is_positive(state: State, value: Value) -> bool:
    """Say whether a value is certain to be an integer of at least 1."""
    match value:
        case Choice(alternatives):
            return all(_is_positive(state, each) for _, each in alternatives)
        case int() | Term() | Opaque(at_least=int()) if not isinstance(value, bool):
            number = as_int(value)
            return number is not None and state.facts.decide(formulas.at_most(1, number)) is True
        case _:
            return False


def _carry(machine: Machine, base: State, cell: Cell, end: State, before: Value) -> Value:
    """Return what a round may find in a cell that another one leaves so; `UNBOUND` for what is not known.

    A name that is bound in the loop for the first time is either unbound yet or, if it is always the same, that constant.
    """
    value = end.read(cell)
    scope = machine.program.scopes.get(cell[0])
    if scope is None or scope.kind == "class" or base.read(cell) is not UNBOUND:
        return UNBOUND
    if before is not base and not (isinstance(before, Choice) and same(before.alternatives[1][1], value)):
        return UNBOUND
    return (
        before if before is not base else Choice(((formulas.invert(coin := machine.coin("it is bound")), UNBOUND), (coin, value)))
    )
