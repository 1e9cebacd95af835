"""Contracts that are made from another one, held against what the multi-query kernel itself says."""

from __future__ import annotations

import pytest

from shapecheck import judge
from shapecheck.contracts import CONTRACTS
from shapecheck.contracts.derived import amended, switched, unless
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.relation import Relation
from shapecheck.rule import Rule, Verdict

RULES = {rule.code: rule for rule in PAGED_ATTENTION.rules}
DERIVED = [contract for contract in CONTRACTS.values() if contract is not PAGED_ATTENTION]


def broken(callee: str, **geometry: object) -> list[str]:
    return [code for code, verdict in judge(callee, **geometry).items() if verdict is Verdict.VIOLATED]


class TestDerivation:
    def test_rules_are_amended_dropped_and_added_in_the_order_of_their_codes(self) -> None:
        own = Rule("SC103", "own", Relation("batch_size == 1"), "", "", "q")
        three = [RULES["SC101"], RULES["SC102"], RULES["SC104"]]
        rules = amended(three, {"SC104": {"message": "m"}}, without=["SC102"], also=[own])
        assert [rule.code for rule in rules] == ["SC101", "SC103", "SC104"]
        assert rules[0] == RULES["SC101"]
        assert rules[2].message == "m"

    def test_a_rule_may_have_an_exception(self) -> None:
        rule = unless("megacore_mode is None", RULES["SC203"], explanation="because")
        assert rule.relation.text == "megacore_mode is None or (megacore_mode is None or megacore_mode in ('kv_head', 'batch'))"
        assert (rule.code, rule.explanation) == ("SC203", "because")

    @pytest.mark.parametrize(("switch", "verdict"), [(True, Verdict.VIOLATED), (False, Verdict.PROVEN)])
    def test_a_switch_turns_all_rules_off(self, switch: bool, verdict: Verdict) -> None:
        contract = switched(PAGED_ATTENTION, "use_kernel", default=True)
        values = contract.geometry(num_q_heads=6, num_kv_heads=4, use_kernel=switch)
        assert contract.judge(values)["SC101"] is verdict
        assert contract.judge(contract.geometry(num_q_heads=6, num_kv_heads=4))["SC101"] is Verdict.VIOLATED


@pytest.mark.parametrize("contract", DERIVED, ids=lambda contract: contract.name)
class TestEveryContract:
    def test_a_code_has_one_name(self, contract) -> None:  # type: ignore[no-untyped-def]
        names = {rule.code: rule.name for each in CONTRACTS.values() for rule in each.rules}
        assert all(names[rule.code] == rule.name for rule in contract.rules)
        assert len(contract.rules) == len({rule.code for rule in contract.rules})

    def test_a_code_has_one_repair(self, contract) -> None:  # type: ignore[no-untyped-def]
        known = {each.name for each in (*contract.arrays, *contract.parameters)}
        for rule in contract.rules:
            original = RULES.get(rule.code)
            if original is not None and original.argument in known:
                assert (rule.fix, rule.argument) == (original.fix, original.argument)
            elif original is not None:  # an argument that is called otherwise
                assert type(rule.fix) is type(original.fix)

    def test_the_words_are_whole(self, contract) -> None:  # type: ignore[no-untyped-def]
        known = {each.name for each in (*contract.arrays, *contract.parameters)}
        for rule in contract.rules:
            assert rule.argument in known
            assert rule.message
            assert not rule.message.endswith(".")
            assert rule.explanation.endswith(".")


LEGAL = {
    "batch_size": 2,
    "query_len": 32,
    "num_q_heads": 8,
    "num_kv_heads": 2,
    "head_dim": 128,
    "total_num_pages": 64,
    "page_size": 16,
    "pages_per_sequence": 16,
    "pages_per_compute_block": 8,
    "num_queries_per_compute_block": 16,
    "q_dtype": "bfloat16",
    "pages_dtype": "bfloat16",
    "scales_dtype": None,
    "lengths_dtype": "int32",
    "page_indices_dtype": "int32",
    "effective_q_lens_dtype": "int32",
}

