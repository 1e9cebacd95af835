"""Parts of the shape of an unknown array: `x.shape[1:]`, `*_, n = x.shape`.

How many sizes a part has rests on the rank of the array, which is not known; what a part of so many sizes is equal to, is.
"""

from __future__ import annotations

from dataclasses import dataclass

from codemods import formulas, terms
from codemods.formulas import Formula
from codemods.values import Opaque, Slice, Value


@dataclass(frozen=True)
class Part:
    """`shape[lower:upper]` of an unknown array of this shape and rank."""

    shape: Opaque
    rank: Opaque
    lower: int | None = None
    upper: int | None = None

    def length(self, rank: int) -> int:
        """Return how many sizes it has if the array is of this rank."""
        return len(range(rank)[self.lower : self.upper])

    def sizes(self, count: int) -> tuple[Formula, tuple[Opaque, ...]] | None:
        """Return the condition under which it has `count` sizes, and which these are then; None where that cannot be told."""
        beyond = abs(self.lower or 0) + abs(self.upper or 0) + count + 1  # from here on it keeps its length, or always grows
        ranks = [rank for rank in range(beyond + 1) if self.length(rank) == count]
        if not ranks:
            return False, ()
        if ranks != [*range(ranks[0], ranks[-1] + 1)]:
            return None
        rank = terms.of(self.rank.symbol())
        if ranks[-1] == beyond:  # and for all greater ones
            first = self.lower or 0
            return formulas.at_most(ranks[0], rank), tuple(self.shape.item(first + position) for position in range(count))
        if len(ranks) == 1:
            first = range(ranks[0])[self.lower : self.upper].start
            return formulas.equal(rank, ranks[0]), tuple(self.shape.item(first + position) for position in range(count))
        return (formulas.at_most(rank, ranks[-1]), ()) if ranks[0] == count == 0 else None

    def item(self, index: int) -> Opaque:
        """Return the size at an index, if there is one."""
        first, end = self.lower or 0, self.upper
        if index >= 0 and first >= 0 and (end is None or end < 0 or first + index < end):
            return self.shape.item(first + index)
        if index < 0 and (end is None or end < 0) and (first >= 0 or first <= (end or 0) + index):
            return self.shape.item((end or 0) + index)
        return self.shape.item(Slice(self.lower, self.upper, None)).item(index)  # which it is rests on the rank


def part_of(value: Value) -> Part | None:
    """Return the part of a shape that a value is: the whole, or what a slice makes of it; None for any other value."""
    match value:
        case Opaque() if (rank := value.length) is not None:
            return Part(value, rank)
        case Opaque(key=((_, ".", "shape", _) as key, "[]", Slice(None | int() as lower, None | int() as upper, None))):
            shape = Opaque(key, value.text[: value.text.rindex("[")], value.reason, pure=value.pure)
            return Part(shape, shape.length, lower, upper) if shape.length is not None else None
        case _:
            return None
