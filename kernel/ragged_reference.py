"""Ragged paged attention in plain XLA: what runs on CPU and GPU, and the measure of the Pallas kernel everywhere.

The queries of the batch are cut into groups that belong to one sequence each. One group after the other takes in its sequence's
pages: one block of them is all that is ever gathered, and none past the sequence's length.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernel.softmax import Softmax, capped, einsum, over_blocks

_QUERIES = 8  # of one sequence that are dealt with at a time; no result depends on it


class _Groups(NamedTuple):
    """Groups of queries, each of one sequence: `[groups]`, `tokens` and `valid` with the queries of a group after it."""

    sequence: jax.Array
    tokens: jax.Array
    valid: jax.Array


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
    page_size, num_kv_heads = kv_pages.shape[1], kv_pages.shape[2] // 2
    pages_per_seq = page_indices.shape[1]
    block_size = pages_per_block * page_size

    def attend(group: _Groups) -> jax.Array:
        length = kv_lens[group.sequence]
        queries = _queries(q, group, num_kv_heads) * sm_scale
        positions = length - cu_q_lens[group.sequence + 1] + group.tokens

        def is_needed(index: jax.Array) -> jax.Array:
            return group.valid.any() & (index * block_size < length)

        def take_in(index: jax.Array, softmax: Softmax) -> Softmax:
            columns = index * pages_per_block + jnp.arange(pages_per_block)
            ids = page_indices[group.sequence, jnp.minimum(columns, pages_per_seq - 1)]
            tokens = index * block_size + jnp.arange(block_size)
            keys, values = _keys_and_values(kv_pages, ids, tokens < length)
            logits = capped(einsum("qhgd,thd->hgqt", queries, _scaled(keys, k_scale)), soft_cap)
            bias = jnp.where(_hidden(tokens, positions, sliding_window), mask_value, 0.0)
            return softmax.with_block(logits + bias, _scaled(values, v_scale), "hgqt,thd->hgqd")

        return over_blocks(queries.transpose(1, 2, 0, 3), -(-pages_per_seq // pages_per_block), is_needed, take_in)

    groups = _groups(cu_q_lens, num_seqs[0], q.shape[0])
    return _ungrouped(lax.map(attend, groups), groups, q)


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


def _queries(q: jax.Array, group: _Groups, num_kv_heads: int) -> jax.Array:
    """Return the queries of one group as f32`[queries, num_kv_heads, group, head_dim]`, 0 where there is none."""
    rows = q.at[group.tokens].get(mode="fill", fill_value=0)
    rows = jnp.where(group.valid[:, None, None], rows, 0).astype(jnp.float32)
    return rows.reshape(_QUERIES, num_kv_heads, -1, q.shape[2])


def _keys_and_values(kv_pages: jax.Array, ids: jax.Array, valid: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return those of a block of pages as f32`[tokens, num_kv_heads, head_dim]`, 0 where not `valid`."""
    _, _, num_combined_kv_heads, head_dim = kv_pages.shape
    block = kv_pages.at[ids].get(mode="clip", wrap_negative_indices=False)
    block = block.reshape(valid.shape[0], num_combined_kv_heads // 2, 2, head_dim)
    block = jnp.where(valid[:, None, None, None], block, 0).astype(jnp.float32)
    return block[:, :, 0], block[:, :, 1]


def _scaled(tokens: jax.Array, scale: float | None) -> jax.Array:
    return tokens if scale is None else tokens * scale


def _hidden(tokens: jax.Array, positions: jax.Array, sliding_window: int | None) -> jax.Array:
    """Say which tokens a query must not see: those behind it, and those before its window."""
    hidden = tokens > positions[:, None]
    return hidden if sliding_window is None else hidden | (tokens <= positions[:, None] - sliding_window)


def _ungrouped(out: jax.Array, groups: _Groups, q: jax.Array) -> jax.Array:
    """Put the results of all groups, `[groups, num_kv_heads, group, queries, head_dim]`, where their queries stand in q."""
    rows = out.transpose(0, 3, 1, 2, 4).reshape(-1, *q.shape[1:])
    tokens = jnp.where(groups.valid, groups.tokens, q.shape[0]).reshape(-1)  # past the end: dropped
    return jnp.zeros(q.shape, jnp.float32).at[tokens].set(rows, mode="drop").astype(q.dtype)
