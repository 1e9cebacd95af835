"""Measure paged attention on this machine's CPU beside what people use there, and print the tables of benchmarks/README.md.

    python benchmarks/kernel_cpu.py                  # every size, as long as it fits into --memory
    python benchmarks/kernel_cpu.py --contexts 1024 8192 --batches 1 8

Three jitted functions get the same query, pages and page table: `kernel.paged_attention`, which takes its XLA path here; JAX's
`grouped_query_attention_reference`, and `jax.nn.dot_product_attention`, both on the pages of every row gathered first. What they
return is compared before it is timed. Memory is what XLA says the compiled program needs besides its arguments and its result.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention.util import grouped_query_attention_reference

import kernel
from shapecheck.plan import largest_divisor

_NUM_Q_HEADS, _NUM_KV_HEADS, _HEAD_DIM, _PAGE_SIZE = 8, 2, 128, 16  # a quarter of an 8B Llama: what one of four chips holds
_BLOCK = 256  # tokens of a compute block at most

Arrays: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]
Attend: TypeAlias = Callable[..., jax.Array]


class Measured(NamedTuple):
    """What one function took for one problem: milliseconds, and MiB besides arguments and result."""

    milliseconds: float
    mebibytes: float


def ours(q: jax.Array, k_pages: jax.Array, v_pages: jax.Array, lengths: jax.Array, page_indices: jax.Array) -> jax.Array:
    pages_per_compute_block = largest_divisor(page_indices.shape[1], at_most=_BLOCK // _PAGE_SIZE)
    return kernel.paged_attention(q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=pages_per_compute_block)


def _gathered(pages: jax.Array, page_indices: jax.Array) -> jax.Array:
    """Return `[batch_size, num_kv_heads, tokens, head_dim]`."""
    num_kv_heads, _, _, head_dim = pages.shape
    batch_size = page_indices.shape[0]
    return pages[:, page_indices].swapaxes(0, 1).reshape(batch_size, num_kv_heads, -1, head_dim)


def gather_and_reference(
    q: jax.Array, k_pages: jax.Array, v_pages: jax.Array, lengths: jax.Array, page_indices: jax.Array
) -> jax.Array:
    return grouped_query_attention_reference(q, _gathered(k_pages, page_indices), _gathered(v_pages, page_indices), lengths)


def gather_and_dot_product_attention(
    q: jax.Array, k_pages: jax.Array, v_pages: jax.Array, lengths: jax.Array, page_indices: jax.Array
) -> jax.Array:
    keys, values = (_gathered(pages, page_indices).swapaxes(1, 2) for pages in (k_pages, v_pages))
    return jax.nn.dot_product_attention(q[:, None], keys, values, scale=1.0, key_value_seq_lengths=lengths)[:, 0]


WAYS: dict[str, Attend] = {
    "kernel.paged_attention": ours,
    "gather + JAX's reference": gather_and_reference,
    "gather + dot_product_attention": gather_and_dot_product_attention,
}


def problem(batch_size: int, context: int, filled: float, dtype: jnp.dtype) -> Arrays:
    """Return arguments whose rows each use pages of their own, scattered, and `filled` of them."""
    pages_per_sequence = context // _PAGE_SIZE
    total_num_pages = batch_size * pages_per_sequence
    keys = jax.random.split(jax.random.key(0), 3)
    shape = (_NUM_KV_HEADS, total_num_pages, _PAGE_SIZE, _HEAD_DIM)
    page_ids = np.random.default_rng(0).permutation(total_num_pages).astype(np.int32)
    return (
        jax.random.normal(keys[0], (batch_size, _NUM_Q_HEADS, _HEAD_DIM), dtype) * _HEAD_DIM**-0.5,
        jax.random.normal(keys[1], shape, dtype),
        jax.random.normal(keys[2], shape, dtype),
        jnp.full((batch_size,), int(context * filled), jnp.int32),
        jnp.asarray(page_ids.reshape(batch_size, pages_per_sequence)),
    )


def measure(arrays: Arrays, rounds: int, seconds: float) -> dict[str, Measured]:
    """Compile and time every way, in turn in each round, for that many rounds and seconds at least; the fastest turn counts."""
    compiled = {name: jax.jit(attend).lower(*arrays).compile() for name, attend in WAYS.items()}
    results = [np.asarray(run(*arrays), np.float32) for run in compiled.values()]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=0.02, rtol=0.02)
    took: dict[str, list[float]] = {name: [] for name in compiled}
    end = time.perf_counter() + seconds
    while len(took[next(iter(WAYS))]) < rounds or time.perf_counter() < end:
        for name, run in compiled.items():
            start = time.perf_counter()
            run(*arrays).block_until_ready()
            took[name].append(time.perf_counter() - start)
    memory: dict[str, Any] = {name: run.memory_analysis() for name, run in compiled.items()}
    return {name: Measured(min(took[name]) * 1e3, memory[name].temp_size_in_bytes / 2**20) for name in compiled}


def gathered_bytes(batch_size: int, context: int, dtype: jnp.dtype) -> int:
    """Return what the pages take, once in the pool and four times gathered: as they are and in float32."""
    elements = 2 * batch_size * context * _NUM_KV_HEADS * _HEAD_DIM
    return elements * (2 * dtype.itemsize + 4)


def table(filled: float, sizes: Sequence[tuple[int, int]], dtype: jnp.dtype, rounds: int, seconds: float) -> None:
    """Print the times, and memory, for rows that fill `filled` of their pages."""
    ours_, *others = WAYS
    print(f"\n{filled:.0%} of each row's pages are filled, {dtype}\n")
    print("| batch | context | " + " | ".join(f"{name}, ms | MiB" for name in WAYS) + " | times faster |")
    print("| ---: | ---: |" + " ---: | ---: |" * len(WAYS) + " ---: |")
    for batch_size, context in sizes:
        found = measure(problem(batch_size, context, filled, dtype), rounds, seconds)
        ratio = min(found[name].milliseconds for name in others) / found[ours_].milliseconds
        cells = [f"{found[name].milliseconds:.2f} | {found[name].mebibytes:.1f}" for name in WAYS]
        print(f"| {batch_size} | {context} | " + " | ".join(cells) + f" | {ratio:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--contexts", type=int, nargs="+", default=[1024, 4096, 16384, 65536], help="tokens of a page table's row"
    )
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64], help="rows")
    parser.add_argument("--filled", type=float, nargs="+", default=[1.0, 0.125], help="how much of each row is filled")
    parser.add_argument("--dtype", default="bfloat16", help="of the query and the pages (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each way takes a turn, at least (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of taking turns, at least (default: %(default)s)")
    parser.add_argument("--memory", type=float, default=10.0, help="GiB that a problem may take (default: %(default)s)")
    options = parser.parse_args()
    dtype = jnp.dtype(options.dtype)
    sizes = [(batch_size, context) for batch_size in options.batches for context in options.contexts]
    for size in [size for size in sizes if gathered_bytes(*size, dtype) > options.memory * 2**30]:
        print("left out, as it may take more than --memory: batch {}, context {}".format(*size))
        sizes.remove(size)
    for filled in options.filled:
        table(filled, sizes, dtype, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
