"""One program of ragged attention for every platform: JAX's kernel on TPUs, XLA elsewhere.

JAX's kernel asks what TPU it is lowered for: here that is said by a mesh of devices that are not there.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from kernel import ragged_paged_attention

from .kernel_helpers.ragged import attention, ragged

MOSAIC = "tpu_custom_call"
BLOCKS = {"num_kv_pages_per_block": 2, "num_queries_per_block": 8}
CALL = ragged(((1, 5), (9, 20), (1, 24)), head_dim=128, rows=4)
EXPECTED = attention(CALL)
KINDS = ("TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x")


@jax.jit
def attend(*call: Any) -> jax.Array:
    return ragged_paged_attention(*call, **BLOCKS)


def lowered(function: Any, *arguments: Any, platform: str = "tpu", kind: str = "TPU v5 lite") -> str:
    mesh = AbstractMesh((2,), ("model",), (AxisType.Auto,), abstract_device=AbstractDevice(kind, 1, "tpu"))
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_is_lowered_for_tpus(kind: str) -> None:
    assert MOSAIC in lowered(attend, *CALL, kind=kind)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_kernel_is_not_lowered_for_others(platform: str) -> None:
    assert MOSAIC not in lowered(attend, *CALL, platform=platform)


@pytest.mark.parametrize(("implementation", "has_kernel"), [("auto", True), ("pallas", True), ("xla", False)])
def test_an_implementation_can_be_chosen(implementation: Any, has_kernel: bool) -> None:
    chosen = functools.partial(ragged_paged_attention, **BLOCKS, implementation=implementation)
    assert (MOSAIC in lowered(chosen, *CALL)) == has_kernel


def test_the_kernel_is_not_even_traced_for_other_platforms() -> None:
    assert "pallas_call" not in str(jax.make_jaxpr(attend)(*CALL))


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (jnp.float16, {}),
        (jnp.bfloat16, {"sliding_window": 4, "soft_cap": 30.0}),
        (np.float32, {"k_scale": 2}),
        (np.float32, {"k_scale": np.float32(0.5), "v_scale": jnp.float32(2.0)}),
        (np.float32, {"mask_value": None, "vmem_limit_bytes": 1 << 24}),
    ],
    ids=str,
)
def test_what_jaxs_kernel_refuses_it_is_not_given(dtype: Any, options: Any) -> None:
    call = CALL._replace(q=CALL.q.astype(dtype))
    assert MOSAIC in lowered(functools.partial(ragged_paged_attention, **BLOCKS, **options), *call)


@pytest.mark.parametrize("implementation", ["auto", "pallas"])
def test_under_x64(implementation: Any) -> None:
    """There the kernel mixes its integers with ours, as called by JAX."""
    chosen = functools.partial(ragged_paged_attention, **BLOCKS, implementation=implementation)
    with jax.enable_x64(True):
        assert MOSAIC in lowered(chosen, *CALL)
        assert MOSAIC in lowered(chosen, *CALL._replace(q=CALL.q.astype(np.float64)))


@pytest.mark.parametrize("implementation", ["auto", "pallas"])
@pytest.mark.parametrize("x64", [False, True])
def test_inside_shard_map(implementation: Any, x64: bool) -> None:
    heads = P(None, "model")
    sharded = jax.shard_map(
        functools.partial(ragged_paged_attention, **BLOCKS, implementation=implementation),
        in_specs=(heads, P(None, None, "model"), P(), P(), P(), P()),
        out_specs=heads,
        check_vma=False,
    )
    call = ragged(((1, 5), (9, 20), (1, 24)), heads=(8, 4), head_dim=128, rows=4)
    with jax.enable_x64(x64):
        assert MOSAIC in lowered(sharded, *call)


def test_transformed_programs_lower_for_tpus_too() -> None:
    batched = jax.tree.map(lambda each: np.stack([each, each]), CALL)
    assert MOSAIC in lowered(jax.vmap(attend), *batched)
    assert MOSAIC in lowered(jax.value_and_grad(lambda *call: attend(*call).sum(), argnums=(0, 1)), *CALL)


def test_lowering_for_tpus_changes_nothing_elsewhere() -> None:
    lowered(attend, *CALL)
    np.testing.assert_allclose(attend(*CALL)[: CALL.tokens], EXPECTED, atol=1e-5)
