"""Ranges of integers, open at either end."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Interval(NamedTuple):
    """The integers from `low` to `high`; -inf and inf stand for no bound."""

    low: float = -inf
    high: float = inf

    def __add__(self, other: object) -> Interval:
        if not isinstance(other, Interval):
            return NotImplemented
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: object) -> Interval:
        if not isinstance(other, Interval):
            return NotImplemented
        products = [0 if 0 in (a, b) else a * b for a in self for b in other]
        return Interval(min(products), max(products))

    def __floordiv__(self, divisor: int) -> Interval:
        """Divide by a positive number."""
        low = self.low if self.low == -inf else self.low // divisor
        return Interval(low, self.high if self.high == inf else self.high // divisor)

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))
