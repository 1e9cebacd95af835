"""What the compiler is asked: one call of a kernel of JAX, on one chip."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

from shapecheck.arguments import ArrayArgument
from shapecheck.chip import Chip, chip_of
from shapecheck.compiler.kernels import KERNELS, Kernel
from shapecheck.contract import Contract
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.plan import divisors

_MOST = 128  # devices of the last of these
_SQUARES = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16")
_CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8")
_IN_CUBES = frozenset({"v4", "v5p", "tpu7x"})


@dataclass(frozen=True)
class Mesh:
    """Devices over which a call is split by `shard_map`: the batch over `data` of them, the heads over `model`.

    Each device holds all pages of its KV heads.
    """

    data: int = 1
    model: int = 1

    @property
    def size(self) -> int:
        return self.data * self.model

    def __str__(self) -> str:
        return f"data={self.data},model={self.model}"


@dataclass(frozen=True)
class Question:
    """A call whose shapes, dtypes and parameters are all known, and the chip to compile it for.

    Attributes:
        kernel: what is called.
        chip: the TPU.
        values: the names of the contract with their values, as `Contract.geometry` gives them, for whole arrays.
        mesh: None: one device.

    Raises:
        ValueError: a shape, dtype or parameter is not known; or batch or heads cannot be split over the mesh.
    """

    kernel: Kernel
    chip: Chip
    values: Values = field(hash=False)
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        if absent := list(missing(self.contract, self.values)):
            raise ValueError(f"not known: {', '.join(absent)}")
        if self.mesh is not None:
            if self.mesh.size > _MOST:
                raise ValueError(f"a mesh of {self.mesh.size} devices: {_MOST} at most can be compiled for")
            for each, ways in asdict(self.mesh).items():
                if ways > 1 and each not in self.kernel.split:
                    raise ValueError(f"{self.kernel.name} is not split over {each!r}, only over {', '.join(self.kernel.split)}")
                for array, axis in self.kernel.split.get(each, {}).items():
                    size = self.values.get(f"{array}_{axis}", 0)
                    if size % ways:
                        legal = ", ".join(map(str, divisors(size)))
                        raise ValueError(f"{axis} = {size} cannot be split {ways} ways, over {each!r}; legal numbers: {legal}")

    @classmethod
    def of(cls, chip: str, *, callee: str = "paged_attention", mesh: Mesh | None = None, **geometry: Any) -> Question:
        """State a call by the names of its axes, parameters and dtypes, as `shapecheck.judge` takes them.

        Args:
            chip: the TPU, e.g. `"v5e"`.
            callee: the name of a kernel that can be compiled: `KERNELS` has them.
            mesh: the devices over which the batch, or the query heads and the KV heads, are split.
            **geometry: sizes of the whole arrays in elements (`batch_size=8`), values of parameters, names of dtypes. What is
                left out: parameters have their defaults, lengths and page indices are int32, pages are plain.

        Raises:
            TypeError: the kernel has no such axis or parameter.
            ValueError: no such chip or kernel, or as the class has it.
        """
        if (kernel := KERNELS.get(callee)) is None:
            raise ValueError(f"{callee!r} is no kernel that can be compiled; these are: {', '.join(KERNELS)}")
        plain = {f"{array.name}_scales_dtype": None for array in kernel.contract.arrays if array.quantizable}
        return cls(
            kernel, chip_of(chip), kernel.contract.geometry(**plain, **kernel.completed({**kernel.assumed, **geometry})), mesh
        )

    @property
    def contract(self) -> Contract:
        return self.kernel.contract

    @cached_property
    def geometry(self) -> dict[str, Any]:
        """What the kernel sees on one device of the chip, for `Contract.judge`."""
        contract, ways = self.contract, asdict(self.mesh or Mesh())
        stated = {name: value for name, value in self.values.items() if name in contract.owners and name not in contract.axes}
        for array in contract.arrays:  # a shape follows from its axes, that of the scales does not
            stated.pop(f"{array.name}_shape", None)
            spec = _spec(array, self.kernel)
            for axis, each in zip(array.axes, spec, strict=True):
                if each and (name := f"{array.name}_{axis}") in stated:
                    stated[name] //= ways[each]
            if scales := stated.get(f"{array.name}_scales_shape"):
                parts = [size // ways[each] if each else size for size, each in zip(scales, spec, strict=False)]
                stated[f"{array.name}_scales_shape"] = (*parts, *scales[len(spec) :])
        return contract.geometry(chip=self.chip, **stated)

    @cached_property
    def request(self) -> dict[str, Any]:
        """What the worker reads: the arrays, the parameters, and topologies of which one has enough devices.

        A v4 has two cores in one device, as JAX finds it on a machine; libtpu's own default for topologies is one.
        """
        layouts = _CUBES if self.chip.name in _IN_CUBES else _SQUARES
        contract = self.contract
        return {
            "module": self.kernel.module,
            "function": self.kernel.name,
            "topologies": [f"{self.chip.name}:{layout}" for layout in layouts],
            "config": "megacore" if self.chip.cores_per_device == 2 else "default",
            "mesh": self.mesh and asdict(self.mesh),
            "specs": {array.name: _spec(array, self.kernel) for array in contract.arrays},
            "arrays": {array.name: _array(array, self.values) for array in contract.arrays},
            "parameters": {parameter.name: self.values[parameter.name] for parameter in contract.parameters},
        }

    @cached_property
    def key(self) -> str:
        """What is the same for the same request, and for no other."""
        return json.dumps(self.request, sort_keys=True)


def missing(contract: Contract, values: Values) -> Iterator[str]:
    """Yield the names without which a call cannot be compiled, and that are not known."""
    for array in contract.arrays:
        if _shape(array, values) is None:
            names = [f"{array.name}_{axis}" for axis in array.positions]
            yield from [name for name in names if not isinstance(values.get(name), int)] or [f"{array.name}_shape"]
        if not isinstance(values.get(f"{array.name}_dtype"), str):
            yield f"{array.name}_dtype"
        if array.quantizable and not _is_plain(array, values):
            if not _is_shape(values.get(f"{array.name}_scales_shape")):
                yield f"{array.name}_scales_shape"
            if not isinstance(values.get(f"{array.name}_scales_dtype"), str):
                yield f"{array.name}_scales_dtype"
    for parameter in contract.parameters:
        if not isinstance(values.get(parameter.name, UNKNOWN), int | float | str | None):
            yield parameter.name


def _spec(array: ArrayArgument, kernel: Kernel) -> list[str | None]:
    """Return the axis of the mesh over which each axis of an array is split."""
    return [next((each for each, split in kernel.split.items() if split.get(array.name) == axis), None) for axis in array.axes]


def _shape(array: ArrayArgument, values: Values) -> tuple[int, ...] | None:
    """Return the shape of an array, of whatever rank; None where it is not known."""
    named = tuple(values.get(f"{array.name}_{axis}") for axis in array.positions)
    return next((shape for shape in (values.get(f"{array.name}_shape"), named) if _is_shape(shape)), None)


def _is_shape(value: Any) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)  # pyright: ignore[reportUnknownVariableType]


def _is_plain(array: ArrayArgument, values: Values) -> bool:
    return values.get(f"{array.name}_scales_dtype", UNKNOWN) is None


def _array(array: ArrayArgument, values: Values) -> dict[str, Any]:
    described: dict[str, Any] = {"shape": _shape(array, values), "dtype": values[f"{array.name}_dtype"]}
    if array.quantizable and not _is_plain(array, values):
        described["scales"] = {
            "shape": values[f"{array.name}_scales_shape"],
            "dtype": values[f"{array.name}_scales_dtype"],
        }
    return described
