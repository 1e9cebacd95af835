"""Programs with the front door in them, compiled by libtpu for chips that are not there: `python -m tests.compiler.front_door`.

Prints one JSON object: what it compiled, and None or what failed. It is a process of its own, for libtpu may hang or abort.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from typing import Any

from shapecheck.compiler.worker import ENVIRONMENT

os.environ.update(ENVIRONMENT)

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor
from jax.experimental.topologies import get_topology_desc
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from kernel import paged_attention

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
CUBES = ("v4", "v5p", "tpu7x")
HEADS = [(32, 8), (28, 4), (14, 2), (71, 1), (16, 2)]
BATCH, PAGES, PAGE_SIZE, BLOCK, HEAD_DIM = 16, 4, 16, 2, 128
SPLITS = [(2, 2), (4, 4), (1, 16), (16, 1)]  # of the batch and of the heads
AXES = {"heads_axis": "model", "batch_axis": "data"}


def mesh_of(chip: str, data: int, model: int) -> Mesh:
    """Return 1 or 4 devices of a 2x2 topology, or 16 of a 4x4 one."""
    square, cube = ("4x4", "2x2x4") if data * model == 16 else ("2x2", "2x2x1")
    layout = cube if chip in CUBES else square
    config = "megacore" if chip in ("v4", "v5p") else "default"
    devices = get_topology_desc(f"{chip}:{layout}", platform="tpu", chip_config_name=config).devices
    return Mesh(np.array(devices[: data * model]).reshape(data, model), ("data", "model"))


def call_of(heads: int, kv_heads: int, mesh: Mesh, *, quantized: bool = False) -> list[Any]:
    """Return the arguments, of which each device has what it reads."""
    queries, rows = P("data", "model"), P("data")
    pool = P("model" if kv_heads % mesh.shape["model"] == 0 else None, "data")

    def argument(shape: tuple[int, ...], dtype: Any, spec: P) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    shape = (kv_heads, BATCH * PAGES, PAGE_SIZE, HEAD_DIM)
    pages: Any = argument(shape, jnp.bfloat16, pool)
    if quantized:
        pages = QuantizedTensor(argument(shape, jnp.int8, pool), argument((*shape[:-1], 1), jnp.float32, pool))
    return [
        argument((BATCH, heads, HEAD_DIM), jnp.bfloat16, queries),
        pages,
        pages,
        argument((BATCH,), jnp.int32, rows),
        argument((BATCH, PAGES), jnp.int32, rows),
    ]


def attend(*call: Any, **options: Any) -> jax.Array:
    return paged_attention(*call, pages_per_compute_block=BLOCK, **options)


def loss(*call: Any, **options: Any) -> jax.Array:
    return attend(*call, **options).astype(jnp.float32).sum()


def split(mesh: Mesh, calls: list[Any]) -> list[jax.Array]:
    return [attend(*call, mesh=mesh, pages_axis="data", **AXES) for call in calls]


def programs() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield the name of each, the function, and its arguments."""
    for chip in CHIPS:
        backward = jax.value_and_grad(loss, argnums=(0, 1, 2))
        yield f"{chip} backward", backward, (*call_of(32, 8, mesh_of(chip, 1, 1)),)
        for data, model in SPLITS if chip == "v5e" else SPLITS[:2]:
            mesh = mesh_of(chip, data, model)
            heads = [each for each in HEADS if each[0] % model == 0 and 0 in (each[1] % model, model % each[1])]
            calls = [call_of(*each, mesh) for each in (heads if chip == "v5e" else HEADS[:1])]
            yield f"{chip} {data}x{model}", functools.partial(split, mesh), (calls,)
    mesh = mesh_of("v5e", 2, 2)
    capped = functools.partial(loss, attn_logits_soft_cap=30.0)
    yield "v5e backward, quantized", jax.value_and_grad(capped), (*call_of(32, 8, mesh_of("v5e", 1, 1), quantized=True),)
    backward = jax.value_and_grad(functools.partial(loss, mesh=mesh, pages_axis="data", **AXES), argnums=(0, 1, 2))
    yield "v5e 2x2 backward", backward, (*call_of(32, 8, mesh),)


def outcome(function: Any, arguments: tuple[Any, ...]) -> str | None:
    """Compile; return what failed."""
    try:
        compiled = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).compile()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:1000]
    return None if "tpu_custom_call" in compiled.as_text() else "the kernel is not in it"


def main() -> None:
    print(json.dumps({name: outcome(function, arguments) for name, function, arguments in programs()}))


if __name__ == "__main__":
    main()
