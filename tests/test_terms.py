"""Terms equal the Python expressions they stand for, and equal expressions are one term."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from codemods import substitution, terms
from codemods.operations import floordiv, mod
from codemods.terms import Symbol, TermError, add, multiply, negate, of, subtract
from tests.strategies import SYMBOLS, Expression, expressions

n, b = of(Symbol("n", "n", 0)), of(Symbol("b", "b"))


@given(expressions)
def test_a_term_has_the_value_of_its_expression(expression: Expression) -> None:
    for numbers in itertools.product((0, 1, 2, 3, 7), repeat=3):
        known = dict(zip(SYMBOLS, numbers, strict=True))
        try:
            expected = expression.value(known)
            value = substitution.evaluate(expression.term, {SYMBOLS[name]: number for name, number in known.items()})
        except ZeroDivisionError:
            continue  # such an execution does not get past the division
        assert value == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (mod(add(n, mod(negate(n), b)), b), 0),
        (mod(multiply(negate(floordiv(negate(n), b)), b), b), 0),
        (mod(subtract(n, mod(n, b)), b), 0),
        (mod(n, n), 0),
        (floordiv(multiply(n, b), b), n),
        (floordiv(add(multiply(n, 6), 5), 3), add(multiply(n, 2), 1)),
        (mod(add(multiply(n, 6), 5), 3), 2),
        (subtract(add(n, b), add(b, n)), 0),
    ],
)
def test_equal_expressions_are_one_term(left: terms.Int, right: terms.Int) -> None:
    assert left == right


def test_a_term_reads_like_the_expression() -> None:
    assert str(add(multiply(floordiv(n, 16), 2), -3)) == "2*(n // 16) - 3"


def test_a_number_beyond_any_size_is_refused() -> None:
    with pytest.raises(TermError, match="512 bits"):
        multiply(2**300, 2**300)


def test_division_by_zero_is_an_error_also_of_an_unknown() -> None:
    with pytest.raises(ZeroDivisionError):
        mod(n, 0)
