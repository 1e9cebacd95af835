from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapecheck.outcome import UNKNOWN
from shapecheck.relation import Relation, RelationError


def evaluate(text: str, **values: Any) -> Any:
    return Relation(text).evaluate(values)


@pytest.mark.parametrize(
    ("text", "values", "outcome"),
    [
        ("h % kv == 0", {"h": 32, "kv": 8}, True),
        ("h % kv == 0", {"h": 32, "kv": 5}, False),
        ("mode != 'kv_head' or kv % 2 == 0", {"mode": None, "kv": 3}, True),
        ("mode in ('kv_head', 'batch')", {"mode": "batch"}, True),
        ("mode not in ('kv_head', 'batch')", {"mode": "batch"}, False),
        ("'kv' in mode", {"mode": "kv_head"}, True),
        ("cap is None or 0 < abs(cap) <= 50.0", {"cap": -30.0}, True),
        ("(a, b) == (1, 2)", {"a": 1, "b": 3}, False),
        ("(a or 16) % 8 == 0", {"a": None}, True),
        ("(a and b) == 3", {"a": 2, "b": 3}, True),
        ("min(a, b) - max(a, b) == -2", {"a": 3, "b": 5}, True),
        ("a == (1 if b else 2)", {"a": 2, "b": 0}, True),
    ],
)
def test_a_relation_over_known_values_is_what_python_says(text: str, values: dict[str, Any], outcome: bool) -> None:
    assert evaluate(text, **values) is outcome


@pytest.mark.parametrize(
    ("text", "values", "outcome"),
    [
        ("mode != 'kv_head' or kv % 2 == 0", {"mode": None}, True),
        ("a >= 1 and b >= 1", {"a": 0}, False),
        ("not (a >= 1 and b >= 1)", {"a": 0}, True),
        ("(a, b) == (4, 1)", {"a": 5}, False),
        ("a in (b, 4)", {"a": 4}, True),
        ("a % 2 == 0 if mode == 'x' else True", {"a": 2}, True),
    ],
)
def test_an_unknown_part_that_does_not_matter_leaves_the_outcome_known(text: str, values: dict[str, Any], outcome: bool) -> None:
    assert evaluate(text, **values) is outcome


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("h % kv == 0", {"h": 32}),
        ("h % kv == 0", {"h": UNKNOWN, "kv": 2}),
        ("mode != 'kv_head' or kv % 2 == 0", {"kv": 3}),
        ("a in (b, 4)", {"a": 5}),
        ("(a or 16) % 2 == 1", {}),
    ],
)
def test_an_unknown_part_that_matters_makes_the_outcome_unknown(text: str, values: dict[str, Any]) -> None:
    assert evaluate(text, **values) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a % b == 0", {"a": 4, "b": 0}),
        ("a < b", {"a": 4, "b": "4"}),
        ("a in b", {"a": 4, "b": 4}),
        ("a * b == 1.0", {"a": 10**400, "b": 1.0}),
    ],
)
def test_what_python_cannot_compute_is_unknown_and_why_can_be_asked(text: str, values: dict[str, Any]) -> None:
    assert evaluate(text, **values) is UNKNOWN
    said = Relation(text).undefined(values)
    assert said == "it divides by 0" if "%" in text else said.startswith("it cannot be evaluated: ")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a % b == 0", {"a": 4, "b": 3}),
        ("a % b == 0", {"a": UNKNOWN, "b": 0}),
        ("a % b == 0 and c in (1, 2)", {"a": 4, "b": 0}),
        ("a == (1,)", {"a": (UNKNOWN,)}),
        ("b == 0 or a % b == 0", {"a": 4, "b": 0}),
    ],
)
def test_what_has_a_value_or_lacks_one_of_a_name_is_not_undefined(text: str, values: dict[str, Any]) -> None:
    assert Relation(text).undefined(values) == ""


@pytest.mark.parametrize(
    "text",
    [
        "q.shape[0] == 1",
        "f(a)",
        "min()",
        "min(a, key=b)",
        "a / 2 == 1",
        "a ** 2",
        "[a] == 1",
        "lambda: a",
        "a := 1",
        "b'' == a",
        "~a",
    ],
)
def test_anything_outside_the_language_is_refused_when_the_relation_is_made(text: str) -> None:
    with pytest.raises(RelationError):
        Relation(text)


def test_the_refusal_shows_the_part_at_fault_and_its_column() -> None:
    with pytest.raises(RelationError, match=r"'a / 2' is not allowed in a relation: 'b == a / 2', column 6"):
        Relation("b == a / 2")


def test_a_syntax_error_shows_its_column() -> None:
    with pytest.raises(RelationError, match=r"not an expression: 'a %% b' .*column 4"):
        Relation("a %% b")


def test_names_are_listed_once_without_functions() -> None:
    assert set(Relation("max(a, b) % a == 0 or mode is None").names) == {"a", "b", "mode"}


def test_the_broken_parts_of_a_conjunction_are_those_that_fail() -> None:
    relation = Relation("a == 1 and b == 2 and c == 3")
    assert [part.text for part in relation.broken({"a": 1, "b": 0, "c": 0})] == ["b == 2", "c == 3"]


def test_an_unknown_part_is_not_broken() -> None:
    assert [part.text for part in Relation("a == 1 and b == 2").broken({"b": 0})] == ["b == 2"]


