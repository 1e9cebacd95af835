"""The child of `libtpu.Compiler`: takes a geometry on each line of its input, and writes the compiler's error on one line."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor
from jax.sharding import SingleDeviceSharding

_TOPOLOGIES = {
    "v2": "v2:2x2",
    "v3": "v3:2x2",
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}
_STATIC = ("pages_per_compute_block", "megacore_mode", "inline_seq_dim", "attn_logits_soft_cap")


@functools.cache
def _device(chip: str) -> Any:
    return topologies.get_topology_desc(platform="tpu", topology_name=_TOPOLOGIES[chip]).devices[0]


def _error(given: Mapping[str, Any]) -> str:
    """Return the error of compiling a call; empty where it compiles."""
    array = jax.ShapeDtypeStruct
    shape = tuple(given[axis] for axis in ("num_kv_heads", "total_num_pages", "page_size", "head_dim"))
    weight = array(shape, getattr(jnp, given["pages_dtype"]))
    scales = given.get("scales_dtype")
    pages: Any = weight if scales is None else QuantizedTensor(weight, array((*shape[:-1], 1), getattr(jnp, scales)))  # type: ignore[arg-type]
    arguments = (
        array((given["batch_size"], given["num_q_heads"], given["head_dim"]), getattr(jnp, given["q_dtype"])),
        *(pages, pages),
        array((given["batch_size"],), jnp.int32),
        array((given["batch_size"], given["pages_per_sequence"]), jnp.int32),
    )
    call = functools.partial(paged_attention, **{name: given[name] for name in _STATIC if name in given})
    try:
        shardings = jax.tree.map(lambda _: SingleDeviceSharding(_device(given["chip"])), arguments)
        jax.jit(call, in_shardings=shardings).trace(*arguments).lower(lowering_platforms=("tpu",)).compile()
    except Exception as error:  # whatever it is, it is what the user would see
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libtpu writes to both
    for line in sys.stdin:
        print(json.dumps(_error(json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
