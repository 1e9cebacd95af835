"""The state of an abstract execution: what every cell holds, and the conditions under which it got here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codemods.evaluate.memory import Cell, Cells
from codemods.facts import Facts
from codemods.formulas import Formula, Truthy, both, either, size
from codemods.values import Choice, Opaque, Reason, Value, describe, same

ABSL_FLAGS = -1
"""Whose cells hold the flags of absl, by their names: a program has them once."""

PATCHED = -2
"""The owner of the cells of what the source puts in the place of something in a foreign module, by its dotted path."""

MAX_ALTERNATIVES = 16
MAX_UNKNOWN = 4  # alternatives of a value, if unknown ones are to be kept apart
MAX_CONDITION = 64  # comparisons in the condition of one alternative


@dataclass(frozen=True)
class Condition:
    """A condition that holds on the way here.

    `branch` says that an execution may as well go another way and end well; a guard that raises, or an assertion, is
    no branch.
    """

    formula: Formula
    branch: bool


class State:
    """Cells and path of one execution; copied where executions part, merged where they meet again.

    `cells` are those that it has written; what it has not written, it reads in `shared`: what modules hold.
    """

    __slots__ = ("_facts", "cells", "epoch", "path", "shared")

    def __init__(
        self,
        cells: Cells,
        shared: Mapping[Cell, Value],
        path: tuple[Condition, ...] = (),
        epoch: int = 0,
        facts: Facts | None = None,
    ) -> None:
        self.cells = cells
        self.shared = shared
        self.path = path
        self.epoch = epoch  # counts the calls of unknown code, after which attributes may have changed
        self._facts = facts  # what the path says, once somebody has asked

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = Facts(condition.formula for condition in self.path)
        return self._facts

    def read(self, cell: Cell) -> Value:
        """Return what a cell holds, or `UNBOUND`."""
        held = self.cells.get(cell, self)
        return self.shared.get(cell, UNBOUND) if held is self else held

    def changes(self, base: State) -> set[Cell]:
        """Return the cells that hold something else here than in `base`."""
        return {cell for cell, value in self.cells.items() if base.read(cell) is not value}

    def fork(self) -> State:
        return State(self.cells.copy(), self.shared, self.path, self.epoch, self._facts)

    def assume(self, formula: Formula, *, branch: bool) -> State | None:
        """Return a copy in which `formula` holds, or None if it cannot."""
        outcome = self.facts.decide(formula)
        if outcome is False:
            return None
        if outcome is True:
            return self.fork()
        return State(self.cells.copy(), self.shared, (*self.path, Condition(formula, branch)), self.epoch)


def merge(base: State, exits: Sequence[State | None], *, elsewhere: bool) -> tuple[State, int] | None:
    """Merge executions that parted at `base` and meet again.

    Args:
        base: the state where they parted; each exit's path continues its path.
        exits: the states in which they arrive, None for one that does not.
        elsewhere: whether some of those that do not arrive end well elsewhere (return, break, skip) and not by raising.

    Returns:
        The state and in how many cells the executions differ, None if none of them arrives.
    """
    arrived = [state for state in exits if state is not None]
    if not arrived:
        return None
    start = len(base.path)
    if len(arrived) == 1:
        (state,) = arrived
        if len(state.path) > start:
            first = Condition(state.path[start].formula, elsewhere)
            state = State(state.cells, state.shared, (*base.path, first, *state.path[start + 1 :]), state.epoch)
        return state, 0
    guards = [guard(state, start) for state in arrived]
    reached = either(*guards)
    known = reached if size(reached) <= MAX_CONDITION else True  # to know less is always sound
    cells, differing = _merge_cells(guards, arrived)
    epoch = max(state.epoch for state in arrived)
    if reached is True:
        return State(cells, base.shared, base.path, epoch, base.facts), differing
    return State(cells, base.shared, (*base.path, Condition(known, elsewhere)), epoch), differing


def guard(state: State, start: int) -> Formula:
    """Return what a state's path adds to its first `start` conditions."""
    return both(*(condition.formula for condition in state.path[start:]))


def _merge_cells(guards: Sequence[Formula], states: Sequence[State]) -> tuple[Cells, int]:
    first, *others = states
    cells = first.cells
    merged: dict[Cell, Value] = {}
    differing: set[Cell] = set()
    for state in others:
        differing.update(cell for cell, value in state.cells.items() if cells.get(cell, state) is not value)
        differing.update(cells.keys() - state.cells.keys())
    for cell in differing:
        merged[cell] = choose((formula, state.read(cell)) for formula, state in zip(guards, states, strict=True))
    return Cells(cells | merged, cells.memory), len(differing)


class _Unbound:
    """What a name holds where it was not assigned."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()


def choose(alternatives: Iterable[tuple[Formula, Value]]) -> Value:
    """Return the value that is one of these, each under its condition; equal ones become one."""
    distinct: list[tuple[Formula, Value]] = []
    for formula, value in _flatten(alternatives):
        if formula is False:
            continue
        for position, (known, other) in enumerate(distinct):
            if same(other, value):
                distinct[position] = (either(known, formula), other)
                break
        else:
            distinct.append((formula, value))
    if len(distinct) > MAX_UNKNOWN:
        distinct = _one_unknown(distinct)
    if len(distinct) == 1:
        return distinct[0][1]
    distinct = [(_shortened(formula), value) for formula, value in distinct]
    if len(distinct) > MAX_ALTERNATIVES:
        some = ", ".join(describe(value) for _, value in distinct[:3])
        reason = Reason(f"it may be any of {len(distinct)} values: {some}, ...")
        return Opaque(("many", object()), "one of many values", reason)
    return Choice(tuple(distinct))


def _one_unknown(alternatives: Sequence[tuple[Formula, Value]]) -> list[tuple[Formula, Value]]:
    """Make one of all alternatives that are unknown: of many, each combined with others, nothing more comes to be known."""
    unknown = [(formula, value) for formula, value in alternatives if isinstance(value, Opaque)]
    if len(unknown) < 2:
        return list(alternatives)
    known = [(formula, value) for formula, value in alternatives if not isinstance(value, Opaque)]
    first: Opaque = unknown[0][1]
    pure = all(value.pure for _, value in unknown)
    one = Opaque(("one of", object()), first.text, first.reason, pure=pure)
    return [*known, (either(*(formula for formula, _ in unknown)), one)]


def _shortened(formula: Formula) -> Formula:
    """Return a condition of workable length: of one that is too long, all that is kept is that it may hold or not."""
    return formula if size(formula) <= MAX_CONDITION else Truthy((object(),), "a long condition")


def _flatten(alternatives: Iterable[tuple[Formula, Value]]) -> Iterable[tuple[Formula, Value]]:
    for formula, value in alternatives:
        if isinstance(value, Choice):
            yield from ((both(formula, inner), each) for inner, each in value.alternatives)
        else:
            yield formula, value
