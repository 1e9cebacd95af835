"""The paged KV cache: a pool of pages, and a table of the pages that each sequence owns."""

import jax
import jax.numpy as jnp

from serving.config import PAGE_SIZE, ModelConfig


def allocate_pool(config: ModelConfig, num_pages: int) -> tuple[jax.Array, jax.Array]:
    """Allocate the pages of keys and of values."""
    shape = (config.num_kv_heads, num_pages, PAGE_SIZE, config.head_dim)
    return jnp.zeros(shape, jnp.bfloat16), jnp.zeros(shape, jnp.bfloat16)


def block_table(batch_size: int, pages_per_sequence: int, dtype=jnp.int32) -> jax.Array:
    """Give each sequence its own run of pages."""
    pages = jnp.arange(batch_size * pages_per_sequence, dtype=dtype)
    return pages.reshape(batch_size, pages_per_sequence)


def pad_heads(num_heads: int, multiple: int = 8) -> int:
    """Round a number of heads up, so that they fill the sublanes."""
    return -(-num_heads // multiple) * multiple
