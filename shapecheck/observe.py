"""What the arguments of one call say of its geometry."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final, Literal, TypeAlias

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import Chip, local_chip
from shapecheck.contract import ON_TPU, Contract
from shapecheck.outcome import UNKNOWN
from shapecheck.paths import Key, elements, root_of
from shapecheck.symbolic import Symbolic

NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


class _Anywhere(enum.Enum):
    ANYWHERE = "anywhere"


ANYWHERE: Final = _Anywhere.ANYWHERE
"""Where a call is judged whose verdict is the same on every device."""

Place: TypeAlias = Chip | Literal[_Anywhere.ANYWHERE] | None


@dataclass(frozen=True)
class Observation:
    """What a call says of its geometry.

    Attributes:
        values: the values of the contract's names.
        key: the indices and keys of the elements that they speak of, where arguments hold several arrays under one name.
        place: the chip on which the verdict was asked for; `ANYWHERE` where it is the same on all of them.
        elements: of how many elements this is so.
    """

    values: Mapping[str, Any]
    key: Key
    place: Place
    elements: int = 1


def geometry_of(contract: Contract, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of the contract's names in a call whose arguments hold no containers of arrays; see `observed`."""
    return next(observed(contract, arguments)).values


def observed(contract: Contract, arguments: Mapping[str, Any]) -> Iterator[Observation]:
    """Yield the values of the contract's names in a call, given its arguments by name.

    Arrays are whatever has a `shape` and a `dtype`: of jax, also traced, and of numpy, and `jax.ShapeDtypeStruct`. What
    cannot be told is left out or unknown: sizes of an argument that is no array, traced parameters.

    Of a list or a dict of arrays each element gives values of its own. Those of several containers that stand under the same
    index or key belong together. Elements that do not differ are told once.
    """
    distinct: list[tuple[Key, dict[str, Any]]] = []
    counts: list[int] = []
    for key, values, _ in each_element(contract, arguments):
        same = next((index for index, (_, each) in enumerate(distinct) if each == values), None)
        if same is None:
            distinct.append((key, values))
            counts.append(1)
        else:
            counts[same] += 1
    for (key, values), count in zip(distinct, counts, strict=True):
        place = _place_of(contract, values)
        yield Observation({**_chip_values(contract, values, place), **values}, key, place, count)


def each_element(contract: Contract, arguments: Mapping[str, Any]) -> Iterator[tuple[Key, dict[str, Any], dict[str, Any]]]:
    """Yield, of each element of containers, its key, the values of the contract's names, and the arrays by name.

    Arrays that stand outside of containers belong to each of them; where there are no containers, to the only one.
    """
    parts = [(each, elements(arguments[root_of(each.place)], each.place)) for each in _given(contract, arguments)]
    for key in dict.fromkeys(key for _, found in parts for key in found if key) or ((),):
        given = [(each, found.get((), found.get(key, UNKNOWN))) for each, found in parts]
        arrays = {each.name: value for each, value in given if isinstance(each, ArrayArgument) and value is not UNKNOWN}
        yield key, _values(contract, given), arrays


def _given(contract: Contract, arguments: Mapping[str, Any]) -> Iterator[ArrayArgument | Parameter]:
    declared: tuple[ArrayArgument | Parameter, ...] = (*contract.arrays, *contract.parameters)
    return (each for each in declared if root_of(each.place) in arguments)


def _values(contract: Contract, given: Iterable[tuple[ArrayArgument | Parameter, Any]]) -> dict[str, Any]:
    """Return the values of one element, and of what stands outside of containers."""
    values: dict[str, Any] = {parameter.name: UNKNOWN for parameter in contract.parameters}
    for each, value in given:
        values |= _array_values(each, value) if isinstance(each, ArrayArgument) else {each.name: static_value(value)}
    return contract.complete(values) | _mesh_values(contract, values)


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
    if not hasattr(mesh, "axis_names"):
        return {}  # what the annotation is there to say
    sizes = {f"{name}_size": mesh.shape.get(axis, 0) for name, axis in axes.items() if isinstance(axis, str)}
    return {"mesh": mesh, **sizes}


def _mesh_of_the_context() -> Any:
    return sys.modules["jax"].sharding.get_abstract_mesh()


def _place_of(contract: Contract, values: Mapping[str, Any]) -> Place:
    """Return JAX's device where it has a say in the verdict; None where that is no TPU, or Pallas interprets its kernels.

    It is looked at only where the call breaks a rule on some chip: asking for it starts JAX's backend. A v2 or v3 breaks SC308
    whatever the call. There, one that keeps all other rules is left to the compiler.
    """
    if "jax" not in sys.modules or not contract.fails_on_a_chip(values):
        return ANYWHERE
    return None if interpretation() is not None else local_chip()


def is_here(place: Place) -> bool:
    """Say whether a verdict that was asked for at a place is one here as well."""
    return place is ANYWHERE or place is local_chip()


def _chip_values(contract: Contract, values: Mapping[str, Any], place: Place) -> dict[str, Any]:
    return {**place.facts, ON_TPU: contract.uses_tpu(values)} if isinstance(place, Chip) else {ON_TPU: False}


def runs_on_tpu(contract: Contract, values: Mapping[str, Any]) -> bool:
    """Say whether a call runs on JAX's device, and that is a TPU."""
    return contract.uses_tpu(values) and interpretation() is None and "jax" in sys.modules and local_chip() is not None


def interpretation() -> Any:
    """Return how Pallas interprets kernels here for TPUs, under `force_tpu_interpret_mode`; None where it compiles them."""
    setting = getattr(sys.modules.get("jax._src.config"), "pallas_tpu_interpret_mode_context_manager", None)
    return getattr(setting, "value", None)


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
