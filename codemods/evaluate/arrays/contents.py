"""The elements of small integer arrays: nested tuples that follow the array through what is done to it.

What has no rule here merely forgets them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

from codemods.evaluate.arrays.dtypes import holds
from codemods.evaluate.arrays.shapes import Shape, total
from codemods.values import Array, DType

Position: TypeAlias = tuple[int, ...]

LIMIT = 4096  # elements; page tables of tests are smaller, and nobody writes a larger one down


def small(shape: Shape) -> bool:
    count = total(shape)
    return isinstance(count, int) and count <= LIMIT


def positions(shape: Shape) -> Iterator[Position]:
    """Yield the index of each element of a known shape, in order."""
    return product(*(range(size) for size in shape if isinstance(size, int)))


def nest(elements: Iterable[Any], shape: Shape) -> Any:
    """Return elements, in order, as the nested tuples of an array of this shape."""
    if not shape:
        return next(iter(elements))
    elements = list(elements)
    length = shape[0]
    assert isinstance(length, int)
    step = len(elements) // length if length else 0
    return tuple(nest(elements[start * step : (start + 1) * step], shape[1:]) for start in range(length))


def element(contents: Any, position: Position) -> Any:
    for index in position:
        contents = contents[index]
    return contents


def flat(array: Array) -> list[Any]:
    """Return the known elements of an array, in order."""
    return [element(array.contents, position) for position in positions(array.shape)]


def filled(shape: Shape, dtype: DType | None, elements: Callable[[Position], int] | int) -> Any:
    """Return the contents of an array made of these elements; None where it is too large or its dtype does not hold them."""
    if not small(shape) or not holds(dtype, 0):
        return None
    made = [elements if isinstance(elements, int) else elements(position) for position in positions(shape)]
    return nest(made, shape) if all(holds(dtype, number) for number in made) else None


def rearranged(array: Array, shape: Shape, source: Callable[[Position], Position]) -> Array:
    """Return an array of another shape, whose element at `position` is the one at `source(position)` here."""
    known = array.contents is not None and small(shape)
    contents = nest((element(array.contents, source(each)) for each in positions(shape)), shape) if known else None
    return replace(array, shape=shape, contents=contents)


def reshaped(array: Array, shape: Shape) -> Array:
    """Return the array with the same elements in the same order."""
    known = array.contents is not None and small(shape)
    return replace(array, shape=shape, contents=nest(flat(array), shape) if known else None)


def broadcasted(array: Array, shape: Shape) -> Array:
    def source(position: Position) -> Position:
        last = position[len(position) - len(array.shape) :]
        return tuple(0 if size == 1 else index for index, size in zip(last, array.shape, strict=True))

    return rearranged(array, shape, source)


def combined(function: Callable[..., int], arrays: Sequence[Array], shape: Shape, dtype: DType | None) -> Any:
    """Return what a function of integers gives for each element of the broadcast arrays, None where unknown."""
    if any(array.contents is None for array in arrays) or not small(shape):
        return None
    columns = [flat(broadcasted(array, shape)) for array in arrays]
    try:
        made = [function(*row) for row in zip(*columns, strict=True)]
    except ZeroDivisionError:
        return None
    return nest(made, shape) if all(holds(dtype, number) for number in made) else None


def cast(array: Array, dtype: DType | None) -> Any:
    """Return the contents after a conversion to `dtype`."""
    return combined(int, (array,), array.shape, dtype) if holds(dtype, 0) else None


def folded(array: Array, axes: Container[int], function: Callable[[Sequence[int]], int], dtype: DType | None) -> Any:
    """Return what a function gives for the elements along some axes, which become of size 1; None where unknown."""
    if array.contents is None or not holds(dtype, 0):
        return None
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(array.shape))
    groups: dict[Position, list[int]] = {position: [] for position in positions(kept)}
    for position in positions(array.shape):
        place = tuple(0 if axis in axes else index for axis, index in enumerate(position))
        groups[place].append(element(array.contents, position))
    try:
        made = [function(group) for group in groups.values()]
    except ValueError:  # the largest of none
        return None
    return nest(made, kept) if all(holds(dtype, number) for number in made) else None
