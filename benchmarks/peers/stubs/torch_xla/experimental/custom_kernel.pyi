from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as paged_attention