# What lowering the kernel for a v5e said with JAX 0.7.1, and libtpu 0.0.24 after it, to the legal call with these changes.
MULTI_QUERIES = [
    ({}, "ok", []),
    ({"num_queries_per_compute_block": 1}, "ValueError: The Pallas TPU lowering ...", ["SC307"]),
    ({"num_queries_per_compute_block": 4}, "ValueError: The Pallas TPU lowering ...", ["SC307"]),
    ({"num_queries_per_compute_block": 8}, "ok", []),
    ({"num_queries_per_compute_block": 12}, "ValueError: The Pallas TPU lowering ...", ["SC307"]),
    ({"num_queries_per_compute_block": 24}, "ok", []),
    ({"num_queries_per_compute_block": 32}, "ok", []),
    ({"num_queries_per_compute_block": 33}, "ValueError: ... smaller or equal to query_len=32", ["SC131", "SC307"]),
    ({"num_queries_per_compute_block": 0}, "ZeroDivisionError", ["SC131"]),
    ({"num_queries_per_compute_block": -1}, "AssertionError", ["SC131", "SC307"]),
    ({"query_len": 30}, "ok", []),
    ({"query_len": 24}, "ok", []),
    ({"query_len": 1, "num_queries_per_compute_block": 1}, "ok", []),
    ({"pages_per_compute_block": 4}, "NotImplementedError: ... multiple of 128", ["SC134"]),
    ({"pages_per_compute_block": 16}, "ok", []),
    ({"pages_per_compute_block": 32}, "ValueError: ... smaller or equal to pages_per_sequence=16", ["SC102"]),
    ({"pages_per_compute_block": 3}, "ValueError: ... must be divisible by pages per sequence", ["SC102", "SC134"]),
    ({"pages_per_compute_block": 0}, "ZeroDivisionError", ["SC110"]),
    ({"pages_per_compute_block": -1}, "AssertionError", ["SC110", "SC134"]),
    ({"page_size": 8, "pages_per_compute_block": 16}, "ok", []),
    ({"page_size": 128, "pages_per_compute_block": 1}, "ok", []),
    ({"head_dim": 64}, "MosaicError: ... aligned to tiling (128), but is 64", ["SC301"]),
    ({"head_dim": 192}, "NotImplementedError: ... multiple of 128 if larger", ["SC301"]),
    ({"head_dim": 256}, "ok", []),
    ({"num_kv_heads": 8}, "ok", []),
    ({"num_q_heads": 6, "num_kv_heads": 4}, "ValueError: Number of Q heads ...", ["SC101"]),
    ({"num_q_heads": 7, "num_kv_heads": 7}, "ok", []),
    ({"pages_dtype": "int8", "scales_dtype": "float32"}, "ValueError: Pytree for `in_specs` ...", ["SC133"]),
    ({"k_pages_dtype": "int8", "k_pages_scales_dtype": "float32", "v_pages_scales_dtype": None}, "ValueError: Pytree", ["SC133"]),
    ({"pages_dtype": "int8"}, "ok", []),
    ({"pages_dtype": "float32"}, "ok", []),
    ({"q_dtype": "float32"}, "ok", []),
    ({"q_dtype": "int32"}, "ok, and integers come out", ["SC115"]),
    ({"lengths_dtype": "int16"}, "ValueError: The dtype of `lengths` ...", ["SC107"]),
    ({"lengths_dtype": "uint32"}, "ValueError: The dtype of `lengths` ...", ["SC107"]),
    ({"page_indices_dtype": "uint32"}, "ok", []),
    ({"page_indices_dtype": "int16"}, "VerificationError", ["SC108"]),
    ({"page_indices_dtype": "float32"}, "VerificationError", ["SC108"]),
    ({"effective_q_lens_dtype": "uint8"}, "ok", []),
    ({"effective_q_lens_batch_size": 3}, "ValueError: `lengths` and `effective_q_lens` ...", ["SC105"]),
    ({"effective_q_lens_rank": 2}, "ValueError: `lengths` and `effective_q_lens` ...", ["SC109"]),
    ({"lengths_batch_size": 3}, "ValueError: `lengths` and `q` ...", ["SC105"]),
]


@pytest.mark.parametrize(("changes", "said", "codes"), MULTI_QUERIES, ids=[str(changes) for changes, *_ in MULTI_QUERIES])
def test_multi_queries_paged_attention_is_judged_as_the_kernel_does(
    changes: dict[str, object], said: str, codes: list[str]
) -> None:
    assert broken("multi_queries_paged_attention", **LEGAL | changes) == codes
    assert bool(codes) == (said != "ok")


def test_the_upstream_default_of_the_query_block_is_the_contracts() -> None:
    geometry = {name: value for name, value in LEGAL.items() if name != "num_queries_per_compute_block"}
    assert broken("multi_queries_paged_attention", **geometry) == ["SC307"]
    assert broken("multi_queries_paged_attention", **geometry | {"query_len": 4}) == []


@pytest.mark.parametrize(
    ("code", "changes", "advice"),
    [
        ("SC307", {"num_queries_per_compute_block": 4}, "legal query blocks: 8, 16, 32"),
        ("SC131", {"num_queries_per_compute_block": 48}, "legal query blocks: 8, 16, 32"),
        ("SC131", {"query_len": 30, "num_queries_per_compute_block": 48}, "legal query blocks: 30"),
        ("SC134", {"pages_per_compute_block": 4}, "legal blocks: 8, 16"),
        ("SC105", {"effective_q_lens_batch_size": 3}, "lengths and effective_q_lens of shape (2,)"),
    ],
)
def test_the_advice_is_legal(code: str, changes: dict[str, object], advice: str) -> None:
    contract = CONTRACTS["multi_queries_paged_attention"]
    (rule,) = [rule for rule in contract.rules if rule.code == code]
    assert contract.advice(rule, contract.geometry(**LEGAL | changes)) == advice


def test_nothing_is_said_of_queries_whose_number_is_not_known() -> None:
    contract = CONTRACTS["multi_queries_paged_attention"]
    for code in ("SC131", "SC105", "SC307"):
        (rule,) = [rule for rule in contract.rules if rule.code == code]
        assert contract.advice(rule, contract.geometry(num_queries_per_compute_block=4)) == ""
