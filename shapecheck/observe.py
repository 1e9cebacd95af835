"""What the arguments of one call say of its geometry."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from shapecheck.chip import local_chip
from shapecheck.contract import ON_TPU, ArrayArgument, Contract
from shapecheck.relation import UNKNOWN
from shapecheck.symbolic import Symbolic

NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def geometry_of(contract: Contract, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the contract's names in a call, given its arguments by name.

    Arrays are whatever has a `shape` and a `dtype`: of jax, also traced, and of numpy, and `jax.ShapeDtypeStruct`. What
    cannot be told is left out or unknown: sizes of an argument that is no array, traced parameters.
    """
    values: dict[str, Any] = {}
    for array in contract.arrays:
        values |= _array_values(array, arguments.get(array.name))
    for parameter in contract.parameters:
        values[parameter.name] = static_value(arguments.get(parameter.name, UNKNOWN))
    values = contract.complete(values) | _mesh_values(contract, values)
    return values | _chip_values(contract, values)


def static_value(value: Any) -> Any:
    """Return a parameter as the plain Python value that it holds: `int` for `np.int64`; unknown where it is traced."""
    if is_array(value):
        try:
            return value.item() if value.shape == () else UNKNOWN
        except (AttributeError, TypeError, RuntimeError):  # a ShapeDtypeStruct, a tracer, a deleted array
            return UNKNOWN
    # A symbolic size of jax.export is no array, but turns into one.
    return UNKNOWN if hasattr(value, "__jax_array__") else value


def is_array(value: Any) -> bool:
    """Say whether `value` has a shape and a dtype."""
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")


def is_quantized(value: Any) -> bool:
    """Say whether `value` is an array kept as `weight` and `scales`, such as JAX's `QuantizedTensor`."""
    return hasattr(value, "weight") and hasattr(value, "scales")


def shape_of(value: Any) -> tuple[Any, ...]:
    """Return an array's shape; sizes that are neither integers nor symbolic ones of `jax.export` are unknown."""
    return tuple(int(size) if isinstance(size, Integral) else _symbolic(size) for size in value.shape)


def _symbolic(size: Any) -> Any:
    return Symbolic(size) if hasattr(size, "__jax_array__") else UNKNOWN


def dtype_of(value: Any) -> str:
    """Return the name of the dtype that jit sees: 64-bit types are narrowed unless `jax_enable_x64` is on."""
    name = str(getattr(value.dtype, "name", value.dtype)).rpartition(".")[2]
    config = getattr(sys.modules.get("jax"), "config", None)
    return name if getattr(config, "jax_enable_x64", False) else NARROWED.get(name, name)


def _array_values(array: ArrayArgument, value: Any) -> dict[str, Any]:
    name = array.name
    values: dict[str, Any] = {}
    if array.quantizable and is_quantized(value):
        if is_array(value.scales):
            values = {f"{name}_scales_shape": shape_of(value.scales), f"{name}_scales_dtype": dtype_of(value.scales)}
        value = value.weight
    elif array.quantizable and is_array(value):
        values = {f"{name}_scales_shape": None, f"{name}_scales_dtype": None}
    if is_array(value):
        values |= {**array.sizes(shape_of(value)), f"{name}_dtype": dtype_of(value)}
    return values


def _mesh_values(contract: Contract, values: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the mesh: the one that is given, else that of the context, as `jax.shard_map` does."""
    axes = {parameter.name: values[parameter.name] for parameter in contract.parameters if parameter.names_axis}
    if all(axis in (None, UNKNOWN) for axis in axes.values()):
        return {}
    mesh = values.get("mesh") or _mesh_of_the_context()
    sizes = {f"{name}_size": mesh.shape.get(axis, 0) for name, axis in axes.items() if isinstance(axis, str)}
    return {"mesh": mesh, **sizes}


def _mesh_of_the_context() -> Any:
    return sys.modules["jax"].sharding.get_abstract_mesh()


def _chip_values(contract: Contract, values: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the device only where the call breaks a rule on some chip: asking for it starts JAX's backend.

    A v2 or v3 breaks SC308 whatever the call. There, one that keeps all other rules is left to the compiler.
    """
    chip = local_chip() if "jax" in sys.modules and contract.fails_on_a_chip(values) else None
    return {**chip.facts, ON_TPU: contract.uses_tpu(values)} if chip else {ON_TPU: False}


def sharding_note() -> tuple[str, ...]:
    """Return a line that says whose sizes these are where the call is inside `shard_map`; else nothing."""
    axes = mesh_axes_inside()
    return (f"inside shard_map over {', '.join(map(repr, axes))}: the sizes are those of one shard",) if axes else ()


def mesh_axes_inside() -> dict[str, int]:
    """Return the axes over which `shard_map` has split the arrays here, with their sizes; none outside of it."""
    sharding: Any = getattr(sys.modules.get("jax"), "sharding", None)
    try:
        mesh = sharding.get_abstract_mesh()
        return {axis: mesh.shape[axis] for axis in mesh.manual_axes}
    except AttributeError:
        return {}
