"""The implementations of ragged paged attention, all called `attend(options, q, kv_pages, *metadata)`."""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention as pallas_ragged_paged_attention

from kernel.ragged_reference import ragged_paged_attention_xla
from kernel.transforms import per_platform, transformable
from shapecheck.installed import handing_on

_BLOCK_TOKENS = 128  # where no block is given


@dataclass(frozen=True)
class Options:
    """The static arguments of JAX's kernel, by their names there."""

    sm_scale: float
    sliding_window: int | None
    soft_cap: float | None
    mask_value: float
    k_scale: float | None
    v_scale: float | None
    num_kv_pages_per_block: int | None
    num_queries_per_block: int | None
    vmem_limit_bytes: int | None


@functools.partial(jax.jit, static_argnums=0)
def attend_with_xla(options: Options, q: Any, kv_pages: Any, kv_lens: Any, page_indices: Any, *others: Any) -> jax.Array:
    """Run plain XLA, on any platform. It has no use for a block of queries, nor for a limit of vector memory."""
    pages = options.num_kv_pages_per_block
    if pages is None or options.num_queries_per_block is None:  # where one is missing, JAX's kernel uses neither
        pages = max(1, min(page_indices.shape[1], _BLOCK_TOKENS // kv_pages.shape[1]))
    return ragged_paged_attention_xla(
        q,
        kv_pages,
        kv_lens,
        page_indices,
        *others,
        sm_scale=options.sm_scale,
        sliding_window=options.sliding_window,
        soft_cap=options.soft_cap,
        mask_value=options.mask_value,
        k_scale=options.k_scale,
        v_scale=options.v_scale,
        pages_per_block=pages,
    )


def _call_kernel(options: Options, q: jax.Array, *others: Any) -> jax.Array:
    """Call JAX's kernel with what it takes: q as float32 where it is neither that nor bfloat16, and both scales or none."""
    compute_dtype = q.dtype if q.dtype in (jnp.float32, jnp.bfloat16) else jnp.float32
    given = asdict(options)
    if (options.k_scale is None) != (options.v_scale is None):
        given |= {name: given[name] if given[name] is not None else 1.0 for name in ("k_scale", "v_scale")}
    with handing_on(), jax.enable_x64(False):  # the kernel mixes its own integers with int32 ones
        out: jax.Array = pallas_ragged_paged_attention(q.astype(compute_dtype), *others, **given)
    return out.astype(q.dtype)


attend_with_pallas = transformable(_call_kernel, attend_with_xla)
"""Run JAX's kernel, which lowers for TPUs only."""

attend_per_platform = transformable(
    per_platform("ragged_paged_attention", tpu=_call_kernel, elsewhere=attend_with_xla), attend_with_xla
)
"""Run JAX's kernel where the program is lowered for a TPU, XLA elsewhere."""
