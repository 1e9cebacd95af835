"""What is decided case by case is true wherever the facts hold."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods import formulas, terms
from codemods.facts import Facts
from codemods.formulas import Equals, Formula, Truthy, at_most, both, either, equal, invert
from codemods.operations import mod
from codemods.splitting import consistent, follows
from codemods.terms import Symbol, of
from tests.strategies import SYMBOLS, Condition, conditions

n, m = (of(Symbol(name, name, 0)) for name in "nm")
batch, heads, big = Equals("mode", "mode", "batch"), Equals("mode", "mode", "kv_head"), Truthy("big", "big")


def even(term: terms.Int) -> Formula:
    return equal(mod(term, 2), 0)


@given(st.lists(st.tuples(conditions(), conditions()), max_size=3), conditions(), conditions())
def test_a_decision_holds_wherever_the_facts_do(
    known: list[tuple[Condition, Condition]], first: Condition, second: Condition
) -> None:
    decision = follows(either(first.formula, second.formula), [either(a.formula, b.formula) for a, b in known])
    possible = consistent(either(a.formula, b.formula) for a, b in known)
    for numbers in itertools.product((0, 1, 2, 3, 4, 6), repeat=3):
        assignment = dict(zip(SYMBOLS, numbers, strict=True))
        try:
            held = [a.value(assignment) | b.value(assignment) for a, b in known]  # all of them must be defined
            if all(held):
                assert possible, assignment
                asked = [each.value(assignment) for each in (first, second)]
                assert decision is None or any(asked) is decision, assignment
        except ZeroDivisionError:
            continue


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ([invert(both(batch, invert(even(n))))], either(invert(batch), even(n))),
        ([invert(both(invert(even(n)), batch))], either(invert(batch), even(n))),
        ([either(big, even(n)), either(invert(big), even(n))], even(n)),
        ([either(batch, heads), invert(batch)], heads),
        ([either(at_most(n, 0), at_most(n, m)), at_most(1, n)], at_most(n, m)),
        ([either(equal(n, 2), equal(n, 4))], even(n)),
    ],
)
def test_what_holds_in_each_case_holds(known: list[Formula], asked: Formula) -> None:
    assert follows(asked, known) is True
    assert follows(invert(asked), known) is False


def test_what_holds_in_some_cases_only_is_open() -> None:
    assert follows(even(n), [either(equal(n, 2), equal(n, 3))]) is None
    assert follows(even(n), [either(big, even(n))]) is None


def test_cases_that_contradict_each_other_are_none() -> None:
    assert not consistent([either(batch, heads), invert(batch), invert(heads)])
    assert not consistent([either(at_most(n, 3), at_most(m, 3)), at_most(4, n), at_most(5, m)])
    assert consistent([either(batch, heads), invert(batch)])


def test_too_many_conditions_are_not_tried() -> None:
    known = [either(even(of(Symbol(f"x{each}", "x", 0))), even(n)) for each in range(40)]
    assert follows(even(n), known) is None
    assert Facts(known).decide(even(n)) is None
    assert sum(map(formulas.size, known)) > 48
