"""One decode step of the serving loop."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

from serving.cache import allocate_pool, block_table
from serving.config import ModelConfig


class Decoder:
    """Holds the cache of a batch, and attends to it with one new token of each sequence."""

    def __init__(self, config: ModelConfig, batch_size: int) -> None:
        self.config = config
        self.pages = allocate_pool(config, batch_size * config.pages_per_sequence)
        self.table = block_table(batch_size, config.pages_per_sequence)

    def step(self, q: jax.Array, lengths: jax.Array) -> jax.Array:
        k_pages, v_pages = self.pages
        return attend(q * self.config.head_dim**-0.5, k_pages, v_pages, lengths, self.table)


@jax.jit
def attend(q, k_pages, v_pages, lengths, page_indices):
    return paged_attention(
        q,
        k_pages,
        v_pages,
        lengths,
        page_indices,
        pages_per_compute_block=min(16, page_indices.shape[1]),  # short block tables are narrower than 16 pages
    )


def warm_up() -> jax.Array:
    """Compile for a small batch before the first request."""
    batch_size, context, page_size = 4, 512, 32
    pages_per_sequence = context // page_size
    q = jnp.zeros((batch_size, 16, 128), jnp.bfloat16)
    pages = jnp.zeros((8, batch_size * pages_per_sequence, page_size, 128), jnp.bfloat16)
    lengths = jnp.full((batch_size,), context, jnp.int32)
    table = np.arange(batch_size * pages_per_sequence).reshape(batch_size, pages_per_sequence)
    return paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=8, megacore_mode="kv_head")