@pytest.mark.parametrize(
    ("text", "values", "names"),
    [
        ("a == 1 and b == 2", {"a": 1, "b": 0}, ("b",)),
        ("a == 1 or b == 2", {"a": 0, "b": 0}, ("a", "b")),
        ("a is None or (b == 1 and c == 1)", {"a": 0, "b": 1, "c": 0}, ("a", "c")),
        ("a % b == 0", {"a": 3, "b": 2}, ("a", "b")),
    ],
)
def test_the_names_at_fault_are_those_of_the_parts_that_fail(text: str, values: dict[str, Any], names: tuple[str, ...]) -> None:
    assert Relation(text).at_fault(values) == names


def test_a_relation_that_is_no_conjunction_breaks_as_a_whole() -> None:
    relation = Relation("a == 1 or b == 2")
    assert relation.broken({"a": 0, "b": 0}) == (relation,)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda relation: pickle.loads(pickle.dumps(relation))])
def test_a_copy_equals_the_relation_and_evaluates(duplicate: Any) -> None:
    relation = Relation("a  ==  1")
    assert duplicate(relation) == relation
    assert duplicate(relation).evaluate({"a": 1}) is True


NUMBERS = ("a", "b", "c")
MODES = ("None", "'kv_head'", "'batch'")


def numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "//", "%", "and", "or"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("({} if {} else {})".format, inner, conditions(inner), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("abs({})".format, inner),
        conditions(inner),
    )


def conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    atoms = st.one_of(
        st.builds("({} {} {})".format, inner, comparisons, inner),
        st.builds("({} < {} <= {})".format, inner, inner, inner),
        st.builds("({} in ({}, {}))".format, inner, inner, inner),
        st.builds("(({}, {}) == ({}, {}))".format, inner, inner, inner, inner),
        st.builds("(mode {} {})".format, st.sampled_from(["==", "!="]), st.sampled_from(MODES)),
        st.builds("({} is None)".format, st.sampled_from([*NUMBERS, "mode"])),
    )
    joined = st.builds("({} {} {})".format, atoms, st.sampled_from(["and", "or"]), atoms)
    return st.one_of(atoms, joined, st.builds("(not {})".format, atoms))


RELATIONS = st.recursive(st.sampled_from(NUMBERS) | st.integers(0, 5).map(str), numbers, max_leaves=10)
COMPLETE = st.fixed_dictionaries(
    {name: st.integers(-2, 6) | st.none() for name in NUMBERS} | {"mode": st.sampled_from([None, "kv_head", "batch"])}
)


class TestDefinitions:
    DEFINITIONS: ClassVar[Mapping[str, str]] = {"block": "page * pages", "twice": "2 * block", "unused": "z"}

    def test_a_name_stands_for_an_expression_of_names_before_it(self) -> None:
        relation = Relation("twice + 1 <= room", self.DEFINITIONS)
        assert relation.text == "twice + 1 <= room"
        assert set(relation.names) == {"page", "pages", "room"}
        assert relation.evaluate({"page": 3, "pages": 4, "room": 25}) is True
        assert relation.evaluate({"page": 3, "pages": 4, "room": 24}) is False
        assert relation.evaluate({"page": 3, "room": 24}) is UNKNOWN

    def test_it_is_put_in_as_a_whole(self) -> None:
        assert Relation("2 * sum", {"sum": "a + b"}).value({"a": 1, "b": 2}) == 6

    def test_those_that_are_used_are_told_in_their_order(self) -> None:
        assert Relation("twice <= room", self.DEFINITIONS).used == {"block": "page * pages", "twice": "2 * block"}
        assert Relation("page <= room", self.DEFINITIONS).used == {}

    def test_what_is_broken_is_told_in_the_words_of_the_relation(self) -> None:
        relation = Relation("block <= 5 and page > 0", self.DEFINITIONS)
        assert [part.text for part in relation.broken({"page": 3, "pages": 4})] == ["block <= 5"]
        assert relation.at_fault({"page": 3, "pages": 4}) == ("page", "pages")

    def test_it_survives_pickling(self) -> None:
        relation = Relation("twice <= room", self.DEFINITIONS)
        assert pickle.loads(pickle.dumps(relation)) == relation
        assert relation != Relation("twice <= room")

    def test_a_definition_that_is_no_expression_is_refused(self) -> None:
        with pytest.raises(RelationError, match="not an expression: '1 \\+'"):
            Relation("a", {"a": "1 +"})


def python_says(text: str, values: dict[str, Any]) -> bool | None:
    try:
        return bool(eval(text, {"min": min, "max": max, "abs": abs}, values))
    except (TypeError, ArithmeticError):
        return None


@settings(max_examples=400, deadline=None)
@given(text=RELATIONS, known=COMPLETE, hidden=st.sets(st.sampled_from([*NUMBERS, "mode"])), others=st.lists(COMPLETE, max_size=6))
def test_a_known_outcome_holds_for_every_completion_of_the_unknowns(
    text: str, known: dict[str, Any], hidden: set[str], others: list[dict[str, Any]]
) -> None:
    visible = {name: value for name, value in known.items() if name not in hidden}
    outcome = Relation(text).evaluate(visible)
    said = {python_says(text, completion | visible) for completion in (known, *others)} - {None}
    assert outcome is UNKNOWN or said <= {outcome}
