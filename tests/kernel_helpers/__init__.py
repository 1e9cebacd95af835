"""Sequences, the page pools that hold them, and what attention over them must give, written without pages or JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import MAX_INT8, QuantizedTensor, quantize_to_int8


class Sequences(NamedTuple):
    """Queries `[batch, q_heads, head_dim]`, keys and values `[kv_heads, batch, tokens, head_dim]`, lengths `[batch]`."""

    q: np.ndarray
    k: Any
    v: Any
    lengths: np.ndarray


class Call(NamedTuple):
    """The array arguments of `paged_attention`, in its order."""

    q: np.ndarray
    k_pages: Any
    v_pages: Any
    lengths: np.ndarray
    page_indices: np.ndarray


def sequences_of(lengths: list[int], *, tokens: int, num_kv_heads: int, group: int, head_dim: int, seed: int = 0) -> Sequences:
    """Return random float32 sequences; the slots past each length hold random numbers too."""
    rng = np.random.default_rng(seed)
    batch = len(lengths)
    q = rng.standard_normal((batch, num_kv_heads * group, head_dim), dtype=np.float32)
    k, v = rng.standard_normal((2, num_kv_heads, batch, tokens, head_dim), dtype=np.float32)
    return Sequences(q, k, v, np.asarray(lengths, np.int32))


def cast(sequences: Sequences, dtype: Any) -> Sequences:
    """Return the sequences rounded to a dtype."""
    q, k, v = (each.astype(jnp.dtype(dtype)) for each in sequences[:3])
    return Sequences(q, k, v, sequences.lengths)


def quantized(sequences: Sequences) -> Sequences:
    """Return the sequences with keys and values in int8, one scale a token."""
    k, v = (QuantizedTensor(*map(np.asarray, quantize_to_int8(jnp.asarray(each)))) for each in (sequences.k, sequences.v))
    return sequences._replace(k=k, v=v)


def with_garbage(sequences: Sequences) -> Sequences:
    """Return the sequences with NaN, or in int8 the largest number, in all slots past their lengths."""
    tokens = _shape(sequences.k)[2]
    unused = np.arange(tokens) >= sequences.lengths[:, None]

    def spoil(each: np.ndarray) -> np.ndarray:
        return np.where(unused[None, :, :, None], _garbage(each), each)

    k, v = (
        QuantizedTensor(*map(spoil, each)) if isinstance(each, QuantizedTensor) else spoil(each)
        for each in (sequences.k, sequences.v)
    )
    return sequences._replace(k=k, v=v)


def paged(sequences: Sequences, page_size: int, *, spare_pages: int = 0, seed: int = 0) -> Call:
    """Cut the sequences into pages, and shuffle these through a pool that has some pages more, full of NaN."""
    _, batch, tokens, _ = _shape(sequences.k)
    pages = batch * tokens // page_size
    ids = np.random.default_rng(seed).permutation(pages + spare_pages)[:pages].astype(np.int32)

    def pool(each: np.ndarray) -> np.ndarray:
        num_kv_heads, *_, width = each.shape
        out = np.full((num_kv_heads, pages + spare_pages, page_size, width), _garbage(each))
        out[:, ids] = each.reshape(num_kv_heads, pages, page_size, width)
        return out

    k_pages, v_pages = (
        QuantizedTensor(*map(pool, each)) if isinstance(each, QuantizedTensor) else pool(each)
        for each in (sequences.k, sequences.v)
    )
    return Call(sequences.q, k_pages, v_pages, sequences.lengths, ids.reshape(batch, tokens // page_size))


def attention(sequences: Sequences, soft_cap: float | None = None) -> np.ndarray:
    """Return grouped-query attention in float64, one row and KV head at a time; rows of length 0 are zeros."""
    q = sequences.q.astype(np.float64)
    out = np.zeros_like(q)
    num_kv_heads = _shape(sequences.k)[0]
    group = q.shape[1] // num_kv_heads
    for row, head in np.ndindex(len(q), num_kv_heads):
        if length := sequences.lengths[row]:
            heads = slice(head * group, (head + 1) * group)
            k, v = (_dense(each, head, row, length) for each in (sequences.k, sequences.v))
            logits = q[row, heads] @ k.T
            if soft_cap is not None:
                logits = soft_cap * np.tanh(logits / soft_cap)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            out[row, heads] = weights @ v / weights.sum(axis=1, keepdims=True)
    return out


def assert_resolved(out: Any, expected: np.ndarray, *, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Assert that `out` is what `expected` rounds to in its dtype, give or take float32's own errors."""
    resolution = {"float32": 0.0, "bfloat16": 2.0**-8, "float16": 2.0**-10}[jnp.dtype(out.dtype).name]
    np.testing.assert_allclose(np.asarray(out, np.float64), expected, rtol=rtol + resolution, atol=atol)


def _garbage(each: np.ndarray) -> Any:
    return each.dtype.type(np.nan if jnp.issubdtype(each.dtype, jnp.floating) else 127)


def _shape(each: Any) -> tuple[int, ...]:
    return (each.weight if isinstance(each, QuantizedTensor) else each).shape


def _dense(each: Any, head: int, row: int, length: int) -> np.ndarray:
    if isinstance(each, QuantizedTensor):
        weight, scales = (part[head, row, :length].astype(np.float64) for part in each)
        return weight * scales / MAX_INT8
    return each[head, row, :length].astype(np.float64)
