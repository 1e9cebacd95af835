"""Paged attention in plain XLA: what runs on CPU and GPU, and the measure of the Pallas kernel everywhere.

A scan over compute blocks with an online softmax, as in the kernel, so that one compute block of K and of V is all
that is ever gathered. The scan has a fixed trip count and skips what lies past the longest row, because a loop that
stops there could not be differentiated in reverse; and it recomputes its blocks in the backward pass, because keeping
them would gather the whole cache after all.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor, from_int8

Pages: TypeAlias = jax.Array | QuantizedTensor

# GPUs and TPUs would otherwise round the operands of a float32 product to 10 or fewer bits.
_einsum = functools.partial(jnp.einsum, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


class _Softmax(NamedTuple):
    """A softmax over the tokens seen so far: `[batch_size, num_kv_heads, group]`, `weighted` with `head_dim` after it."""

    top: jax.Array
    total: jax.Array
    weighted: jax.Array


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

    def attend(index: jax.Array, softmax: _Softmax) -> _Softmax:
        page_ids = lax.dynamic_slice_in_dim(page_indices, index * pages_per_compute_block, pages_per_compute_block, axis=1)
        start = index * block_size
        valid = start + jnp.arange(block_size) < lengths[:, None]
        logits = _einsum("bhgd,bhtd->bhgt", grouped, _tokens(k_pages, page_ids, valid))
        if attn_logits_soft_cap is not None:
            logits = attn_logits_soft_cap * jnp.tanh(logits / attn_logits_soft_cap)
        bias = jnp.where(valid, 0.0, jnp.where(start < lengths[:, None], mask_value, -jnp.inf))
        return _accumulate(softmax, logits + bias[:, None, None], _tokens(v_pages, page_ids, valid))

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def step(index: jax.Array, softmax: _Softmax) -> _Softmax:
        after: _Softmax = lax.cond(index * block_size < longest, attend, _unchanged, index, softmax)
        return after

    blocks = page_indices.shape[1] // pages_per_compute_block
    seen: _Softmax = lax.fori_loop(0, blocks, step, _nothing_seen(grouped))
    out = seen.weighted / jnp.where(seen.total > 0, seen.total, 1)[..., None]
    return out.reshape(q.shape).astype(q.dtype)


def _unchanged(_: jax.Array, softmax: _Softmax) -> _Softmax:
    return softmax


def _nothing_seen(grouped: jax.Array) -> _Softmax:
    # Made from `grouped`, to be sharded like it. The lowest finite number and not -inf: infinities differ by NaN.
    rows = jnp.zeros_like(grouped[..., 0])
    return _Softmax(rows + jnp.finfo(jnp.float32).min, rows, jnp.zeros_like(grouped))


def _tokens(pages: Pages, page_ids: jax.Array, valid: jax.Array) -> jax.Array:
    """Return one block of every sequence as f32`[batch_size, num_kv_heads, block_size, head_dim]`, 0 where not `valid`."""

    def gathered(leaf: jax.Array) -> jax.Array:
        return leaf.at[:, page_ids].get(mode="clip", wrap_negative_indices=False)

    blocks = jax.tree.map(gathered, pages)
    if isinstance(blocks, QuantizedTensor):
        blocks = from_int8(blocks.weight, blocks.scales.astype(jnp.float32), jnp.float32)
    num_kv_heads, batch_size, _, _, head_dim = blocks.shape
    tokens = blocks.swapaxes(0, 1).reshape(batch_size, num_kv_heads, valid.shape[1], head_dim)
    return jnp.where(valid[:, None, :, None], tokens, 0).astype(jnp.float32)


def _accumulate(softmax: _Softmax, logits: jax.Array, values: jax.Array) -> _Softmax:
    """Take in the logits of one block, `[batch_size, num_kv_heads, group, block_size]`, and its values."""
    # The result does not depend on `top`, which only keeps exp in range: no gradient need pass through it.
    top = lax.stop_gradient(jnp.maximum(softmax.top, logits.max(axis=-1)))
    kept = jnp.exp(softmax.top - top)
    weights = jnp.exp(logits - top[..., None])
    return _Softmax(
        top,
        kept * softmax.total + weights.sum(axis=-1),
        kept[..., None] * softmax.weighted + _einsum("bhgt,bhtd->bhgd", weights, values),
    )
