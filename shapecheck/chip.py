"""Facts of each TPU generation that a rule rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

KIB, MIB, GIB = 2**10, 2**20, 2**30

LANES: Final = 128
SUBLANES: Final = 8
"""The shape of a vector register, of 32-bit elements, on every generation here. Source: JAX's `jax/_src/tpu_info.py`."""


FIRST_GENERATION: Final = 4
"""The first whose matrix unit multiplies bfloat16, which the kernels make of everything."""


@dataclass(frozen=True)
class Chip:
    """One TPU generation, as one JAX device sees it.

    Sources: JAX's `jax/_src/tpu_info.py` for cores, SMEM and DMA granules; what libtpu 0.0.50 says is full for VMEM and HBM.
    `docs/chips.md` has them for each number.

    Attributes:
        name: the name used by `--chip` and `[tool.shapecheck] chips`.
        device_kinds: what `jax.Device.device_kind` says on it.
        generation: the number in its name.
        cores_per_device: TensorCores that share one JAX device: 2 where megacore fuses them (v4 and v5p). A v2, v3 or v7x
            chip has two cores as well, but each is a device of its own.
        smem_bytes: scalar memory of one core, into which a kernel's prefetched scalars go.
        vmem_bytes: vector memory that one kernel may take, the compiler's `xla_tpu_scoped_vmem_limit_kib`; a core has more of
            it since v5e.
        hbm_bytes: what the compiler gives to one device, without what it keeps for itself. One of a v4 that is not in
            megacore mode has half of it.
        dma_granule_bytes: the unit of a SparseCore's transfers; None where there is none, or JAX does not state it.
    """

    name: str
    device_kinds: tuple[str, ...]
    generation: int
    cores_per_device: int
    smem_bytes: int
    vmem_bytes: int
    hbm_bytes: int
    dma_granule_bytes: int | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a relation may use, by name."""
        return {fact: getattr(self, attribute) for fact, attribute in _FACTS.items()}


_FACTS = {
    "chip_name": "name",
    "chip_generation": "generation",
    "cores_per_device": "cores_per_device",
    "smem_bytes": "smem_bytes",
    "vmem_bytes": "vmem_bytes",
    "hbm_bytes": "hbm_bytes",
}
CHIP_FACTS = frozenset(_FACTS)
"""The names that a declared chip defines."""

# fmt: off
CHIPS: tuple[Chip, ...] = (
    Chip("v2", ("TPU v2",), 2, 1, 16 * KIB, 16 * MIB, 7660 * MIB),
    Chip("v3", ("TPU v3",), 3, 1, 16 * KIB, 16 * MIB, 15852 * MIB),
    Chip("v4", ("TPU v4",), 4, 2, MIB, 16 * MIB, 31488 * MIB),
    Chip("v5e", ("TPU v5 lite", "TPU v5e"), 5, 1, MIB, 16 * MIB, 16128 * MIB),
    Chip("v5p", ("TPU v5", "TPU v5p"), 5, 2, MIB, 16 * MIB, 98028 * MIB, dma_granule_bytes=32),
    Chip("v6e", ("TPU v6 lite", "TPU v6e"), 6, 1, MIB, 32 * MIB, 31990 * MIB, dma_granule_bytes=32),
    Chip("tpu7x", ("TPU7x",), 7, 1, MIB, 32 * MIB, 97014 * MIB, dma_granule_bytes=32),
)
# fmt: on


def chip_of(name: str) -> Chip:
    """Return the chip called `name`, by its short name or by its JAX device kind.

    Raises:
        ValueError: there is no such chip; the message lists those there are.
    """
    for chip in CHIPS:
        if _short(name) == _short(chip.name) or name in chip.device_kinds:
            return chip
    raise ValueError(f"unknown chip {name!r}; known: {', '.join(chip.name for chip in CHIPS)}")


def _short(name: str) -> str:
    """Return the name of a generation without what it is often written with: `7x` for `tpu7x`, `v7x` and `TPU 7x`."""
    return name.lower().removeprefix("tpu").strip().removeprefix("v")


def local_chip() -> Chip | None:
    """Return the chip of JAX's first device; None where that is no TPU, or one we have no facts of."""
    jax: Any = import_module("jax")  # it leaves its devices partly untyped
    kind = jax.devices()[0].device_kind
    return next((chip for chip in CHIPS if kind in chip.device_kinds), None)
