"""Arrays of another dtype."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)

paged_attention(q, kv, kv, lens.astype(jnp.int32), six, pages_per_compute_block=3)
paged_attention(q, kv, kv, jnp.ones((4,), jnp.uint32).astype(jnp.int32), six, pages_per_compute_block=3)
paged_attention(q, kv, kv, jnp.ones((4,)).astype(jnp.int32), six, pages_per_compute_block=3)
short = six.astype(jnp.int16)
paged_attention(q, kv, kv, lens, short.astype(jnp.int32), pages_per_compute_block=3)
paged_attention(q, kv, kv, lens, (short + 1).astype(jnp.int32), pages_per_compute_block=3)
