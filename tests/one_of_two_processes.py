"""One process of a program of two, with half of the devices: `python -m tests.one_of_two_processes ADDRESS 0`."""

from __future__ import annotations

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from kernel import paged_attention
from shapecheck import ContractError

from .kernel_helpers import assert_resolved, attention, paged, sequences_of


def main() -> None:
    address, process = sys.argv[1:]
    jax.distributed.initialize(address, num_processes=2, process_id=int(process))
    assert (len(jax.devices()), len(jax.local_devices())) == (8, 4)
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    sequences = sequences_of([3, 0, 8, 5], tokens=8, num_kv_heads=4, group=2, head_dim=8)
    specs = P("data", "model"), P("model"), P("model"), P("data"), P("data")
    call = [
        jax.make_array_from_callback(each.shape, NamedSharding(mesh, spec), each.__getitem__)
        for each, spec in zip(paged(sequences, 4), specs, strict=True)
    ]
    options = {"pages_per_compute_block": 1, "mesh": mesh, "heads_axis": "model", "batch_axis": "data"}
    out = jax.jit(lambda *call: paged_attention(*call, **options))(*call)
    assert not out.is_fully_addressable
    for shard in out.addressable_shards:
        assert_resolved(np.asarray(shard.data), attention(sequences)[shard.index])
    try:
        paged_attention(*call, **{**options, "megacore_mode": "kv_head"})
    except ContractError as error:
        print(str(error).splitlines()[-2].strip())


if __name__ == "__main__":
    main()
