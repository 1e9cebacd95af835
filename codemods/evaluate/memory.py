"""The cells that an execution has written, and what the machine keeps in mind of the writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from codemods.values import Value

Cell: TypeAlias = tuple[int, str]
"""A place that holds a value: a name of a scope, an attribute of an object, or the contents of a container."""

Written: TypeAlias = dict[Cell, list[Value]]
"""The cells that were written in some stretch of an execution, each with all that was written to it."""


@dataclass
class Memory:
    """What is known of the writing of all states of one machine.

    Attributes:
        volatile: cells that code which runs at an unknown time changes, each with the unknown value that it holds for good.
        times: when each cell was last written.
    """

    volatile: dict[Cell, Value] = field(default_factory=dict[Cell, Value])
    times: dict[Cell, int] = field(default_factory=dict[Cell, int])
    now: int = 0
    _logs: list[Written] = field(default_factory=list[Written])

    def note(self, cell: Cell, value: Value) -> Value:
        """Take note that a cell is written, and return what it holds then."""
        self.now += 1
        self.times[cell] = self.now
        if self._logs:
            self._logs[-1].setdefault(cell, []).append(value)
        return self.volatile.get(cell, value) if self.volatile else value

    @contextmanager
    def watching(self) -> Iterator[Written]:
        """Give a log of what is written inside."""
        written: Written = {}
        self._logs.append(written)
        try:
            yield written
        finally:
            self._logs.pop()
            if self._logs:
                for cell, values in written.items():
                    self._logs[-1].setdefault(cell, []).extend(values)


class Cells(dict[Cell, Value]):
    """Cells and what they hold; writing to one is noted in the memory."""

    __slots__ = ("memory",)

    def __init__(self, held: Mapping[Cell, Value], memory: Memory) -> None:
        super().__init__(held)
        self.memory = memory

    def __setitem__(self, cell: Cell, value: Value) -> None:
        super().__setitem__(cell, self.memory.note(cell, value))

    def bind(self, owner: int, values: Iterable[tuple[str, Value]]) -> None:
        """Write names of a scope or attributes of an object."""
        for name, value in values:
            self[(owner, name)] = value

    def copy(self) -> Cells:
        return Cells(self, self.memory)
