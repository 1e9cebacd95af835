"""The front door of ragged paged attention: what it gives, what it takes, and what it refuses."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention as jax_ragged_paged_attention
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ref_ragged_paged_attention

from kernel import ragged_paged_attention
from kernel.ragged_reference import ragged_paged_attention_xla
from shapecheck import ContractError
from shapecheck.contracts import CONTRACTS
from shapecheck.contracts.paged_attention import STRONG_MASK_VALUE

from .kernel_helpers.ragged import Ragged, attention, ragged

MIXED = ((1, 5), (9, 20), (4, 4), (0, 3), (1, 24), (2, 17))  # decoding, in the midst of a prefill, beginning one, and idle
CALL = ragged(MIXED, rows=8)
EXPECTED = attention(CALL)


def attend(call: Ragged = CALL, **options: Any) -> np.ndarray:
    return np.asarray(ragged_paged_attention(*call, **options)[: call.tokens])


def test_the_signature_is_jaxs_and_two_more() -> None:
    theirs = inspect.signature(jax_ragged_paged_attention).parameters
    ours = dict(inspect.signature(ragged_paged_attention).parameters)
    assert ours.pop("implementation").default == "auto"
    assert ours.pop("check_values").default is False
    assert [(name, each.kind, each.default) for name, each in ours.items()] == [
        (name, each.kind, each.default) for name, each in theirs.items()
    ]


@pytest.mark.parametrize("array", CONTRACTS["ragged_paged_attention"].arrays, ids=lambda array: array.name)
def test_the_axes_of_the_contract_stand_in_the_signature(array: Any) -> None:
    annotation = inspect.signature(ragged_paged_attention).parameters[array.name].annotation
    assert " ".join(array.axes) in str(annotation)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sm_scale": 0.3},
        {"sliding_window": 1},
        {"sliding_window": 7, "soft_cap": 2.0},
        {"k_scale": 0.5, "v_scale": 2.0},
        {"v_scale": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("implementation", ["auto", "xla"])
def test_attends(implementation: Any, options: dict[str, Any]) -> None:
    got = attend(implementation=implementation, **options)
    np.testing.assert_allclose(got, attention(CALL, **options), atol=2e-6)


def test_agrees_with_the_reference_of_jax() -> None:
    call = CALL._replace(kv_pages=np.nan_to_num(CALL.kv_pages), page_indices=np.maximum(CALL.page_indices, 0))
    options: dict[str, Any] = {"sm_scale": 0.3, "sliding_window": 9, "soft_cap": 4.0}
    np.testing.assert_allclose(attend(**options), ref_ragged_paged_attention(*map(jnp.asarray, call), **options), atol=2e-5)


@pytest.mark.parametrize("blocks", [(1, 1), (2, 8), (5, 3), (6, 64), (4, None)], ids=str)
def test_no_block_changes_the_result(blocks: tuple[int, int | None]) -> None:
    got = attend(num_kv_pages_per_block=blocks[0], num_queries_per_block=blocks[1])
    np.testing.assert_allclose(got, EXPECTED, atol=2e-6)


@pytest.mark.parametrize(
    ("lengths", "heads", "page_size"),
    [
        (((1, 1),), (1, 1), 1),
        (((32, 64),), (8, 2), 16),
        (tuple((1, each) for each in range(1, 17)), (6, 3), 4),
        (((16, 16), (16, 24)), (7, 1), 8),
        ((), (4, 2), 4),
    ],
    ids=str,
)
def test_attends_in_batches_of_all_kinds(lengths: tuple[tuple[int, int], ...], heads: tuple[int, int], page_size: int) -> None:
    call = ragged(lengths, heads=heads, page_size=page_size, rows=len(lengths) + 1)
    np.testing.assert_allclose(attend(call), attention(call), atol=3e-6)


def test_rows_of_no_sequence_are_zero() -> None:
    out = ragged_paged_attention(*CALL)
    assert CALL.tokens < out.shape[0]
    assert not np.any(out[CALL.tokens :])


@pytest.mark.parametrize(("dtype", "close"), [("bfloat16", 2e-2), ("float16", 2e-3), ("float64", 2e-6)])
def test_the_result_has_the_dtype_of_q(dtype: str, close: float) -> None:
    with jax.enable_x64(dtype == "float64"):
        out = ragged_paged_attention(CALL.q.astype(jnp.dtype(dtype)), *CALL[1:])
    assert out.dtype == jnp.dtype(dtype)
    np.testing.assert_allclose(np.asarray(out[: CALL.tokens], np.float64), EXPECTED, atol=close, rtol=close)


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_pages_are_of_any_dtype(dtype: str) -> None:
    call = ragged(MIXED, rows=8, dtype=jnp.dtype(dtype))
    options: dict[str, Any] = {"k_scale": 0.05, "v_scale": 0.1, "sm_scale": 0.3}
    np.testing.assert_allclose(attend(call, **options), attention(call, **options), atol=5e-5)


def test_is_differentiable() -> None:
    call = ragged(((1, 5), (3, 6), (2, 2)), tokens=8)
    call = call._replace(kv_pages=np.nan_to_num(call.kv_pages))
    rest = tuple(map(jnp.asarray, call[2:]))

    def ours(q: jax.Array, kv_pages: jax.Array) -> jax.Array:
        return (ragged_paged_attention(q, kv_pages, *rest, sliding_window=4, soft_cap=3.0)[: call.tokens] ** 2).sum()

    def theirs(q: jax.Array, kv_pages: jax.Array) -> jax.Array:
        return (ref_ragged_paged_attention(q, kv_pages, *rest, sliding_window=4, soft_cap=3.0) ** 2).sum()

    got, wanted = (jax.grad(each, argnums=(0, 1))(call.q, call.kv_pages) for each in (ours, theirs))
    for mine, other in zip(got, wanted, strict=True):
        assert np.abs(other).max() > 0.1
        np.testing.assert_allclose(mine, other, atol=1e-4)
    assert not np.any(got[0][call.tokens :])


def test_a_batch_of_batches_is_mapped_over() -> None:
    other = ragged(((4, 9), (1, 2), (7, 7)), rows=8, seed=1)
    both = [np.stack(each) for each in zip(CALL._replace(kv_pages=np.nan_to_num(CALL.kv_pages)), other, strict=True) if
            each[0].shape == each[1].shape]  # fmt: skip
    pages = np.nan_to_num(np.stack([np.resize(each, (32, *each.shape[1:])) for each in (CALL.kv_pages, other.kv_pages)]))
    mapped = jax.vmap(ragged_paged_attention)(both[0], pages, *both[1:])
    np.testing.assert_allclose(mapped[1, : other.tokens], attention(other), atol=3e-6)


def test_one_compilation_serves_every_batch() -> None:
    jitted: Any = jax.jit(ragged_paged_attention)
    other = ragged(((4, 9), (1, 2)), rows=8, seed=2)
    pages = np.resize(other.kv_pages, CALL.kv_pages.shape)
    jitted(*CALL)
    got = jitted(*other._replace(kv_pages=pages))
    np.testing.assert_allclose(got[: other.tokens], attention(other), atol=2e-6)
    assert jitted._cache_size() == 1


def test_no_more_than_one_block_of_pages_is_gathered() -> None:
    options: dict[str, Any] = {"sm_scale": 1.0, "sliding_window": None, "soft_cap": None, "mask_value": -1e30}
    call = ragged(((1, 4000),), page_size=16, pages_per_seq=256, tokens=8, heads=(2, 2), head_dim=128)
    program = jax.jit(
        lambda *arrays: ragged_paged_attention_xla(*arrays, k_scale=None, v_scale=None, pages_per_block=4, **options)
    ).lower(*call)
    stats: Any = program.compile().memory_analysis()
    assert stats.temp_size_in_bytes < call.kv_pages.nbytes / 4


REFUSED: dict[str, tuple[Ragged, dict[str, Any], str]] = {
    "a block larger than the pages": (CALL, {"num_kv_pages_per_block": 7, "num_queries_per_block": 8}, "SC127"),
    "a block of 0": (CALL, {"num_kv_pages_per_block": 0, "num_queries_per_block": 8}, "SC110"),
    "no queries": (CALL, {"num_kv_pages_per_block": 1, "num_queries_per_block": 0}, "SC131"),
    "a window of 0": (CALL, {"sliding_window": 0}, "SC128"),
    "a cap of 0": (CALL, {"soft_cap": 0.0}, "SC113"),
    "a limit of 0": (CALL, {"vmem_limit_bytes": 0}, "SC132"),
    "odd heads": (CALL._replace(kv_pages=CALL.kv_pages[:, :, :3]), {}, "SC121"),
    "heads that cannot be grouped": (CALL._replace(q=CALL.q[:, :3]), {}, "SC101"),
    "offsets that are too few": (CALL._replace(cu_q_lens=CALL.cu_q_lens[:-1]), {}, "SC123"),
    "two numbers of sequences": (CALL._replace(num_seqs=np.zeros(2, np.int32)), {}, "SC125"),
    "lengths that are too few": (CALL._replace(kv_lens=CALL.kv_lens[:-1]), {}, "SC105"),
    "a table of uint32": (CALL._replace(page_indices=CALL.page_indices.astype(np.uint32)), {}, "SC108"),
}


@pytest.mark.parametrize(("call", "options", "code"), REFUSED.values(), ids=REFUSED)
def test_refuses(call: Ragged, options: dict[str, Any], code: str) -> None:
    with pytest.raises(ContractError, match=code):
        ragged_paged_attention(*call, **options)


def test_refuses_when_it_is_traced() -> None:
    with pytest.raises(ContractError, match="SC127"):
        jax.eval_shape(lambda *call: ragged_paged_attention(*call, num_kv_pages_per_block=7, num_queries_per_block=8), *CALL)


def test_the_kernel_does_not_run_on_a_cpu() -> None:
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU backend"):
        ragged_paged_attention(
            *ragged(MIXED, head_dim=128), implementation="pallas", num_kv_pages_per_block=2, num_queries_per_block=8
        )


def test_a_token_that_is_hidden_has_no_weight_where_the_mask_value_is_no_hint() -> None:
    # All logits are 0, and the hidden token has a value that stands out.
    call = ragged(((1, 4), (3, 4)), head_dim=128)
    pages = np.zeros_like(call.kv_pages)
    pages[call.page_indices[1, 0], 3, 1::2] = 1.0
    call = call._replace(kv_pages=pages, q=np.zeros_like(call.q))
    assert attend(call, mask_value=STRONG_MASK_VALUE)[1:3].max() < 2**-24 < attend(call, mask_value=-15.0)[1:3].max()
