"""Reading pages in a loop: what JAX's gather gives, and its derivatives, under `vmap` too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel.gather import pages_of, pool_and_pages_of

POOL = jnp.sin(jnp.arange(2 * 5 * 3 * 4.0)).reshape(2, 5, 3, 4)  # KV heads, pages, tokens a page, width
IDS = jnp.asarray([[3, 0], [3, 3], [-1, 9]], jnp.int32)  # one thrice, two out of range


def plainly(pool: jax.Array, page_ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    return pool, pool[:, jnp.clip(page_ids, 0, 4)]


def assert_equal(ours: Any, theirs: Any) -> None:
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), ours, theirs)


def vjp(function: Callable[..., Any], pool: jax.Array, page_ids: jax.Array) -> Any:
    """Return a cotangent of the pool, of cotangents that differ everywhere."""
    results, transposed = jax.vjp(lambda pool: function(pool, page_ids), pool)
    return transposed(jax.tree.map(lambda each: jnp.cos(jnp.arange(each.size)).reshape(each.shape), results))


def jvp(function: Callable[..., Any], pool: jax.Array, page_ids: jax.Array) -> Any:
    return jax.jvp(lambda pool: function(pool, page_ids), (pool,), (jnp.cos(pool),))


def twice(function: Callable[..., Any], pool: jax.Array, page_ids: jax.Array) -> Any:
    """Return what comes of transposing the transposed function."""
    transposed = jax.linear_transpose(lambda pool: function(pool, page_ids), pool)
    results = function(pool, page_ids)
    (again,) = jax.linear_transpose(lambda *results: transposed(results), *results)((pool,))[:1]
    return again


@pytest.mark.parametrize("derivative", [lambda function, *arguments: function(*arguments), vjp, jvp, twice])
@pytest.mark.parametrize("axes", [None, (0, None), (None, 0), (1, 2)], ids=str)
def test_it_is_the_gather(derivative: Callable[..., Any], axes: Any) -> None:
    pool, page_ids = POOL, IDS
    if axes is not None:
        pool = pool if axes[0] is None else jnp.stack([pool, 2 * pool, -pool], axis=axes[0])
        page_ids = page_ids if axes[1] is None else jnp.stack([page_ids, page_ids + 1, page_ids[::-1]], axis=axes[1])

    def result(function: Callable[..., Any]) -> Any:
        one = functools.partial(derivative, function)
        return jax.jit(one if axes is None else jax.vmap(one, in_axes=axes))(pool, page_ids)

    assert_equal(result(pool_and_pages_of), result(plainly))


def test_ids_out_of_range_are_clamped() -> None:
    np.testing.assert_array_equal(pages_of(POOL, IDS), POOL[:, [[3, 0], [3, 3], [0, 4]]])


def test_under_vmap_of_vmap() -> None:
    pools = jnp.stack([jnp.stack([POOL, 2 * POOL]), jnp.stack([-POOL, POOL])])
    ids = jnp.stack([IDS, IDS + 1])
    ours, theirs = (
        jax.vmap(jax.vmap(functools.partial(vjp, function), in_axes=(0, None)))(pools, ids)
        for function in (pool_and_pages_of, plainly)
    )
    assert_equal(ours, theirs)
