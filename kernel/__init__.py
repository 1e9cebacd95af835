"""Typed front doors of TPU kernels: the same call, its contract enforced, on TPU and CPU."""

from kernel.padding import pad_page_indices
from kernel.paged_attention import paged_attention
from kernel.ragged_paged_attention import ragged_paged_attention

__all__ = ["pad_page_indices", "paged_attention", "ragged_paged_attention"]
