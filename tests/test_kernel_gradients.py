"""Gradients of the front door: finite differences in float64 are the measure, under every transform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from kernel import paged_attention

from .kernel_helpers import Call, Sequences, attention, paged, quantized, sequences_of

PAGE_SIZE, BLOCK, TOKENS = 2, 2, 8
LENGTHS = [5, 0, 8, 1]
GROUPS = {"grouped": (2, 2), "one KV head": (1, 4), "a KV head each": (3, 1)}
SEQUENCES = sequences_of(LENGTHS, tokens=TOKENS, num_kv_heads=2, group=2, head_dim=4)
CALL = paged(SEQUENCES, PAGE_SIZE, spare_pages=1)
# Two rows with the same prompt: its pages stand in both rows of the table, and so does one page twice in one row.
SHARED = CALL._replace(page_indices=np.asarray([[3, 5, 1, 0], [2, 2, 2, 2], [3, 5, 4, 5], [3, 0, 0, 0]], np.int32))


def attend(call: Any, **options: Any) -> jax.Array:
    return paged_attention(*call, **{"pages_per_compute_block": BLOCK, **options})


def weights_of(call: Call) -> np.ndarray:
    return np.sin(np.arange(call.q.size)).reshape(call.q.shape).astype(np.float32)


def loss(arrays: Any, call: Call, **options: Any) -> jax.Array:
    """Take a sum in which each result counts differently: linear, so that what Pallas rounds does not reach the gradient."""
    return (attend((*arrays, *call[len(arrays) :]), **options) * weights_of(call)).sum()


def gathered(call: Call) -> Sequences:
    """Return what the pages of a call hold, as sequences."""

    def tokens(pages: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[:, call.page_indices].reshape(leaf.shape[0], len(call.q), TOKENS, -1), pages)

    return Sequences(call.q, tokens(call.k_pages), tokens(call.v_pages), call.lengths)


def differences(call: Call, argument: int, soft_cap: float | None = None, step: float = 1e-6) -> np.ndarray:
    """Return the central difference of the loss by each element of one argument, in float64."""
    whole = call[argument].astype(np.float64)
    out = np.zeros_like(whole)
    for index in np.ndindex(whole.shape):
        values = []
        for sign in (1, -1):
            moved = whole.copy()
            moved[index] += sign * step
            changed = Call(*(moved if place == argument else each for place, each in enumerate(call)))
            values.append(np.sum(attention(gathered(changed), soft_cap) * weights_of(call)))
        out[index] = (values[0] - values[1]) / (2 * step)
    return out


@functools.cache
def expected(name: str, soft_cap: float | None) -> list[np.ndarray]:
    return [np.nan_to_num(differences(CALLS[name], argument, soft_cap)) for argument in range(3)]


def _clean(call: Call) -> Call:
    """Return a call whose spare pages hold zeros, so that differences can be taken there too."""
    return call._replace(k_pages=np.nan_to_num(call.k_pages), v_pages=np.nan_to_num(call.v_pages))


CALLS = {
    **{
        name: _clean(paged(sequences_of(LENGTHS, tokens=TOKENS, num_kv_heads=heads, group=group, head_dim=2), PAGE_SIZE))
        for name, (heads, group) in GROUPS.items()
    },
    "shared pages": _clean(SHARED._replace(q=SHARED.q)),
}


def assert_equal(ours: Any, theirs: Any, tolerance: float = 2e-5) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "implementation", "soft_cap"),
    [
        *((name, "auto", soft_cap) for name in CALLS for soft_cap in (None, 1.5)),
        *(("shared pages", implementation, 1.5) for implementation in ("xla", "interpret")),
    ],
)
def test_gradients_are_finite_differences(name: str, implementation: str, soft_cap: float | None) -> None:
    call = CALLS[name]
    options = {"implementation": implementation, "attn_logits_soft_cap": soft_cap}
    assert_equal(jax.grad(loss)(call[:3], call, **options), expected(name, soft_cap))


def test_of_pages_that_several_rows_read_the_gradient_is_the_sum() -> None:
    """Page 3 is the first of three rows; as pages of their own, each of the three has a part of its gradient."""
    call = CALLS["shared pages"]
    own = np.arange(16, dtype=np.int32).reshape(4, 4)
    pools = [pages[:, call.page_indices.reshape(-1)] for pages in call[1:3]]
    apart = call._replace(k_pages=pools[0], v_pages=pools[1], page_indices=own)
    together, parts = (jax.grad(loss)(each[:3], each) for each in (call, apart))
    for argument in (1, 2):
        np.testing.assert_allclose(together[argument][:, 3], sum(parts[argument][:, page] for page in (0, 8, 12)), rtol=1e-5)
        assert np.abs(parts[argument][:, [0, 8, 12]]).min(axis=(0, 2, 3)).max() > 0


def test_unused_pages_and_rows_have_no_gradient() -> None:
    call = CALL._replace(k_pages=CALL.k_pages.copy(), v_pages=CALL.v_pages.copy())
    gradients = jax.grad(loss)(call[:3], call)
    spare = set(range(call.k_pages.shape[1])) - set(call.page_indices.reshape(-1).tolist())
    for gradient in gradients[1:]:
        assert np.isfinite(gradient).all()
        assert not gradient[:, [*spare, *call.page_indices[1]]].any()
    assert not gradients[0][1].any()


@pytest.mark.parametrize("implementation", ["auto", "interpret"])
def test_of_quantized_pages_only_queries_and_scales_have_gradients(implementation: str) -> None:
    call = paged(quantized(SEQUENCES), PAGE_SIZE)
    gradient = jax.grad(loss)(call[:1], call, implementation=implementation)
    wide = call._replace(q=call.q.astype(np.float64))
    assert_equal(gradient, [differences(wide, 0)])
    with pytest.raises(TypeError, match="real- or complex-valued"):
        jax.grad(loss)(call[:2], call, implementation=implementation)

    def of_scales(scales: jax.Array) -> jax.Array:
        pages = QuantizedTensor(call.k_pages.weight, scales)
        return loss((call.q, pages), call, implementation=implementation)

    scales = call.k_pages.scales
    direction = np.cos(np.arange(scales.size)).reshape(scales.shape)
    values = []
    for step in (1e-5, -1e-5):
        moved = call._replace(k_pages=QuantizedTensor(call.k_pages.weight, scales.astype(np.float64) + step * direction))
        values.append(np.sum(attention(gathered(moved)) * weights_of(call)))
    np.testing.assert_allclose(np.sum(jax.grad(of_scales)(scales) * direction), (values[0] - values[1]) / 2e-5, rtol=1e-4)


def test_bfloat16_gradients_have_the_dtype_of_their_arguments() -> None:
    call = CALLS["grouped"]
    low = [each.astype(jnp.bfloat16) for each in call[:3]]
    gradients = jax.grad(loss)(tuple(low), call)
    assert [gradient.dtype for gradient in gradients] == [jnp.bfloat16] * 3
    for gradient, plain in zip(gradients, expected("grouped", None), strict=True):
        np.testing.assert_allclose(gradient.astype(np.float32), plain, rtol=0.05, atol=0.02)


def _under_jit(gradient: Callable[..., Any], arrays: Any) -> Any:
    return jax.jit(gradient)(arrays)


def _under_vmap(gradient: Callable[..., Any], arrays: Any) -> Any:
    both = jax.tree.map(lambda each: np.stack([2 * each, each]), arrays)
    return jax.tree.map(lambda each: each[1], jax.vmap(gradient)(both))


def _under_scan(gradient: Callable[..., Any], arrays: Any) -> Any:
    both = jax.tree.map(lambda each: np.stack([2 * each, each]), arrays)
    _, gradients = jax.lax.scan(lambda carry, each: (carry, gradient(each)), None, both)
    return jax.tree.map(lambda each: each[1], gradients)


def _under_shard_map(gradient: Callable[..., Any], arrays: Any) -> Any:
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    return jax.jit(jax.shard_map(gradient, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False))(arrays)


@pytest.mark.parametrize("implementation", ["auto", pytest.param("interpret", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("transform", [_under_jit, _under_vmap, _under_scan, _under_shard_map])
def test_gradients_under_transforms(transform: Callable[..., Any], implementation: str) -> None:
    call = CALLS["shared pages"]
    gradient = jax.grad(functools.partial(loss, call=call, implementation=implementation))
    assert_equal(transform(gradient, call[:3]), expected("shared pages", None))


@pytest.mark.parametrize("implementation", ["auto", pytest.param("interpret", marks=pytest.mark.thorough)])
def test_gradients_through_transforms(implementation: str) -> None:
    """Remat, a scan over layers, a vmap and a shard_map inside of what is differentiated."""
    call = CALLS["shared pages"]
    plain = functools.partial(loss, call=call, implementation=implementation)
    mesh = jax.make_mesh((2,), ("heads",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    specs = P(None, "heads"), P("heads"), P("heads")

    def sharded(arrays: Any) -> jax.Array:
        function = jax.shard_map(
            lambda *shards: attend((*shards, *call[3:]), implementation=implementation),
            mesh=mesh,
            in_specs=specs,
            out_specs=specs[0],
            check_vma=False,
        )
        return (function(*arrays) * weights_of(call)).sum()

    def scanned(arrays: Any) -> jax.Array:
        return jax.lax.scan(lambda total, _: (total + plain(arrays), None), 0.0, None, length=2)[0] / 2

    def mapped(arrays: Any) -> jax.Array:
        return jax.vmap(lambda scale: plain((scale * arrays[0], *arrays[1:])))(np.ones(2, np.float32)).mean()

    remat = () if implementation == "interpret" else (jax.checkpoint(plain),)  # JAX's remat takes nothing with effects
    for function in (*remat, sharded, scanned, mapped):
        assert_equal(jax.jit(jax.grad(function))(call[:3]), expected("shared pages", None))


def test_value_and_grad_agrees_with_forward_mode_and_with_a_second_derivative() -> None:
    call = CALLS["grouped"]
    value, gradient = jax.value_and_grad(loss)(call[:3], call)
    np.testing.assert_allclose(value, np.sum(attention(gathered(call)) * weights_of(call)), rtol=1e-5)
    tangent = jax.tree.map(np.cos, call[:3])
    _, slope = jax.jvp(lambda arrays: loss(arrays, call), (call[:3],), (tangent,))
    np.testing.assert_allclose(slope, sum(np.vdot(*each) for each in zip(gradient, tangent, strict=True)), rtol=1e-4)
    _, curvature = jax.jvp(jax.grad(lambda arrays: loss(arrays, call)), (call[:3],), (tangent,))
    step = 1e-3
    ahead, behind = (
        jax.grad(loss)(jax.tree.map(lambda each, way, sign=sign: each + sign * step * way, call[:3], tangent), call)
        for sign in (1, -1)
    )
    assert_equal(curvature, [(one - other) / (2 * step) for one, other in zip(ahead, behind, strict=True)], tolerance=5e-3)
