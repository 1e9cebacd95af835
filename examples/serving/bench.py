"""Time the attention of one decode step on a TPU, model by model."""

import time

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

from serving.cache import allocate_pool, block_table, pad_heads
from serving.config import GEMMA_2B, LLAMA_8B, PAGE_SIZE, PHI_14B, ModelConfig

BATCH_SIZE = 32
PAGES_PER_BLOCK = 16


def inputs(config: ModelConfig, pages_per_sequence: int, table_dtype=jnp.int32):
    """Make a batch of sequences that fill their pages."""
    q = jax.random.normal(jax.random.key(0), (BATCH_SIZE, config.num_q_heads, config.head_dim), jnp.bfloat16)
    k_pages, v_pages = allocate_pool(config, BATCH_SIZE * pages_per_sequence)
    lengths = jnp.full((BATCH_SIZE,), pages_per_sequence * PAGE_SIZE, jnp.int32)
    return q, k_pages, v_pages, lengths, block_table(BATCH_SIZE, pages_per_sequence, table_dtype)


def bench_trace() -> float:
    """The longest request of the trace: 1248 tokens, 78 pages."""
    q, k_pages, v_pages, lengths, table = inputs(LLAMA_8B, 1248 // PAGE_SIZE)
    return timed(
        lambda: paged_attention(
            q,
            k_pages,
            v_pages,
            lengths,
            table,
            pages_per_compute_block=PAGES_PER_BLOCK,
        )
    )


def bench_multi_query() -> float:
    """One KV head for all query heads, on both cores of a v5p."""
    q, k_pages, v_pages, lengths, table = inputs(GEMMA_2B, GEMMA_2B.pages_per_sequence)
    return timed(
        lambda: paged_attention(
            q,
            k_pages,
            v_pages,
            lengths,
            table,
            pages_per_compute_block=32,
            megacore_mode="kv_head",
        )
    )


def bench_padded_heads() -> float:
    """KV heads padded from 10 to 16; the query heads are 40 as before."""
    padded = ModelConfig(PHI_14B.num_q_heads, pad_heads(PHI_14B.num_kv_heads), PHI_14B.head_dim)
    q, k_pages, v_pages, lengths, table = inputs(padded, padded.pages_per_sequence)
    return timed(lambda: paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=32))


def bench_narrow_table() -> float:
    """Page ids below 32768 fit into 16 bits: half the table."""
    arguments = inputs(LLAMA_8B, LLAMA_8B.pages_per_sequence, table_dtype=jnp.int16)
    return timed(lambda: paged_attention(*arguments, pages_per_compute_block=32))


def bench_models() -> list[float]:
    """Every model at its full context, compilation included."""
    seconds = []
    for config in (LLAMA_8B, GEMMA_2B, PHI_14B):
        arguments = inputs(config, config.pages_per_sequence)
        start = time.perf_counter()
        jax.block_until_ready(paged_attention(*arguments, pages_per_compute_block=32, megacore_mode="batch"))
        seconds.append(time.perf_counter() - start)
    return seconds


def timed(run) -> float:
    jax.block_until_ready(run())  # compile
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


if __name__ == "__main__":
    print(bench_trace(), bench_multi_query(), bench_padded_heads(), bench_narrow_table(), bench_models())
