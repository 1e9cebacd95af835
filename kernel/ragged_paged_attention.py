"""The front door of JAX's kernel of ragged paged attention."""

from typing import Any, Final, Literal, SupportsFloat, SupportsIndex

import jax
import numpy as np
from jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel import DEFAULT_MASK_VALUE
from jaxtyping import Float, Int, Integer, Real

from kernel.ragged_implementation import (
    Options,
    attend_per_platform,
    attend_with_pallas,
    attend_with_xla,
)
from kernel.transforms import Attend
from shapecheck import contract
from shapecheck.contracts.ragged_paged_attention import PORTABLE_RAGGED_PAGED_ATTENTION
from shapecheck.installed import front_door

_IMPLEMENTATIONS: Final[dict[str, Attend]] = {
    "auto": attend_per_platform,
    "pallas": attend_with_pallas,
    "xla": attend_with_xla,
}


@front_door
@contract(PORTABLE_RAGGED_PAGED_ATTENTION)
def ragged_paged_attention(
    q: Float[Any, "max_num_batched_tokens num_q_heads head_dim"],
    kv_pages: Real[Any, "total_num_pages page_size num_combined_kv_heads head_dim"],
    kv_lens: Int[Any, " max_num_seqs"],
    page_indices: Int[Any, "max_num_seqs pages_per_seq"],
    cu_q_lens: Int[Any, " num_offsets"],
    num_seqs: Integer[Any, " num_counts"],
    *,
    sm_scale: SupportsFloat = 1.0,
    sliding_window: SupportsIndex | None = None,
    soft_cap: SupportsFloat | None = None,
    mask_value: SupportsFloat | None = DEFAULT_MASK_VALUE,
    k_scale: SupportsFloat | None = None,
    v_scale: SupportsFloat | None = None,
    num_kv_pages_per_block: SupportsIndex | None = None,
    num_queries_per_block: SupportsIndex | None = None,
    vmem_limit_bytes: SupportsIndex | None = None,
    implementation: Literal["auto", "pallas", "xla"] = "auto",
    check_values: bool | np.bool_ = False,
) -> Float[jax.Array, "max_num_batched_tokens num_q_heads head_dim"]:
    """Attend with the last tokens of each sequence, one of a sequence that decodes and many of one in prefill, to its pages.

    The same call as JAX's `jax.experimental.pallas.ops.tpu.ragged_paged_attention.ragged_paged_attention`, with its contract
    enforced, and able to run without a TPU. The keys and values of the queries themselves must be in the pages already.

    XLA's implementation rounds nothing: the kernel multiplies in the dtypes that it is given, and rounds what is scaled to
    q's. It gives zeros for rows of q that belong to no sequence, where the kernel's are undefined. Under `grad` the derivative
    is XLA's, and under `vmap` the kernel runs in a loop. In a `shard_map` for TPUs the kernel wants `check_vma=False`.

    Args:
        q: the queries of all sequences, one after the other, any floating dtype; the kernel is given float32 where that is
            neither float32 nor bfloat16.
        kv_pages: head h has its keys at 2 h of the third axis, and its values at 2 h + 1; of any real dtype.
        kv_lens: tokens of each sequence, those of its queries among them, i32.
        page_indices: the ids of each sequence's pages, in order, i32.
        cu_q_lens: where the queries of each sequence begin, and where the last ones end, i32.
        num_seqs: how many sequences there are, i32 of shape (1,); what the metadata hold beyond is not read.
        sm_scale: the factor of the logits, usually `head_dim**-0.5`.
        sliding_window: how many tokens a query sees, its own among them; None for all.
        soft_cap: logits become `cap * tanh(logits / cap)`; None for no cap.
        mask_value: added to the logits of tokens that a query must not see; None for the default.
        k_scale: the factor of the keys in the pages, None for 1.
        v_scale: the factor of the values, None for 1.
        num_kv_pages_per_block: pages taken in at a time. Both blocks or neither: None lets JAX choose on a TPU.
        num_queries_per_block: queries dealt with at a time.
        vmem_limit_bytes: vector memory that the kernel may take; None for the compiler's default.
        implementation: `"auto"`: JAX's kernel where the program is lowered for a TPU, XLA elsewhere. `"pallas"`: JAX's
            kernel. `"xla"`: XLA. Pallas' interpreter of TPUs cannot run this kernel: it does not know references that are
            reshaped (JAX 0.10 to 0.12).
        check_values: whether to look at what is in the metadata: lengths, page ids, offsets and a number of sequences that are
            out of range or do not fit each other are refused. The variable `SHAPECHECK_VALUES=1` does so in every call. See
            docs/values.md.

    Returns:
        The attention output, in q's dtype.

    Raises:
        ContractError: the call breaks a rule of the contract, or an argument is refused by its annotation. It is a
            `jaxtyping.TypeCheckError` and a `ValueError`. Under `jit`, raised when the function is traced.
    """
    options = Options(
        sm_scale=float(sm_scale),
        sliding_window=_int(sliding_window),
        soft_cap=_float(soft_cap),
        mask_value=DEFAULT_MASK_VALUE if mask_value is None else float(mask_value),
        k_scale=_float(k_scale),
        v_scale=_float(v_scale),
        num_kv_pages_per_block=_int(num_kv_pages_per_block),
        num_queries_per_block=_int(num_queries_per_block),
        vmem_limit_bytes=_int(vmem_limit_bytes),
    )
    return _IMPLEMENTATIONS[implementation](options, q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs)


def _int(value: SupportsIndex | None) -> int | None:
    return None if value is None else int(value)


def _float(value: SupportsFloat | None) -> float | None:
    return None if value is None else float(value)
