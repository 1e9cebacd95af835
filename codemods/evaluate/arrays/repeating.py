"""The same elements more than once: broadcast, tile, repeat, pad."""

from __future__ import annotations

from dataclasses import replace

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import Position, broadcasted, rearranged, reshaped
from codemods.evaluate.arrays.shapes import Shape
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, Value


@model(FUNCTIONS, "broadcast_to")
@model(TORCH, "broadcast_to")
def broadcast_to(call: Call, a: Value, shape: Value) -> Array:
    array = args.array(call, a)
    return broadcasted(array, shapes.broadcast_to(array.shape, args.new_shape(call, shape)))


@model("torch.Tensor", "expand")
def expand(call: Call, a: Value, *sizes: Value) -> Array:
    array = args.array(call, a)
    wanted = args.spread_sizes(call, sizes)
    kept = (*(None,) * (len(wanted) - len(array.shape)), *array.shape)
    if any(size == -1 and old is None for size, old in zip(wanted, kept, strict=True)):
        shapes.fails("-1 for an axis that is new")
    target = tuple(old if size == -1 and old is not None else size for size, old in zip(wanted, kept, strict=True))
    return broadcasted(array, shapes.broadcast_to(array.shape, target))


@model("torch.Tensor", "expand_as")
def expand_as(call: Call, a: Value, b: Value) -> Array:
    array = args.array(call, a)
    return broadcasted(array, shapes.broadcast_to(array.shape, args.array(call, b).shape))


@model(FUNCTIONS, "broadcast_arrays")
@model("torch", "broadcast_tensors")
def broadcast_arrays(call: Call, *arrays: Value) -> tuple[Array, ...]:
    given = [args.array(call, each) for each in arrays]
    shape = shapes.broadcast(*(each.shape for each in given))
    return tuple(broadcasted(each, shape) for each in given)


@model("jax.lax", "broadcast")
def lax_broadcast(call: Call, a: Value, sizes: Value) -> Array:
    array = args.array(call, a)
    return broadcasted(array, (*args.new_shape(call, sizes), *array.shape))


@model("jax.lax", "broadcast_in_dim")
def broadcast_in_dim(call: Call, a: Value, shape: Value, broadcast_dimensions: Value) -> Array:
    array, target = args.array(call, a), args.new_shape(call, shape)
    places = args.integers(call, broadcast_dimensions)
    placed = dict(zip(places, array.shape, strict=True)) if len(places) == len(array.shape) else shapes.fails("axes are left out")
    return broadcasted(reshaped(array, tuple(placed.get(axis, 1) for axis in range(len(target)))), target)


@model(FUNCTIONS, "tile")
@model(TORCH, "tile")
@model("torch.Tensor", "repeat")
def tile(call: Call, a: Value, *repetitions: Value, reps: Value = None, axis: Value = None) -> Array:
    array = args.array(call, a)
    times = args.new_shape(call, *(repetitions or (reps if axis is None else axis,)))
    rank = max(len(times), len(array.shape))
    times = (1,) * (rank - len(times)) + times
    base = reshaped(array, (1,) * (rank - len(array.shape)) + array.shape)
    shape = tuple(terms.multiply(size, count) for size, count in zip(base.shape, times, strict=True))
    return rearranged(base, shape, lambda position: _wrapped(position, base.shape))


def _wrapped(position: Position, shape: Shape) -> Position:
    return tuple(index % size for index, size in zip(position, shape, strict=True) if isinstance(size, int))


@model((*FUNCTIONS, *METHODS), "repeat")
@model(TORCH, "repeat_interleave")
def repeat(
    call: Call, a: Value, repeats: Value, axis: Value = None, *, total_repeat_length: Value = None, output_size: Value = None
) -> Array:
    array = args.array(call, a)
    if axis is None:
        array, axis = reshaped(array, (shapes.total(array.shape),)), 0
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    if total_repeat_length is not None:
        return _resized(array, along, args.size(call, total_repeat_length))
    counts = args.array(call, repeats)
    if counts.shape == () or (counts.shape == (1,) and counts.contents):
        return _repeated(array, along, args.size(call, counts.contents[0] if counts.shape else repeats))
    count = args.unknown_int(call, f"{call.path}(...)", 0) if counts.contents is None else sum(counts.contents)
    return _resized(array, along, count)


def _repeated(array: Array, along: int, times: Int) -> Array:
    shape = tuple(terms.multiply(size, times) if axis == along else size for axis, size in enumerate(array.shape))

    def source(position: Position) -> Position:
        assert isinstance(times, int)  # else the size is unknown, and so are the elements
        return tuple(index // times if axis == along else index for axis, index in enumerate(position))

    return rearranged(array, shape, source)


def _resized(array: Array, along: int, size: Int) -> Array:
    return replace(array, shape=(*array.shape[:along], size, *array.shape[along + 1 :]), contents=None)


@model(FUNCTIONS, "pad")
def pad(call: Call, a: Value, pad_width: Value, mode: Value = "constant", **options: Value) -> Array:
    widths = args.array(call, pad_width)
    pairs = widths.shape[0] if len(widths.shape) == 2 else 1
    array = args.ranked(call, a, pairs) if isinstance(pairs, int) and pairs > 1 else args.array(call, a)
    if widths.shape not in ((), (1,), (2,), (1, 2), (len(array.shape), 2)):
        raise Unmodelled("a padding of unknown form")
    return _padded(array, [_widths(call, pad_width, axis) for axis in range(len(array.shape))])


def _widths(call: Call, pad_width: Value, axis: int) -> tuple[Int, Int]:
    """Return how much `pad_width`, in one of the forms that NumPy takes, puts before and after an axis."""
    number = args.as_size(pad_width)
    if number is not None:
        return number, number
    parts = args.elements(call, pad_width)
    if all(args.as_size(part) is not None for part in parts):
        before, *_, after = args.sizes(call, parts)
        return before, after
    before, *_, after = args.sizes(call, parts[axis if len(parts) > 1 else 0])
    return before, after


@model("torch.nn.functional", "pad")
def torch_pad(call: Call, a: Value, pad: Value, mode: Value = "constant", value: Value = None) -> Array:
    array, widths = args.array(call, a), args.sizes(call, pad)
    pairs = [*zip(widths[::2], widths[1::2], strict=True)][::-1]
    return _padded(array, [(0, 0)] * (len(array.shape) - len(pairs)) + pairs)


@model("jax.lax", "pad")
def lax_pad(call: Call, a: Value, padding_value: Value, padding_config: Value) -> Array:
    """With a third number for each axis: how many elements to put between its elements."""
    array = args.array(call, a)
    widths = [args.sizes(call, each) for each in args.elements(call, padding_config)]
    if len(widths) != len(array.shape) or any(len(each) != 3 for each in widths):
        shapes.fails("a padding of other axes than those of the array")
    if any(between != 0 for _, _, between in widths):
        raise Unmodelled("elements are put between those of the array")
    padded = _padded(array, [(before, after) for before, after, _ in widths])
    if not all(shapes.at_least(size, 0) for size in padded.shape):
        raise Unmodelled("a padding that may take away all elements")
    return padded


def _padded(array: Array, widths: list[tuple[Int, Int]]) -> Array:
    shape = tuple(terms.add(size, terms.add(before, after)) for size, (before, after) in zip(array.shape, widths, strict=True))
    return replace(array, shape=shape, contents=None)
