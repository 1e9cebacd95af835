# The first overload binds what the rules speak of, the second takes quantized pages: SC112 is that no overload takes half of
# them. The third takes a block that is any `int`. The result is a union with one member a rule, all of one type: what one rule
# does not know then hides no other rule.

from typing import Literal, overload

from jax import Array
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor
from numpy import ndarray
from paged_attention_rules import SC101, SC102, SC103, SC104, SC105, SC106, SC109, SC110, SC111, SC201, SC202, SC203
from shape_extensions import Flag, Int, IntTuple, IntVar
from torch import Tensor

@overload
def paged_attention[Q: IntTuple, K: IntTuple, V: IntTuple, L: IntTuple, T: IntTuple, B: IntVar, Mode: Flag[str | None]](
    q: Array[Q] | ndarray[Q] | Tensor[Q],
    k_pages: Array[K] | ndarray[K] | Tensor[K],
    v_pages: Array[V] | ndarray[V] | Tensor[V],
    lengths: Array[L] | ndarray[L] | Tensor[L],
    page_indices: Array[T] | ndarray[T] | Tensor[T],
    pages_per_compute_block: Int[B],
    megacore_mode: Mode = None,
    *,
    mask_value: float = ...,
    attn_logits_soft_cap: float | None = None,
    inline_seq_dim: bool = True,
) -> (
    Array[SC101(Q, K)]
    | Array[SC102(Q, T, Int[B])]
    | Array[SC103(Q, K, V)]
    | Array[SC104(Q, K)]
    | Array[SC105(Q, L)]
    | Array[SC106(Q, T)]
    | Array[SC109(Q, K, V, L, T)]
    | Array[SC110(Q, Int[B])]
    | Array[SC111(Q, K, T)]
    | Array[SC201(Q, K, Mode)]
    | Array[SC202(Q, Mode)]
    | Array[SC203(Q, Mode)]
): ...
@overload
def paged_attention[Q: IntTuple](
    q: Array[Q] | ndarray[Q],
    k_pages: QuantizedTensor,
    v_pages: QuantizedTensor,
    lengths: Array | ndarray,
    page_indices: Array | ndarray,
    *,
    pages_per_compute_block: int,
    megacore_mode: Literal["kv_head", "batch"] | None = None,
    mask_value: float = ...,
    attn_logits_soft_cap: float | None = None,
    inline_seq_dim: bool = True,
) -> Array[Q]: ...
@overload
def paged_attention[Q: IntTuple](
    q: Array[Q] | ndarray[Q] | Tensor[Q],
    k_pages: Array | ndarray | Tensor,
    v_pages: Array | ndarray | Tensor,
    lengths: Array | ndarray | Tensor,
    page_indices: Array | ndarray | Tensor,
    pages_per_compute_block: int,
    megacore_mode: Literal["kv_head", "batch"] | None = None,
    *,
    mask_value: float = ...,
    attn_logits_soft_cap: float | None = None,
    inline_seq_dim: bool = True,
) -> Array[Q]: ...
