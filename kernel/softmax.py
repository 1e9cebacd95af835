"""A softmax over tokens that takes in one block of them after the other, as the kernels do, and the arithmetic around it.

Everything is float32.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

# GPUs and TPUs would otherwise round the operands of a float32 product to 10 or fewer bits.
einsum = functools.partial(jnp.einsum, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


def capped(logits: jax.Array, soft_cap: float | None) -> jax.Array:
    return logits if soft_cap is None else soft_cap * jnp.tanh(logits / soft_cap)


class Softmax(NamedTuple):
    """A softmax over the tokens seen so far: `[...]` of each query, `weighted` with `head_dim` after it."""

    top: jax.Array
    total: jax.Array
    weighted: jax.Array

    @classmethod
    def of_nothing(cls, queries: jax.Array) -> Softmax:
        """Of the queries, `[..., head_dim]`, only their shape matters, and how they are sharded."""
        rows = jnp.zeros_like(queries[..., 0])
        # The lowest finite number and not -inf: infinities differ by NaN.
        return cls(rows + jnp.finfo(jnp.float32).min, rows, jnp.zeros_like(queries))

    def with_block(self, logits: jax.Array, values: jax.Array, product: str) -> Softmax:
        """Take in one block of tokens.

        Args:
            logits: `[..., tokens]`.
            values: of each token, in some order of axes.
            product: how `einsum` weighs them: `[..., head_dim]` is what must come out.
        """
        # The result does not depend on `top`, which only keeps exp in range: no gradient need pass through it.
        top = lax.stop_gradient(jnp.maximum(self.top, logits.max(axis=-1)))
        kept = jnp.exp(self.top - top)
        weights = jnp.exp(logits - top[..., None])
        return Softmax(
            top,
            kept * self.total + weights.sum(axis=-1),
            kept[..., None] * self.weighted + einsum(product, weights, values),
        )

    def mean(self) -> jax.Array:
        """Return the weighted mean of the values, 0 where no token was seen."""
        return self.weighted / jnp.where(self.total > 0, self.total, 1)[..., None]


def over_blocks(
    queries: jax.Array,
    count: int,
    is_needed: Callable[[jax.Array], jax.Array],
    take_in: Callable[[jax.Array, Softmax], Softmax],
) -> jax.Array:
    """Return the weighted mean of the values, like `queries` `[..., head_dim]`; 0 where no token was seen.

    The trip count is fixed, and blocks that are not needed are skipped: a loop that stops there could not be differentiated in
    reverse. The backward pass computes a block again: to keep them all would be to gather the whole cache.

    Args:
        queries: only their shape matters, and how they are sharded.
        count: how many blocks there are.
        is_needed: says of the index of a block whether it holds anything.
        take_in: returns the softmax with that block.
    """

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def step(index: jax.Array, softmax: Softmax) -> Softmax:
        after: Softmax = lax.cond(is_needed(index), take_in, _unchanged, index, softmax)
        return after

    seen: Softmax = lax.fori_loop(0, count, step, Softmax.of_nothing(queries))
    return seen.mean()


def _unchanged(_: jax.Array, softmax: Softmax) -> Softmax:
    return softmax
