"""Page tables made to fit the compute block."""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

_Table = TypeVar("_Table", jax.Array, np.ndarray)


def pad_page_indices(page_indices: _Table, pages_per_compute_block: SupportsIndex, *, page_id: int = 0) -> _Table:
    """Pad the page table to the next multiple of the compute block.

    What is added is past every sequence's length, so no result depends on it; but the kernel fetches all pages of a block,
    so it must be an id that exists.

    Args:
        page_indices: `i32[batch_size, pages_per_sequence]`, of jax, also traced, or of numpy.
        pages_per_compute_block: at least 1.
        page_id: the page to fetch in vain, in `[0, total_num_pages)`.

    Returns:
        `i32[batch_size, padded_pages_per_sequence]`, of the same kind; `page_indices` itself where nothing is missing.

    Raises:
        ValueError: `page_indices` has not two axes, the block is below 1, or `page_id` is negative.
        TypeError: the block is no integer.
    """
    block = operator.index(pages_per_compute_block)
    if page_indices.ndim != 2:
        raise ValueError(f"page_indices must be [batch_size, pages_per_sequence], got the shape {page_indices.shape}")
    if block < 1:
        raise ValueError(f"pages_per_compute_block must be at least 1, got {block}")
    if page_id < 0:
        raise ValueError(f"page_id must be a page that exists, as the kernel fetches it; got {page_id}")
    missing = -page_indices.shape[1] % block
    if missing == 0:
        return page_indices
    missing_columns = ((0, 0), (0, missing))
    if isinstance(page_indices, np.ndarray):
        return np.pad(page_indices, missing_columns, constant_values=page_id)
    return jnp.pad(page_indices, missing_columns, constant_values=page_id)
