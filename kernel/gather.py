"""Reading pages of a pool inside a loop, so that the derivative of the loop takes time in proportion to what it reads.

JAX's derivative of a gather is a whole pool of zeros with something added to it, in every step, and a sum of two pools after it.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

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
    return pool, pages_of(pool, page_ids)
