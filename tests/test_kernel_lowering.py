"""One program for every platform: JAX's kernel on TPUs, XLA elsewhere."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel import paged_attention

from .kernel_helpers import Call, assert_resolved, attention, paged, sequences_of

MOSAIC = "tpu_custom_call"
SEQUENCES = sequences_of([3, 0, 20, 32], tokens=32, num_kv_heads=2, group=2, head_dim=128)
CALL = paged(SEQUENCES, 8)
EXPECTED = attention(SEQUENCES)


@jax.jit
def attend(*call: Any) -> jax.Array:
    return paged_attention(*call, pages_per_compute_block=2)


def _lowered(function: Any, *arguments: Any, platform: str) -> str:
    return function.trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def test_the_kernel_is_lowered_for_tpus_only() -> None:
    assert MOSAIC in _lowered(attend, *CALL, platform="tpu")
    assert MOSAIC not in _lowered(attend, *CALL, platform="cpu")
    assert MOSAIC not in _lowered(attend, *CALL, platform="cuda")


def test_a_program_for_both_platforms() -> None:
    exported = jax.export.export(attend, platforms=["cpu", "tpu"])(*CALL)
    assert exported.platforms == ("cpu", "tpu")
    assert exported.mlir_module().count(MOSAIC) == 1
    assert_resolved(exported.call(*CALL), EXPECTED)


def test_the_kernel_is_not_even_traced_for_other_platforms() -> None:
    """Tracing a block of many pages takes seconds, and fails where only the TPU would refuse."""
    assert "pallas_call" not in str(jax.make_jaxpr(attend)(*CALL))


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
def test_an_implementation_can_be_chosen(implementation: Any) -> None:
    chosen = jax.jit(functools.partial(paged_attention, pages_per_compute_block=2, implementation=implementation))
    assert (MOSAIC in _lowered(chosen, *CALL, platform="tpu")) == (implementation == "pallas")


def test_the_kernel_does_not_run_on_a_cpu() -> None:
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU backend"):
        paged_attention(*CALL, pages_per_compute_block=2, implementation="pallas")


def test_interpreting_leaves_nothing_behind() -> None:
    """In the caches of JAX the interpreted kernel and the real one are two, whichever comes first."""
    kernel = functools.partial(paged_attention, *CALL, pages_per_compute_block=2)
    for _ in range(2):
        np.testing.assert_allclose(kernel(implementation="interpret")[2:], EXPECTED[2:], rtol=0.05, atol=0.05)
        assert_resolved(kernel(), EXPECTED)
        with pytest.raises(ValueError, match="Only interpret mode"):
            kernel(implementation="pallas")
        assert MOSAIC in _lowered(attend, *CALL, platform="tpu")


@pytest.mark.parametrize("megacore_mode", [None, "batch", "kv_head"])
@pytest.mark.parametrize("inline_seq_dim", [True, False])
def test_options_reach_the_kernel(megacore_mode: Any, inline_seq_dim: bool) -> None:
    """Each gives the kernel a grid of its own: cores, rows, KV heads and, if not inline, blocks."""
    options = {"megacore_mode": megacore_mode, "inline_seq_dim": inline_seq_dim, "implementation": "pallas"}
    program = str(jax.make_jaxpr(functools.partial(paged_attention, pages_per_compute_block=2, **options))(*CALL))
    grid = {None: [1, 4, 2], "batch": [2, 2, 2], "kv_head": [2, 4, 1]}[megacore_mode] + [2] * (not inline_seq_dim)
    assert f"grid=({', '.join(map(str, grid))})" in program


def _batched() -> tuple[Call, np.ndarray]:
    others = sequences_of([5, 32, 0, 1], tokens=32, num_kv_heads=2, group=2, head_dim=128, seed=1)
    calls = CALL, paged(others, 8, seed=1)
    return jax.tree.map(lambda *each: np.stack(each), *calls), np.stack([EXPECTED, attention(others)])


@pytest.mark.parametrize("implementation", ["auto", "xla", "interpret"])
def test_vmap(implementation: Any) -> None:
    call, expected = _batched()
    one = functools.partial(paged_attention, pages_per_compute_block=2, implementation=implementation)
    out = jax.vmap(one)(*call)
    if implementation == "interpret":
        np.testing.assert_allclose(out, expected, rtol=0.05, atol=0.05)
    else:
        assert_resolved(out, expected)


def test_vmap_of_queries_alone() -> None:
    out = jax.vmap(lambda q: attend(q, *CALL[1:]))(np.stack([CALL.q, -CALL.q]))
    assert_resolved(out[0], EXPECTED)
    assert_resolved(out[1], attention(SEQUENCES._replace(q=-SEQUENCES.q)))


def test_transformed_programs_lower_for_tpus_too() -> None:
    call, _ = _batched()
    assert MOSAIC in _lowered(jax.jit(jax.vmap(attend)), *call, platform="tpu")
    loss_and_gradient = jax.jit(jax.value_and_grad(lambda *call: attend(*call).sum(), argnums=(0, 1, 2)))
    assert MOSAIC in _lowered(loss_and_gradient, *CALL, platform="tpu")


def test_forward_mode_and_reverse_mode_agree() -> None:
    tangents = jax.tree.map(np.sin, CALL[:3])

    def function(*arrays: Any) -> jax.Array:
        return attend(*arrays, *CALL[3:]).sum()

    _, tangent = jax.jvp(function, CALL[:3], tangents)
    gradients = jax.grad(function, argnums=(0, 1, 2))(*CALL[:3])
    expected = sum(float(jnp.vdot(gradient, each)) for gradient, each in zip(gradients, tangents, strict=True))
    np.testing.assert_allclose(tangent, expected, rtol=1e-4)


def test_eval_shape() -> None:
    result = jax.eval_shape(attend, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in CALL))
    assert (result.shape, result.dtype) == (CALL.q.shape, CALL.q.dtype)


def test_a_weakly_typed_query_gives_no_weakly_typed_result() -> None:
    q = jnp.full(CALL.q.shape, 0.5)
    assert jax.typeof(q).weak_type
    assert not jax.typeof(attend(q, *CALL[1:])).weak_type


def test_under_x64() -> None:
    """There the kernel mixes its integers with ours, as called by JAX."""
    with jax.enable_x64(True):
        assert_resolved(attend(*CALL), EXPECTED)
        assert MOSAIC in _lowered(attend, *CALL, platform="tpu")
        double = CALL._replace(q=CALL.q.astype(np.float64))
        assert attend(*double).dtype == np.float64
        assert MOSAIC in _lowered(attend, *double, platform="tpu")


def test_without_jit() -> None:
    with jax.disable_jit():
        assert_resolved(paged_attention(*CALL, pages_per_compute_block=2), EXPECTED)


def test_a_symbolic_batch() -> None:
    (batch,) = jax.export.symbolic_shape("batch")
    shapes = [(batch, *CALL.q.shape[1:]), CALL.k_pages.shape, CALL.v_pages.shape, (batch,), (batch, CALL.page_indices.shape[1])]
    exported = jax.export.export(attend, platforms=["cpu"])(
        *(jax.ShapeDtypeStruct(shape, each.dtype) for shape, each in zip(shapes, CALL, strict=True))
    )
    assert_resolved(exported.call(*CALL), EXPECTED)


@pytest.mark.parametrize("implementation", ["auto", "xla"])
@pytest.mark.parametrize("check_vma", [True, False])
def test_inside_shard_map(implementation: Any, check_vma: bool) -> None:
    mesh = jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    heads, pages, all_of_it = jax.P(None, "model"), jax.P("model"), jax.P()
    sharded = jax.shard_map(
        functools.partial(paged_attention, pages_per_compute_block=2, implementation=implementation),
        mesh=mesh,
        in_specs=(heads, pages, pages, all_of_it, all_of_it),
        out_specs=heads,
        check_vma=check_vma,
    )
    assert_resolved(jax.jit(sharded)(*CALL), EXPECTED)


@pytest.mark.parametrize("implementation", ["auto", "xla"])
def test_on_an_explicit_mesh(implementation: Any) -> None:
    mesh = jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        specs = jax.P(None, "model"), jax.P("model"), jax.P("model"), jax.P(), jax.P()
        call = [jax.device_put(each, jax.NamedSharding(mesh, spec)) for each, spec in zip(CALL, specs, strict=True)]
        out = paged_attention(*call, pages_per_compute_block=2, implementation=implementation)
    assert_resolved(np.asarray(out), EXPECTED)
