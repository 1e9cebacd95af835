"""Ragged paged attention in plain XLA: what runs on CPU and GPU, and the measure of the Pallas kernel everywhere.

The queries of the batch are cut into groups that belong to one sequence each. One group after the other takes in its sequence's
pages block by block, with an online softmax as in the kernel: one block of pages is all that is ever gathered. Trip counts are
fixed, and what lies past a sequence's length is skipped, because a loop that stops there could not be differentiated in reverse.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

_QUERIES = 8  # of one sequence that are dealt with at a time; no result depends on it

# GPUs and TPUs would otherwise round the operands of a float32 product to 10 or fewer bits.
_einsum = functools.partial(jnp.einsum, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


class _Groups(NamedTuple):
    """Groups of queries, each of one sequence: `[groups]`, `tokens` and `valid` with the queries of a group after it."""

    sequence: jax.Array
    tokens: jax.Array
    valid: jax.Array


class _Softmax(NamedTuple):
    """A softmax over the tokens seen so far: `[num_kv_heads, group, queries]`, `weighted` with `head_dim` after it."""

    top: jax.Array
    total: jax.Array
    weighted: jax.Array


def ragged_paged_attention_xla(
    q: jax.Array,
    kv_pages: jax.Array,
    kv_lens: jax.Array,
    page_indices: jax.Array,
    cu_q_lens: jax.Array,
    num_seqs: jax.Array,
    *,
    sm_scale: float,
    sliding_window: int | None,
    soft_cap: float | None,
    mask_value: float,
    k_scale: float | None,
    v_scale: float | None,
    pages_per_block: int,
) -> jax.Array:
    """Causal grouped-query attention of the last tokens of each sequence over its pages, for arguments that keep the contract.

    Everything is computed and accumulated in float32, whatever the dtypes. Rows of q that belong to no sequence give zeros. What
    lies past a sequence's length, NaN included, reads as zero; entries of the metadata past `num_seqs` are not read.

    Args:
        q: `[max_num_batched_tokens, num_q_heads, head_dim]`.
        kv_pages: `[total_num_pages, page_size, 2 * num_kv_heads, head_dim]`, keys and values by turns.
        kv_lens: `i32[max_num_seqs]`, in tokens, those of the queries among them.
        page_indices: `i32[max_num_seqs, pages_per_seq]`; ids out of range are clamped into it.
        cu_q_lens: `i32[max_num_seqs + 1]`: sequence i has the queries from entry i up to entry i + 1.
        num_seqs: `i32[1]`.
        sm_scale: the factor of the logits.
        sliding_window: how many tokens a query sees, its own among them; None for all.
        soft_cap: logits become `cap * tanh(logits / cap)`; None for no cap.
        mask_value: added to the logits of tokens that a query must not see, in the blocks that its sequence reaches into.
        k_scale: the factor of the keys, None for 1.
        v_scale: the factor of the values, None for 1.
        pages_per_block: pages gathered at a time.

    Returns:
        `[max_num_batched_tokens, num_q_heads, head_dim]` in q's dtype.
    """
    num_tokens, num_q_heads, head_dim = q.shape
    _, page_size, num_combined_kv_heads, _ = kv_pages.shape
    num_kv_heads = num_combined_kv_heads // 2
    pages_per_seq = page_indices.shape[1]
    block_size = pages_per_block * page_size

    def attend_group(group: _Groups) -> jax.Array:
        length = kv_lens[group.sequence]
        rows = q.at[group.tokens].get(mode="fill", fill_value=0)
        queries = jnp.where(group.valid[:, None, None], rows, 0).astype(jnp.float32) * sm_scale
        queries = queries.reshape(_QUERIES, num_kv_heads, -1, head_dim)
        positions = length - cu_q_lens[group.sequence + 1] + group.tokens

        def attend(index: jax.Array, softmax: _Softmax) -> _Softmax:
            columns = index * pages_per_block + jnp.arange(pages_per_block)
            ids = page_indices[group.sequence, jnp.minimum(columns, pages_per_seq - 1)]
            tokens = index * block_size + jnp.arange(block_size)
            block = kv_pages.at[ids].get(mode="clip", wrap_negative_indices=False).reshape(block_size, num_kv_heads, 2, head_dim)
            block = jnp.where((tokens < length)[:, None, None, None], block, 0).astype(jnp.float32)
            keys, values = (_scaled(block[:, :, side], scale) for side, scale in enumerate((k_scale, v_scale)))
            logits = _einsum("qhgd,thd->hgqt", queries, keys)
            if soft_cap is not None:
                logits = soft_cap * jnp.tanh(logits / soft_cap)
            hidden = tokens > positions[:, None]
            if sliding_window is not None:
                hidden |= tokens <= positions[:, None] - sliding_window
            return _accumulate(softmax, logits + jnp.where(hidden, mask_value, 0.0), values)

        @functools.partial(jax.checkpoint, prevent_cse=False)
        def step(index: jax.Array, softmax: _Softmax) -> _Softmax:
            needed = group.valid.any() & (index * block_size < length)
            after: _Softmax = lax.cond(needed, attend, _unchanged, index, softmax)
            return after

        start = _nothing_seen(queries)
        seen: _Softmax = lax.fori_loop(0, -(-pages_per_seq // pages_per_block), step, start)
        out = seen.weighted / jnp.where(seen.total > 0, seen.total, 1)[..., None]
        return out.transpose(2, 0, 1, 3).reshape(_QUERIES, num_q_heads, head_dim)

    groups = _groups(cu_q_lens, num_seqs[0], num_tokens)
    out = lax.map(attend_group, groups)
    tokens = jnp.where(groups.valid, groups.tokens, num_tokens).reshape(-1)  # past the end: dropped
    return jnp.zeros(q.shape, jnp.float32).at[tokens].set(out.reshape(-1, *q.shape[1:]), mode="drop").astype(q.dtype)


def _groups(cu_q_lens: jax.Array, num_seqs: jax.Array, num_tokens: int) -> _Groups:
    """Cut the queries into groups; how many there are is fixed: of each sequence, the last one may not be full."""
    max_num_seqs = cu_q_lens.shape[0] - 1
    present = jnp.arange(max_num_seqs) < num_seqs
    starts, ends = cu_q_lens[:-1], cu_q_lens[1:]
    counts = jnp.where(present, -(-jnp.maximum(ends - starts, 0) // _QUERIES), 0)
    behind = jnp.cumsum(counts)
    index = jnp.arange(-(-num_tokens // _QUERIES) + max_num_seqs)
    sequence = jnp.minimum(jnp.searchsorted(behind, index, side="right"), max_num_seqs - 1)
    within = index - (behind - counts)[sequence]
    tokens = (starts[sequence] + within * _QUERIES)[:, None] + jnp.arange(_QUERIES)
    valid = (index < behind[-1])[:, None] & (tokens < ends[sequence][:, None]) & (tokens >= 0) & (tokens < num_tokens)
    return _Groups(sequence, tokens, valid)


def _scaled(tokens: jax.Array, scale: float | None) -> jax.Array:
    return tokens if scale is None else tokens * scale


def _unchanged(_: jax.Array, softmax: _Softmax) -> _Softmax:
    return softmax


def _nothing_seen(queries: jax.Array) -> _Softmax:
    # Made from `queries`, to be sharded like them. The lowest finite number and not -inf: infinities differ by NaN.
    rows = jnp.zeros_like(queries.transpose(1, 2, 0, 3))
    return _Softmax(rows[..., 0] + jnp.finfo(jnp.float32).min, rows[..., 0], rows)


def _accumulate(softmax: _Softmax, logits: jax.Array, values: jax.Array) -> _Softmax:
    """Take in the logits of one block, `[num_kv_heads, group, queries, block_size]`, and its values."""
    # The result does not depend on `top`, which only keeps exp in range: no gradient need pass through it.
    top = lax.stop_gradient(jnp.maximum(softmax.top, logits.max(axis=-1)))
    kept = jnp.exp(softmax.top - top)
    weights = jnp.exp(logits - top[..., None])
    return _Softmax(
        top,
        kept * softmax.total + weights.sum(axis=-1),
        kept[..., None] * softmax.weighted + _einsum("hgqt,thd->hgqd", weights, values),
    )
