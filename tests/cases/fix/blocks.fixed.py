"""Blocks: no divisor but 1, no positive integer, and several page counts at one call."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens = jnp.zeros((4,), jnp.int32)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 7), jnp.int32), pages_per_compute_block=4)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 6), jnp.int32), pages_per_compute_block=1)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 8), jnp.int32), pages_per_compute_block=4)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 8), jnp.int32), pages_per_compute_block=1)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 8), jnp.int32), pages_per_compute_block=8 // 16)
paged_attention(q, kv, kv, lens, jnp.zeros((4, 8), jnp.int32), pages_per_compute_block=4)


def decode(q, kv, lens, pages):
    table = jnp.zeros((4, pages), jnp.int32)
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)


decode(q, kv, lens, 6)
decode(q, kv, lens, 7)
decode(q, kv, lens, 9)
