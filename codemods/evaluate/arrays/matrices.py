"""Matrices by their diagonals and triangles, and grids of coordinates."""

from __future__ import annotations

from dataclasses import replace

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import Position, broadcasted, filled, reshaped
from codemods.evaluate.arrays.dtypes import chosen, default_float
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, Value


@model(FUNCTIONS, "tri")
def tri(call: Call, N: Value, M: Value = None, k: Value = 0, dtype: Value = None) -> Array:  # as NumPy has it
    rows = args.size(call, N)
    shape = (rows, rows if M is None else args.size(call, M))
    made, above = chosen(dtype, call.library, default_float(call.library)), args.integer(k)

    def is_below(position: Position) -> int:
        row, column = position
        return int(column - row <= above)

    return Array(shape, made, call.library, filled(shape, made, is_below))


@model(FUNCTIONS, "diag")
@model(TORCH, "diag")
def diag(call: Call, a: Value, k: Value = 0, *, diagonal: Value = None) -> Array:
    array, offset = args.array(call, a), args.integer(k if diagonal is None else diagonal)
    if len(array.shape) not in (1, 2):
        shapes.fails(f"the diagonal of an array of rank {len(array.shape)}")
    if len(array.shape) == 2:
        return _diagonal(array, offset, 0, 1)
    side = terms.add(shapes.total(array.shape), abs(offset))
    return replace(array, shape=(side, side), contents=None)


@model((*FUNCTIONS, *METHODS), "diagonal")
def diagonal(call: Call, a: Value, offset: Value = 0, axis1: Value = 0, axis2: Value = 1) -> Array:
    array = args.array(call, a)
    along = shapes.axes_of(len(array.shape), (args.integer(axis1), args.integer(axis2)))
    return _diagonal(array, args.integer(offset), *along)


def _diagonal(array: Array, offset: int, axis1: int, axis2: int) -> Array:
    """Return the diagonals of the matrices of two axes, as the last axis."""
    rows, columns = array.shape[axis1], array.shape[axis2]
    rest = tuple(size for axis, size in enumerate(array.shape) if axis not in (axis1, axis2))
    return replace(array, shape=(*rest, _diagonal_size(rows, columns, offset)), contents=None)


def _diagonal_size(rows: Int, columns: Int, offset: int) -> Int:
    if rows == columns and not offset:
        return rows
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise Unmodelled("how long the diagonal of a matrix of unknown sides is")
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


@model(FUNCTIONS, "rot90")
@model(TORCH, "rot90")
def rot90(call: Call, a: Value, k: Value = 1, axes: Value = (0, 1), *, axis: Value = None) -> Array:
    array = args.array(call, a)
    plane = shapes.axes_of(len(array.shape), args.integers(call, axes if axis is None else axis))
    if len(plane) != 2:
        shapes.fails("a rotation in other than two axes")
    turned = list(array.shape)
    if args.integer(k) % 2:
        first, second = plane
        turned[first], turned[second] = turned[second], turned[first]
    return replace(array, shape=tuple(turned), contents=None)


@model(FUNCTIONS, "meshgrid")
def meshgrid(call: Call, *axes: Value, indexing: Value = "xy", sparse: Value = False) -> tuple[Array, ...]:
    return _grid([args.array(call, axis) for axis in axes], indexing, sparse=args.flag(sparse))


@model("torch", "meshgrid")
def torch_meshgrid(call: Call, *axes: Value, indexing: Value = "ij") -> tuple[Array, ...]:
    given = [*args.arrays(call, axes[0])] if len(axes) == 1 else [args.array(call, axis) for axis in axes]
    return _grid(given, indexing, sparse=False)


def _grid(axes: list[Array], indexing: Value, *, sparse: bool) -> tuple[Array, ...]:
    """Return an array for each axis, which holds that axis's coordinate of each point; with `xy`, the first two change places."""
    if any(len(axis.shape) != 1 for axis in axes) or indexing not in ("xy", "ij"):
        raise Unmodelled("a grid of other than vectors")
    places = [1, 0, *range(2, len(axes))] if indexing == "xy" and len(axes) > 1 else [*range(len(axes))]
    lying = [
        reshaped(axis, tuple(shapes.total(axis.shape) if place == own else 1 for place in range(len(axes))))
        for own, axis in zip(places, axes, strict=True)
    ]
    whole = shapes.broadcast(*(axis.shape for axis in lying))
    return tuple(lying) if sparse else tuple(broadcasted(axis, whole) for axis in lying)
