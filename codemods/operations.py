"""Operations on integers that are no polynomials: floor division, remainders, extremes and divisors.

A division is only ever written down for an execution that got past it, so its divisor is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from codemods.terms import Atom, Int, Operation, add, divide, of, replace_top, subtract


def floordiv(value: Int, divisor: Int) -> Int:
    """Return `value // divisor`; raises ZeroDivisionError for a divisor that is 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor
    if divisor == 0:
        raise ZeroDivisionError
    quotient, rest = divide(value, divisor)
    if rest == 0 or (isinstance(rest, int) and isinstance(divisor, int)):
        return quotient  # a constant rest is smaller than a constant divisor
    return add(quotient, of(Operation("floordiv", (rest, divisor))))


def mod(value: Int, divisor: Int) -> Int:
    """Return `value % divisor`; raises ZeroDivisionError for a divisor that is 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor
    if divisor == 0:
        raise ZeroDivisionError
    _, rest = divide(_unfold(value, divisor), divisor)
    if isinstance(rest, int) and isinstance(divisor, int):
        return rest
    if rest == 0:
        return 0
    return of(Operation("mod", (rest, divisor)))


def _unfold(value: Int, divisor: Int) -> Int:
    """Replace each `x % m` with m a multiple of `divisor` by `x`, which is the same modulo `divisor`."""

    def congruent(atom: Atom) -> Int:
        match atom:
            case Operation("mod", (inner, modulus)) if divide(modulus, divisor)[1] == 0:
                return _unfold(inner, divisor)
            case _:
                return of(atom)

    return replace_top(value, congruent)


def absolute(value: Int) -> Int:
    return abs(value) if isinstance(value, int) else of(Operation("abs", (value,)))


def minimum(left: Int, right: Int) -> Int:
    if left == right:
        return left
    gap = subtract(left, right)
    if isinstance(gap, int):
        return left if gap < 0 else right
    return of(Operation("min", (left, right)))


def maximum(left: Int, right: Int) -> Int:
    if left == right:
        return left
    gap = subtract(left, right)
    if isinstance(gap, int):
        return left if gap > 0 else right
    return of(Operation("max", (left, right)))


def gcd(left: Int, right: Int) -> Int:
    if isinstance(left, int) and isinstance(right, int):
        return math.gcd(left, right)
    return of(Operation("gcd", (left, right)))


def divisor(value: Int, at_most: Int) -> Int:
    """Return the largest divisor of `value` not above `at_most`, as `shapecheck.largest_divisor` does."""
    if isinstance(value, int) and isinstance(at_most, int):
        if value < 1 or at_most < 1:
            raise ZeroDivisionError
        return next(each for each in range(min(value, at_most, 1 << 16), 0, -1) if value % each == 0)
    return of(Operation("divisor", (value, at_most)))


FUNCTIONS: Mapping[str, Callable[..., Int]] = {
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
    "gcd": gcd,
    "abs": absolute,
    "divisor": divisor,
}
