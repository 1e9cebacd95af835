"""Where 64-bit types are on, integers without a dtype are of 64 bits, and the kernel refuses them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

jax.config.update("jax_enable_x64", True)
q, kv = jnp.zeros((2, 8, 128), jnp.float32), jnp.zeros((4, 64, 16, 128), jnp.float32)
idx = jnp.zeros((2, 64), jnp.int32)
paged_attention(q, kv, kv, jnp.array([1, 2]), idx, pages_per_compute_block=8)  #: SC107 unproven
paged_attention(q, kv, kv, np.arange(2), idx, pages_per_compute_block=8)  #: SC107 unproven
paged_attention(q, kv, kv, jnp.zeros((2,), jnp.int16), idx, pages_per_compute_block=8)  #: SC107 violated
