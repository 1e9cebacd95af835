"""Facts of each TPU generation that a rule rests on."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Chip:
    """One TPU generation, as one JAX device sees it.

    Attributes:
        name: the name used by `--chip` and `[tool.shapecheck] chips`.
        device_kinds: what `jax.Device.device_kind` says on it.
        cores_per_device: TensorCores that share one JAX device: 2 where megacore fuses them (v4 and v5p). A v7x
            chip has two cores as well, but each is a device of its own. Source: JAX's `jax/_src/pallas/mosaic/tpu_info.py`.
    """

    name: str
    device_kinds: tuple[str, ...]
    cores_per_device: int


CHIPS: tuple[Chip, ...] = (
    Chip("v4", ("TPU v4",), cores_per_device=2),
    Chip("v5e", ("TPU v5 lite", "TPU v5e"), cores_per_device=1),
    Chip("v5p", ("TPU v5", "TPU v5p"), cores_per_device=2),
    Chip("v6e", ("TPU v6 lite", "TPU v6e"), cores_per_device=1),
    Chip("tpu7x", ("TPU7x",), cores_per_device=1),
)


def chip_of(name: str) -> Chip:
    """Return the chip called `name`, by its short name or by its JAX device kind.

    Raises:
        ValueError: there is no such chip; the message lists those there are.
    """
    for chip in CHIPS:
        if name.lower() == chip.name or name in chip.device_kinds:
            return chip
    raise ValueError(f"unknown chip {name!r}; known: {', '.join(chip.name for chip in CHIPS)}")


def local_chip() -> Chip | None:
    """Return the chip of JAX's first device; None where that is no TPU, or one we have no facts of."""
    jax: Any = import_module("jax")  # it leaves its devices partly untyped
    kind = jax.devices()[0].device_kind
    return next((chip for chip in CHIPS if kind in chip.device_kinds), None)
