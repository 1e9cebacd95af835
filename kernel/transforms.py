"""What makes a kernel of Pallas a function like any other of JAX's: with a derivative, under `vmap`, on every platform.

All functions here are called `attend(options, *arrays)`; the options are static, and can be hashed.
"""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import jax
from jax.extend.core import Primitive
from jax.interpreters import mlir

Attend: TypeAlias = Callable[..., jax.Array]


def transformable(attend: Attend, derivative: Attend) -> Attend:
    """Give `attend` what a kernel lacks: the derivative of a function that computes the same, and a batching rule, a loop.

    A kernel's own batching rule adds an axis to its grid, of which a kernel that keeps state from step to step knows nothing:
    past the first index of that axis JAX's `paged_attention` waits for pages that it never asked for.
    """

    @functools.wraps(attend)
    def looped(options: Hashable, *arrays: Any) -> jax.Array:
        out: jax.Array = jax.custom_batching.sequential_vmap(functools.partial(attend, options))(*arrays)
        return out

    differentiable = jax.custom_jvp(looped, nondiff_argnums=(0,))

    @differentiable.defjvp
    def _(options: Hashable, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        _, tangent = jax.jvp(functools.partial(derivative, options), primals, tangents)
        return differentiable(options, *primals), tangent

    return jax.jit(differentiable, static_argnums=0)


def per_platform(name: str, *, tpu: Attend, elsewhere: Attend) -> Attend:
    """Return a function that is `tpu` where the program is lowered for a TPU: one program may be lowered for several platforms.

    The result has the shape and the dtype of the first array. `lax.platform_dependent` would not do: it traces every branch on
    every platform, and in a lowering for several platforms it lowers every branch for all of them, which a kernel refuses.
    """
    primitive: Any = Primitive(name)  # JAX leaves its methods untyped

    def like_first(q: Any, *_: Any, **__: Any) -> Any:
        return q.strip_weak_type()

    def run_compiled(*leaves: Any, **params: Any) -> Any:
        with jax.disable_jit(False):  # only under `jax.disable_jit` does one get here
            return jax.jit(functools.partial(primitive.bind, **params))(*leaves)

    def lowering_of(attend: Attend) -> Any:
        def run(*leaves: jax.Array, options: Hashable, structure: Any) -> jax.Array:
            return attend(options, *jax.tree.unflatten(structure, leaves))

        return mlir.lower_fun(run, multiple_results=False)

    primitive.def_abstract_eval(like_first)
    primitive.def_impl(run_compiled)
    mlir.register_lowering(primitive, lowering_of(elsewhere))
    mlir.register_lowering(primitive, lowering_of(tpu), platform="tpu")

    def attend(options: Hashable, *arrays: Any) -> jax.Array:
        leaves, structure = jax.tree.flatten(arrays)
        out: jax.Array = primitive.bind(*leaves, options=options, structure=structure)
        return out

    return attend
