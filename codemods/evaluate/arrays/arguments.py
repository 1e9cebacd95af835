"""What the arguments of a call are: arrays, shapes, sizes, axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemods.evaluate.arrays.contents import LIMIT, cast, small
from codemods.evaluate.arrays.dtypes import canonical, default_float, default_int, holds
from codemods.evaluate.arrays.promotion import promote
from codemods.evaluate.arrays.shapes import Shape, fails, same
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int, Symbol, Term, of
from codemods.values import Array, DictRef, DType, External, Opaque, Quantized, Value, as_int, describe

_BOXES = (DType("int32"), DType("int64"))


def adopted(array: Array, library: str) -> Array:
    """Return an array as it is after another library has taken it over."""
    if array.library == library:
        return array
    moved = Array(array.shape, canonical(array.dtype, library), library)
    return replace(moved, contents=cast(array, moved.dtype))


def scalar(value: Value, library: str) -> Array | None:
    """Return a Python number as the weak array of rank 0 that it is to an operation; None for anything else."""
    if isinstance(value, bool):
        return Array((), DType("bool"), library)
    if isinstance(value, float):
        return Array((), default_float(library), library, weak=True)
    if isinstance(value, int):
        dtype = default_int(library)
        if dtype is not None and not holds(dtype, value):
            raise Unmodelled(f"{value} does not fit into {dtype.name}")
        return Array((), dtype, library, contents=value, weak=True)
    if isinstance(value, Term) or (isinstance(value, Opaque) and (value.at_least is not None or value.kind == "int")):
        return Array((), default_int(library), library, weak=True)
    if isinstance(value, Opaque) and value.kind:
        return Array((), default_float(library) if value.kind == "float" else None, library, weak=True)
    return None


def array(call: Call, value: Value) -> Array:
    """Return an argument as an array of the library that is called."""
    if isinstance(value, Array):
        return adopted(value, call.library)
    number = scalar(value, call.library)
    if number is not None:
        return number
    if value is None or isinstance(value, Opaque | External | Quantized | str | bytes):
        raise Unmodelled(f"the shape of `{describe(value)}` is not known")
    return _literal(call, elements(call, value))


def like(value: Opaque, dtype: DType | None) -> Opaque:
    """Return an unknown array of the same shape as another one, of this dtype."""
    key = ("like", value.key, dtype)
    return Opaque(key, value.text, value.reason, pure=value.pure, shaped=value, dtype=dtype)


def ranked(call: Call, value: Value, rank: int) -> Array:
    """Return an argument as an array that must be of this rank: of an unknown one, the sizes are unknown."""
    if not isinstance(value, Opaque) or value.at_least is not None or value.kind:
        return array(call, value)
    return Array(tuple(of(value.shape.item(axis).symbol()) for axis in range(rank)), value.dtype, call.library)


def elements(call: Call, value: Value) -> tuple[Value, ...]:
    """Return the elements of a sequence; of a dict, they would be its keys."""
    found = None if isinstance(value, DictRef) else call.elements(value)
    if not isinstance(found, tuple):
        raise Unmodelled("the elements of a sequence are not known")
    return found


def firm(made: Array) -> Array:
    """Return an array without what only NumPy's ufuncs give to Python's numbers: to give way to any other dtype."""
    return replace(made, weak=False) if made.library == "numpy" else made


def _literal(call: Call, values: Sequence[Value]) -> Array:
    """Return the array that a list of numbers, of lists or of arrays is made into."""
    if not values:
        return Array((0,), default_float(call.library), call.library)
    if len(values) > LIMIT:
        raise Unmodelled("a list too long to follow")
    parts = [firm(array(call, value)) for value in values]
    dtype, _ = promote(call.library, parts)
    shape = (len(parts), *same([part.shape for part in parts]))
    known = holds(dtype, 0) and small(shape) and all(part.contents is not None for part in parts)
    return Array(shape, dtype, call.library, tuple(part.contents for part in parts) if known else None)


def arrays(call: Call, value: Value, *, alike: bool = False) -> tuple[Array, ...]:
    """Return the arrays of a sequence, e.g. those to be stacked; if they are `alike`, all have the rank that one has."""
    if isinstance(value, Array):
        raise Unmodelled("an array in place of a sequence of arrays")
    parts = elements(call, value)
    ranks = {len(part.shape) for part in parts if isinstance(part, Array)}
    if alike and len(ranks) == 1:
        (rank,) = ranks
        return tuple(firm(ranked(call, part, rank)) for part in parts)
    return tuple(firm(array(call, part)) for part in parts)


def as_size(value: Value) -> Int | None:
    """Return a number, known or not, that is certain to be one; else None."""
    return None if isinstance(value, Opaque) and value.at_least is None else as_int(value)


def size(call: Call, value: Value) -> Int:
    """Return one size of a shape, or a count."""
    if isinstance(value, Array) and value.shape == ():
        return value.contents if isinstance(value.contents, int) else unknown_int(call, "a size that is an array", 0)
    number = as_int(value)
    if number is None:
        raise Unmodelled(f"`{describe(value)}` is no size")
    return number


def sizes(call: Call, value: Value) -> Shape:
    """Return a whole shape: a sequence of sizes, or one."""
    if isinstance(value, Opaque) and value.at_least is None:
        raise Unmodelled(f"whether `{value.text}` is a shape or a size is not known")
    if isinstance(value, int | Term | Opaque) or (isinstance(value, Array) and value.shape == ()):
        return (size(call, value),)
    if isinstance(value, Array):
        if not isinstance(value.contents, tuple):
            raise Unmodelled("a shape that is an array of unknown numbers")
        value = value.contents
    if value is None or isinstance(value, str | float | External):
        raise Unmodelled(f"`{describe(value)}` is no shape")
    return tuple(size(call, element) for element in elements(call, value))


def spread_sizes(call: Call, values: tuple[Value, ...]) -> Shape:
    """Return a shape given as `(2, 3)` or spread as `2, 3`."""
    if len(values) == 1:
        return sizes(call, values[0])
    return tuple(size(call, value) for value in values)


def new_shape(call: Call, *values: Value) -> Shape:
    """Return the shape of an array that is made, given as `(2, 3)` or spread as `2, 3`."""
    shape = spread_sizes(call, values)
    if any(isinstance(each, int) and each < 0 for each in shape):
        fails(f"{shape} has a negative size")
    return shape


def integer(value: Value) -> int:
    """Return an axis, a count or the like that must be known."""
    if isinstance(value, Array) and value.shape == ():
        value = value.contents
    if not isinstance(value, int):
        raise Unmodelled(f"the number `{describe(value)}` is not known")
    return int(value)


def integers(call: Call, value: Value) -> tuple[int, ...]:
    """Return known numbers, given as a sequence or as one."""
    return tuple(integer(each) for each in sizes(call, value))


def spread_integers(call: Call, values: tuple[Value, ...]) -> tuple[int, ...]:
    return tuple(integer(each) for each in spread_sizes(call, values))


def axes(call: Call, value: Value) -> tuple[int, ...] | None:
    """Return the argument `axis` of a reduction; None: all axes."""
    return None if value is None else integers(call, value)


def flag(value: Value) -> bool:
    if not isinstance(value, bool | int):
        raise Unmodelled(f"whether `{describe(value)}` is true is not known")
    return bool(value)


def unknown_int(call: Call, text: str, at_least: int | None = None) -> Int:
    """Return an integer that is like no other."""
    made = call.fresh(text)
    return of(Symbol(made.key, made.text, at_least))


def unboxed(made: Array) -> Value:
    """Return NumPy's usual integer scalars as the numbers they are: source uses them as sizes."""
    if made.library == "numpy" and made.shape == () and made.dtype in _BOXES and made.contents is not None:
        return made.contents
    return made
