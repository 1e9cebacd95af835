"""jax.numpy under other names, and not at all."""

import jax
from jax import numpy as np
from jax.experimental.pallas.ops.tpu import paged_attention as pa

SHORT = np.zeros((4,), np.int16)
q, kv = np.zeros((4, 8, 128)), np.zeros((1, 64, 16, 128))
pa.paged_attention(q, kv, kv, SHORT, jax.numpy.zeros((4, 6), np.int32), pages_per_compute_block=3)
