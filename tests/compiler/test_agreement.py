"""The contract against what the TPU compiler said of 3,369 geometries: libtpu 0.0.52, JAX 0.12.0.1, v4 to v7x.

`compiler_truth` is drawn at random, `compiler_truth_edge` close to the limits of scalar and vector memory.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shapecheck import Verdict
from tests.compiler.verdicts import disagreement, verdicts

RULES = {
    "upstream_value_error": {"SC101", "SC102", "SC201", "SC202"},
    "pallas_block_shape": {"SC301"},
    "unsupported_cast": {"SC302"},
    "compiler_MosaicError": {"SC303"},
    "compiler_VerificationError": {"SC304"},
    "oom_smem": {"SC305"},
    "oom_vmem": {"SC306"},
    "oom_hbm": {"SC309"},
}


class Recorded(NamedTuple):
    """A geometry, what the compiler said, and what the contract says."""

    geometry: Mapping[str, Any]
    said: str
    verdicts: Mapping[str, Verdict]

    def codes(self, verdict: Verdict) -> set[str]:
        return {code for code, each in self.verdicts.items() if each is verdict}


@cache
def recorded(name: str) -> list[Recorded]:
    found: list[Recorded] = []
    for line in gzip.decompress(Path(__file__).with_name(f"{name}.jsonl.gz").read_bytes()).splitlines():
        geometry = json.loads(line)
        said = geometry.pop("verdict")
        del geometry["detail"]
        found.append(Recorded(geometry, said, verdicts(geometry)))
    return found


BOTH = pytest.mark.parametrize(("name", "size"), [("compiler_truth", 3000), ("compiler_truth_edge", 369)])


@BOTH
def test_the_contract_is_never_wrong(name: str, size: int) -> None:
    records = recorded(name)
    assert len(records) == size
    assert [each for each in records if disagreement(each.verdicts, compiles=each.said == "ok")] == []


@BOTH
def test_the_rule_that_is_broken_describes_the_failure(name: str, size: int) -> None:
    for each in recorded(name):
        violated = each.codes(Verdict.VIOLATED)
        assert not violated or violated & RULES[each.said], each


@BOTH
def test_little_is_unproven_only_of_memory_and_of_quantized_pages_of_one_token(name: str, size: int) -> None:
    unproven = [each for each in recorded(name) if Verdict.worst(each.verdicts.values()) is Verdict.UNPROVEN]
    assert len(unproven) / size <= {"compiler_truth": 0.004, "compiler_truth_edge": 0.06}[name]
    assert set().union(*(each.codes(Verdict.UNPROVEN) for each in unproven)) <= {"SC304", "SC305", "SC306", "SC309"}
