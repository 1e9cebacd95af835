"""The implementations of paged attention, all called `attend(options, q, k_pages, v_pages, lengths, page_indices)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as pallas_paged_attention
from jax.extend.core import Primitive
from jax.interpreters import mlir

from kernel.reference import paged_attention_xla

Attend: TypeAlias = Callable[..., jax.Array]


@dataclass(frozen=True)
class Options:
    """The static arguments of JAX's kernel, by their names there."""

    mask_value: float
    attn_logits_soft_cap: float | None
    pages_per_compute_block: int
    megacore_mode: str | None
    inline_seq_dim: bool


def attend_with_xla(options: Options, *arrays: Any) -> jax.Array:
    """Run plain XLA, on any platform. It has no use for a megacore mode, nor for `inline_seq_dim`."""
    return paged_attention_xla(
        *arrays,
        mask_value=options.mask_value,
        attn_logits_soft_cap=options.attn_logits_soft_cap,
        pages_per_compute_block=options.pages_per_compute_block,
    )


def _transformable(attend: Attend) -> Attend:
    """Give `attend` what JAX's kernel lacks: a derivative, XLA's, and a batching rule, a loop.

    The kernel's own batching rule adds an axis to the grid, and past the first index of that axis the kernel waits for
    pages that it never asked for.
    """

    @functools.wraps(attend)
    def looped(options: Options, *arrays: Any) -> jax.Array:
        return jax.custom_batching.sequential_vmap(functools.partial(attend, options))(*arrays)

    differentiable = jax.custom_jvp(looped, nondiff_argnums=(0,))

    @differentiable.defjvp
    def _(options: Options, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        _, tangent = jax.jvp(functools.partial(attend_with_xla, options), primals, tangents)
        return differentiable(options, *primals), tangent

    return jax.jit(differentiable, static_argnums=0)


def _call_kernel(options: Options, q: jax.Array, *others: Any) -> jax.Array:
    compute_dtype = jnp.float32 if q.dtype == jnp.float64 else q.dtype
    with jax.enable_x64(False):  # the kernel mixes its own integers with int32 ones
        out = pallas_paged_attention(q.astype(compute_dtype), *others, **asdict(options))
    return out.astype(q.dtype)


@_transformable
def attend_with_pallas(options: Options, *arrays: Any) -> jax.Array:
    """Run JAX's kernel, which lowers for TPUs only."""
    return _call_kernel(options, *arrays)


@_transformable
def attend_interpreted(options: Options, *arrays: Any) -> jax.Array:
    """Run JAX's kernel in Pallas' interpreter of TPUs: anywhere, slowly."""
    # Interpreted on one core, a megacore mode would wait for the other for ever. The setting is part of the key of
    # JAX's caches, so that what is traced here is never taken for the real kernel, nor the other way round.
    cores = 1 if options.megacore_mode is None else 2
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(num_cores_or_threads=cores)):
        return _call_kernel(options, *arrays)


@_transformable
def attend_per_platform(options: Options, *arrays: Any) -> jax.Array:
    """Run JAX's kernel where the program is lowered for a TPU, XLA elsewhere: one program may be lowered for both."""
    leaves, structure = jax.tree.flatten(arrays)
    return _paged_attention_p.bind(*leaves, options=options, structure=structure)


# Not `lax.platform_dependent`: that traces every branch on every platform, and in a lowering for several platforms it
# lowers every branch for all of them, which the kernel refuses. A rule of a primitive is run for its own platform only.
_paged_attention_p = Primitive("paged_attention")


@_paged_attention_p.def_abstract_eval
def _result_type(q: Any, *_: Any, **__: Any) -> Any:
    return q.strip_weak_type()


@_paged_attention_p.def_impl
def _run_eagerly(*leaves: Any, **params: Any) -> jax.Array:
    with jax.disable_jit(False):  # only under `jax.disable_jit` does one get here
        return jax.jit(functools.partial(_paged_attention_p.bind, **params))(*leaves)


def _lowering_of(attend: Attend) -> mlir.LoweringRule:
    def run(*leaves: jax.Array, options: Options, structure: Any) -> jax.Array:
        return attend(options, *jax.tree.unflatten(structure, leaves))

    return mlir.lower_fun(run, multiple_results=False)


mlir.register_lowering(_paged_attention_p, _lowering_of(attend_with_xla))
mlir.register_lowering(_paged_attention_p, _lowering_of(_call_kernel), platform="tpu")
