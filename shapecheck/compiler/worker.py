"""The process that holds libtpu: it answers one question a line on standard input with one line on standard output.

It is run as a script, `python -P worker.py`, and imports nothing of shapecheck: whatever libtpu does to a process, and it may
hang or abort, is done to this one. The questions are those of `shapecheck.compiler.question`.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",  # no TPU of this machine is touched; topologies load libtpu all the same
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # neither take its lock file nor mind that of another process
    "TPU_SKIP_MDS_QUERY": "1",  # do not ask a cloud's metadata server what machine this is
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
}
_QUANTIZED = "jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils"
_GRACE = 10  # seconds after which it ends itself: whoever asked, and would have ended it, is gone
_LONGEST = 4000  # characters of a message; Mosaic's quote the whole kernel


def main() -> None:
    """Say that libtpu is here, or why it is not; then answer until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no reply

    def reply(**fields: Any) -> None:
        print(json.dumps(fields), file=replies, flush=True)

    missing = [name for name in ("jax", "libtpu") if find_spec(name) is None]
    if missing and not ("TPU_LIBRARY_PATH" in os.environ and missing == ["libtpu"]):
        return reply(absent=missing)
    os.environ.update(ENVIRONMENT)
    try:
        compiler = _Compiler()
    except Exception as error:
        return reply(error=f"{type(error).__name__}: {error}"[:_LONGEST])
    reply(ready=True)
    for line in sys.stdin:
        question = json.loads(line)
        signal.alarm(math.ceil(question["timeout"]) + _GRACE)
        answer = compiler.answer(question)
        signal.alarm(0)
        reply(**answer)
    return None


class _Compiler:
    """JAX with libtpu behind it."""

    def __init__(self) -> None:
        self._jax: Any = import_module("jax")  # it is partly untyped
        self._describe: Any = partial(import_module("jax.experimental.topologies").get_topology_desc, platform="tpu")
        self._describe("v5e:2x2")  # here a libtpu that does not work says so

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Compile, and return `ok` with the bytes used, or what was raised and at which stage; and the seconds it took."""
        stage, started = "trace", time.perf_counter()
        try:
            mesh = self._mesh(question)
            function, arguments = self._call(question, mesh)
            with self._there(mesh):
                traced = function.trace(*arguments)
                stage = "lower"
                lowered = traced.lower(lowering_platforms=("tpu",))
            stage = "compile"
            compiled = lowered.compile()
        except Exception as error:
            result = {"ok": False, "stage": stage, "type": type(error).__name__, "message": str(error)[:_LONGEST]}
        else:
            result = {"ok": True, "memory": _memory(compiled)}
        return {**result, "seconds": time.perf_counter() - started}

    @contextmanager
    def _there(self, mesh: Any) -> Generator[None]:
        """Let kernels that ask for the chip they are on, as the one of ragged attention does twice, find that of the mesh."""
        table = patch.object(self._jax, "devices", lambda: list(mesh.devices.flat))  # upstream's table of tuned blocks asks this
        with table, self._jax.sharding.use_abstract_mesh(mesh.abstract_mesh):  # and Mosaic this
            yield

    def _mesh(self, question: dict[str, Any]) -> Any:
        """Return the devices that the call is split over, or the one that it is for."""
        sizes = question["mesh"] or {"data": 1}
        devices = self._devices(question, math.prod(sizes.values()))
        return self._jax.sharding.Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))

    def _call(self, question: dict[str, Any], mesh: Any) -> tuple[Any, list[Any]]:
        """Return the jitted kernel, and what to trace it with."""
        sharding, P = self._jax.sharding, self._jax.sharding.PartitionSpec
        kernel: Any = partial(getattr(import_module(question["module"]), question["function"]), **question["parameters"])
        arrays = question["arrays"]
        if question["mesh"] is None:
            shardings = dict.fromkeys(arrays, sharding.SingleDeviceSharding(mesh.devices.item()))
        else:
            specs = {name: P(*split) for name, split in question["specs"].items()}
            kernel = self._jax.shard_map(kernel, mesh=mesh, in_specs=tuple(specs.values()), out_specs=specs["q"], check_vma=False)
            shardings = {name: sharding.NamedSharding(mesh, spec) for name, spec in specs.items()}
        return self._jax.jit(kernel), [self._argument(array, shardings[name]) for name, array in arrays.items()]

    def _devices(self, question: dict[str, Any], count: int) -> Any:
        """Return devices of the smallest topology that has enough of them."""
        for name in question["topologies"]:
            devices = self._describe(name, chip_config_name=question["config"]).devices
            if len(devices) >= count:
                return import_module("numpy").array(devices[:count])
        raise ValueError(f"no topology with {count} devices: {', '.join(question['topologies'])}")

    def _argument(self, array: dict[str, Any], sharding: Any) -> Any:
        """Return an array of a shape and a dtype; pages with scales are quantized."""
        dtype = self._jax.numpy.dtype(array["dtype"])
        described = self._jax.ShapeDtypeStruct(tuple(array["shape"]), dtype, sharding=sharding)
        if not array.get("scales"):
            return described
        scales = self._argument(array["scales"], sharding)
        return import_module(_QUANTIZED).QuantizedTensor(weight=described, scales=scales)


def _memory(compiled: Any) -> dict[str, int]:
    """Return the bytes that one device needs: of HBM for arguments, results and temporaries, of VMEM for the kernel."""
    stats = compiled.memory_analysis()
    memory = {
        "hbm": stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes - stats.alias_size_in_bytes
    }
    for line in compiled.as_text().splitlines():
        if 'custom_call_target="tpu_custom_call"' in line:
            _, _, used = line.partition('"used_scoped_memory_configs":')
            for config in json.JSONDecoder().raw_decode(used)[0] if used else ():
                if config["memory_space"] == "1":
                    memory["vmem"] = max(memory.get("vmem", 0), int(config["size"]))
    return memory


if __name__ == "__main__":
    main()
