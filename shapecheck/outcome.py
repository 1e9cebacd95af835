"""Logic with three outcomes, Kleene's: what holds, what does not, and what cannot be told."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, TypeGuard

from shapecheck.symbolic import Symbolic, Undecided


class _Unknown(enum.Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown.UNKNOWN
"""The value of a size that cannot be told, and the outcome of a relation that depends on one."""

Unknown: TypeAlias = Literal[_Unknown.UNKNOWN]
Outcome: TypeAlias = bool | Unknown
Values: TypeAlias = Mapping[str, Any]


def first(*operands: Any) -> Any:
    """Return what Python's `or` does."""
    return next((operand for operand in operands if operand), operands[-1])


def last(*operands: Any) -> Any:
    """Return what Python's `and` does."""
    return next((operand for operand in operands if not operand), operands[-1])


def truth(value: Any) -> Outcome:
    return negate(equal(value, 0)) if value is UNKNOWN or isinstance(value, Symbolic) else bool(value)


def negate(outcome: Outcome) -> Outcome:
    return UNKNOWN if outcome is UNKNOWN else not outcome


def all_of(outcomes: Any) -> Outcome:
    result: Outcome = True
    for outcome in outcomes:
        if outcome is False:
            return False
        if outcome is UNKNOWN:
            result = UNKNOWN
    return result


def any_of(outcomes: Any) -> Outcome:
    return negate(all_of(negate(outcome) for outcome in outcomes))


def equal(left: Any, right: Any) -> Outcome:
    """Compare, looking into tuples: `(4, UNKNOWN)` differs from `(5, 1)` whatever the unknown is."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if _is_tuple(left) and _is_tuple(right):
        return len(left) == len(right) and all_of(map(equal, left, right))
    if isinstance(right, Symbolic):
        left, right = right, left
    return _decided(left, right) if isinstance(left, Symbolic) else bool(left == right)


def _decided(size: Symbolic, other: Any) -> Outcome:
    if not isinstance(other, Symbolic | int):
        return False
    try:
        return size.equals(other)
    except Undecided:
        return UNKNOWN


def contains(container: Any, item: Any) -> Outcome:
    return item in container if isinstance(container, str) else any_of(equal(item, each) for each in container)


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def has_unknown(value: Any) -> bool:
    return any(map(has_unknown, value)) if _is_tuple(value) else value is UNKNOWN or isinstance(value, Symbolic)


def choose(condition: Outcome, yes: Any, no: Any) -> Any:
    if condition is UNKNOWN:
        return yes if equal(yes, no) is True else UNKNOWN
    return yes if condition else no
