"""Random integer expressions over a few unknowns, as terms and as the Python functions that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from codemods import formulas, operations, terms
from codemods.formulas import Formula
from codemods.terms import Int, Symbol

NAMES = ("a", "b", "c")
SYMBOLS = {name: Symbol(name, name, 0) for name in NAMES}

Assignment = Mapping[str, int]


@dataclass(frozen=True)
class Expression:
    """A term, and the function of the unknowns that it must equal wherever that is defined."""

    term: Int
    value: Callable[[Assignment], int]


def _combine(operation: str, left: Expression, right: Expression) -> Expression:
    term: Callable[[Int, Int], Int]
    plain: Callable[[int, int], int]
    term, plain = {
        "+": (terms.add, lambda a, b: a + b),
        "-": (terms.subtract, lambda a, b: a - b),
        "*": (terms.multiply, lambda a, b: a * b),
        "//": (operations.floordiv, lambda a, b: a // b),
        "%": (operations.mod, lambda a, b: a % b),
        "min": (operations.minimum, min),
        "max": (operations.maximum, max),
        "gcd": (operations.gcd, math.gcd),
    }[operation]
    return Expression(term(left.term, right.term), lambda known: plain(left.value(known), right.value(known)))


_leaves = st.one_of(
    st.integers(-6, 9).map(lambda number: Expression(number, lambda known: number)),
    st.sampled_from(NAMES).map(lambda name: Expression(terms.of(SYMBOLS[name]), lambda known: known[name])),
)


@st.composite
def _operations(draw: st.DrawFn, parts: st.SearchStrategy[Expression]) -> Expression:
    operation = draw(st.sampled_from(("+", "-", "*", "//", "%", "min", "max", "gcd")))
    left, right = draw(parts), draw(parts)
    if operation in ("//", "%") and right.term == 0:
        operation = "+"
    return _combine(operation, left, right)


expressions = st.recursive(_leaves, _operations, max_leaves=6)


@dataclass(frozen=True)
class Condition:
    """A formula, and the truth value that it must have wherever that is defined."""

    formula: Formula
    value: Callable[[Assignment], bool]


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    kind = draw(st.sampled_from(("divides", "equal", "at most", "not", "and")))
    if kind == "not":
        inner = draw(conditions())
        return Condition(formulas.invert(inner.formula), lambda known: not inner.value(known))
    if kind == "and":
        one, two = draw(conditions()), draw(conditions())
        return Condition(formulas.both(one.formula, two.formula), lambda known: one.value(known) and two.value(known))
    left, right = draw(expressions), draw(expressions)
    if kind == "divides" and right.term != 0:
        rest = _combine("%", left, right)
        return Condition(formulas.equal(rest.term, 0), lambda known: rest.value(known) == 0)
    if kind == "at most":
        return Condition(formulas.at_most(left.term, right.term), lambda known: left.value(known) <= right.value(known))
    return Condition(formulas.equal(left.term, right.term), lambda known: left.value(known) == right.value(known))
