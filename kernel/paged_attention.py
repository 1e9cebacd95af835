"""The front door of JAX's paged-attention kernel."""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import functools
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal, SupportsFloat, SupportsIndex, TypeAlias

import jax
import numpy as np
from beartype.vale import IsAttr, IsInstance
from jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel import DEFAULT_MASK_VALUE
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor
from jax.sharding import AbstractMesh, Mesh
from jaxtyping import Float, Int, Int8, Integer, Real

from kernel.implementation import (
    Options,
    attend_interpreted,
    attend_per_platform,
    attend_with_pallas,
    attend_with_xla,
)
from kernel.split import Split
from kernel.transforms import Attend
from shapecheck import contract
from shapecheck.contracts.paged_attention import PORTABLE_PAGED_ATTENTION
from shapecheck.installed import front_door
from shapecheck.values import SETTING

# `Any`: whatever has a shape and a dtype, be it of jax, traced or not, or of numpy.
PlainPages: TypeAlias = Real[Any, "num_kv_heads total_num_pages page_size head_dim"]

_weight: Any = Int8[Any, "num_kv_heads total_num_pages page_size head_dim"]
_scales_of_tokens: Any = Float[Any, "num_kv_heads total_num_pages page_size 1"]
_scales_of_elements: Any = Float[Any, "num_kv_heads total_num_pages page_size head_dim"]
QuantizedPages: TypeAlias = Annotated[
    QuantizedTensor,
    IsAttr["weight", IsInstance[_weight]],
    IsAttr["scales", IsInstance[_scales_of_tokens, _scales_of_elements]],
]

_IMPLEMENTATIONS: Final[dict[str, Attend]] = {
    "auto": attend_per_platform,
    "pallas": attend_with_pallas,
    "interpret": attend_interpreted,
    "xla": attend_with_xla,
}


@front_door
@contract(PORTABLE_PAGED_ATTENTION)
def paged_attention(
    q: Float[Any, "batch_size num_q_heads head_dim"],
    k_pages: PlainPages | QuantizedPages,
    v_pages: PlainPages | QuantizedPages,
    lengths: Int[Any, " batch_size"],
    page_indices: Integer[Any, "batch_size pages_per_sequence"],
    *,
    mask_value: SupportsFloat = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: SupportsFloat | None = None,
    pages_per_compute_block: SupportsIndex,
    megacore_mode: Literal["kv_head", "batch"] | None = None,
    inline_seq_dim: bool | np.bool_ = True,
    implementation: Literal["auto", "pallas", "interpret", "xla"] = "auto",
    mesh: Mesh | AbstractMesh | None = None,
    heads_axis: str | None = None,
    batch_axis: str | None = None,
    pages_axis: str | None = None,
    check_values: bool | np.bool_ = False,
) -> Float[jax.Array, "batch_size num_q_heads head_dim"]:
    """Attend with one query token of each sequence to that sequence's pages of a KV cache.

    The same call as JAX's `jax.experimental.pallas.ops.tpu.paged_attention.paged_attention`, with its contract enforced,
    and able to run without a TPU. Logits are not scaled: scale `q` by `head_dim**-0.5` before.

    All implementations agree for rows of at least one token; docs/call-time.md says how far. XLA's alone is exact on float32
    pages (the kernel rounds them to bfloat16), gives zeros for rows of length 0 also without `inline_seq_dim`, and reads
    nothing past a row's length. Under `grad` the derivative is XLA's, and under `vmap` the kernel runs in a loop. In a
    `shard_map` for TPUs the kernel wants `check_vma=False`.

    Args:
        q: queries, any floating dtype.
        k_pages: keys; of any real dtype, or a `QuantizedTensor` of int8 weight and floating scales.
        v_pages: values, like `k_pages`; where both are plain, their dtypes may differ.
        lengths: tokens of each sequence, i32; 0 for a row that is padding.
        page_indices: the ids of each sequence's pages, in order, i32 or u32. Every entry must be a valid id, also past the
            sequence's length.
        mask_value: what is added to the logits of a block that are past the sequence's length.
        attn_logits_soft_cap: logits become `cap * tanh(logits / cap)`; None for no cap.
        pages_per_compute_block: pages taken in at a time; must divide `pages_per_sequence` (see `pad_page_indices`).
        megacore_mode: what to split over the two cores of one device, where it has two (v4 and v5p).
        inline_seq_dim: whether the kernel loops over blocks inside one grid step.
        implementation: `"auto"`: JAX's kernel where the program is lowered for a TPU, XLA elsewhere. `"pallas"`: JAX's
            kernel. `"interpret"`: JAX's kernel in Pallas' TPU interpreter, on any platform. `"xla"`: XLA.
        mesh: the devices to split the call over, by `jax.shard_map`; None: those of the context, where an axis is given, else
            no split. All arrays are whole ones; each device checks the contract on what it gets, megacore mode included.
        heads_axis: the axis of the mesh over which query heads and KV heads are split. It divides the KV heads, or is a
            multiple of them that divides the query heads: then each device has all KV heads, and reads one.
        batch_axis: the axis over which rows are split: queries, lengths, page table.
        pages_axis: `batch_axis`, where the pool of pages is split over it as well: then the ids in a row of the page table
            count from the first page of the row's own device. None: each device along `batch_axis` has the whole pool.
        check_values: whether to look at what is in the arrays: lengths and page ids out of range, and NaN where the kernel
            reads it, are refused. The variable `SHAPECHECK_VALUES=1` does so in every call. See docs/values.md.

    Returns:
        The attention output, in q's dtype.

    Raises:
        ContractError: the call breaks a rule of the contract, or an argument is refused by its annotation. It is a
            `jaxtyping.TypeCheckError` and a `ValueError`. Under `jit`, raised when the function is traced.
    """
    options = Options(
        mask_value=float(mask_value),
        attn_logits_soft_cap=None if attn_logits_soft_cap is None else float(attn_logits_soft_cap),
        pages_per_compute_block=int(pages_per_compute_block),
        megacore_mode=megacore_mode,
        inline_seq_dim=bool(inline_seq_dim),
    )
    arrays = (q, k_pages, v_pages, lengths, page_indices)
    if mesh is None and heads_axis is None and batch_axis is None:
        return _IMPLEMENTATIONS[implementation](options, *arrays)
    split = Split(mesh or jax.sharding.get_abstract_mesh(), heads_axis, batch_axis, pages_axis)
    out: jax.Array = _attend_on_shards(split, options, implementation, SETTING.on or bool(check_values), *arrays)
    return out


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _attend_on_shards(split: Split, options: Options, implementation: Any, check_values: bool, *arrays: Any) -> jax.Array:
    def attend(*shards: Any) -> jax.Array:
        return paged_attention(*shards, **asdict(options), implementation=implementation, check_values=check_values)

    return split.over_devices(attend)(*arrays)
