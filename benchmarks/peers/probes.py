"""For each rule a call that breaks it and no other: tells which rules jaxtyc can see broken, and what it says then."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
paged_attention(q[:, :7], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC101 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)  #: SC102 violated
paged_attention(q, kv, kv[:, :32], lens, idx, pages_per_compute_block=3)  #: SC103 violated
paged_attention(q[..., :64], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC104 violated
paged_attention(q, kv, kv, lens[:1], idx, pages_per_compute_block=3)  #: SC105 violated
paged_attention(q, kv, kv, lens, idx[:1], pages_per_compute_block=3)  #: SC106 violated
paged_attention(q, kv, kv, lens.astype(jnp.int16), idx, pages_per_compute_block=3)  #: SC107 violated
paged_attention(q, kv, kv, lens, idx.astype(jnp.int16), pages_per_compute_block=3)  #: SC108 violated
paged_attention(q[0], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC109 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=0)  #: SC110 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=6 / 2)  #: SC110 violated
paged_attention(q, kv[:, :, :0], kv[:, :, :0], lens, idx, pages_per_compute_block=3)  #: SC111 violated
paged_attention(q, quantization_utils.quantize_to_int8(kv), kv, lens, idx, pages_per_compute_block=3)  #: SC112 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, attn_logits_soft_cap=0.0)  #: SC113 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=0.0)  #: SC114 violated
paged_attention(q.astype(jnp.int32), kv, kv, lens, idx, pages_per_compute_block=3)  #: SC115 violated
paged_attention(q, kv[:1], kv[:1], lens, idx, pages_per_compute_block=3, megacore_mode="kv_head")  #: SC201 violated
paged_attention(q[:1], kv, kv, lens[:1], idx[:1], pages_per_compute_block=3, megacore_mode="batch")  #: SC202 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, megacore_mode="kv_heads")  #: SC203 violated
paged_attention(q, kv, kv, lens + 500, idx, pages_per_compute_block=3)  #: SC401 violated
paged_attention(q, kv, kv, lens, idx + 64, pages_per_compute_block=3)  #: SC402 violated
