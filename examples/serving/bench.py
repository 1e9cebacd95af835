"""Time the attention of one decode step, model by model, on a TPU."""

import time

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

from serving.cache import allocate_pool, block_table, pad_heads
from serving.config import GEMMA_2B, LLAMA_8B, PAGE_SIZE, PHI_14B, ModelConfig

BATCH_SIZE = 32
PAGES_PER_BLOCK = 16


def inputs(config: ModelConfig, pages_per_sequence: int):
    q = jax.random.normal(jax.random.key(0), (BATCH_SIZE, config.num_q_heads, config.head_dim), jnp.bfloat16)
    lengths = jnp.full((BATCH_SIZE,), pages_per_sequence * PAGE_SIZE, jnp.int32)
    return q, lengths


def bench_real_data():
    """The longest request of the trace has 1248 tokens: 78 pages."""
    pages_per_sequence = 1248 // PAGE_SIZE
    q, lengths = inputs(LLAMA_8B, pages_per_sequence)
    k_pages, v_pages = allocate_pool(LLAMA_8B, BATCH_SIZE * pages_per_sequence)
    table = block_table(BATCH_SIZE, pages_per_sequence)
    return timed(lambda: paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=PAGES_PER_BLOCK))


def bench_multi_query():
    """One KV head, shared by all query heads, on both cores of a v5p."""
    q, lengths = inputs(GEMMA_2B, GEMMA_2B.pages_per_sequence)
    k_pages, v_pages = allocate_pool(GEMMA_2B, BATCH_SIZE * GEMMA_2B.pages_per_sequence)
    table = block_table(BATCH_SIZE, GEMMA_2B.pages_per_sequence)
    return timed(
        lambda: paged_attention(
            q, k_pages, v_pages, lengths, table, pages_per_compute_block=16, megacore_mode="kv_head"
        )
    )


def bench_padded_heads():
    """KV heads padded from 10 to 16; the query heads are still 40."""
    padded = ModelConfig(PHI_14B.num_q_heads, pad_heads(PHI_14B.num_kv_heads), PHI_14B.head_dim)
    q, lengths = inputs(padded, padded.pages_per_sequence)
    k_pages, v_pages = allocate_pool(padded, BATCH_SIZE * padded.pages_per_sequence)
    table = block_table(BATCH_SIZE, padded.pages_per_sequence)
    return timed(lambda: paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=32))


def bench_small_table():
    """Page ids below 32768 fit into 16 bits, which halves the table."""
    q, lengths = inputs(LLAMA_8B, LLAMA_8B.pages_per_sequence)
    k_pages, v_pages = allocate_pool(LLAMA_8B, BATCH_SIZE * LLAMA_8B.pages_per_sequence)
    table = block_table(BATCH_SIZE, LLAMA_8B.pages_per_sequence, dtype=jnp.int16)
    return timed(lambda: paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=32))


def bench_models():
    """Every model at its full context."""
    for config in (LLAMA_8B, GEMMA_2B, PHI_14B):
        q, lengths = inputs(config, config.pages_per_sequence)
        k_pages, v_pages = allocate_pool(config, BATCH_SIZE * config.pages_per_sequence)
        table = block_table(BATCH_SIZE, config.pages_per_sequence)
        timed(lambda: paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=32, megacore_mode="batch"))


def timed(run) -> float:
    jax.block_until_ready(run())
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


if __name__ == "__main__":
    bench_real_data()
    bench_multi_query()
    bench_padded_heads()
    bench_small_table()
    bench_models()
