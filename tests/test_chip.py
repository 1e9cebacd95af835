from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from shapecheck.chip import CHIPS, KIB, LANES, MIB, SUBLANES, Chip, chip_of, local_chip


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_chip_is_found_by_its_name_and_by_each_device_kind(chip: Chip) -> None:
    assert {chip_of(name) for name in (chip.name, chip.name.upper(), *chip.device_kinds)} == {chip}


def test_no_device_kind_names_two_chips() -> None:
    kinds = [kind for chip in CHIPS for kind in chip.device_kinds]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("name", ["tpu7x", "7x", "v7x", "TPU 7x", "TPU7x"])
def test_a_chip_may_be_named_as_people_do(name: str) -> None:
    assert chip_of(name).name == "tpu7x"


def test_the_documentation_has_each_number() -> None:
    text = (Path(__file__).parents[1] / "docs" / "chips.md").read_text()
    for chip in CHIPS:
        sizes = f"{chip.smem_bytes // KIB:,} KiB | {chip.vmem_bytes // MIB} MiB | {chip.hbm_bytes // MIB:,} MiB"
        granule = f"{chip.dma_granule_bytes} B" if chip.dma_granule_bytes else "-"
        row = [chip.name, ", ".join(chip.device_kinds), chip.generation, chip.cores_per_device, sizes, granule]
        assert f"| {' | '.join(map(str, row))} |\n" in text


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_jax_states_the_same(chip: Chip) -> None:
    stated: Any = pytest.importorskip("jax._src.tpu_info", reason="this JAX has it elsewhere")
    for kind in chip.device_kinds:
        version = stated.chip_version_from_device_kind(kind)
        info = stated._get_tpu_info_impl(version, chip.cores_per_device)
        granule = info.sparse_core.dma_granule_size_bytes if info.sparse_core else None
        assert version.supports_megacore == (chip.cores_per_device == 2)
        assert (info.generation, info.smem_capacity_bytes, granule) == (chip.generation, chip.smem_bytes, chip.dma_granule_bytes)
        assert (info.num_lanes, info.num_sublanes) == (LANES, SUBLANES)
        assert chip.hbm_bytes / chip.cores_per_device == pytest.approx(info.hbm_capacity_bytes, rel=0.07)
        assert chip.vmem_bytes <= info.vmem_capacity_bytes


def test_an_unknown_chip_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown chip 'v99'; known: v2, v3, v4, v5e, v5p, v6e, tpu7x"):
        chip_of("v99")


def test_the_local_chip_is_that_of_the_first_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind="TPU v5 lite")])
    assert local_chip() == chip_of("v5e")


def test_a_device_that_is_no_tpu_has_no_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind="cpu")])
    assert local_chip() is None
