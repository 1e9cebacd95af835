"""The strategies for calls: what is legal is accepted, and what breaks one rule is refused for it."""

from __future__ import annotations

from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import kernel
from shapecheck import ContractError, Verdict, judge, observe
from shapecheck.chip import chip_of
from shapecheck.testing import arrays_for, breakable_rules, legal_calls, nearly_legal_calls

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
few = settings(max_examples=8, derandomize=True)
some = settings(max_examples=25, derandomize=True)


def traced(geometry: dict[str, Any]) -> jax.ShapeDtypeStruct:
    given = arrays_for(geometry)
    arrays = {name: given.pop(name) for name in ("q", "k_pages", "v_pages", "lengths", "page_indices")}
    return jax.eval_shape(lambda arrays: kernel.paged_attention(**arrays, **given), arrays)


@some
@given(legal_calls())
def test_legal_calls_are_accepted(geometry: dict[str, Any]) -> None:
    assert Verdict.VIOLATED not in judge("paged_attention", **geometry).values()
    out = traced(geometry)
    assert out.shape == (geometry["batch_size"], geometry["num_q_heads"], geometry["head_dim"])


@few
@given(legal_calls(most=3))
def test_legal_calls_run_with_what_is_in_their_arrays(geometry: dict[str, Any]) -> None:
    out = kernel.paged_attention(**arrays_for(geometry), check_values=True)
    assert jnp.isfinite(out.astype(jnp.float32)).all()
    assert out.dtype.name == geometry["q_dtype"]


@some
@given(st.sampled_from(CHIPS).flatmap(lambda chip: st.tuples(st.just(chip), legal_calls(chip=chip))))
def test_legal_calls_of_a_chip_are_proven_for_it(drawn: tuple[str, dict[str, Any]]) -> None:
    chip, geometry = drawn
    assert set(judge("paged_attention", chip=chip, **geometry).values()) == {Verdict.PROVEN}
    with mock.patch.object(observe, "local_chip", return_value=chip_of(chip)):
        traced(geometry)


@pytest.mark.parametrize("code", breakable_rules())
def test_a_nearly_legal_call_is_refused_for_the_rule_that_it_breaks(code: str) -> None:
    @few
    @given(nearly_legal_calls(code=code))
    def refused(drawn: tuple[str, dict[str, Any]]) -> None:
        named, geometry = drawn
        verdicts = judge("paged_attention", **geometry)
        about_tpu = {"SC301", "SC302", "SC303", "SC304", "SC310", "SC311"}
        assert named == code
        assert {each for each, verdict in verdicts.items() if verdict is Verdict.VIOLATED} - about_tpu == {code}
        with pytest.raises(ContractError) as caught:
            traced(geometry)
        assert code in {violation.rule.code for violation in caught.value.violations} or not caught.value.violations

    refused()


@pytest.mark.parametrize("chip", ["v5e", "v5p"])
def test_rules_about_a_chip_are_broken_where_one_is_named(chip: str) -> None:
    more = set(breakable_rules(chip=chip)) - set(breakable_rules())
    assert more == ({"SC204", "SC301", "SC302"} if chip == "v5e" else {"SC301", "SC302"})
    for code in more:
        _, geometry = find(nearly_legal_calls(code=code, chip=chip), lambda drawn: True, settings=few)
        verdicts = judge("paged_attention", chip=chip, **geometry)
        assert [each for each, verdict in verdicts.items() if verdict is Verdict.VIOLATED] == [code]


def test_any_rule_is_broken_where_none_is_named() -> None:
    found = {find(nearly_legal_calls(), lambda drawn, code=code: drawn[0] == code, settings=settings(max_examples=500))[0]
             for code in ("SC101", "SC106")}  # fmt: skip
    assert found == {"SC101", "SC106"}


def test_the_same_seed_gives_the_same_arrays() -> None:
    geometry = find(legal_calls(), lambda drawn: True, settings=few)
    one, same, other = (arrays_for(geometry, seed=seed)["q"] for seed in (0, 0, 1))
    assert (one == same).all()
    assert not (one == other).all()


def test_what_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are no calls of 'flash' to draw; of: paged_attention"):
        legal_calls("flash")
    with pytest.raises(ValueError, match="unknown chip 'v9'"):
        legal_calls(chip="v9")
    with pytest.raises(ValueError, match="paged_attention: no calls that break SC204 alone; there are: SC101, "):
        nearly_legal_calls(code="SC204", chip="v5p")
