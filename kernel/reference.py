"""Paged attention in plain XLA: what runs on CPU and GPU, and the measure of the Pallas kernel everywhere.

One compute block of K and of V of each row is all that is ever gathered, and none past the longest row.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor, from_int8

from kernel.softmax import Softmax, capped, einsum, over_blocks

Pages: TypeAlias = jax.Array | QuantizedTensor


@functools.partial(jax.jit, static_argnames=("mask_value", "attn_logits_soft_cap", "pages_per_compute_block"))
def paged_attention_xla(
    q: jax.Array,
    k_pages: Pages,
    v_pages: Pages,
    lengths: jax.Array,
    page_indices: jax.Array,
    *,
    mask_value: float,
    attn_logits_soft_cap: float | None,
    pages_per_compute_block: int,
) -> jax.Array:
    """Grouped-query attention of one token a sequence over its pages, for arguments that keep the contract.

    Everything is computed and accumulated in float32, whatever the dtypes. Rows of length 0 give zeros. What lies past
    a row's length, NaN included, reads as zero: the result is the kernel's on pages whose unused slots hold zeros.

    Args:
        q: `[batch_size, num_q_heads, head_dim]`, already scaled.
        k_pages: `[num_kv_heads, total_num_pages, page_size, head_dim]`, or that quantized to int8.
        v_pages: like `k_pages`; the dtype may differ.
        lengths: `i32[batch_size]`, in tokens.
        page_indices: `i32[batch_size, pages_per_sequence]`; ids out of range are clamped into it.
        mask_value: added to the logits past a row's length, in the blocks that the row reaches into.
        attn_logits_soft_cap: logits become `cap * tanh(logits / cap)`; None for no cap.
        pages_per_compute_block: pages of each sequence gathered at a time; divides `pages_per_sequence`.

    Returns:
        `[batch_size, num_q_heads, head_dim]` in q's dtype.
    """
    batch_size, num_q_heads, head_dim = q.shape
    num_kv_heads, _, page_size, _ = jax.tree.leaves(k_pages)[0].shape
    group = num_q_heads // num_kv_heads
    block_size = page_size * pages_per_compute_block

    # A row of length 0 is a padding row of the batch: its query is not read, so that it may be NaN.
    grouped = jnp.where(lengths[:, None, None] > 0, q, 0).astype(jnp.float32)
    grouped = grouped.reshape(batch_size, num_kv_heads, group, head_dim)
    longest = jnp.max(lengths, initial=0)

    def take_in(index: jax.Array, softmax: Softmax) -> Softmax:
        page_ids = lax.dynamic_slice_in_dim(page_indices, index * pages_per_compute_block, pages_per_compute_block, axis=1)
        start = index * block_size
        valid = start + jnp.arange(block_size) < lengths[:, None]
        logits = capped(einsum("bhgd,bhtd->bhgt", grouped, _tokens(k_pages, page_ids, valid)), attn_logits_soft_cap)
        bias = jnp.where(valid, 0.0, jnp.where(start < lengths[:, None], mask_value, -jnp.inf))
        return softmax.with_block(logits + bias[:, None, None], _tokens(v_pages, page_ids, valid), "bhgt,bhtd->bhgd")

    blocks = page_indices.shape[1] // pages_per_compute_block
    out = over_blocks(grouped, blocks, lambda index: index * block_size < longest, take_in)
    return out.reshape(q.shape).astype(q.dtype)


def _tokens(pages: Pages, page_ids: jax.Array, valid: jax.Array) -> jax.Array:
    """Return one block of every sequence as f32`[batch_size, num_kv_heads, block_size, head_dim]`, 0 where not `valid`."""
    blocks = jax.tree.map(lambda leaf: leaf.at[:, page_ids].get(mode="clip", wrap_negative_indices=False), pages)
    if isinstance(blocks, QuantizedTensor):
        blocks = from_int8(blocks.weight, blocks.scales.astype(jnp.float32), jnp.float32)
    num_kv_heads, batch_size, _, _, head_dim = blocks.shape
    tokens = blocks.swapaxes(0, 1).reshape(batch_size, num_kv_heads, valid.shape[1], head_dim)
    return jnp.where(valid[:, None, :, None], tokens, 0).astype(jnp.float32)
