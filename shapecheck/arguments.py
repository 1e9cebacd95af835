"""What a contract says of one argument: the axes of an array, or a parameter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shapecheck.axes import UNNAMED, VARIADIC
from shapecheck.dtypes import bits_of
from shapecheck.outcome import UNKNOWN, Values


@dataclass(frozen=True)
class ArrayArgument:
    """An array argument and its axes.

    Each array argument `a` puts these names at the disposal of relations: `a_rank`, `a_shape`, `a_dtype`, `a_bits` of one
    element, and `a_AXIS` for each axis. The plain `AXIS` is the size at its first occurrence in the signature. An argument
    that may be quantized adds `a_scales_shape` and `a_scales_dtype`, None for plain pages, and `a_scales_bits`, then 0.
    Where the elements are known, `a_min` and `a_max` are the least and the greatest.

    Attributes:
        name: the parameter's name.
        axes: the names of its dimensions, in order; `"_"` has no name, `"..."` stands for any number of dimensions.
        quantizable: whether a `QuantizedTensor(weight, scales)` may stand in its place; shape and dtype are the weight's.
        path: where it stands, if it is a part of an argument: `cache.k_pages`, `caches[*]`; empty if it is one itself.
    """

    name: str
    axes: tuple[str, ...]
    quantizable: bool = False
    path: str = ""

    @property
    def place(self) -> str:
        """The expression that it comes from."""
        return self.path or self.name

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each axis that has a name: its first, and counted from the end behind `"..."`."""
        variadic = self.axes.index(VARIADIC) if VARIADIC in self.axes else len(self.axes)
        positions: dict[str, int] = {}
        for index, axis in enumerate(self.axes):
            if axis not in (UNNAMED, VARIADIC):
                positions.setdefault(axis, index if index < variadic else index - len(self.axes))
        return positions

    def sizes(self, shape: tuple[Any, ...]) -> dict[str, Any]:
        """Return the names that a shape defines: of a wrong rank, no axes."""
        values: dict[str, Any] = {f"{self.name}_rank": len(shape), f"{self.name}_shape": tuple(shape)}
        if self.takes_rank(len(shape)):
            values |= {f"{self.name}_{axis}": shape[index] for axis, index in self.positions.items()}
        return values

    def takes_rank(self, rank: int) -> bool:
        """Say whether an array with so many axes may stand in its place."""
        return rank == len(self.axes) or (VARIADIC in self.axes and rank >= len(self.axes) - 1)

    def bits(self, values: Values) -> dict[str, int]:
        """Return the names that follow from dtypes, as far as these are known."""
        names = (self.name, f"{self.name}_scales") if self.quantizable else (self.name,)
        widths = ((f"{name}_bits", bits_of(values.get(f"{name}_dtype", UNKNOWN))) for name in names)
        return {name: width for name, width in widths if width is not None}

    def origins(self) -> Iterator[tuple[str, str]]:
        """Yield each name with the expression a user would write for it."""
        name, place = self.name, self.place
        yield f"{name}_rank", f"{place}.ndim"
        yield f"{name}_shape", f"{place}.shape"
        yield f"{name}_dtype", f"{place}.dtype"
        yield f"{name}_bits", f"{place}.dtype"
        for axis, index in self.positions.items():
            yield f"{name}_{axis}", f"{place}.shape[{index}]"
        if self.quantizable:
            yield f"{name}_scales_shape", f"{place}.scales.shape"
            yield f"{name}_scales_dtype", f"{place}.scales.dtype"
            yield f"{name}_scales_bits", f"{place}.scales.dtype"


@dataclass(frozen=True)
class Parameter:
    """A non-array argument `p`: relations may use its value `p` and the name of its type `p_type`, e.g. `"int"`.

    One that names an axis of the mesh in the parameter `mesh` adds `p_size`, over how many devices that axis goes: 0 where the
    mesh has no such axis, and not defined for None.

    Attributes:
        name: the parameter's name.
        default: `UNKNOWN` where the call must give it, or where it cannot be written down.
        path: where it stands if it is a field of an argument: `blocks.block_q`.
        names_axis: whether it names an axis of the mesh.
    """

    name: str
    default: Any = UNKNOWN
    path: str = ""
    names_axis: bool = False

    @property
    def place(self) -> str:
        """The expression that it comes from."""
        return self.path or self.name
