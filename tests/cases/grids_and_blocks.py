"""Page tables out of grids, diagonals, blocks and paddings."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128), jnp.bfloat16), jnp.zeros((4, 64, 16, 128), jnp.bfloat16)
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)
b, p = jnp.meshgrid(jnp.arange(2), jnp.arange(8), indexing="ij")
paged_attention(q, kv, kv, lens, (b * 8 + p).astype(jnp.int32), pages_per_compute_block=4)  #: proven SC102 SC106 SC108
t = jnp.tri(8, dtype=jnp.int32)[:2]
paged_attention(q, kv, kv, lens, t, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
t = jnp.diag(jnp.arange(8))[:2]
paged_attention(q, kv, kv, lens, t, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
a, b = jnp.hsplit(jnp.zeros((2, 16), jnp.int32), 2)
paged_attention(q, kv, kv, lens, a, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
a, b = jnp.vsplit(jnp.zeros((4, 8), jnp.int32), 2)
paged_attention(q, kv, kv, lens, b, pages_per_compute_block=3)  #: SC102 violated
t = jax.lax.pad(jnp.zeros((2, 6), jnp.int32), 0, [(0, 0, 0), (0, 2, 0)])
paged_attention(q, kv, kv, lens, t, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
t = jnp.block([[jnp.zeros((1, 4), jnp.int32), jnp.ones((1, 4), jnp.int32)], [jnp.zeros((1, 8), jnp.int32)]])
paged_attention(q, kv, kv, lens, t, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
u = jnp.unique(jnp.array([1, 2, 2]), size=2)
paged_attention(q, kv, kv, u, idx, pages_per_compute_block=4)  #: proven SC105 SC107
r = jnp.rot90(jnp.zeros((8, 2), jnp.int32))
paged_attention(q, kv, kv, lens, r, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
s = jnp.tensordot(jnp.zeros((2, 5)), jnp.zeros((5, 8)), axes=([1], [0])).astype(jnp.int32)
paged_attention(q, kv, kv, lens, s, pages_per_compute_block=4)  #: proven SC102 SC106 SC108
paged_attention(q.mT.mT, kv, kv, lens, idx, pages_per_compute_block=4)  #: proven SC101
