"""Several arrays into one, and one into several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from codemods import operations, terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import Position, element, nest, positions, reshaped, small
from codemods.evaluate.arrays.dtypes import chosen, holds
from codemods.evaluate.arrays.indexing import sliced
from codemods.evaluate.arrays.promotion import promote
from codemods.evaluate.arrays.rearranging import at_least_rank
from codemods.evaluate.arrays.signatures import FUNCTIONS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, ListRef, Opaque, Value


def _concatenated(call: Call, parts: Sequence[Array], axis: int, dtype: Value = None) -> Array:
    shape = shapes.concatenate([part.shape for part in parts], axis)
    along = axis % len(shape)
    promoted, weak = promote(call.library, parts)
    made, weak = chosen(dtype, call.library, promoted), weak and dtype is None
    if any(part.contents is None for part in parts) or not small(shape) or not holds(made, 0):
        return Array(shape, made, call.library, weak=weak)
    owners = [(part, index) for part in parts for index in range(_length(part, along))]

    def at(position: Position) -> int:
        part, index = owners[position[along]]
        return element(part.contents, (*position[:along], index, *position[along + 1 :]))

    elements = [at(position) for position in positions(shape)]
    known = all(holds(made, number) for number in elements)
    return Array(shape, made, call.library, nest(elements, shape) if known else None, weak)


def _length(array: Array, axis: int) -> int:
    length = array.shape[axis]
    assert isinstance(length, int)
    return length


@model(FUNCTIONS, "concatenate", "concat")
@model("torch", "cat", "concat", "concatenate")
@model("jax.lax", "concatenate")
def concatenate(call: Call, arrays: Value, axis: Value = 0, *, dtype: Value = None) -> Array:
    parts = args.arrays(call, arrays, alike=axis is not None)
    if axis is None:
        parts, axis = tuple(reshaped(part, (shapes.total(part.shape),)) for part in parts), 0
    return _concatenated(call, parts, args.integer(axis), dtype)


@model(FUNCTIONS, "stack")
@model("torch", "stack")
def stack(call: Call, arrays: Value, axis: Value = 0, *, dtype: Value = None) -> Array:
    parts = args.arrays(call, arrays, alike=True)
    shape = shapes.same([part.shape for part in parts])
    along = shapes.axis_of(len(shape) + 1, args.integer(axis))
    return _concatenated(call, [reshaped(part, shapes.expand(part.shape, (along,))) for part in parts], along, dtype)


@model((*FUNCTIONS, "torch"), "vstack")
@model("torch", "row_stack")
def vstack(call: Call, arrays: Value, *, dtype: Value = None) -> Array:
    return _concatenated(call, [at_least_rank(part, 2) for part in args.arrays(call, arrays)], 0, dtype)


@model((*FUNCTIONS, "torch"), "hstack")
def hstack(call: Call, arrays: Value, *, dtype: Value = None) -> Array:
    parts = [at_least_rank(part, 1) for part in args.arrays(call, arrays)]
    return _concatenated(call, parts, 0 if len(parts[0].shape) == 1 else 1, dtype)


@model((*FUNCTIONS, "torch"), "dstack")
def dstack(call: Call, arrays: Value, *, dtype: Value = None) -> Array:
    return _concatenated(call, [at_least_rank(part, 3) for part in args.arrays(call, arrays)], 2, dtype)


@model((*FUNCTIONS, "torch"), "column_stack")
def column_stack(call: Call, arrays: Value) -> Array:
    parts = [part if len(part.shape) > 1 else reshaped(part, (shapes.total(part.shape), 1)) for part in args.arrays(call, arrays)]
    return _concatenated(call, parts, 1)


@model(FUNCTIONS, "append")
def append(call: Call, a: Value, values: Value, axis: Value = None) -> Array:
    return concatenate(call, (args.array(call, a), args.array(call, values)), axis)


@model(FUNCTIONS, "block")
def block(call: Call, arrays: Value) -> Array:
    """Join nested lists of arrays: the innermost along the last axis, those around them along the one before, and so on."""
    depth, leaves = _leaves(call, arrays)
    rank = max(depth, *(len(leaf.shape) for leaf in leaves))

    def joined(value: Value, axis: int) -> Array:
        if not isinstance(value, ListRef):
            array = args.firm(args.array(call, value))
            return reshaped(array, (*(1,) * (rank - len(array.shape)), *array.shape))
        return _concatenated(call, [joined(part, axis + 1) for part in args.elements(call, value)], axis)

    return joined(arrays, -depth)


def _leaves(call: Call, value: Value) -> tuple[int, list[Array]]:
    """Return how deep lists of arrays are nested, and the arrays."""
    if not isinstance(value, ListRef):
        return 0, [args.array(call, value)]
    parts = [_leaves(call, part) for part in args.elements(call, value)]
    depths = {depth for depth, _ in parts}
    if len(depths) != 1:
        shapes.fails("lists of arrays of different depths")
    return 1 + depths.pop(), [leaf for _, leaves in parts for leaf in leaves]


@model(FUNCTIONS, "split")
def split(call: Call, a: Value, indices_or_sections: Value, axis: Value = 0) -> tuple[Array, ...]:
    array, along = _with_axis(call, a, axis)
    size = array.shape[along]
    if isinstance(indices_or_sections, int):
        part = _exact_part(size, indices_or_sections)
        return _pieces(array, along, [part] * indices_or_sections)
    starts = (0, *args.integers(call, indices_or_sections))
    ends = (*starts[1:], None)
    return tuple(sliced(array, along, start, end) for start, end in zip(starts, ends, strict=True))


def _exact_part(size: Int, count: int) -> Int:
    if count < 1 or (isinstance(size, int) and size % count):
        shapes.fails(f"an axis of size {size} is split into {count} equal parts")
    return operations.floordiv(size, count)


@model(FUNCTIONS, "array_split")
@model(TORCH, "tensor_split")
def array_split(call: Call, a: Value, indices_or_sections: Value, axis: Value = 0) -> tuple[Array, ...]:
    if not isinstance(indices_or_sections, int):
        return split(call, a, indices_or_sections, axis)
    array, along = _with_axis(call, a, axis)
    size = array.shape[along]
    if not isinstance(size, int) or indices_or_sections < 1:
        raise Unmodelled("an axis of unknown size is split into parts")
    part, more = divmod(size, indices_or_sections)
    return _pieces(array, along, [part + (index < more) for index in range(indices_or_sections)])


@model((*FUNCTIONS, *TORCH), "vsplit", "hsplit", "dsplit")
def split_along(call: Call, a: Value, indices_or_sections: Value) -> tuple[Array, ...]:
    array = args.array(call, a)
    rank = len(array.shape)
    axis, least = {"vsplit": (0, 2), "hsplit": (min(1, rank - 1), 1), "dsplit": (2, 3)}[call.path.rpartition(".")[2]]
    if rank < least and call.library != "jax":  # which only asks for the axis
        shapes.fails(f"an array of rank {rank} has no such axis")
    return split(call, array, indices_or_sections, axis)


@model("jax.lax", "split")
def lax_split(call: Call, a: Value, sizes: Value, axis: Value = 0) -> tuple[Array, ...]:
    array, along = _with_axis(call, a, axis)
    parts = args.sizes(call, sizes)
    shapes.agree(sum_of(parts), array.shape[along])
    return _pieces(array, along, parts)


@model(TORCH, "split")
def torch_split(call: Call, a: Value, split_size_or_sections: Value, axis: Value = 0) -> tuple[Array, ...]:
    array, along = _with_axis(call, a, axis)
    if isinstance(split_size_or_sections, int):
        return _chunks(array, along, split_size_or_sections)
    if isinstance(split_size_or_sections, Opaque):
        raise Unmodelled("the sizes of the parts are not known")
    parts = args.sizes(call, split_size_or_sections)
    shapes.agree(sum_of(parts), array.shape[along])
    return _pieces(array, along, parts)


def sum_of(sizes: Sequence[Int]) -> Int:
    return tuple(accumulate(sizes, terms.add, initial=0))[-1]


@model(TORCH, "chunk")
def chunk(call: Call, a: Value, chunks: Value, axis: Value = 0) -> tuple[Array, ...]:
    array, along = _with_axis(call, a, axis)
    size = array.shape[along]
    if not isinstance(size, int) or not isinstance(chunks, int) or chunks < 1 or not size:
        raise Unmodelled("an axis of unknown size is split into parts")
    return _chunks(array, along, -(-size // chunks))


def _chunks(array: Array, along: int, part: int) -> tuple[Array, ...]:
    size = array.shape[along]
    if not isinstance(size, int) or part < 1 or not size:
        raise Unmodelled("an axis of unknown size is split into parts")
    return _pieces(array, along, [min(part, size - start) for start in range(0, size, part)])


@model(TORCH, "unbind")
def unbind(call: Call, a: Value, axis: Value = 0) -> tuple[Array, ...]:
    array, along = _with_axis(call, a, axis)
    count = args.integer(array.shape[along])
    return tuple(reshaped(piece, shapes.reduce(piece.shape, (along,))) for piece in _pieces(array, along, [1] * count))


def _with_axis(call: Call, a: Value, axis: Value) -> tuple[Array, int]:
    array = args.array(call, a)
    return array, shapes.axis_of(len(array.shape), args.integer(axis))


def _pieces(array: Array, along: int, parts: Sequence[Int]) -> tuple[Array, ...]:
    """Return the pieces of these sizes along an axis."""
    starts = accumulate(parts, terms.add, initial=0)
    pieces = [sliced(array, along, start, terms.add(start, part)) for start, part in zip(starts, parts, strict=False)]
    sized = ((*array.shape[:along], part, *array.shape[along + 1 :]) for part in parts)
    return tuple(replace(piece, shape=shape) for piece, shape in zip(pieces, sized, strict=True))
