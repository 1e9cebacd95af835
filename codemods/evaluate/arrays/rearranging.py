"""The same elements in another order or shape: reshape, squeeze, transpose, broadcast, tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import Position, rearranged, reshaped
from codemods.evaluate.arrays.dtypes import default_int
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.formulas import equal, invert
from codemods.values import Array, Choice, Opaque, Value

# Another shape


@model((*FUNCTIONS, *METHODS, *TORCH, "jax.lax"), "reshape")
def reshape(call: Call, a: Value, *sizes: Value, shape: Value = None, order: Value = "C") -> Array:
    wanted = args.spread_sizes(call, sizes if shape is None else (shape,))
    if isinstance(a, Opaque):  # whatever it is, this is its shape now
        rest = shapes.unknown(("reshape", a.key, wanted), f"{a.text}.reshape(...)")
        return Array(tuple(rest if size == -1 else size for size in wanted), None, call.library)
    array = args.array(call, a)
    made = reshaped(array, shapes.reshape(array.shape, wanted))
    return made if order == "C" else replace(made, contents=None)


@model((*FUNCTIONS, *METHODS), "ravel")
@model(METHODS, "flatten")
@model(TORCH, "ravel")
def ravel(call: Call, a: Value, order: Value = "C") -> Array:
    array = args.array(call, a)
    made = reshaped(array, (shapes.total(array.shape),))
    return made if order == "C" else replace(made, contents=None)


@model(TORCH, "flatten")
def torch_flatten(call: Call, a: Value, start_dim: Value = 0, end_dim: Value = -1) -> Array:
    array = args.array(call, a)
    if not array.shape:
        return reshaped(array, (1,))
    start, end = shapes.axes_of(len(array.shape), (args.integer(start_dim),))[0], args.integer(end_dim)
    return reshaped(array, shapes.merge(array.shape, start, shapes.axis_of(len(array.shape), end) + 1))


@model("torch.Tensor", "reshape_as", "view_as")
def reshape_as(call: Call, a: Value, b: Value) -> Array:
    array = args.array(call, a)
    return reshaped(array, shapes.reshape(array.shape, args.array(call, b).shape))


@model(TORCH, "unflatten")
def unflatten(call: Call, a: Value, axis: Value, sizes: Value) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    parts = shapes.reshape(array.shape[along : along + 1], args.sizes(call, sizes))
    return reshaped(array, (*array.shape[:along], *parts, *array.shape[along + 1 :]))


@model((*FUNCTIONS, *METHODS, "jax.lax"), "squeeze")
@model(TORCH, "squeeze")
def squeeze(call: Call, a: Value, axis: Value = None) -> Value:
    array = args.array(call, a)
    axes = range(len(array.shape)) if axis is None else shapes.axes_of(len(array.shape), args.integers(call, axis))
    if axis is not None and call.library != "torch":
        for position in axes:
            shapes.agree(array.shape[position], 1)
        return _without(array, axes)
    gone = [position for position in axes if array.shape[position] == 1]
    doubtful = [
        position for position in axes if not isinstance(size := array.shape[position], int) and not shapes.at_least(size, 2)
    ]
    if not doubtful:
        return _without(array, gone)
    if len(doubtful) > 1:
        raise Unmodelled(
            f"whether `squeeze` drops axes of size {' and '.join(str(array.shape[each]) for each in doubtful)} is not known"
        )
    drops = equal(array.shape[doubtful[0]], 1)
    return Choice(((drops, _without(array, [*gone, *doubtful])), (invert(drops), _without(array, gone))))


def _without(array: Array, axes: Iterable[int]) -> Array:
    """Return an array without some axes of size 1."""
    gone = set(axes)
    return reshaped(array, tuple(size for position, size in enumerate(array.shape) if position not in gone))


@model((*FUNCTIONS, "jax.lax"), "expand_dims")
def expand_dims(call: Call, a: Value, axis: Value) -> Array:
    array = args.array(call, a)
    return reshaped(array, shapes.expand(array.shape, args.integers(call, axis)))


@model(TORCH, "unsqueeze")
def unsqueeze(call: Call, a: Value, axis: Value) -> Array:
    return expand_dims(call, a, axis)


@model(FUNCTIONS, "atleast_1d", "atleast_2d", "atleast_3d")
def at_least(call: Call, a: Value) -> Array:
    array = args.array(call, a)
    return at_least_rank(array, int(call.path[-2]))


def at_least_rank(array: Array, rank: int) -> Array:
    """Add axes of size 1 as `atleast_1d`, `atleast_2d` and `atleast_3d` do."""
    missing = max(0, rank - len(array.shape))
    trailing = 1 if rank == 3 and missing else 0
    leading = missing - trailing
    if len(array.shape) == 0:
        leading, trailing = missing, 0
    return reshaped(array, (*(1,) * leading, *array.shape, *(1,) * trailing))


# Another order


def permuted(array: Array, order: tuple[int, ...]) -> Array:
    axes = shapes.axes_of(len(array.shape), order)
    if len(axes) != len(array.shape):
        shapes.fails("a permutation leaves out an axis")

    def source(position: Position) -> Position:
        return tuple(position[axes.index(axis)] for axis in range(len(axes)))

    return rearranged(array, tuple(array.shape[axis] for axis in axes), source)


def reversed_axes(array: Array) -> Array:
    return permuted(array, tuple(reversed(range(len(array.shape)))))


@model(FUNCTIONS, "transpose", "permute_dims")
@model(METHODS, "transpose")
@model("jax.lax", "transpose")
def transpose(call: Call, a: Value, *order: Value, axes: Value = None, permutation: Value = None) -> Array:
    given = order if order else tuple(each for each in (axes, permutation) if each is not None)
    if given in ((), (None,)):
        return reversed_axes(args.array(call, a))
    order = args.spread_integers(call, given)
    return permuted(args.ranked(call, a, len(order)), order)


@model(TORCH, "permute")
def permute(call: Call, a: Value, *order: Value, axis: Value = None) -> Array:
    axes = args.spread_integers(call, order if axis is None else (axis,))
    return permuted(args.ranked(call, a, len(axes)), axes)


@model((*FUNCTIONS, *METHODS), "swapaxes")
@model(TORCH, "transpose", "swapaxes", "swapdims")
def swapaxes(call: Call, a: Value, axis1: Value, axis2: Value) -> Array:
    array = args.array(call, a)
    first, second = (shapes.axis_of(len(array.shape), args.integer(axis)) for axis in (axis1, axis2))
    return permuted(array, tuple({first: second, second: first}.get(axis, axis) for axis in range(len(array.shape))))


def matrix_transposed(array: Array) -> Array:
    if len(array.shape) < 2:
        shapes.fails("the matrix transpose of a vector")
    *batch, rows, columns = range(len(array.shape))
    return permuted(array, (*batch, columns, rows))


@model(FUNCTIONS, "matrix_transpose")
def matrix_transpose(call: Call, a: Value) -> Array:
    return matrix_transposed(args.array(call, a))


@model(TORCH, "t")
def t(call: Call, a: Value) -> Array:
    array = args.array(call, a)
    if len(array.shape) > 2:
        shapes.fails("`t` of more than two axes")
    return reversed_axes(array)


@model(FUNCTIONS, "moveaxis")
@model(TORCH, "moveaxis", "movedim")
def moveaxis(call: Call, a: Value, source: Value, destination: Value) -> Array:
    array = args.array(call, a)
    rank = len(array.shape)
    from_, to = (shapes.axes_of(rank, args.integers(call, each)) for each in (source, destination))
    if len(from_) != len(to):
        shapes.fails("axes are moved to fewer or more places")
    order = [axis for axis in range(rank) if axis not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return permuted(array, tuple(order))


@model(FUNCTIONS, "flip", "fliplr", "flipud", "roll", "triu", "tril")
@model(TORCH, "flip", "roll", "triu", "tril")
@model("jax.lax", "rev")
def stirred(call: Call, a: Value, *how: Value, **options: Value) -> Array:
    """Elements move about, or give way to zeros; the shape stays."""
    return replace(args.array(call, a), contents=None)


@model(FUNCTIONS, "sort", "argsort")
@model("jax.Array", "sort", "argsort")
@model("numpy.ndarray", "argsort")
def sort(call: Call, a: Value, axis: Value = -1, **options: Value) -> Array:
    array = args.array(call, a)
    shape = (shapes.total(array.shape),) if axis is None else array.shape
    if not call.path.endswith("argsort"):
        return replace(array, shape=shape, contents=None)
    return Array(shape, default_int(call.library), call.library)


@model(TORCH, "sort")
def torch_sort(call: Call, a: Value, axis: Value = -1, descending: Value = False, stable: Value = False) -> tuple[Array, Array]:
    array = args.array(call, a)
    return replace(array, contents=None), Array(array.shape, default_int("torch"), "torch")


@model(TORCH, "argsort")
def torch_argsort(call: Call, a: Value, axis: Value = -1, descending: Value = False, stable: Value = False) -> Array:
    return Array(args.array(call, a).shape, default_int("torch"), "torch")
