"""The strategies for calls: what is legal is accepted, and what breaks one rule is refused for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import kernel
from shapecheck import CONTRACTS, ContractError, Verdict, checked, judge, observe
from shapecheck.chip import chip_of
from shapecheck.testing import arrays_for, breakable_rules, legal_calls, nearly_legal_calls

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
KERNELS = ("paged_attention", "ragged_paged_attention")
FRONT_DOORS = {"paged_attention": kernel.paged_attention, "ragged_paged_attention": kernel.ragged_paged_attention}
few = settings(max_examples=8, derandomize=True)
some = settings(max_examples=16, derandomize=True)
any_one = settings(few, phases=[Phase.generate])  # `find` would look for the smallest, at some cost
of_each_kernel = pytest.mark.parametrize("callee", KERNELS)


def traced(geometry: dict[str, Any], callee: str, function: Any = None) -> jax.ShapeDtypeStruct:
    given = arrays_for(geometry, callee)
    arrays = {array.name: given.pop(array.name) for array in CONTRACTS[callee].arrays}
    return jax.eval_shape(lambda arrays: (function or FRONT_DOORS[callee])(**arrays, **given), arrays)


def violated(callee: str, geometry: dict[str, Any]) -> set[str]:
    """Return the rules that a call breaks, those about the TPU aside."""
    about_tpu = {rule.code for rule in CONTRACTS[callee].rules if rule.on_tpu}
    return {code for code, verdict in judge(callee, **geometry).items() if verdict is Verdict.VIOLATED} - about_tpu


def of_jax(callee: str) -> Any:
    """Return what takes the arguments of JAX's kernel, behind its contract, and computes nothing."""
    return checked(import_module(f"jax.experimental.pallas.ops.tpu.{callee}").__dict__[callee], CONTRACTS[callee])


@of_each_kernel
def test_legal_calls_are_accepted(callee: str) -> None:
    @some
    @given(legal_calls(callee))
    def accepted(geometry: dict[str, Any]) -> None:
        assert not violated(callee, geometry)
        rows = geometry["batch_size" if callee == "paged_attention" else "max_num_batched_tokens"]
        assert traced(geometry, callee).shape == (rows, geometry["num_q_heads"], geometry["head_dim"])

    accepted()


@pytest.mark.thorough
@of_each_kernel
def test_legal_calls_run_with_what_is_in_their_arrays(callee: str) -> None:
    @few
    @given(legal_calls(callee, most=3))
    def runs(geometry: dict[str, Any]) -> None:
        out = FRONT_DOORS[callee](**arrays_for(geometry, callee), check_values=True)
        assert jnp.isfinite(out.astype(jnp.float32)).all()
        assert out.dtype.name == geometry["q_dtype"]

    runs()


@of_each_kernel
def test_legal_calls_of_a_chip_are_proven_for_it(callee: str) -> None:
    @some
    @given(st.sampled_from(CHIPS).flatmap(lambda chip: st.tuples(st.just(chip), legal_calls(callee, chip=chip))))
    def proven(drawn: tuple[str, dict[str, Any]]) -> None:
        chip, geometry = drawn
        assert set(judge(callee, chip=chip, **geometry).values()) == {Verdict.PROVEN}
        with mock.patch.object(observe, "local_chip", return_value=chip_of(chip)):
            traced(geometry, callee)

    proven()


@pytest.mark.thorough
@pytest.mark.parametrize(("callee", "code"), [(callee, code) for callee in KERNELS for code in breakable_rules(callee)])
def test_a_nearly_legal_call_is_refused_for_the_rule_that_it_breaks(callee: str, code: str) -> None:
    @few
    @given(nearly_legal_calls(callee, code=code))
    def refused(drawn: tuple[str, dict[str, Any]]) -> None:
        named, geometry = drawn
        assert named == code
        assert violated(callee, geometry) == {code}
        with pytest.raises(ContractError) as caught:
            traced(geometry, callee, of_jax(callee))
        assert {violation.rule.code for violation in caught.value.violations} <= {code}

    refused()


@pytest.mark.parametrize(
    ("callee", "chip", "codes"),
    [
        ("paged_attention", "v5e", {"SC204", "SC301", "SC302"}),
        ("paged_attention", "v5p", {"SC301", "SC302"}),
        ("ragged_paged_attention", "v6e", {"SC302", "SC312"}),
    ],
)
def test_rules_about_a_chip_are_broken_where_one_is_named(callee: str, chip: str, codes: set[str]) -> None:
    more = set(breakable_rules(callee, chip=chip)) - set(breakable_rules(callee))
    assert more == codes
    for code in more:
        _, geometry = find(nearly_legal_calls(callee, code=code, chip=chip), lambda drawn: True, settings=any_one)
        verdicts = judge(callee, chip=chip, **geometry)
        assert [each for each, verdict in verdicts.items() if verdict is Verdict.VIOLATED] == [code]


def test_sequences_of_a_ragged_call_are_of_all_kinds() -> None:
    def metadata(seed: int) -> tuple[list[int], list[int]]:
        geometry = {**find(legal_calls("ragged_paged_attention"), lambda drawn: True, settings=any_one), "max_num_seqs": 3,
                    "num_offsets": 4, "max_num_batched_tokens": 9}  # fmt: skip
        arrays = arrays_for(geometry, "ragged_paged_attention", seed=seed)
        count = int(arrays["num_seqs"][0])
        return jnp.diff(arrays["cu_q_lens"][: count + 1]).tolist(), arrays["kv_lens"][:count].tolist()

    drawn = [metadata(seed) for seed in range(20)]
    assert {len(q_lens) for q_lens, _ in drawn} == {1, 2, 3}
    assert any(1 in q_lens for q_lens, _ in drawn)
    assert any(max(q_lens) > 1 for q_lens, _ in drawn)
    assert any(kv_len > q_len for q_lens, kv_lens in drawn for q_len, kv_len in zip(q_lens, kv_lens, strict=True))


def test_any_rule_is_broken_where_none_is_named() -> None:
    drawing = settings(any_one, max_examples=500)
    found = {find(nearly_legal_calls(), lambda drawn, code=code: drawn[0] == code, settings=drawing)[0]
             for code in ("SC101", "SC106")}  # fmt: skip
    assert found == {"SC101", "SC106"}


def test_the_same_seed_gives_the_same_arrays() -> None:
    geometry = find(legal_calls(), lambda drawn: True, settings=any_one)
    one, same, other = (arrays_for(geometry, seed=seed)["q"] for seed in (0, 0, 1))
    assert (one == same).all()
    assert not (one == other).all()


def test_what_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are no calls of 'flash' to draw; of: paged_attention, ragged_paged_attention"):
        legal_calls("flash")
    with pytest.raises(ValueError, match="unknown chip 'v9'"):
        legal_calls(chip="v9")
    with pytest.raises(ValueError, match="paged_attention: no calls that break SC204 alone; there are: SC101, "):
        nearly_legal_calls(code="SC204", chip="v5p")
