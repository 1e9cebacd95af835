"""The kernels whose calls are checked, by the dotted paths they are imported from, and how their arguments bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shapecheck.contract import Contract
from shapecheck.contracts import PAGED_ATTENTION


@dataclass(frozen=True)
class Callee:
    """One kernel as a caller sees it.

    Attributes:
        name: what messages call it.
        contract: what it demands.
        positional: the contract's names of its parameters, in the order of its signature; the first `by_position` of
            them may be given by position.
        by_position: how many may be given by position.
        required: whether the call fails without the compute block.
    """

    name: str
    contract: Contract
    positional: tuple[str, ...]
    by_position: int


_ARRAYS = ("q", "k_pages", "v_pages", "lengths", "page_indices")

# jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py, JAX 0.10 to 0.12: all but the arrays by keyword.
_JAX = Callee(
    "paged_attention",
    PAGED_ATTENTION,
    (*_ARRAYS, "mask_value", "attn_logits_soft_cap", "pages_per_compute_block", "megacore_mode", "inline_seq_dim"),
    by_position=5,
)

# torch_xla/experimental/custom_kernel.py: the schema of the op and the Python wrapper take their arguments in this order.
_TORCH_XLA = Callee(
    "paged_attention",
    PAGED_ATTENTION,
    (*_ARRAYS, "pages_per_compute_block", "megacore_mode", "attn_logits_soft_cap"),
    by_position=8,
)

_TPU = "jax.experimental.pallas.ops.tpu.paged_attention"

CALLEES: Mapping[str, Callee] = {
    f"{_TPU}.paged_attention": _JAX,
    f"{_TPU}.paged_attention_kernel.paged_attention": _JAX,
    "kernel.paged_attention": _JAX,
    "kernel.paged_attention.paged_attention": _JAX,
    "torch_xla.experimental.custom_kernel.paged_attention": _TORCH_XLA,
    "torch.ops.xla.paged_attention": _TORCH_XLA,
}

PACKAGES = frozenset({"kernel"})
"""Our own packages among the callees': a tree that holds them is this project's, and they are still callees there."""

WORDS = frozenset({b"shapecheck", *(path.rpartition(".")[2].encode() for path in CALLEES)})
"""The whole words of which a file must hold one to be worth parsing: a kernel's name, or ours, for a contract of its own."""
