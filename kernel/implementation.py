"""The implementations of paged attention, all called `attend(options, q, k_pages, v_pages, lengths, page_indices)`."""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as pallas_paged_attention

from kernel.reference import paged_attention_xla
from kernel.transforms import per_platform, transformable
from shapecheck.installed import handing_on


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
    out: jax.Array = paged_attention_xla(
        *arrays,
        mask_value=options.mask_value,
        attn_logits_soft_cap=options.attn_logits_soft_cap,
        pages_per_compute_block=options.pages_per_compute_block,
    )
    return out


def _call_kernel(options: Options, q: jax.Array, *others: Any) -> jax.Array:
    compute_dtype = jnp.float32 if q.dtype == jnp.float64 else q.dtype
    with handing_on(), jax.enable_x64(False):  # the kernel mixes its own integers with int32 ones
        out: jax.Array = pallas_paged_attention(q.astype(compute_dtype), *others, **asdict(options))
    return out.astype(q.dtype)


def _interpret_kernel(options: Options, *arrays: Any) -> jax.Array:
    # Interpreted on one core, a megacore mode would wait for the other for ever. The setting is part of the key of
    # JAX's caches, so that what is traced here is never taken for the real kernel, nor the other way round.
    cores = 1 if options.megacore_mode is None else 2
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(num_cores_or_threads=cores)):
        return _call_kernel(options, *arrays)


attend_with_pallas = transformable(_call_kernel, attend_with_xla)
"""Run JAX's kernel, which lowers for TPUs only."""

attend_interpreted = transformable(_interpret_kernel, attend_with_xla)
"""Run JAX's kernel in Pallas' interpreter of TPUs: anywhere, slowly."""

attend_per_platform = transformable(per_platform("paged_attention", tpu=_call_kernel, elsewhere=attend_with_xla), attend_with_xla)
"""Run JAX's kernel where the program is lowered for a TPU, XLA elsewhere."""
