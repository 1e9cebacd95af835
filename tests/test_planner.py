"""What is planned for well-known models: choices that the contract proves legal, and changes that make others so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shapecheck import judge
from shapecheck.chip import CHIPS, Chip, chip_of
from shapecheck.model import Model
from shapecheck.planner import Plan, geometry_of, plan
from shapecheck.rule import Verdict

from .test_model import PUBLISHED

LATER = [chip for chip in CHIPS if chip.generation >= 4]
MODELS = sorted({model for _, model in PUBLISHED.values()}, key=repr)


def planned(model: Model, chip: Chip, **load: Any) -> Plan:
    asked = {"batch": 16, "context": 4096, "page_size": 16, "q_dtype": "bfloat16", "pages_dtype": "bfloat16"} | load
    return plan(chip, geometry_of(model, **asked))


def verdicts(chip: Chip, geometry: Mapping[str, Any], block: int, mode: str | None) -> set[Verdict]:
    found = judge("paged_attention", chip=chip.name, **geometry, pages_per_compute_block=block, megacore_mode=mode)
    return {verdict for code, verdict in found.items() if not code.startswith("SC5")}


@pytest.mark.parametrize("chip", LATER, ids=lambda chip: chip.name)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_best_choice_is_legal_and_none_is_larger(model: Model, chip: Chip) -> None:
    found = planned(model, chip)
    legal = {
        option.pages_per_compute_block
        for option in found.options
        if verdicts(chip, found.geometry, option.pages_per_compute_block, option.megacore_mode) == {Verdict.PROVEN}
    }
    assert (found.best is None) == (not legal)
    if found.best is None:
        assert found.changes
    else:
        assert found.best.pages_per_compute_block == max(legal)


@pytest.mark.parametrize("chip", [chip_of("v4"), chip_of("v6e")], ids=lambda chip: chip.name)
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize(
    "load",
    [
        {},
        pytest.param({"batch": 512, "context": 32768}, marks=pytest.mark.thorough),
        {"page_size": 1, "context": 1021},
        {"pages_dtype": "int8", "batch": 256},
    ],
)
def test_with_all_changes_there_is_a_legal_choice(model: Model, chip: Chip, load: dict[str, Any]) -> None:
    found = planned(model, chip, **load)
    if found.best is None:
        assert plan(chip, found.changes[-1].geometry).best is not None


def test_both_cores_work_where_a_device_has_two() -> None:
    model = Model(32, 8, 128)
    modes = {chip.name: best.megacore_mode for chip in LATER if (best := planned(model, chip).best)}
    assert modes == {"v4": "kv_head", "v5e": None, "v5p": "kv_head", "v6e": None, "tpu7x": None}
    odd = Model(28, 7, 128)
    taken = [planned(odd, chip_of("v5p"), batch=batch).best for batch in (16, 15)]
    assert [best.megacore_mode for best in taken if best] == ["batch", None]


@pytest.mark.parametrize(
    ("model", "load", "words"),
    [
        (Model(32, 8, 64), {}, "pad head_dim from 64 to 128"),
        (Model(32, 8, 128), {"batch": 512, "context": 8192, "total": None}, "split the batch of 512 into 2 calls of at most 256"),
        (Model(32, 8, 128), {"context": 16 * 1021}, "pad the page table from 1021 to 1024 pages"),
        (Model(8, 8, 128), {"page_size": 32768, "context": 32768, "batch": 1}, "make pages of 8192 tokens instead of 32768"),
        (Model(32, 32, 128), {"batch": 64, "context": 32768, "page_size": 64}, "pages on a device instead of 32768"),
    ],
)
def test_it_says_what_to_change(model: Model, load: dict[str, Any], words: str) -> None:
    load = {name: value for name, value in load.items() if name != "total"}
    found = planned(model, chip_of("v5e"), **load)
    assert words in "; ".join(change.words for change in found.changes)


def test_a_block_that_is_too_large_is_not_taken() -> None:
    found = planned(Model(8, 8, 128), chip_of("v5e"), context=65536, batch=4)
    assert found.best is not None
    broken = {option.pages_per_compute_block for option in found.options if "SC306" in option.broken}
    assert broken == {1024, 2048, 4096}
    least = {option.pages_per_compute_block: option.vmem_bytes[0] for option in found.options}
    assert least[found.best.pages_per_compute_block] < found.chip.vmem_bytes < least[1024]


def test_nothing_is_legal_on_chips_that_lack_the_operation() -> None:
    found = planned(Model(32, 8, 128), chip_of("v3"))
    assert found.best is None
    assert all("SC308" in option.broken for option in found.options)


def test_the_pages_of_a_sequence_and_of_the_device() -> None:
    sizes = geometry_of(Model(8, 2, 128), batch=3, context=100, page_size=16, q_dtype="float32", pages_dtype="int8", pages=None)
    assert (sizes["pages_per_sequence"], sizes["total_num_pages"], sizes["scales_dtype"]) == (7, 21, "float32")
    assert geometry_of(Model(8, 2, 128), batch=3, context=100, page_size=16, q_dtype="float32", pages_dtype="float32", pages=9)[
        "total_num_pages"
    ] == 9  # fmt: skip
