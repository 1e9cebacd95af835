"""Modes and caps."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)

import pytest

MODE = "batch"
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode=MODE)
paged_attention(q[:3], kv, kv, lens[:3], six[:3], pages_per_compute_block=3, megacore_mode=None)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="batch")
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="kv_heads")
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode=None)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="something")
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, attn_logits_soft_cap=None)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("mode", ["kv_head", "batch", None])
def test_modes(heads, mode):
    pages = jnp.zeros((heads, 64, 16, 128))
    paged_attention(q, pages, pages, lens, six, pages_per_compute_block=3, megacore_mode=mode)


@pytest.mark.parametrize("heads", [1, 2])
def test_kv(heads):
    pages = jnp.zeros((heads, 64, 16, 128))
    paged_attention(q, pages, pages, lens, six, pages_per_compute_block=3, megacore_mode="kv_head")


def decode(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=1, megacore_mode="kv_head")


def decode2(q, k, v, lengths, table, mode):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=1, megacore_mode=mode)


def decode3(q, k, v, lengths, table):
    mode = "kv_head" if k.shape[0] % 2 == 0 else "batch"
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=1, megacore_mode=mode)


def decode4(q, k, v, lengths, table, cap=None):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=1, attn_logits_soft_cap=cap)


decode4(q, kv, kv, lens, six)
