"""Numbers of heads: only on request, and only where they are written down."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

KV_HEADS = 2
SHARED = 3
q = jnp.zeros((4, 8, 128))
lens, six = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)
paged_attention(q, jnp.zeros((4, 64, 16, 128)), jnp.zeros((4, 64, 16, 128)), lens, six, pages_per_compute_block=3)
keys = jnp.zeros(shape=(KV_HEADS, 64, 16, 128), dtype=jnp.bfloat16)
values = jnp.zeros((KV_HEADS, 64, 16, 128))
paged_attention(q, keys, values, lens, six, pages_per_compute_block=3)
pages = jnp.zeros((4, 64, 16, 128))
paged_attention(q, pages, pages, lens, six, pages_per_compute_block=3, megacore_mode="kv_head")
shared = jnp.zeros((SHARED, 64, 16, 128))
paged_attention(q, shared, shared, lens, six, pages_per_compute_block=3)
print(SHARED)
