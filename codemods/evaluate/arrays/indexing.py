"""Subscripts of arrays, and the functions that do what subscripts do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import rearranged, reshaped
from codemods.evaluate.arrays.dtypes import kind
from codemods.evaluate.arrays.shapes import Shape
from codemods.evaluate.arrays.signatures import UNKNOWN
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int, Term
from codemods.values import Array, At, ListRef, Opaque, Slice, Value, as_int, describe


def sliced(array: Array, axis: int, start: Int | None, stop: Int | None, step: Int | None = None) -> Array:
    """Return `array[start:stop:step]` along an axis."""
    size = array.shape[axis]
    shape = (*array.shape[:axis], shapes.slice_size(size, start, stop, step), *array.shape[axis + 1 :])
    if isinstance(size, Term) or isinstance(start, Term) or isinstance(stop, Term) or isinstance(step, Term):
        return replace(array, shape=shape, contents=None)
    places = range(size)[start:stop:step]
    return rearranged(array, shape, lambda position: (*position[:axis], places[position[axis]], *position[axis + 1 :]))


def picked(array: Array, axis: int, index: Int) -> Array:
    """Return `array[index]` along an axis; JAX reads the nearest element if there is none at the index."""
    size = array.shape[axis]
    shape = (*array.shape[:axis], *array.shape[axis + 1 :])
    if not isinstance(index, int) or not isinstance(size, int):
        return replace(array, shape=shape, contents=None)
    if not -size <= index < size:
        if array.library != "jax" or not size:
            shapes.fails(f"no element {index} in an axis of size {size}")
        return replace(array, shape=shape, contents=None)
    return rearranged(array, shape, lambda position: (*position[:axis], index % size, *position[axis:]))


@dataclass(frozen=True)
class _Gathered:
    """Elements at the positions that an array of integers names, of this shape."""

    shape: Shape


def index(array: Array, key: Value, elements: Any = None) -> Value:
    """Return `array[key]`, the key as the evaluator has it: numbers, `Slice`, None, Ellipsis, arrays, or a tuple of them.

    `elements` gives the elements of a list in the key.
    """
    if isinstance(array, At):
        return array
    call = Call(f"{array.library}.index", (), elements=elements) if elements else Call(f"{array.library}.index", ())
    keys = [_read(call, each) for each in (key if isinstance(key, tuple) else (key,))]
    keys = _filled_up(array, keys)
    if any(isinstance(each, _Gathered) for each in keys):
        return _gather(array, keys)
    return args.unboxed(_basic(array, keys))


def _read(call: Call, key: Value) -> Value:
    """Return one element of a key as an `int`, a `Term`, a `Slice`, None, Ellipsis or `_Gathered`."""
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, Slice):
        return Slice(*(_part(part) for part in (key.lower, key.upper, key.step)))
    if isinstance(key, bool) or (isinstance(key, Opaque) and key.at_least is None):
        raise Unmodelled(f"whether the index `{describe(key)}` is a number, a slice or an array is not known")
    if isinstance(key, tuple | ListRef | range):
        key = args.array(call, key)
    if isinstance(key, Array):
        if kind(key.dtype) != "int":
            raise Unmodelled("how many elements a mask selects is not known")
        if key.shape:
            return _Gathered(key.shape)
        return shapes.unknown(("index",), "index") if key.contents is None else key.contents
    number = as_int(key)
    if number is None:
        raise Unmodelled(f"the index `{describe(key)}` is not known")
    return number


def _part(part: Value) -> Int | None:
    if isinstance(part, Array) and part.shape == () and part.contents is not None:
        return part.contents
    number = as_int(part)
    if part is not None and number is None:
        raise Unmodelled(f"the bound `{describe(part)}` of a slice is not known")
    return number


def _filled_up(array: Array, keys: list[Value]) -> list[Value]:
    """Put whole slices where the ellipsis stands, or at the end."""
    missing = len(array.shape) - sum(key is not None and key is not Ellipsis for key in keys)
    if missing < 0 or sum(key is Ellipsis for key in keys) > 1:
        shapes.fails(f"{len(keys)} indices into an array of rank {len(array.shape)}")
    place = next((place for place, key in enumerate(keys) if key is Ellipsis), len(keys))
    if not missing and place < len(keys) and any(isinstance(key, _Gathered) for key in keys):
        raise Unmodelled("whether an ellipsis that stands for no axis parts arrays in a subscript differs between libraries")
    return [*keys[:place], *[Slice(None, None, None)] * missing, *keys[place + 1 :]]


def _basic(array: Array, keys: Sequence[Value]) -> Array:
    """Apply numbers, slices and None, from the left; an axis that is gathered stays."""
    axis = 0
    for key in keys:
        if key is None:
            array = reshaped(array, (*array.shape[:axis], 1, *array.shape[axis:]))
        elif isinstance(key, Slice):
            array = sliced(array, axis, key.lower, key.upper, key.step)
        elif not isinstance(key, _Gathered):
            array = picked(array, axis, key)
            continue
        axis += 1
    return array


def _gather(array: Array, keys: Sequence[Value]) -> Array:
    """Index with arrays: their axes come where they stand if they stand side by side, else in front.

    To NumPy and JAX, unlike torch, a number among arrays is an array as well.
    """
    numbers = [key for key in keys if isinstance(key, int | Term)]
    if numbers and array.library == UNKNOWN:
        raise Unmodelled("where the axes of an index go differs between libraries")
    if array.library == "torch":
        array = _basic(
            array, [key if isinstance(key, int | Term) else Slice(None, None, None) for key in keys if key is not None]
        )
        keys = [key for key in keys if not isinstance(key, int | Term)]
    gathered = [place for place, key in enumerate(keys) if isinstance(key, int | Term | _Gathered)]
    shape = shapes.broadcast(*(key.shape for key in keys if isinstance(key, _Gathered)))
    kept = _basic(array, [Slice(None, None, None) if isinstance(key, int | Term | _Gathered) else key for key in keys]).shape
    rest = tuple(size for place, size in enumerate(kept) if place not in gathered)
    together = gathered[-1] - gathered[0] == len(gathered) - 1
    front = sum(place not in gathered for place in range(gathered[0])) if together else 0
    return replace(array, shape=(*rest[:front], *shape, *rest[front:]), contents=None)
