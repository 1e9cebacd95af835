"""Reading pages of a pool inside a loop, so that the derivative of the loop takes time in proportion to what it reads.

JAX's derivative of a gather is a whole pool of zeros with something added to it, in every step, and a sum of two pools after it.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


def pages_of(pool: jax.Array, page_ids: jax.Array) -> jax.Array:
    """Return `[num_kv_heads, *page_ids.shape, page_size, width]`; ids out of range are clamped into it."""
    return pool.at[:, page_ids].get(mode="clip", wrap_negative_indices=False)


def pool_and_pages_of(pool: jax.Array, page_ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the pool as it is, and what `pages_of` gives, where the pool is a tangent that a loop hands on from step to step.

    Transposed, the loop hands on one cotangent of the pool, to which each step adds its pages in place.
    """
    handed_on, pages = _read.bind(pool, page_ids, batch_dims=0)
    return handed_on, pages


def _read_pages(pool: jax.Array, page_ids: jax.Array) -> list[jax.Array]:
    return [pool, pages_of(pool, page_ids)]


def _add_pages(pool: jax.Array, pages: jax.Array, page_ids: jax.Array) -> list[jax.Array]:
    # Clamped here, as scattering does not know of it.
    return [pool.at[:, jnp.clip(page_ids, 0, pool.shape[1] - 1)].add(pages)]


def _linear(name: str, function: Callable[..., list[jax.Array]]) -> Any:
    """Return a primitive, linear in all arguments but the last, `page_ids`; each may have `batch_dims` in front."""

    def run(*arguments: jax.Array, batch_dims: int) -> list[jax.Array]:
        batched = function
        for _ in range(batch_dims):
            batched = jax.vmap(batched)
        return batched(*arguments)

    def of_types(*types: Any, batch_dims: int) -> Any:
        return jax.make_jaxpr(functools.partial(run, batch_dims=batch_dims))(*types).out_avals

    def in_batch(arguments: Any, axes: Any, *, batch_dims: int) -> tuple[Any, Any]:
        size = next(each.shape[axis] for each, axis in zip(arguments, axes, strict=True) if axis is not None)
        arguments = [batching.bdim_at_front(each, axis, size) for each, axis in zip(arguments, axes, strict=True)]
        results = primitive.bind(*arguments, batch_dims=batch_dims + 1)
        return results, [0] * len(results)

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        moved = [ad.instantiate_zeros(tangent) for tangent in tangents[:-1]]
        return primitive.bind(*primals, **params), primitive.bind(*moved, primals[-1], **params)

    primitive: Any = Primitive(name)  # JAX leaves its methods untyped
    primitive.multiple_results = True
    primitive.def_impl(run)
    primitive.def_abstract_eval(of_types)
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=True))
    batching.primitive_batchers[primitive] = in_batch
    ad.primitive_jvps[primitive] = jvp
    return primitive


_read = _linear("read_pages", _read_pages)
_add = _linear("add_pages", _add_pages)


def _transpose_read(cotangents: Any, _: Any, page_ids: jax.Array, **params: Any) -> list[Any]:
    return [*_add.bind(*map(ad.instantiate_zeros, cotangents), page_ids, **params), None]


def _transpose_add(cotangents: Any, *arguments: Any, **params: Any) -> list[Any]:
    return [*_read.bind(*cotangents, arguments[-1], **params), None]


ad.primitive_transposes[_read] = _transpose_read
ad.primitive_transposes[_add] = _transpose_add
