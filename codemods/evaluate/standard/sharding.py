"""Meshes and partition specs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.evaluate import iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import interprets, text_of
from codemods.evaluate.library import Unmodelled
from codemods.values import Array, Mesh, Opaque, Spec, Value, as_int

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("jax.sharding.PartitionSpec", "jax.P", "jax.experimental.pjit.PartitionSpec", "jax.interpreters.pxla.PartitionSpec")
def _spec(machine: Machine, arguments: Arguments) -> Value:
    if arguments.spread or arguments.keywords:
        raise Unmodelled("a partition spec with unknown parts")
    return Spec(arguments.positional)


@interprets("jax.device_count", "jax.local_device_count", "torch_xla.runtime.global_device_count")
def device_count(machine: Machine, arguments: Arguments) -> Value:
    """How many devices there are: it is not known, but at least 1, and the same each time."""
    name = "jax.device_count" if arguments.node is None else text_of(arguments)
    reason = machine.reason("the number of devices is not known", arguments.node)
    return Opaque(("device count", name), name, reason, 1, pure=True)


@interprets("jax.make_mesh", "jax.sharding.AbstractMesh")
def _make_mesh(machine: Machine, arguments: Arguments) -> Value:
    """`make_mesh((2, 4), ("data", "model"))`."""
    given = dict(zip(("shape", "names"), arguments.positional, strict=False)) | dict(arguments.keywords)
    shape = given.get("shape", given.get("axis_shapes", given.get("axis_sizes")))
    return _mesh(machine, iteration.elements(machine, shape), given.get("names", given.get("axis_names")))


@interprets("jax.sharding.Mesh", "jax.experimental.maps.Mesh", "jax.interpreters.pxla.Mesh")
def _mesh_of_devices(machine: Machine, arguments: Arguments) -> Value:
    """`Mesh(devices, ("data", "model"))`: the sizes are known where the shape of `devices` is."""
    given = dict(zip(("devices", "axis_names"), arguments.positional, strict=False)) | dict(arguments.keywords)
    devices = given.get("devices")
    names = _names(machine, given.get("axis_names"))
    if isinstance(devices, Array):
        return _mesh(machine, devices.shape, names)
    sizes = tuple(
        replace(machine.unknown(f"the size of mesh axis {name!r}", "the number of devices is not known"), at_least=1)
        for name in names
    )
    return _mesh(machine, sizes, names)


@interprets("jax.experimental.mesh_utils.create_device_mesh")
def _device_mesh(machine: Machine, arguments: Arguments) -> Value:
    shape = arguments.positional[0] if arguments.positional else arguments.keywords.get("mesh_shape")
    sizes = [as_int(size) for size in iteration.elements(machine, shape)]
    if None in sizes:
        raise Unmodelled("the shape of the mesh is not known")
    return Array(tuple(size for size in sizes if size is not None), None, "numpy")


def _mesh(machine: Machine, sizes: tuple[Value, ...], names: Value) -> Mesh:
    parts = _names(machine, names)
    if len(parts) != len(sizes):
        raise Unmodelled("the axes of the mesh are not known")
    return Mesh(tuple(zip(parts, sizes, strict=True)))


def _names(machine: Machine, names: Value) -> tuple[str, ...]:
    parts = (names,) if isinstance(names, str) else iteration.elements(machine, names)
    if not all(isinstance(part, str) for part in parts):
        raise Unmodelled("the axes of the mesh are not known")
    return parts
