"""The kernels that can be compiled, which are those that JAX comes with: for each, all that a question about it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shapecheck.contract import Contract
from shapecheck.contracts.memory import SPACES, Spaces
from shapecheck.contracts.paged_attention import PAGED_ATTENTION, PORTABLE_PAGED_ATTENTION
from shapecheck.contracts.ragged_on_tpu import RAGGED_SPACES
from shapecheck.contracts.ragged_paged_attention import PORTABLE_RAGGED_PAGED_ATTENTION, RAGGED_PAGED_ATTENTION
from shapecheck.outcome import Values
from shapecheck.relation import Relation


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that can be compiled.

    Attributes:
        contract: what it demands; the function has the contract's name.
        module: the module of JAX that has it.
        assumed: what is not worth an option, for nothing else compiles.
        follows: what is left out follows from other names.
        split: by axis of the mesh, which axis of which array is split over it, as production code has `shard_map` do it.
        spaces: how much of each memory a call takes.
        front_door: the contract of the function of `kernel` that calls it on a TPU.
        handed_on: what that function hands on to it, of the values of its own call.
        shown_as: what Pallas and the compiler call it in their messages, as patterns that no other kernel fits.
    """

    contract: Contract
    module: str
    assumed: Mapping[str, Any]
    follows: Mapping[str, Relation]
    split: Mapping[str, Mapping[str, str]]
    spaces: Spaces
    front_door: Contract
    handed_on: Callable[[Values], dict[str, Any]]
    shown_as: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.contract.name

    def completed(self, stated: Values) -> dict[str, Any]:
        """Return what is stated of a call, and before it what follows from that."""
        following = {name: relation for name, relation in self.follows.items() if stated.keys() >= set(relation.names)}
        return {**{name: relation.value(stated) for name, relation in following.items()}, **stated}

    @cached_property
    def usual(self) -> Mapping[str, Any]:
        """What is not worth telling: defaults, and what is assumed."""
        return {**self.assumed, **{parameter.name: parameter.default for parameter in self.contract.parameters}}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that tell calls apart."""
        dtypes = (f"{array.name}_{each}" for array in self.contract.arrays for each in ("dtype", "scales_dtype"))
        parameters = (parameter.name for parameter in self.contract.parameters)
        return (*self.contract.axes, *parameters, *(name for name in dtypes if name in self.contract.origins))


def _paged(values: Values) -> dict[str, Any]:
    """The kernel is never given float64."""
    return {**values, "q_dtype": "float32"} if values.get("q_dtype") == "float64" else dict(values)


def _ragged(values: Values) -> dict[str, Any]:
    """The kernel is given q in one of two dtypes, and both scales or none, as floats."""
    handed = dict(values)
    if isinstance(values.get("q_dtype"), str) and values["q_dtype"] not in ("float32", "bfloat16"):
        handed["q_dtype"] = "float32"
    scales = {name: values.get(name) for name in ("k_scale", "v_scale")}
    if any(isinstance(scale, int | float) for scale in scales.values()):
        handed |= {name: 1.0 if scale is None else float(scale) for name, scale in scales.items() if name in values}
    return handed


_OPS = "jax.experimental.pallas.ops.tpu"

KERNELS: Mapping[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            contract=PAGED_ATTENTION,
            module=f"{_OPS}.paged_attention",
            assumed={"lengths_dtype": "int32", "page_indices_dtype": "int32"},
            follows={},
            split={
                "data": {"q": "batch_size", "lengths": "batch_size", "page_indices": "batch_size"},
                "model": {"q": "num_q_heads", "k_pages": "num_kv_heads", "v_pages": "num_kv_heads"},
            },
            spaces=SPACES,
            front_door=PORTABLE_PAGED_ATTENTION,
            handed_on=_paged,
            shown_as=(r"paged_flash_attention_kernel\w*", r"jit[(_]paged_attention\b\)?", r"%?paged_attention\.\d+"),
        ),
        Kernel(
            contract=RAGGED_PAGED_ATTENTION,
            module=f"{_OPS}.ragged_paged_attention",
            assumed={
                **dict.fromkeys(("kv_lens_dtype", "page_indices_dtype", "cu_q_lens_dtype", "num_seqs_dtype"), "int32"),
                "num_counts": 1,
            },
            follows={"num_offsets": Relation("max_num_seqs + 1")},
            split={"model": {"q": "num_q_heads", "kv_pages": "num_combined_kv_heads"}},  # of tokens each sequence has its own
            spaces=RAGGED_SPACES,
            front_door=PORTABLE_RAGGED_PAGED_ATTENTION,
            handed_on=_ragged,
            shown_as=(r"%?ragged_paged_attention_kernel(?:\.\d+)?",),
        ),
    )
}
"""By name."""


def kernel_of(contract: Contract) -> Kernel | None:
    """Return the kernel that a function with this contract runs on a TPU; a copy that is not JAX's is none."""
    return next((kernel for kernel in KERNELS.values() if contract is kernel.contract or contract is kernel.front_door), None)
