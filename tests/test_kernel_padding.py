"""`pad_page_indices`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel import pad_page_indices, paged_attention

from .kernel_helpers import assert_resolved, attention, paged, sequences_of


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_pads_to_the_next_multiple(make: Any, dtype: str) -> None:
    padded = pad_page_indices(make([[1, 2, 3], [4, 5, 6]], dtype=dtype), 2, page_id=7)
    assert isinstance(padded, type(make([])))
    assert padded.dtype == dtype
    np.testing.assert_array_equal(padded, [[1, 2, 3, 7], [4, 5, 6, 7]])


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("block", [1, 2, 4, np.int64(4)])
def test_returns_what_needs_no_padding(make: Any, block: Any) -> None:
    page_indices = make([[3, 1, 0, 2]], dtype="int32")
    assert pad_page_indices(page_indices, block) is page_indices


def test_under_jit() -> None:
    padded = jax.jit(lambda page_indices: pad_page_indices(page_indices, 4))(np.ones((2, 5), np.int32))
    np.testing.assert_array_equal(padded, [[1] * 5 + [0] * 3] * 2)


@pytest.mark.parametrize("block", [0, -2])
def test_refuses_a_block_below_one(block: int) -> None:
    with pytest.raises(ValueError, match=f"pages_per_compute_block must be at least 1, got {block}"):
        pad_page_indices(np.zeros((1, 2), np.int32), block)


def test_refuses_a_block_that_is_no_integer() -> None:
    with pytest.raises(TypeError, match="float"):
        pad_page_indices(np.zeros((1, 2), np.int32), 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3)])
def test_refuses_another_rank(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"must be \[batch_size, pages_per_sequence\], got the shape"):
        pad_page_indices(np.zeros(shape, np.int32), 2)


def test_refuses_a_page_that_cannot_exist() -> None:
    with pytest.raises(ValueError, match="got -1"):
        pad_page_indices(np.zeros((1, 3), np.int32), 2, page_id=-1)


@pytest.mark.parametrize("implementation", ["xla", "interpret"])
def test_padding_makes_a_block_legal_and_changes_nothing(implementation: Any) -> None:
    sequences = sequences_of([5, 20, 17], tokens=20, num_kv_heads=2, group=1, head_dim=128)
    call = paged(sequences, 4)
    with pytest.raises(ValueError, match="SC102"):
        paged_attention(*call, pages_per_compute_block=4, implementation=implementation)
    padded = call._replace(page_indices=pad_page_indices(call.page_indices, 4))
    out = paged_attention(*padded, pages_per_compute_block=4, implementation=implementation)
    unpadded = paged_attention(*call, pages_per_compute_block=5, implementation=implementation)
    np.testing.assert_allclose(out, unpadded, rtol=1e-4, atol=1e-4)
    if implementation == "xla":
        assert_resolved(out, attention(sequences), atol=1e-4)
