"""The contract of `ragged_paged_attention` against what the TPU compiler said, for v4 to v7x, with JAX 0.10.2 and 0.12.0."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shapecheck import Verdict, judge
from shapecheck.contracts import CONTRACTS
from shapecheck.contracts.ragged_on_tpu import VMEM
from shapecheck.relation import Relation

RULES = {
    "trace_ValueError": {"SC122"},
    "trace_AssertionError": {"SC301", "SC130"},
    "lower_NotImplementedError": {"SC310"},
    "lower_ValueError": {"SC313"},
    "lower_VerificationError": {"SC304"},
    "compile_MosaicError": {"SC302", "SC310", "SC312"},
    "compile_JaxRuntimeError": {"SC302", "SC310", "SC312"},
    "oom_vmem": {"SC306"},
}


class Recorded(NamedTuple):
    """A geometry with a chip, what the compiler said, the vector memory where it compiles, and what the contract says."""

    geometry: Mapping[str, Any]
    jax: str
    said: str
    vmem: int | None
    verdicts: Mapping[str, Verdict]


@cache
def recorded() -> list[Recorded]:
    found: list[Recorded] = []
    for line in gzip.decompress(Path(__file__).with_name("ragged_truth.jsonl.gz").read_bytes()).splitlines():
        geometry = json.loads(line)
        jax, said, vmem, _ = (geometry.pop(name, None) for name in ("jax", "verdict", "vmem", "detail"))
        geometry |= {"num_offsets": geometry["max_num_seqs"] + 1, "num_counts": 1}
        geometry |= {f"{name}_dtype": "int32" for name in ("kv_lens", "page_indices", "cu_q_lens", "num_seqs")}
        found.append(Recorded(geometry, jax, said, vmem, judge("ragged_paged_attention", **geometry)))
    return found


def test_both_versions_were_asked() -> None:
    assert {each.jax for each in recorded()} == {"0.10.2", "0.12.0"}
    assert {each.geometry["chip"] for each in recorded()} == {"v4", "v5e", "v5p", "v6e", "tpu7x"}


def test_the_contract_is_never_wrong() -> None:
    wrong = [each for each in recorded() if _outcome(each) is (Verdict.VIOLATED if each.said == "ok" else Verdict.PROVEN)]
    assert wrong == []


def test_the_rule_that_is_broken_describes_the_failure() -> None:
    for each in recorded():
        violated = {code for code, verdict in each.verdicts.items() if verdict is Verdict.VIOLATED}
        assert not violated or violated & RULES[each.said], each


def test_a_failure_is_foreseen_but_of_memory() -> None:
    open_ = [each for each in recorded() if each.said not in ("ok", "oom_vmem") and _outcome(each) is not Verdict.VIOLATED]
    assert open_ == []


def test_vector_memory_is_within_its_bounds() -> None:
    least, most = (Relation(f"{name}_vmem_bytes", VMEM) for name in ("least", "most"))
    for each in recorded():
        if each.vmem is not None:
            values = CONTRACTS["ragged_paged_attention"].geometry(
                **{name: value for name, value in each.geometry.items() if name != "chip"}
            )
            assert least.value(values) <= each.vmem <= most.value(values), each


def test_most_is_decided() -> None:
    """What is not is close to the limits of vector memory, or of a dtype that few use."""
    open_ = [each for each in recorded() if _outcome(each) is Verdict.UNPROVEN]
    assert len(open_) < len(recorded()) / 4
    assert {code for each in open_ for code, verdict in each.verdicts.items() if verdict is Verdict.UNPROVEN} <= {
        "SC304",
        "SC306",
        "SC310",
    }


def _outcome(each: Recorded) -> Verdict:
    return Verdict.worst(each.verdicts.values())


@pytest.mark.parametrize(("pages_per_seq", "sequences"), [(1, 2008), (128, 2008), (129, 1008), (256, 1008), (1000, 248)], ids=str)
def test_scalar_memory_has_the_bounds_that_were_found(pages_per_seq: int, sequences: int) -> None:
    """The most sequences that compile on v5e, with either version; one more does not."""
    said = [
        judge("ragged_paged_attention", chip="v5e", max_num_seqs=rows, pages_per_seq=pages_per_seq)["SC305"]
        for rows in (sequences * 9 // 10, sequences, sequences + 1, sequences * 11 // 10)
    ]
    assert said[0] is Verdict.PROVEN
    assert said[1] is not Verdict.VIOLATED
    assert said[2] is not Verdict.PROVEN
    assert said[3] is Verdict.VIOLATED
