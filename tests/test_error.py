from __future__ import annotations

import pickle

import pytest
from jaxtyping import TypeCheckError

from shapecheck.contract import Contract
from shapecheck.contracts import PAGED_ATTENTION
from shapecheck.error import ContractError, contract_error, violations_of
from shapecheck.relation import Relation
from shapecheck.rule import Rule

SIZES = {
    "batch_size": 3,
    "num_q_heads": 32,
    "num_kv_heads": 8,
    "head_dim": 128,
    "total_num_pages": 64,
    "page_size": 16,
    "pages_per_sequence": 6,
    "pages_per_compute_block": 2,
    "q_dtype": "bfloat16",
    "pages_dtype": "bfloat16",
    "scales_dtype": None,
    "lengths_dtype": "int32",
    "page_indices_dtype": "int32",
}


def error_of(contract: Contract = PAGED_ATTENTION, **changes: object) -> ContractError:
    values = contract.geometry(**(SIZES | changes))
    return contract_error(contract, violations_of(contract, values))


def test_the_error_is_caught_as_jaxtypings_and_as_a_value_error() -> None:
    assert issubclass(ContractError, TypeCheckError)
    assert issubclass(ContractError, ValueError)


def test_a_legal_call_has_no_violations() -> None:
    assert violations_of(PAGED_ATTENTION, PAGED_ATTENTION.geometry(**SIZES)) == ()


def test_the_text_gives_the_relation_its_values_their_origins_and_what_is_legal() -> None:
    assert str(error_of(pages_per_compute_block=4)) == (
        "paged_attention: 1 relation does not hold\n"
        "  SC102 block-not-dividing: pages_per_sequence % pages_per_compute_block == 0\n"
        "        pages_per_sequence = 6   (page_indices.shape[1])\n"
        "        pages_per_compute_block = 4\n"
        "        legal blocks: 1, 2, 3, 6; or pad page_indices to 8 pages (kernel.pad_page_indices)"
    )


def test_several_violations_stand_in_the_order_of_their_codes() -> None:
    error = error_of(pages_per_compute_block=4, megacore_mode="batch", num_q_heads=33)
    assert str(error).startswith("paged_attention: 3 relations do not hold\n")
    assert [violation.rule.code for violation in error.violations] == ["SC101", "SC102", "SC202"]


def test_of_a_conjunction_only_the_parts_that_fail_are_shown() -> None:
    error = error_of(v_pages_page_size=32)
    assert "SC103 pages-mismatch: k_pages_page_size == v_pages_page_size\n" in str(error)
    assert error.violations[0].values == {"k_pages_page_size": 16, "v_pages_page_size": 32}


def test_a_long_relation_is_told_in_words() -> None:
    error = error_of(
        k_pages_scales_dtype="float32", k_pages_scales_shape=(1,), v_pages_scales_dtype="float32", pages_dtype="int8"
    )
    assert "SC112 half-quantized: quantize both pages or neither, to int8, with one scale for each token" in str(error)


def test_only_the_values_that_make_the_relation_fail_are_shown() -> None:
    error = error_of(k_pages_scales_dtype="float32", v_pages_scales_dtype="float32", v_pages_dtype="int8")
    assert error.violations[0].values == {"k_pages_scales_dtype": "float32", "k_pages_dtype": "bfloat16"}


def test_values_that_are_unknown_are_left_out() -> None:
    contract = Contract(
        "f", PAGED_ATTENTION.arrays, (), (Rule("SC1", "r", Relation("not (head_dim == 0 or page_size == 1)"), "", "", "q"),)
    )
    violations = violations_of(contract, contract.geometry(head_dim=0))
    assert violations[0].values == {"head_dim": 0}


def test_a_relation_named_by_its_text_is_written_once() -> None:
    relation = Relation("head_dim % 128 == 0")
    contract = Contract("f", PAGED_ATTENTION.arrays, (), (Rule("SC001", relation.text, relation, "", "", "q"),))
    error = contract_error(contract, violations_of(contract, contract.geometry(head_dim=64)))
    assert "\n  SC001 head_dim % 128 == 0\n" in str(error)


def test_what_is_not_sized_by_an_array_shows_its_value_alone() -> None:
    assert "\n        megacore_mode = 'both'\n" in str(error_of(megacore_mode="both"))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_the_error_can_be_pickled(protocol: int) -> None:
    error = error_of(pages_per_compute_block=4, page_indices_dtype="int16", v_pages_page_size=32)
    error.add_note("in layer 3")
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert (str(copy), copy.callee, copy.__notes__) == (str(error), "paged_attention", ["in layer 3"])
    assert [(each.rule.code, each.values, each.advice) for each in copy.violations] == [
        (each.rule.code, each.values, each.advice) for each in error.violations
    ]
