"""The real errors of JAX's kernels: calls that provoke them, and the texts that they end in.

`python -m tests.upstream` provokes all of them with the JAX and the libtpu that are installed, and writes their texts into the
record, `tests/messages/upstream.json.gz`, in place of those of the same version of JAX. `python -m tests.upstream NAME...` prints
some. A call that runs out of vector memory takes ten seconds to compile.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "messages" / "upstream.json.gz"
_ROOT = Path(__file__).parent.parent
_OPS = "jax.experimental.pallas.ops.tpu"


@dataclass(frozen=True)
class Case:
    """A call that fails, and what `explain` is to find in the text.

    Attributes:
        code: the rule.
        values: values that it is to read.
        arrays: shapes and dtypes that differ from those of a legal call, by argument: `{"q": (8, 7, 128), "q dtype": "int8"}`;
            `{"k_pages scales": (8, 192, 16, 1)}` quantizes.
        options: parameters that differ.
        fails: `"trace"`, `"lower"` or `"compile"`: how far it comes.
        kernel: which kernel it is.
        alternative: another rule that a version of JAX says the same of.
    """

    code: str
    values: Mapping[str, Any]
    arrays: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fails: str = "trace"
    kernel: str = "paged_attention"
    chip: str = "v5e"
    alternative: str = ""


_LEGAL: dict[str, dict[str, Any]] = {
    "paged_attention": {
        "q": (8, 32, 128),
        "k_pages": (8, 192, 16, 128),
        "v_pages": (8, 192, 16, 128),
        "lengths": (8,),
        "page_indices": (8, 24),
    },
    "ragged_paged_attention": {
        "q": (128, 32, 128),
        "kv_pages": (256, 16, 16, 128),
        "kv_lens": (8,),
        "page_indices": (8, 16),
        "cu_q_lens": (9,),
        "num_seqs": (1,),
    },
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "paged_attention": {"pages_per_compute_block": 8},
    "ragged_paged_attention": {"num_kv_pages_per_block": 4, "num_queries_per_block": 8},
}
_INTEGERS = ("lengths", "page_indices", "kv_lens", "cu_q_lens", "num_seqs")


def _pages(*shape: int) -> dict[str, Any]:
    return {"k_pages": shape, "v_pages": shape}


def _both(what: Any) -> dict[str, Any]:
    return {"k_pages dtype": what, "v_pages dtype": what}


def _ragged(code: str, values: Mapping[str, Any], arrays: Mapping[str, Any] | None = None, **others: Any) -> Case:
    options = {name: others.pop(name) for name in list(others) if name != "fails"}
    return Case(code, values, arrays or {}, options, kernel="ragged_paged_attention", **others)


CASES: dict[str, Case] = {
    # the ten ValueErrors of paged_attention
    "heads": Case("SC101", {"num_q_heads": 7, "num_kv_heads": 8}, {"q": (8, 7, 128)}),
    "block": Case("SC102", {"pages_per_compute_block": 16, "pages_per_sequence": 24}, options={"pages_per_compute_block": 16}),
    "pages": Case(
        "SC103", {"k_pages_shape": (8, 192, 16, 128), "v_pages_shape": (8, 96, 16, 128)}, {"v_pages": (8, 96, 16, 128)}
    ),
    "head_dim": Case("SC104", {"q_head_dim": 256, "k_pages_head_dim": 128}, {"q": (8, 32, 256)}),
    "lengths": Case("SC105", {}, {"lengths": (7,)}),
    "page_indices": Case("SC106", {}, {"page_indices": (7, 24)}),
    "lengths_dtype": Case("SC107", {"lengths_dtype": "int16"}, {"lengths dtype": "int16"}),
    "megacore_heads": Case("SC201", {"megacore_mode": "kv_head"}, _pages(1, 192, 16, 128), {"megacore_mode": "kv_head"}),
    "megacore_batch": Case(
        "SC202",
        {"megacore_mode": "batch"},
        {"q": (7, 32, 128), "lengths": (7,), "page_indices": (7, 24)},
        {"megacore_mode": "batch"},
    ),
    "megacore_mode": Case("SC203", {}, options={"megacore_mode": "heads"}),
    # what Python and JAX say
    "q_of_4": Case("SC109", {}, {"q": (8, 1, 32, 128)}),
    "q_of_2": Case("SC109", {"q_rank": 2}, {"q": (8, 128)}),
    "pages_of_3": Case("SC109", {"k_pages_rank": 3}, _pages(8, 192, 128)),
    "table_of_1": Case("SC109", {"page_indices_rank": 1}, {"page_indices": (192,)}),
    "table_of_3": Case("SC109", {}, {"page_indices": (8, 24, 1)}),
    "block_of_0": Case("SC110", {"pages_per_compute_block": 0}, options={"pages_per_compute_block": 0}),
    "block_below_0": Case("SC110", {}, options={"pages_per_compute_block": -2}, alternative="SC111"),
    "block_of_8.0": Case("SC110", {"pages_per_compute_block": 8.0}, options={"pages_per_compute_block": 8.0}),
    "block_of_2.5": Case(
        "SC102", {"pages_per_compute_block": 2.5, "pages_per_sequence": 24}, options={"pages_per_compute_block": 2.5}
    ),
    "no_kv_heads": Case("SC111", {"num_kv_heads": 0}, _pages(0, 192, 16, 128)),
    "no_q_heads": Case("SC111", {}, {"q": (8, 0, 128)}, fails="lower"),
    "half_quantized": Case("SC112", {}, {"k_pages dtype": "int8", "k_pages scales": (8, 192, 16, 1)}),
    "v_quantized": Case("SC112", {}, {"v_pages dtype": "int8", "v_pages scales": (8, 192, 16, 1)}),
    "scales": Case(
        "SC112",
        {},
        _both("int8") | {"k_pages scales": (8, 192, 8, 1), "v_pages scales": (8, 192, 8, 1)},
        fails="lower",
    ),
    # lowering
    "table_dtype": Case("SC108", {"page_indices_dtype": "int16"}, {"page_indices dtype": "int16"}, fails="lower"),
    "table_float": Case("SC108", {"page_indices_dtype": "float32"}, {"page_indices dtype": "float32"}, fails="lower"),
    "lanes": Case(
        "SC301",
        {"head_dim": 64, "batch_size": 8, "num_q_heads": 32},
        {"q": (8, 32, 64), **_pages(8, 192, 16, 64)},
        fails="lower",
    ),
    "lanes_of_groups": Case(
        "SC301", {"head_dim": 96, "num_q_heads": 64}, {"q": (8, 64, 96), **_pages(8, 192, 16, 96)}, fails="lower"
    ),
    "one_token": Case("SC304", {}, _pages(8, 192, 1, 128), {"pages_per_compute_block": 1}, fails="lower"),
    "q_float8": Case("SC311", {"q_dtype": "float8_e4m3fn"}, {"q": (8, 64, 128), "q dtype": "float8_e4m3fn"}, fails="trace"),
    # the compiler
    "float16": Case("SC302", {}, _both("float16"), fails="compile"),
    "float16_scales": Case(
        "SC302",
        {},
        _both("int8") | {"k_pages scales": (8, 192, 16, 1), "v_pages scales": (8, 192, 16, 1), "scales dtype": "float16"},
        fails="compile",
    ),
    "q_float16": Case("SC303", {"q_dtype": "float16"}, {"q": (8, 64, 128), "q dtype": "float16"}, fails="compile"),
    "v3": Case("SC308", {}, fails="compile", chip="v3"),
    "float8_e4m3": Case("SC310", {"pages_dtype": "float8_e4m3"}, _both("float8_e4m3"), fails="compile"),
    "smem": Case(
        "SC305",
        {"batch_size": 128, "pages_per_sequence": 2048, "smem_bytes": 2**20},
        {"q": (128, 32, 128), "lengths": (128,), "page_indices": (128, 2048)},
        fails="compile",
    ),
    "smem_by_far": Case(
        "SC305", {"smem_bytes": 2**20}, {"q": (256, 32, 128), "lengths": (256,), "page_indices": (256, 2048)}, fails="compile"
    ),
    "vmem": Case(
        "SC306",
        {"head_dim": 1024, "page_size": 1024, "num_kv_heads": 8, "pages_per_sequence": 24, "vmem_bytes": 2**24},
        {"q": (8, 32, 1024), **_pages(8, 192, 1024, 1024)},
        fails="compile",
    ),
    # ragged_paged_attention
    "r_heads": _ragged("SC101", {"num_q_heads": 12, "num_combined_kv_heads": 16}, {"q": (128, 12, 128)}),
    "r_head_dim": _ragged("SC104", {"q_head_dim": 128, "kv_pages_head_dim": 256}, {"kv_pages": (256, 16, 16, 256)}),
    "r_lengths": _ragged("SC105", {"kv_lens_shape": (7,), "page_indices_max_num_seqs": 8}, {"kv_lens": (7,)}),
    "r_lengths_dtype": _ragged("SC107", {"kv_lens_dtype": "int16"}, {"kv_lens dtype": "int16"}),
    "r_table_dtype": _ragged("SC108", {"page_indices_dtype": "int16"}, {"page_indices dtype": "int16"}),
    "r_offsets_dtype": _ragged("SC124", {"cu_q_lens_dtype": "int16"}, {"cu_q_lens dtype": "int16"}),
    "r_rank": _ragged("SC109", {"kv_pages_rank": 3}, {"kv_pages": (256, 16, 2048)}),
    "r_block_of_0": _ragged("SC110", {"num_kv_pages_per_block": 0}, num_kv_pages_per_block=0),
    "r_block": _ragged("SC127", {"num_kv_pages_per_block": 32, "pages_per_seq": 16}, num_kv_pages_per_block=32),
    "r_cap": _ragged("SC113", {"soft_cap": 0.0}, soft_cap=0.0),
    "r_q_dtype": _ragged("SC115", {}, {"q dtype": "float16"}),
    "r_odd": _ragged("SC121", {}, {"q": (128, 3, 128), "kv_pages": (256, 16, 3, 128)}),
    "r_tiling": _ragged("SC122", {"num_combined_kv_heads": 6}, {"q": (128, 6, 128), "kv_pages": (256, 16, 6, 128)}),
    "r_offsets": _ragged("SC123", {"cu_q_lens_shape": (8,), "page_indices_max_num_seqs": 8}, {"cu_q_lens": (8,)}),
    "r_num_seqs": _ragged("SC125", {"num_seqs_shape": ()}, {"num_seqs": ()}),
    "r_num_seqs_dtype": _ragged("SC126", {"num_seqs_dtype": "float32"}, {"num_seqs dtype": "float32"}, fails="compile"),
    "r_window": _ragged("SC128", {"sliding_window": 0}, sliding_window=0),
    "r_scale": _ragged("SC129", {}, k_scale=1),
    "r_one_scale": _ragged("SC130", {}, {"kv_pages dtype": "int8"}, k_scale=1.0),
    "r_query_block": _ragged("SC131", {"num_queries_per_block": 0}, num_queries_per_block=0),
    "r_limit": _ragged("SC132", {"vmem_limit_bytes": 0}, vmem_limit_bytes=0),
    "r_lanes": _ragged("SC301", {}, {"q": (128, 32, 64), "kv_pages": (256, 16, 16, 64)}),
    "r_one_token": _ragged("SC304", {}, {"kv_pages": (256, 1, 16, 128)}, num_kv_pages_per_block=1, fails="compile"),
    "r_unsigned": _ragged("SC310", {"kv_pages_dtype": "uint8"}, {"kv_pages dtype": "uint8"}, fails="lower"),
    "r_tile": _ragged(
        "SC313",
        {"num_q_heads": 16},
        {"q": (128, 16, 128), "kv_pages": (256, 16, 32, 128), "q dtype": "float32", "kv_pages dtype": "float32"},
        fails="lower",
    ),
    "r_float16": _ragged("SC302", {"kv_pages_dtype": "float16"}, {"kv_pages dtype": "float16"}, fails="compile"),
    "r_strided": _ragged("SC312", {}, {"q": (128, 32, 256), "kv_pages": (256, 16, 16, 256)}, fails="compile"),
    "r_smem": _ragged(
        "SC305",
        {"max_num_seqs": 249, "pages_per_seq": 1000},
        {"kv_lens": (249,), "page_indices": (249, 1000), "cu_q_lens": (250,)},
        fails="compile",
    ),
    "r_vmem": _ragged("SC306", {"num_q_heads": 32}, num_queries_per_block=256, num_kv_pages_per_block=16, fails="compile"),
}
# Of the memory of a device, a whole program is told that it does not suffice: which call takes it, the compiler does not say.
UNNAMED = {"hbm": Case("SC309", {}, _pages(8, 2**21, 16, 128), fails="compile")}
SLOW = frozenset({"vmem", "r_vmem"})


def provoke(case: Case) -> str:
    """Make the call, and return the traceback that it ends in."""
    jax: Any = importlib.import_module("jax")
    function = getattr(importlib.import_module(f"{_OPS}.{case.kernel}"), case.kernel)
    options = {**_OPTIONS[case.kernel], **case.options}
    device = _device(case.chip) if case.fails == "compile" else None
    sharding = None if device is None else jax.sharding.SingleDeviceSharding(device)

    def array(shape: tuple[int, ...], dtype: str) -> Any:
        return jax.ShapeDtypeStruct(shape, jax.numpy.dtype(dtype), sharding=sharding)

    def argument(name: str, shape: tuple[int, ...]) -> Any:
        dtype = case.arrays.get(f"{name} dtype", "int32" if name in _INTEGERS else "bfloat16")
        scales = case.arrays.get(f"{name} scales")
        if scales is None:
            return array(case.arrays.get(name, shape), dtype)
        quantized = importlib.import_module(f"{_OPS}.paged_attention.quantization_utils").QuantizedTensor
        return quantized(array(shape, dtype), array(scales, case.arrays.get("scales dtype", "float32")))

    def serve(*arrays: Any) -> Any:
        return function(*arrays, **options)

    arguments = [argument(name, shape) for name, shape in _LEGAL[case.kernel].items()]
    try:
        if case.fails == "trace":
            jax.eval_shape(serve, *arguments)
        elif case.fails == "lower":
            jax.export.export(jax.jit(serve), platforms=["tpu"])(*arguments)
        else:
            mesh = jax.sharding.Mesh([device], ("x",))
            with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
                jax.jit(serve).trace(*arguments).lower(lowering_platforms=("tpu",)).compile()
    except Exception:
        return _without_places(traceback.format_exc())
    raise AssertionError(f"it is legal: {case}")


def _device(chip: str) -> Any:
    from jax.experimental.topologies import get_topology_desc

    return get_topology_desc(f"{chip}:2x2", platform="tpu", chip_config_name="default").devices[0]


def _without_places(text: str) -> str:
    """Return a text without the folders of this machine."""
    for folder, name in ((sys.prefix, "/venv"), (str(_ROOT), "/work/serving"), (sys.base_prefix, "/usr")):
        text = text.replace(folder, name)
    return re.sub(r"/work/serving/tests/upstream\.py", "/work/serving/serve.py", text)


def recorded() -> dict[str, dict[str, str]]:
    """Return the texts of each version of JAX, by the name of the case."""
    return json.loads(gzip.decompress(RECORD.read_bytes())) if RECORD.exists() else {}


def provoked(names: Iterable[str]) -> dict[str, str]:
    """Return the texts of some cases, with what is installed."""
    return {name: provoke((CASES | UNNAMED)[name]) for name in names}


def main() -> None:
    from shapecheck.compiler.worker import ENVIRONMENT

    os.environ.update(ENVIRONMENT)
    names = sys.argv[1:]
    texts = provoked(names or [*CASES, *UNNAMED])
    if names:
        print(json.dumps(texts))
        return
    jax = importlib.import_module("jax")
    record = {**recorded(), jax.__version__: texts}
    data = json.dumps(dict(sorted(record.items())), indent=0).encode()
    RECORD.write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()
