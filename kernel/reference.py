"""Paged attention in plain XLA: what runs on CPU and GPU, and the measure of the Pallas kernel everywhere.

One compute block of K and of V of one row is all that is ever gathered, and none past the row's length; the derivative gathers a
block of each row, and none past the longest one.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor, from_int8

from kernel.gather import pages_of, pool_and_pages_of
from kernel.softmax import Softmax, capped, einsum

Pages: TypeAlias = jax.Array | QuantizedTensor
_Pools: TypeAlias = tuple[Pages, Pages]  # keys and values


class _Parameters(NamedTuple):
    mask_value: float
    attn_logits_soft_cap: float | None
    pages_per_compute_block: int


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
    num_kv_heads = jax.tree.leaves(k_pages)[0].shape[0]
    # A row of length 0 is a padding row of the batch: its query is not read, so that it may be NaN.
    queries = jnp.where(lengths[:, None, None] > 0, q, 0).astype(jnp.float32)
    queries = queries.reshape(batch_size, num_kv_heads, num_q_heads // num_kv_heads, head_dim)
    parameters = _Parameters(mask_value, attn_logits_soft_cap, pages_per_compute_block)
    mean, _ = _attend(parameters, queries, (k_pages, v_pages), lengths, page_indices)
    return mean.reshape(q.shape).astype(q.dtype)


class _Block(NamedTuple):
    """Which tokens a compute block of a row holds, or that of each row."""

    page_ids: jax.Array  # [..., pages_per_compute_block]
    valid: jax.Array  # [..., tokens]: before the row's end
    bias: jax.Array  # [..., tokens], of the logits

    @classmethod
    def at(cls, index: jax.Array, page_size: int, lengths: jax.Array, page_indices: jax.Array, parameters: _Parameters) -> _Block:
        pages = parameters.pages_per_compute_block
        start, lengths = index * pages * page_size, lengths[..., None]
        valid = start + jnp.arange(pages * page_size) < lengths
        bias = jnp.where(valid, 0.0, jnp.where(start < lengths, parameters.mask_value, -jnp.inf))
        return cls(lax.dynamic_slice_in_dim(page_indices, index * pages, pages, axis=-1), valid, bias)

    def tokens(self, pages: Pages) -> jax.Array:
        """Return what the pages of this block hold as f32`[..., num_kv_heads, tokens, head_dim]`, 0 where not `valid`."""
        if isinstance(pages, QuantizedTensor):
            pages = from_int8(pages.weight, pages.scales.astype(jnp.float32), jnp.float32)
        num_kv_heads, head_dim = pages.shape[0], pages.shape[-1]
        tokens = jnp.moveaxis(pages, 0, -4).reshape(*self.valid.shape[:-1], num_kv_heads, self.valid.shape[-1], head_dim)
        return jnp.where(self.valid[..., None, :, None], tokens, 0).astype(jnp.float32)

    def logits(self, queries: jax.Array, keys: Pages, soft_cap: float | None) -> jax.Array:
        logits = einsum("...htd,...hgd->...htg", self.tokens(keys), queries)  # a third faster on CPUs than "...hgt"
        return capped(logits.swapaxes(-1, -2), soft_cap) + self.bias[..., None, None, :]


_WEIGHED = "...hgt,...htd->...hgd"  # how the values of tokens are weighed


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _attend(
    parameters: _Parameters, queries: jax.Array, pools: _Pools, lengths: jax.Array, page_indices: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the weighted mean of the values, and the logarithm of the sum of the weights; both are 0 where there is no token.

    One row after the other: a block of one row stays in the cache of the processor, and a row takes the time of its own length.
    """
    page_size = jax.tree.leaves(pools)[0].shape[2]
    blocks = page_indices.shape[1] // parameters.pages_per_compute_block

    def attend_row(row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        query, length, page_ids = row

        def take_in(index: jax.Array, softmax: Softmax) -> Softmax:
            # Without the barrier XLA converts the whole pool to float32 before the loop, on CPUs.
            index, within = lax.optimization_barrier((index, pools))
            block = _Block.at(index, page_size, length, page_ids, parameters)
            keys, values = jax.tree.map(functools.partial(pages_of, page_ids=block.page_ids), within)
            logits = block.logits(query, keys, parameters.attn_logits_soft_cap)
            return softmax.with_block(logits, block.tokens(values), _WEIGHED)

        count = jnp.clip(-(-length // (page_size * parameters.pages_per_compute_block)), 0, blocks)
        softmax = lax.fori_loop(0, count, take_in, Softmax.of_nothing(query))
        return softmax.mean(), jnp.where(softmax.total > 0, softmax.top + jnp.log(softmax.total), 0)

    found: tuple[jax.Array, jax.Array] = lax.map(attend_row, (queries, lengths, page_indices))
    return found


class _Tangents(NamedTuple):
    """Of the pools, which a loop hands on; and of the sum of the weights, and of the values weighed, as far as it has come."""

    pools: list[jax.Array]
    total: jax.Array
    weighted: jax.Array


@_attend.defjvp
def _(parameters: _Parameters, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Sum the tangents of all blocks; as the sum of all weights is known, a block does not depend on the others.

    The trip count is fixed, and blocks that are not needed are skipped: a loop that stops there could not be transposed. The
    transposed loop computes a block again: to keep them all would be to gather the whole cache.
    """
    queries, pools, lengths, page_indices = primals
    mean, log_total = _attend(parameters, *primals)
    page_size = jax.tree.leaves(pools)[0].shape[2]
    blocks = page_indices.shape[1] // parameters.pages_per_compute_block
    longest = jnp.max(lengths, initial=0)
    leaves, structure = jax.tree.flatten(tangents[1])
    of_floats = [leaf.dtype != jax.dtypes.float0 for leaf in leaves]

    def take_in(index: jax.Array, sums: _Tangents) -> _Tangents:
        block = _Block.at(index, page_size, lengths, page_indices, parameters)

        def weigh(queries: jax.Array, pages: _Pools) -> tuple[jax.Array, jax.Array]:
            keys, values = pages
            weights = jnp.exp(block.logits(queries, keys, parameters.attn_logits_soft_cap) - log_total[..., None])
            return weights.sum(axis=-1), einsum(_WEIGHED, weights, block.tokens(values))

        pages = jax.tree.map(functools.partial(pages_of, page_ids=block.page_ids), pools)
        read = [pool_and_pages_of(pool, block.page_ids) for pool in sums.pools]
        moved = iter(tangent for _, tangent in read)
        page_tangents = [
            next(moved).astype(leaf.dtype) if is_float else np.zeros(leaf.shape, jax.dtypes.float0)
            for is_float, leaf in zip(of_floats, jax.tree.leaves(pages), strict=True)
        ]
        _, (total, weighted) = jax.jvp(weigh, (queries, pages), (tangents[0], jax.tree.unflatten(structure, page_tangents)))
        return _Tangents([pool for pool, _ in read], sums.total + total, sums.weighted + weighted)

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def step(index: jax.Array, sums: _Tangents) -> _Tangents:
        is_needed = index * parameters.pages_per_compute_block * page_size < longest
        after: _Tangents = lax.cond(is_needed, take_in, _unchanged, index, sums)
        return after

    # In a `shard_map` what is handed on varies over the same axes as what it meets, from the start; hence the empty sum.
    nothing = lax.stop_gradient(log_total[:0].sum())
    moving = [leaf.astype(jnp.float32) + nothing for is_float, leaf in zip(of_floats, leaves, strict=True) if is_float]
    sums = _Tangents(moving, jnp.zeros_like(log_total), jnp.zeros_like(mean))
    _, total, weighted = lax.fori_loop(0, blocks, step, sums)
    return (mean, log_total), (weighted - mean * total[..., None], total)


def _unchanged(_: jax.Array, sums: _Tangents) -> _Tangents:
    return sums
