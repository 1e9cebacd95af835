"""The messages are those of libtpu 0.0.42 and 0.0.50 with JAX 0.10.2 and 0.12.0."""

from __future__ import annotations

from typing import Any

import pytest

from shapecheck.compiler import (
    KERNELS,
    Answer,
    Failure,
    mebibytes,
)
from shapecheck.relation import Relation
from shapecheck.rule import Rule

from .questions import question


def failed(message: str, stage: str = "compile", kind: str = "JaxRuntimeError", **changes: Any) -> Answer:
    return Answer.read(question(**changes), {"ok": False, "stage": stage, "type": kind, "message": message, "seconds": 0.1})


VMEM = (
    "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on stack for "
    "%paged_attention.1. Scoped allocation with size 16.04M and limit 16.00M exceeded scoped vmem limit by 36.0K."
)
SMEM = "RESOURCE_EXHAUSTED: Allocation (size=2097152) would exceed memory (size=1048576) :: #allocation8 [space=smem]"
SMEM_ROUNDED = (
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space smem. Used 1.00M of 1.00M smem. Exceeded smem capacity by 768B."
)
HBM = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, "
    "the total memory required for HLO temporaries (2.00T) exceeds available HBM (95.74G)."
)


@pytest.mark.parametrize(
    ("stage", "message", "failure"),
    [
        ("trace", "pages_per_compute_block must be divisible by pages per sequence. Got 7 and 64.", Failure.UPSTREAM),
        ("trace", "integer modulo by zero", Failure.UPSTREAM),
        (
            "lower",
            "The Pallas TPU lowering currently requires that the last two dimensions of your block shape are divisible by 8",
            Failure.BLOCK_SHAPE,
        ),
        ("lower", "Unsupported cast: float16 -> bfloat16", Failure.CAST),
        ("lower", "Pallas encountered an internal verification error. Please file a bug", Failure.VERIFICATION),
        ("compile", "INTERNAL: Mosaic failed to compile TPU kernel: Invalid vector type for load", Failure.MOSAIC),
        ("compile", SMEM, Failure.SMEM),
        ("compile", VMEM, Failure.VMEM),
        ("compile", HBM, Failure.HBM),
        ("compile", "RESOURCE_EXHAUSTED: of patience", Failure.OTHER),
        ("compile", "INTERNAL: something else", Failure.OTHER),
    ],
)
def test_failures_have_a_class(stage: str, message: str, failure: Failure) -> None:
    answer = failed(message, stage)
    assert (answer.failure, answer.compiles) == (failure, False)
    assert answer.words


@pytest.mark.parametrize(
    ("message", "used", "limit"),
    [
        (SMEM, 2 << 20, 1 << 20),
        (SMEM_ROUNDED, (1 << 20) + 768, 1 << 20),
        (VMEM, (16 << 20) + 36 * 1024, 16 << 20),
        (HBM, 2 << 40, round(95.74 * 2**30)),
        ("RESOURCE_EXHAUSTED: vmem", None, None),
    ],
)
def test_the_bytes_are_read(message: str, used: int | None, limit: int | None) -> None:
    answer = failed(message)
    assert (answer.used, answer.limit) == (used, limit)


def test_the_words_have_the_sizes() -> None:
    assert failed(VMEM).words.endswith("(VMEM) than there is, 16.035 MiB of 16 MiB")
    assert mebibytes(1 << 20) == "1 MiB"
    assert mebibytes(1234 << 20) == "1,234 MiB"


def test_the_contract_names_the_rule() -> None:
    answer = failed("Got 7 and 16.", "trace", "ValueError", pages_per_compute_block=7)
    assert [rule.code for rule in answer.foreseen] == ["SC102"]
    assert answer.rule is answer.foreseen[0]
    assert answer.message == "ValueError: Got 7 and 16."


def test_a_rule_that_does_not_describe_the_failure_is_not_named() -> None:
    answer = failed(HBM, attn_logits_soft_cap=0.0)
    assert (answer.foreseen, answer.rule) == ((), None)


def test_a_memory_that_does_not_suffice_has_a_rule_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule("SC306", "block-vmem", Relation("page_size >= 1"), "the buffers must fit", "", "pages_per_compute_block")
    contract = KERNELS["paged_attention"].contract
    others = tuple(each for each in contract.rules if each.code != "SC306")
    monkeypatch.setitem(vars(contract), "rules", (*others, rule))
    answer = failed(VMEM)
    assert (answer.foreseen, answer.rule) == ((), rule)
    assert failed("INTERNAL: Mosaic failed to compile").rule is None


def test_what_compiles_and_goes_wrong_is_told_apart_from_what_must_not_compile() -> None:
    reply = {"ok": True, "seconds": 1.0, "memory": {"vmem": 1}}
    silent = Answer.read(question("v5e", megacore_mode="kv_head"), reply)
    assert ([rule.code for rule in silent.silent], silent.disputed) == (["SC204"], ())
    disputed = Answer.read(question(pages_per_compute_block=7), reply)
    assert ([rule.code for rule in disputed.disputed], disputed.silent) == (["SC102"], ())


def test_a_long_message_is_cut_on_one_line() -> None:
    assert failed("a\n" * 500).brief == "JaxRuntimeError: " + "a " * 71 + "a..."
