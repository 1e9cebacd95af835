"""Ragged batches, and what attention over them must give, written without pages or JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np


class Ragged(NamedTuple):
    """The array arguments of `ragged_paged_attention`, in its order."""

    q: Any
    kv_pages: Any
    kv_lens: Any
    page_indices: Any
    cu_q_lens: Any
    num_seqs: Any

    @property
    def tokens(self) -> int:
        """How many rows of q belong to a sequence."""
        return int(self.cu_q_lens[self.num_seqs[0]])


def ragged(
    lengths: Sequence[tuple[int, int]],
    *,
    heads: tuple[int, int] = (4, 2),
    head_dim: int = 8,
    page_size: int = 4,
    pages_per_seq: int = 6,
    tokens: int = 32,
    rows: int = 0,
    dtype: Any = np.float32,
    seed: int = 0,
) -> Ragged:
    """Return a random batch of sequences, each of so many queries and so many tokens.

    Whatever is not to be read holds what would be noticed: NaN past the lengths (in integers the largest number) and in the
    pages of no sequence, ids that do not exist in the rows past the sequences.
    """
    rng = np.random.default_rng(seed)
    num_q_heads, num_kv_heads = heads
    rows = rows or len(lengths)
    needed = [-(-kv_len // page_size) for _, kv_len in lengths]
    ids = iter(rng.permutation(sum(needed) + 2)[: sum(needed)])
    kind = np.dtype(dtype)
    garbage: Any = np.nan if jnp.issubdtype(kind, jnp.floating) else np.iinfo(kind).max
    pool = np.full((sum(needed) + 2, page_size, 2 * num_kv_heads, head_dim), garbage, kind)
    table = np.full((rows, pages_per_seq), -7, np.int32)
    for row, (_, kv_len) in enumerate(lengths):
        table[row, :] = 0
        for column in range(needed[row]):
            page = table[row, column] = next(ids)
            held = min(page_size, kv_len - column * page_size)
            values = rng.standard_normal((held, *pool.shape[2:])) * (1 if garbage != garbage else 20)
            pool[page, :held] = values.astype(kind)
    starts = np.full(rows + 1, 10_000, np.int32)
    starts[: len(lengths) + 1] = np.cumsum([0, *(q_len for q_len, _ in lengths)])
    kv_lens = np.full(rows, 99, np.int32)
    kv_lens[: len(lengths)] = [kv_len for _, kv_len in lengths]
    q = rng.standard_normal((tokens, num_q_heads, head_dim), dtype=np.float32)
    return Ragged(q, pool, kv_lens, table, starts, np.array([len(lengths)], np.int32))


def attention(
    call: Ragged,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
) -> np.ndarray:
    """Compute in float64 what the rows of q that belong to a sequence must give, one token and one head after the other."""
    out = np.zeros((call.tokens, *call.q.shape[1:]))
    group = call.q.shape[1] // (call.kv_pages.shape[2] // 2)
    for row in range(call.num_seqs[0]):
        start, end, length = call.cu_q_lens[row], call.cu_q_lens[row + 1], call.kv_lens[row]
        tokens = call.kv_pages[call.page_indices[row]].reshape(-1, *call.kv_pages.shape[2:])[:length].astype(np.float64)
        for token in range(start, end):
            position = length - (end - token)
            first = 0 if sliding_window is None else max(0, position - sliding_window + 1)
            for head in range(call.q.shape[1]):
                keys, values = (tokens[first : position + 1, 2 * (head // group) + side] for side in (0, 1))
                logits = keys @ call.q[token, head].astype(np.float64) * sm_scale * (k_scale or 1)
                logits = logits if soft_cap is None else soft_cap * np.tanh(logits / soft_cap)
                weights = np.exp(logits - logits.max())
                out[token, head] = weights / weights.sum() @ values * (v_scale or 1)
    return out
