"""What `Facts` decides is true wherever the facts hold, and it decides what people write."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods import formulas, operations, terms
from codemods.facts import Facts
from codemods.formulas import Formula, at_most, equal, invert, less
from codemods.operations import floordiv, mod
from codemods.search import counterexample
from codemods.terms import Int, Symbol, multiply, negate, of, subtract
from tests.strategies import SYMBOLS, Condition, conditions


def _size(name: str) -> terms.Term:
    return of(Symbol(name, name, 0))


n, block, page, length = _size("n"), _size("block"), _size("page"), _size("length")


def _divides(divisor: Int, value: Int) -> Formula:
    return equal(mod(value, divisor), 0)


@given(st.lists(conditions(), max_size=3), conditions())
def test_a_decision_holds_wherever_the_facts_do(known: list[Condition], asked: Condition) -> None:
    decision = Facts([fact.formula for fact in known]).decide(asked.formula)
    if decision is None:
        return
    for numbers in itertools.product((0, 1, 2, 3, 4, 6), repeat=3):
        assignment = dict(zip(SYMBOLS, numbers, strict=True))
        try:
            if all(fact.value(assignment) for fact in known):
                assert asked.value(assignment) is decision, assignment
        except ZeroDivisionError:
            continue


@given(st.lists(conditions(), max_size=2), conditions())
def test_a_counterexample_breaks_the_formula_and_keeps_the_facts(known: list[Condition], asked: Condition) -> None:
    found = counterexample(asked.formula, [fact.formula for fact in known])
    if found is None:
        return
    assignment = dict.fromkeys(SYMBOLS, 1) | found
    with suppress(ZeroDivisionError):  # by an unknown that the formula does not depend on
        assert asked.value(assignment) is False
    for fact in known:
        if formulas.integers(fact.formula) & formulas.integers(asked.formula):
            with suppress(ZeroDivisionError):
                assert fact.value(assignment)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ([_divides(block, n)], _divides(block, n)),
        ([equal(multiply(floordiv(n, block), block), n)], _divides(block, n)),
        ([equal(n, multiply(block, page))], _divides(block, n)),
        ([_divides(block, length), _divides(page, block)], _divides(floordiv(block, page), floordiv(length, page))),
        ([_divides(page, block), _divides(block, n)], _divides(page, n)),
        ([_divides(8, n)], _divides(4, n)),
        ([_divides(16, n)], _divides(operations.minimum(16, n), n)),
        ([equal(n, block)], _divides(block, n)),
        ([], _divides(operations.gcd(n, 8), n)),
        ([], _divides(operations.divisor(n, 8), n)),
        ([], at_most(1, operations.divisor(n, 8))),
        ([], at_most(1, operations.maximum(1, floordiv(block, page)))),
        ([], less(mod(n, 4), 4)),
        ([invert(equal(n, 0))], less(0, n)),
        ([less(4, n)], at_most(5, n)),
    ],
)
def test_what_people_write_is_decided(known: list[Formula], asked: Formula) -> None:
    assert Facts(known).decide(asked) is True
    assert Facts(known).decide(invert(asked)) is False


@pytest.mark.parametrize(
    "asked", [_divides(operations.minimum(16, n), n), _divides(8, n), _divides(block, n), equal(n, block), less(n, block)]
)
def test_what_does_not_follow_is_not_decided(asked: Formula) -> None:
    assert Facts().decide(asked) is None


def test_a_clamp_has_the_least_counterexample() -> None:
    assert counterexample(_divides(operations.minimum(16, n), n), []) == {"n": 17}


def test_a_counterexample_keeps_to_what_is_known() -> None:
    assert counterexample(_divides(8, n), [_divides(4, n), less(4, n)]) == {"n": 12}


def test_there_is_no_counterexample_to_what_holds() -> None:
    assert counterexample(equal(subtract(n, negate(negate(n))), 0), []) is None


def test_a_counterexample_has_the_usual_value_where_that_breaks_the_formula() -> None:
    option = of(Symbol("option", "--block", usual=24))
    assert counterexample(_divides(option, 64), []) == {"--block": 24}
    assert counterexample(_divides(option, n), []) == {"--block": 24, "n": 1}
    assert counterexample(_divides(option, 48), []) == {"--block": 5}
    assert counterexample(_divides(option, 64), [invert(equal(option, 24))]) == {"--block": 3}


def test_a_quotient_without_a_rest_is_at_least_1() -> None:
    devices = of(Symbol("devices", "devices", 1))
    share = floordiv(8, devices)
    assert Facts([_divides(devices, 8)]).decide(at_most(1, share)) is True
    assert Facts().decide(at_most(1, share)) is None


def test_a_number_that_does_not_divide_something_is_not_1() -> None:
    factor = of(Symbol("factor", "factor", 1))
    assert Facts([invert(_divides(factor, n))]).decide(at_most(2, factor)) is True
    assert Facts([_divides(factor, n)]).decide(at_most(2, factor)) is None
    assert Facts([at_most(factor, 1)]).decide(_divides(factor, n)) is True


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (at_most(operations.minimum(n, block), n), True),
        (at_most(operations.minimum(operations.minimum(n, block), 16), block), True),
        (less(n, operations.minimum(n, block)), False),
        (at_most(n, operations.maximum(n, block)), True),
        (at_most(operations.maximum(n, block), n), None),
        (at_most(multiply(operations.minimum(n, block), page), multiply(n, page)), None),
    ],
)
def test_a_minimum_is_not_above_what_it_is_taken_of(asked: Formula, outcome: bool | None) -> None:
    assert Facts().decide(asked) is outcome
