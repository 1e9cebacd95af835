"""What libtpu itself says, of a few calls."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from pathlib import Path

import pytest

from codemods import cli
from shapecheck.chip import chip_of
from shapecheck.compiler import (
    Answer,
    Failure,
    Mesh,
    Question,
    ask,
)

from .questions import question

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None and "TPU_LIBRARY_PATH" not in os.environ,
    reason="libtpu is not installed: pip install 'shapecheck-pallas[tpu]'",
)


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    asked = {
        **{chip: question(chip) for chip in CHIPS},
        "v4 memory": question("v4", total_num_pages=1 << 19, page_size=8),
        "quantized": question(pages_dtype="int8", scales_dtype="float32"),
        "mesh": question(mesh=Mesh(model=8), megacore_mode="batch"),
        "two axes": question("v6e", mesh=Mesh(data=4, model=4), batch_size=64),
        "two axes in megacore": question("v4", mesh=Mesh(data=8, model=8), pages_dtype="int8", scales_dtype="float32"),
        "part of a topology": question("v5e", mesh=Mesh(data=2)),
        "block": question(pages_per_compute_block=7),
        "no block": question(pages_per_compute_block=0),
        "head_dim": question(head_dim=64),
        "float16": question(q_dtype="float16", num_q_heads=64),
        "page ids": question(page_indices_dtype="int16"),
        "one token": question(page_size=1, pages_per_compute_block=1),
        "smem": question(batch_size=256, pages_per_sequence=2048),
        **{f"{chip} vmem": question(chip, page_size=10240, pages_per_compute_block=2, head_dim=256) for chip in CHIPS},
        **{f"{chip} hbm": question(chip, total_num_pages=1 << 22, page_size=128) for chip in CHIPS},
    }
    return dict(zip(asked, ask(list(asked.values())), strict=True))


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_can_be_asked_about(chip: str, answers: dict[str, Answer]) -> None:
    answer = answers[chip]
    assert answer.compiles, answer.message
    double_buffers = 2 * 2 * 8 * 16 * 128 * 2  # bytes: k and v, twice, a block each
    assert double_buffers < answer.memory["vmem"] < 1 << 20
    pages = 2 * 8 * 128 * 16 * 128 * 2  # bytes
    assert pages < answer.memory["hbm"] < 2 * pages
    assert answer.seconds > 0


@pytest.mark.parametrize("case", ["quantized", "mesh", "two axes", "two axes in megacore", "part of a topology"])
def test_quantized_and_sharded_calls_compile(case: str, answers: dict[str, Answer]) -> None:
    assert answers[case].compiles, answers[case].message


def test_a_v4_has_two_cores_in_one_device(answers: dict[str, Answer]) -> None:
    assert answers["v4 memory"].compiles, answers["v4 memory"].message  # 16 GiB: one core has less


def test_each_device_of_a_mesh_holds_its_share(answers: dict[str, Answer]) -> None:
    assert answers["mesh"].memory["hbm"] < answers["v5p"].memory["hbm"] / 4
    assert answers["two axes"].memory["hbm"] < answers["v6e"].memory["hbm"] / 3
    assert answers["part of a topology"].memory["hbm"] > answers["v5e"].memory["hbm"] * 0.9  # all pages are on each


@pytest.mark.parametrize(
    ("case", "failures"),
    [
        ("block", {Failure.UPSTREAM}),
        ("no block", {Failure.UPSTREAM}),
        ("head_dim", {Failure.BLOCK_SHAPE}),
        ("float16", {Failure.MOSAIC, Failure.CAST}),
        ("page ids", {Failure.VERIFICATION}),
        ("one token", {Failure.VERIFICATION}),
        ("smem", {Failure.SMEM}),
        *((f"{chip} vmem", {Failure.VMEM}) for chip in CHIPS),
        *((f"{chip} hbm", {Failure.HBM}) for chip in CHIPS),
    ],
)
def test_failures_are_told_apart(case: str, failures: set[Failure], answers: dict[str, Answer]) -> None:
    assert answers[case].failure in failures, answers[case].message


def test_the_scalar_memory_is_told(answers: dict[str, Answer]) -> None:
    answer = answers["smem"]
    assert answer.used
    assert answer.used > chip_of("v5p").smem_bytes == answer.limit


@pytest.mark.parametrize("chip", CHIPS)
def test_there_is_as_much_memory_as_the_table_of_chips_says(chip: str, answers: dict[str, Answer]) -> None:
    assert answers[f"{chip} vmem"].limit == chip_of(chip).vmem_bytes
    assert answers[f"{chip} hbm"].limit == pytest.approx(chip_of(chip).hbm_bytes, abs=16 << 20)  # in GiB, with two digits


def test_rules_describe_the_failures(answers: dict[str, Answer]) -> None:
    described = {case: [rule.code for rule in answer.foreseen] for case, answer in answers.items()}
    assert (described["block"], described["no block"], described["page ids"]) == (["SC102"], ["SC110"], ["SC108"])


def test_the_contract_disputes_none(answers: dict[str, Answer]) -> None:
    assert {case: answer.disputed for case, answer in answers.items() if answer.disputed} == {}


def test_the_documentation_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "compiler.md").read_text()
    blocks = re.findall(r"^```shell-session\n\$ shapecheck (.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    number = re.compile(r"\d+(\.\d+)?")  # seconds and bytes are those of a machine and a version
    for (command, shown), status in zip(blocks, [1, 0], strict=True):  # a megacore mode hangs on a v5e
        assert cli.main([*shlex.split(command), "--no-cache"]) == status
        assert number.sub("N", capsys.readouterr().out) == number.sub("N", shown)


def test_a_ragged_call_without_blocks_has_those_of_the_table_for_its_chip() -> None:
    axes = {"max_num_batched_tokens": 64, "num_q_heads": 4, "head_dim": 128, "total_num_pages": 64, "page_size": 16}
    more = {"num_combined_kv_heads": 4, "max_num_seqs": 4, "pages_per_seq": 128, "q_dtype": "bfloat16"}
    call = {"callee": "ragged_paged_attention", **axes, **more, "kv_pages_dtype": "bfloat16"}
    asked = [
        Question.of(chip, mesh=mesh, **call) for chip, mesh in (("v4", None), ("v5e", None), ("v5e", Mesh(model=2)), ("v2", None))
    ]
    v4, v5e, split, v2 = ask(asked)
    assert (v4.compiles, v5e.compiles, split.compiles, v2.compiles) == (True, True, True, False), (v4, v5e, split)
    assert v4.memory["vmem"] < v5e.memory["vmem"] / 2  # 32 pages and 128
    assert split.memory["vmem"] < v5e.memory["vmem"]
    assert [rule.code for rule in v2.foreseen] == ["SC308"]
