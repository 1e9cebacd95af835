"""Where a repair is written."""
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

PAGE, TOKENS = 16, 64
SHARED = 4  # legal for eight pages: it stays
LONE = 3  # wherever it is used, three is legal
q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, PAGE, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)
options = {"pages_per_compute_block": 3}
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3)
paged_attention(q, kv, kv, lens, eight, pages_per_compute_block=SHARED)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=LONE)
paged_attention(q, kv, kv, lens, six[:, :3], pages_per_compute_block=LONE)
paged_attention(q, kv, kv, lens, six, **options)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=(
    TOKENS  # of a block
    // PAGE
))


def default(block=3):
    return paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block)


default()
