"""The XLA implementation: right where JAX's kernel is not, in bounded memory, and differentiable."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor, unquantize_from_int8

from kernel import paged_attention
from kernel.implementation import Options, attend_interpreted, attend_with_xla
from kernel.reference import paged_attention_xla

from .kernel_helpers import (
    Call,
    Sequences,
    assert_resolved,
    attention,
    cast,
    paged,
    quantized,
    sequences_of,
    with_garbage,
)

BLOCK = 2
PAGE_SIZE = 4


def _small(lengths: list[int], **changes: Any) -> Sequences:
    return sequences_of(lengths, **{"tokens": 16, "num_kv_heads": 2, "group": 3, "head_dim": 8, **changes})


def _attend(call: Call, **options: Any) -> jax.Array:
    return paged_attention(*call, **{"pages_per_compute_block": BLOCK, "implementation": "xla", **options})


@pytest.mark.parametrize("inline_seq_dim", [True, False])
def test_rows_of_length_zero_are_zeros(inline_seq_dim: bool) -> None:
    sequences = _small([0, 16, 0])
    sequences.q[0::2] = np.nan
    out = _attend(paged(sequences, PAGE_SIZE), inline_seq_dim=inline_seq_dim)
    assert not np.any(out[0::2])
    assert_resolved(out[1], attention(_small([0, 16, 0]))[1])


def test_a_batch_may_hold_nothing() -> None:
    assert not np.any(_attend(paged(_small([0, 0]), PAGE_SIZE)))
    assert _attend(paged(_small([]), PAGE_SIZE, spare_pages=1)).shape == (0, 6, 8)


@pytest.mark.parametrize("is_quantized", [False, True])
def test_what_lies_past_the_length_is_never_read(is_quantized: bool) -> None:
    sequences = _small([0, 1, 5, 8, 15])
    sequences = quantized(sequences) if is_quantized else sequences
    out = _attend(paged(with_garbage(sequences), PAGE_SIZE, spare_pages=3))
    assert_resolved(out, attention(sequences))


def test_the_page_table_past_the_length_is_never_followed() -> None:
    sequences = _small([1, 9])
    call = paged(sequences, PAGE_SIZE)
    call.page_indices[0, 1:] = -1
    call.page_indices[1, 3:] = 10_000
    out = paged_attention_xla(*call, mask_value=-1e30, attn_logits_soft_cap=None, pages_per_compute_block=BLOCK)
    assert_resolved(out, attention(sequences))


def test_float32_stays_float32() -> None:
    sequences = _small([16], head_dim=64)
    out = _attend(paged(sequences, PAGE_SIZE))
    assert_resolved(out, attention(sequences))
    rounded = cast(cast(sequences, jnp.bfloat16), np.float32)
    assert np.abs(out - attention(sequences._replace(k=rounded.k, v=rounded.v))).max() > 1e-3


def test_every_product_is_of_full_precision() -> None:
    program = str(jax.make_jaxpr(_attend)(paged(_small([5]), PAGE_SIZE)))
    assert program.count("dot_general[") == program.count("precision=(Precision.HIGHEST, Precision.HIGHEST)") == 2


def test_pages_of_one_dtype_each() -> None:
    sequences = _small([3, 16])
    mixed = sequences._replace(k=sequences.k.astype(jnp.bfloat16), v=(sequences.v * 50).astype(np.int8))
    out = _attend(paged(mixed, PAGE_SIZE))
    assert_resolved(out, attention(mixed), atol=1e-4)


@pytest.mark.parametrize("scales_width", [1, 8])
@pytest.mark.parametrize("scales_dtype", ["float32", "bfloat16"])
def test_quantized_pages_read_as_jax_dequantizes_them(scales_width: int, scales_dtype: str) -> None:
    call = paged(quantized(_small([3, 16])), PAGE_SIZE)

    def stored(pages: QuantizedTensor) -> QuantizedTensor:
        shape = (*pages.scales.shape[:-1], scales_width)
        return pages._replace(scales=np.broadcast_to(pages.scales, shape).astype(jnp.dtype(scales_dtype)))

    pages = stored(call.k_pages), stored(call.v_pages)
    plain = (unquantize_from_int8(QuantizedTensor(*map(jnp.asarray, each)), jnp.float32) for each in pages)
    out = _attend(call._replace(k_pages=pages[0], v_pages=pages[1]))
    assert_resolved(out, _attend(call._replace(**dict(zip(("k_pages", "v_pages"), plain, strict=True)))))


@pytest.mark.parametrize("mask_value", [-1.0, -1e4, -np.inf])
def test_the_mask_value_is_the_kernels(mask_value: float) -> None:
    """Even one so weak that padding takes part, which is illegal: then as the kernel has it on slots that hold zeros."""
    call = paged(_small([0, 1, 9, 16]), PAGE_SIZE)
    zeroed = with_garbage(_small([0, 1, 9, 16]))
    zeroed = paged(zeroed._replace(k=np.nan_to_num(zeroed.k), v=np.nan_to_num(zeroed.v)), PAGE_SIZE)
    options = Options(
        mask_value, attn_logits_soft_cap=None, pages_per_compute_block=BLOCK, megacore_mode=None, inline_seq_dim=True
    )
    kernel = attend_interpreted(options, *zeroed)
    np.testing.assert_allclose(attend_with_xla(options, *call), kernel, rtol=0.05, atol=0.05)


def _equations(jaxpr: Any, inside: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield whatever the program computes, each with the names of the loops, branches and calls that it stands in."""
    for equation in jaxpr.eqns:
        yield equation, inside
        for parameter in jax.tree.leaves(tuple(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from _equations(inner, (*inside, equation.primitive.name))


def _largest(jaxpr: Any) -> int:
    """Return the size of the largest array that is computed; a barrier hands on what there is."""
    equations = (equation for equation, _ in _equations(jaxpr) if equation.primitive.name != "optimization_barrier")
    return max(variable.aval.size for equation in equations for variable in equation.outvars)


def _long(dtype: str = "float32", is_quantized: bool = False) -> Call:
    """64 pages a sequence, out of a pool of 32: a compute block is 4 pages, all that is gathered 128."""
    sequences = cast(_small([16, 16], head_dim=64), dtype)
    call = paged(quantized(sequences) if is_quantized else sequences, PAGE_SIZE, spare_pages=24)
    return call._replace(page_indices=np.tile(call.page_indices, 16))


_LONG_BLOCK = 2 * BLOCK * PAGE_SIZE * 64  # of one row: num_kv_heads * tokens * head_dim


@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_more_than_one_block_is_gathered(dtype: str, is_quantized: bool) -> None:
    call = _long(dtype, is_quantized)
    assert _largest(jax.make_jaxpr(_attend)(call).jaxpr) == _LONG_BLOCK
    compiled = jax.jit(_attend).lower(call).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 5 * 4 * _LONG_BLOCK  # in float32: K, V, and the queries


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_gradient_makes_no_pool_but_the_result(dtype: str) -> None:
    """In the loop, pages are added to the gradient in place: otherwise the time would be the square of the length."""
    call = _long(dtype)
    gradient = jax.grad(lambda *arrays: _attend(Call(*arrays, *call[3:])).sum(), argnums=(0, 1, 2))
    program = jax.make_jaxpr(gradient)(*call[:3]).jaxpr
    assert _largest(program) == call.k_pages.size
    pools = {
        equation.primitive.name
        for equation, inside in _equations(program)
        if "scan" in inside and any(variable.aval.size == call.k_pages.size for variable in equation.outvars)
    }
    assert "add_pages" in pools
    assert pools <= {"add_pages", "cond", "optimization_barrier", "remat2", "checkpoint"}


def _dense_attention(call: Call, soft_cap: float | None) -> jax.Array:
    """Gather everything, and mask: slow, plain, and differentiable by JAX."""
    num_kv_heads, _, _, head_dim = call.k_pages.shape
    k, v = (
        pages[:, call.page_indices].reshape(num_kv_heads, len(call.q), -1, head_dim) for pages in (call.k_pages, call.v_pages)
    )
    q = call.q.reshape(len(call.q), num_kv_heads, -1, head_dim)
    logits = jnp.einsum("bhgd,hbtd->bhgt", q, k, precision="highest")
    logits = logits if soft_cap is None else soft_cap * jnp.tanh(logits / soft_cap)
    valid = jnp.arange(k.shape[2]) < call.lengths[:, None, None, None]
    weights = jax.nn.softmax(jnp.where(valid, logits, -jnp.inf))
    return jnp.einsum("bhgt,hbtd->bhgd", weights, v, precision="highest").reshape(call.q.shape)


@pytest.mark.parametrize("soft_cap", [None, 2.0])
@pytest.mark.parametrize("implementation", ["xla", "auto", "interpret"])
def test_gradients(implementation: str, soft_cap: float | None) -> None:
    call = paged(_small([1, 9, 16]), PAGE_SIZE)

    def gradients(attend: Any) -> Any:
        return jax.grad(lambda *arrays: jnp.sin(attend(Call(*arrays, *call[3:]))).sum(), argnums=(0, 1, 2))(*call[:3])

    ours = gradients(lambda call: _attend(call, attn_logits_soft_cap=soft_cap, implementation=implementation))
    plain = gradients(lambda call: _dense_attention(call, soft_cap))
    # Interpreted, the sine's slope is taken where the kernel puts it, with its bfloat16 pages.
    tolerance = 0.1 if implementation == "interpret" else 1e-5
    for ours_, plain_ in zip(ours, plain, strict=True):
        np.testing.assert_allclose(ours_, plain_, rtol=tolerance, atol=tolerance)


def test_garbage_does_not_reach_gradients() -> None:
    call = paged(with_garbage(_small([0, 1, 9])), PAGE_SIZE, spare_pages=1)
    call.q[0] = np.nan
    gradients = jax.grad(lambda *arrays: _attend(Call(*arrays, *call[3:])).sum(), argnums=(0, 1, 2))(*call[:3])
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert not np.any(gradients[0][0])


def _gathers(function: Any, *arguments: Any) -> list[tuple[str, ...]]:
    equations = _equations(jax.make_jaxpr(function)(*arguments).jaxpr)
    return [inside for equation, inside in equations if equation.primitive.name == "gather"]


def test_a_row_goes_as_far_as_its_length() -> None:
    """A program for long tables takes no longer for short rows: past them, nothing is computed."""
    gathers = _gathers(_attend, _long())
    assert len(gathers) == 2
    assert all([name for name in inside if name in ("scan", "while")] == ["scan", "while"] for inside in gathers)


def test_the_derivative_goes_as_far_as_the_longest_row() -> None:
    call = _long()
    gathers = _gathers(jax.grad(lambda q: _attend(call._replace(q=q)).sum()), call.q)
    assert len(gathers) > 2
    assert all("while" in inside or "cond" in inside for inside in gathers)


@st.composite
def _geometries(draw: st.DrawFn) -> dict[str, Any]:
    block, blocks, page_size = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    tokens = block * blocks * page_size
    return {
        "lengths": draw(st.lists(st.integers(0, tokens), min_size=1, max_size=4)),
        "tokens": tokens,
        "num_kv_heads": draw(st.integers(1, 3)),
        "group": draw(st.integers(1, 3)),
        "head_dim": draw(st.sampled_from([1, 3, 8])),
        "page_size": page_size,
        "block": block,
        "spare_pages": draw(st.integers(0, 2)),
        "seed": draw(st.integers(0, 99)),
    }


@settings(max_examples=25, deadline=None)
@given(
    geometry=_geometries(),
    dtype=st.sampled_from(["float32", "bfloat16", "float16"]),
    is_quantized=st.booleans(),
    soft_cap=st.sampled_from([None, 1.0, 30.0]),
)
def test_any_geometry(geometry: dict[str, Any], dtype: str, is_quantized: bool, soft_cap: float | None) -> None:
    paging = {name: geometry.pop(name) for name in ("page_size", "spare_pages")}
    block = geometry.pop("block")
    sequences = cast(sequences_of(**geometry), dtype)
    sequences = quantized(sequences) if is_quantized else sequences
    call = paged(with_garbage(sequences), **paging, seed=geometry["seed"])
    out = paged_attention_xla(*call, mask_value=-1e30, attn_logits_soft_cap=soft_cap, pages_per_compute_block=block)
    assert out.dtype == dtype
    assert_resolved(out, attention(sequences, soft_cap))


@pytest.mark.thorough
@pytest.mark.parametrize("ways", [(jax.jacfwd, jax.jacfwd), (jax.jacfwd, jax.jacrev), (jax.jacrev, jax.jacrev)])
def test_second_derivatives(ways: Any) -> None:
    """Of two rows that share a page, in every order of forward and reverse mode."""
    call = paged(_small([3, 4], tokens=4, num_kv_heads=1, group=2, head_dim=2), 2)
    call = call._replace(page_indices=np.asarray([[0, 1], [0, 2]], np.int32))

    def hessian(attend: Any) -> Any:
        def loss(*arrays: Any) -> Any:
            return jnp.sin(attend(Call(*arrays, *call[3:]))).sum()

        return ways[0](ways[1](loss, (0, 1, 2)), (0, 1, 2))(*call[:3])

    ours = hessian(functools.partial(_attend, pages_per_compute_block=1))
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5),
        ours,
        hessian(lambda call: _dense_attention(call, None)),
    )
