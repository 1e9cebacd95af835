from __future__ import annotations

from types import SimpleNamespace

import jax
import pytest

from shapecheck.chip import CHIPS, Chip, chip_of, local_chip


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_chip_is_found_by_its_name_and_by_each_device_kind(chip: Chip) -> None:
    assert {chip_of(name) for name in (chip.name, chip.name.upper(), *chip.device_kinds)} == {chip}


def test_no_device_kind_names_two_chips() -> None:
    kinds = [kind for chip in CHIPS for kind in chip.device_kinds]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("name", ["tpu7x", "7x", "v7x", "TPU 7x", "TPU7x"])
def test_a_chip_may_be_named_as_people_do(name: str) -> None:
    assert chip_of(name).name == "tpu7x"


def test_an_unknown_chip_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown chip 'v99'; known: v2, v3, v4, v5e, v5p, v6e, tpu7x"):
        chip_of("v99")


def test_the_local_chip_is_that_of_the_first_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind="TPU v5 lite")])
    assert local_chip() == chip_of("v5e")


def test_a_device_that_is_no_tpu_has_no_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind="cpu")])
    assert local_chip() is None
