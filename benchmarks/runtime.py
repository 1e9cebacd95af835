"""Measure what it costs to check a call of paged attention when it is made, and print the table of benchmarks/README.md.

    python benchmarks/runtime.py

The function does nothing, so that what is measured is the checks. It is called eagerly, with arrays of JAX, in turn by every way
of checking; of several rounds, the fastest counts. chex takes part if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import timeit
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int32, jaxtyped

from shapecheck import contract
from shapecheck.contracts import PAGED_ATTENTION

_MASK_VALUE = -0.7 * float(jnp.finfo(jnp.float32).max)
_TURN = 0.001  # seconds; the shorter, the likelier it is that one passes undisturbed
_HAND_WRITTEN = "hand-written checks, those of JAX's kernel"
_JAXTYPED = "jaxtyped with beartype: no relations"
_COLD = "shapecheck, a signature not seen before"
_WARM = "shapecheck, a signature seen before"


def plain(
    q: Float[Array, "batch_size num_q_heads head_dim"],
    k_pages: Float[Array, "num_kv_heads total_num_pages page_size head_dim"],
    v_pages: Float[Array, "num_kv_heads total_num_pages page_size head_dim"],
    lengths: Int32[Array, " batch_size"],
    page_indices: Int32[Array, "batch_size pages_per_sequence"],
    *,
    mask_value: float = _MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: Literal["kv_head", "batch"] | None = None,
    inline_seq_dim: bool = True,
) -> Float[Array, "batch_size num_q_heads head_dim"]:
    return q


def hand_written(
    q: Any,
    k_pages: Any,
    v_pages: Any,
    lengths: Any,
    page_indices: Any,
    *,
    mask_value: float = _MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Any:
    batch_size, num_q_heads, head_dim = q.shape
    num_kv_heads, _, _, head_dim_k = k_pages.shape
    batch_size_paged_indices, pages_per_sequence = page_indices.shape
    if k_pages.shape != v_pages.shape:
        raise ValueError("k_pages and v_pages must have the same shape")
    if num_q_heads % num_kv_heads != 0:
        raise ValueError("Number of Q heads must be divisible by number of KV heads")
    if head_dim_k != head_dim:
        raise ValueError("head_dim of Q must be the same as that of K/V")
    if pages_per_sequence % pages_per_compute_block != 0:
        raise ValueError("pages_per_compute_block must be divisible by pages per sequence")
    if lengths.shape != (batch_size,):
        raise ValueError("`lengths` and `q` must have the same batch size")
    if batch_size_paged_indices != batch_size:
        raise ValueError("`page_indices` and `q` must have the same batch size")
    if lengths.dtype != jnp.int32:
        raise ValueError("The dtype of `lengths` must be int32")
    if megacore_mode == "kv_head" and num_kv_heads % 2 != 0:
        raise ValueError("number of KV heads must be even when megacore_mode is 'kv_head'")
    if megacore_mode == "batch" and batch_size % 2 != 0:
        raise ValueError("batch size must be even when megacore_mode is 'batch'")
    if megacore_mode not in (None, "kv_head", "batch"):
        raise ValueError("megacore_mode must be one of ['kv_head', 'batch', None]")
    return q


def with_chex() -> Callable[..., Any]:
    import chex  # pyright: ignore[reportMissingImports]

    def checked(q: Any, k_pages: Any, v_pages: Any, lengths: Any, page_indices: Any, *, pages_per_compute_block: int) -> Any:
        chex.assert_rank([q, k_pages, page_indices], [3, 4, 2])
        chex.assert_equal_shape([k_pages, v_pages])
        chex.assert_equal(q.shape[-1], k_pages.shape[-1])
        chex.assert_shape(lengths, (q.shape[0],))
        chex.assert_shape(page_indices, (q.shape[0], None))
        chex.assert_type(lengths, jnp.int32)
        chex.assert_is_divisible(q.shape[1], k_pages.shape[0])
        chex.assert_is_divisible(page_indices.shape[1], pages_per_compute_block)
        return q

    return checked


class Row(NamedTuple):
    """A way to call the function, and the way that it is compared with."""

    name: str
    call: Callable[[], Any]
    base: str


def rows(lowered: list[str]) -> list[Row]:
    """Return the ways; those under jit add what they compile to `lowered`."""
    arrays = (
        jnp.zeros((8, 32, 128), jnp.bfloat16),
        jnp.zeros((8, 192, 16, 128), jnp.bfloat16),
        jnp.zeros((8, 192, 16, 128), jnp.bfloat16),
        jnp.full((8,), 300, jnp.int32),
        jnp.zeros((8, 24), jnp.int32),
    )
    ours = contract(PAGED_ATTENTION)(plain)
    masks = itertools.count(-1.0, -1.0)

    def called(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: function(*arrays, pages_per_compute_block=8)

    def compiled(function: Callable[..., Any]) -> Callable[[], Any]:
        def program(*arrays: Any) -> Any:
            return function(*arrays, pages_per_compute_block=8)[0, 0, 0] + 1

        jitted = jax.jit(program)
        lowered.append(jitted.lower(*arrays).as_text())
        return lambda: jitted(*arrays).block_until_ready()

    found = [
        Row("no checks", called(plain), _HAND_WRITTEN),
        Row(_HAND_WRITTEN, called(hand_written), _HAND_WRITTEN),
        Row(_JAXTYPED, called(jaxtyped(plain, typechecker=beartype)), _HAND_WRITTEN),
        Row(_COLD, lambda: ours(*arrays, pages_per_compute_block=8, mask_value=next(masks)), _HAND_WRITTEN),
        Row(_WARM, called(ours), _HAND_WRITTEN),
        Row("jit, no checks", compiled(plain), "jit, no checks"),
        Row("jit, shapecheck inside, traced before", compiled(ours), "jit, no checks"),
    ]
    if importlib.util.find_spec("chex") is not None:
        found.insert(3, Row("chex assertions", called(with_chex()), _HAND_WRITTEN))
    return found


def measured(ways: Iterable[Row], rounds: int) -> dict[str, float]:
    """Return the fewest nanoseconds that a call took in several rounds, in each of which all take a turn, by the row's name."""
    best: dict[str, float] = {}
    timers = {row.name: timeit.Timer(row.call) for row in ways}
    numbers = {name: max(1, int(_TURN / (timer.timeit(200) / 200))) for name, timer in timers.items()}
    for _ in range(rounds):
        for name, timer in timers.items():
            timer.timeit(3)  # the first calls of a turn find cold caches, and threads asleep
            took = timer.timeit(numbers[name]) / numbers[name] * 1e9
            best[name] = min(best.get(name, took), took)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="how often each way takes a turn (default: %(default)s)")
    rounds = parser.parse_args().rounds
    lowered: list[str] = []
    ways = rows(lowered)
    best = measured(ways, rounds)
    print(f"Under jit, the program with checks is {'the same as' if len(set(lowered)) == 1 else 'ANOTHER than'} that without.\n")
    print("| a call with | microseconds | ratio |\n| --- | ---: | ---: |")
    for row in ways:
        print(f"| {row.name} | {best[row.name] / 1000:.2f} | {best[row.name] / best[row.base]:.2f} |")


if __name__ == "__main__":
    main()
