"""Calls that no fix touches, whatever is asked for."""

import functools

import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention as of_a_gpu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from shapecheck import largest_divisor, megacore_mode_for

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)

# legal
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="batch", attn_logits_soft_cap=50.0)
# another kernel
of_a_gpu(q, kv, kv, lens, six, pages_per_compute_block=4, megacore_mode="kv_head")
# suppressed
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=4)  # shapecheck: ignore[SC102]


def test_that_it_fails():
    with pytest.raises(ValueError):
        paged_attention(q, kv, kv, lens, six, pages_per_compute_block=4)


# shapes that do not fit: advice, no edit
paged_attention(q, kv, kv, jnp.zeros((3,), jnp.int32), six, pages_per_compute_block=3)
paged_attention(q, kv[:, :, :, :64], kv, lens, six, pages_per_compute_block=3)
paged_attention(q[0], kv, kv, lens, six, pages_per_compute_block=3)


def decode(q, k, v, lengths, table, block, mode, cap):
    """The sizes decide, and the repairs are there."""
    return paged_attention(
        q,
        k,
        v,
        lengths,
        table,
        pages_per_compute_block=largest_divisor(table.shape[1], at_most=block),
        megacore_mode=megacore_mode_for(k.shape[0], q.shape[0]),
        attn_logits_soft_cap=cap,
    )


def sliced(q, k, v, lengths, table):
    """The expression of the pages is not there to be written again."""
    return paged_attention(q, k, v, lengths, table[:, ::2], pages_per_compute_block=16)


def unknown_mode(q, k, v, lengths, table, mode):
    """Callers choose the mode."""
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=table.shape[1], megacore_mode=mode)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("mode", ["kv_head", "batch", None])
def test_modes(heads, mode):
    """Fails in one case of six: the mode is right in the others."""
    pages = jnp.zeros((heads, 64, 16, 128))
    paged_attention(q, pages, pages, lens, six, pages_per_compute_block=3, megacore_mode=mode)


def never_called(q, k, v, lengths, table, **options):
    return functools.partial(paged_attention, **options)(q, k, v, lengths, table)
