import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
idx = jnp.arange(12).reshape(2, 6)
lens = np.asarray([5, 96])
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=2)  #: proven SC401 SC402
paged_attention(q, kv, kv, lens + 1, idx, pages_per_compute_block=2)  #: SC401 violated
paged_attention(q, kv, kv, -lens, idx, pages_per_compute_block=2)  #: SC401 violated
paged_attention(q, kv, kv, lens, jnp.full((2, 6), -1, jnp.int32), pages_per_compute_block=2)  #: SC402 violated
paged_attention(q, kv, kv, lens, idx + 53, pages_per_compute_block=2)  #: SC402 violated
view = lens[:]
lens[0] = 500
paged_attention(q, kv, kv, view, idx, pages_per_compute_block=2)  #: quiet
sizes = np.array([6, 8])
sizes[0] = 7
paged_attention(q, kv, kv, jnp.asarray([5, 9]), jnp.zeros((2, sizes[0]), jnp.int32), pages_per_compute_block=2)  #: SC102 unproven
