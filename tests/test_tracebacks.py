"""Wherever an illegal call is made: the same message, and a traceback that ends in the line of the call."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, TypeCheckError

import shapecheck
from shapecheck import ContractError, checked, contract
from shapecheck.contracts import PAGED_ATTENTION

MESH = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


@contract("n % 2 == 0")
def even(x: Float[Array, " n"], mode: str = "sum") -> Float[Array, " n"]:
    return x if mode == "sum" else x[1:]


def users_code(x: Any, mode: Any = "sum") -> Any:
    return even(x, mode)


def scanned(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jax.lax.scan(lambda carry, row: (carry, call(row)), 0, jnp.stack([x, x]))


PLACES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "directly": lambda call: call,
    "jit": jax.jit,
    "jit in jit": lambda call: jax.jit(lambda x: jax.jit(call)(x)),
    "scan": scanned,
    "scan in jit": lambda call: jax.jit(scanned(call)),
    "vmap": lambda call: lambda x: jax.vmap(call)(jnp.stack([x, x])),
    "grad": lambda call: lambda x: jax.grad(lambda x: call(x).sum())(x.astype(jnp.result_type(x, jnp.float16))),
    "cond": lambda call: lambda x: jax.lax.cond(jnp.bool_(True), call, lambda x: x, x),
    "checkpoint": jax.checkpoint,
    "eval_shape": lambda call: partial(jax.eval_shape, call),
    "make_jaxpr": jax.make_jaxpr,
    "shard_map": lambda call: jax.shard_map(call, mesh=MESH, in_specs=P(), out_specs=P()),
}
CASES: dict[str, tuple[Any, str, str]] = {
    "relation": (jnp.ones(3), "sum", "even: 1 relation does not hold\n  SC001 n % 2 == 0\n        n = 3   (x.shape[0])"),
    "rank": (
        jnp.ones((2, 2)),
        "sum",
        "even: argument 'x' is refused\n  expected Float[Array, 'n']\n  got float32[2,2] (Array): ",
    ),
    "type": (jnp.ones(2), 3, "even: argument 'mode' is refused\n  expected str\n  got 3 (int)"),
    "result": (
        jnp.ones(2),
        "none",
        "even: the return value is refused\n  expected Float[Array, 'n']\n  got float32[1] (Array): ",
    ),
}


def last_line(error: BaseException) -> str | None:
    return traceback.extract_tb(error.__traceback__)[-1].line


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES)
def test_the_message_is_the_same_and_the_traceback_ends_in_the_call(case: str, place: str) -> None:
    x, mode, expected = CASES[case]
    with pytest.raises(TypeCheckError) as caught:
        PLACES[place](lambda x: users_code(x, mode))(x)
    told = str(caught.value)
    note = "\n  inside shard_map over 'x': the sizes are those of one shard"
    assert (note in told) == (place == "shard_map")
    assert (
        told.replace(note, "").replace("[0] of one shard; 6 if split over mesh axis 'x' of size 2)", "[0])").startswith(expected)
    )
    assert last_line(caught.value) == "return even(x, mode)"
    assert caught.value.__context__ is None


ARRAYS = (
    jnp.ones((2, 8, 128), jnp.bfloat16),
    jnp.ones((2, 16, 4, 128), jnp.bfloat16),
    jnp.ones((2, 16, 4, 128), jnp.bfloat16),
    jnp.ones(2, jnp.int32),
    jnp.ones((2, 6), jnp.int32),
)


def users_kernel(kernel: Any, *arrays: Any) -> Any:
    return kernel(*arrays, pages_per_compute_block=4)


KERNELS: dict[str, Callable[[], Any]] = {
    "installed": lambda: paged_attention,
    "checked": lambda: checked(paged_attention, PAGED_ATTENTION),
    "front door": lambda: __import__("kernel").paged_attention,
}


@pytest.mark.parametrize("place", ["directly", "jit", "scan", "vmap", "shard_map", "eval_shape"])
@pytest.mark.parametrize("kind", KERNELS)
def test_so_it_is_for_kernels(kind: str, place: str) -> None:
    installation = shapecheck.install() if kind == "installed" else None
    try:
        kernel = KERNELS[kind]()
        with pytest.raises(ContractError) as caught:
            PLACES[place](lambda q: users_kernel(kernel, q, *ARRAYS[1:]))(ARRAYS[0])
    finally:
        if installation is not None:
            installation.uninstall()
    assert "SC102 block-not-dividing" in str(caught.value)
    assert "        pages_per_sequence = 6   (page_indices.shape[1]" in str(caught.value)
    assert last_line(caught.value) == "return kernel(*arrays, pages_per_compute_block=4)"
