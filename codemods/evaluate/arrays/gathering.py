"""Functions that read or update elements at given places."""

from __future__ import annotations

from dataclasses import replace

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.dtypes import chosen, default_float, default_int
from codemods.evaluate.arrays.indexing import picked, sliced
from codemods.evaluate.arrays.signatures import AT, FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.values import Array, Value


@model(AT, "set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply")
def update(call: Call, a: Value, values: Value, *, mode: Value = None) -> Array:
    old = args.array(call, a)
    return Array(old.shape, old.dtype, old.library, weak=old.weak)


@model((*FUNCTIONS, *METHODS), "take")
def take(call: Call, a: Value, indices: Value, axis: Value = None, *, mode: Value = None, fill_value: Value = None) -> Array:
    array, places = args.array(call, a), args.array(call, indices)
    if axis is None:
        return replace(array, shape=places.shape, contents=None)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    return replace(array, shape=(*array.shape[:along], *places.shape, *array.shape[along + 1 :]), contents=None)


@model(FUNCTIONS, "take_along_axis")
def take_along_axis(call: Call, a: Value, indices: Value, axis: Value = -1, *, mode: Value = None) -> Array:
    array, places = args.array(call, a), args.array(call, indices)
    if axis is None or len(array.shape) != len(places.shape):
        raise Unmodelled("`take_along_axis` of a flattened array, or of arrays of different ranks")
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    rest = (*array.shape[:along], 1, *array.shape[along + 1 :])
    picked_at = (*places.shape[:along], 1, *places.shape[along + 1 :])
    shape = list(shapes.broadcast(rest, picked_at))
    shape[along] = places.shape[along]
    return replace(array, shape=tuple(shape), contents=None)


@model(TORCH, "gather")
def gather(call: Call, a: Value, axis: Value, index: Value) -> Array:
    return replace(args.array(call, a), shape=args.array(call, index).shape, contents=None)


@model("torch", "take_along_dim")
def take_along_dim(call: Call, a: Value, indices: Value, axis: Value) -> Array:
    return take_along_axis(call, a, indices, axis)


@model(TORCH, "index_select")
def index_select(call: Call, a: Value, axis: Value, index: Value) -> Array:
    array, places = args.array(call, a), args.array(call, index)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    count = shapes.total(places.shape)
    return replace(array, shape=(*array.shape[:along], count, *array.shape[along + 1 :]), contents=None)


@model(TORCH, "select")
def select(call: Call, a: Value, axis: Value, index: Value) -> Array:
    array = args.array(call, a)
    return picked(array, shapes.axis_of(len(array.shape), args.integer(axis)), args.size(call, index))


@model(TORCH, "narrow")
def narrow(call: Call, a: Value, axis: Value, start: Value, length: Value) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    return replace(array, shape=(*array.shape[:along], args.size(call, length), *array.shape[along + 1 :]), contents=None)


@model("jax.lax", "slice")
def lax_slice(call: Call, a: Value, start_indices: Value, limit_indices: Value, strides: Value = None) -> Array:
    array = args.array(call, a)
    starts, limits = args.sizes(call, start_indices), args.sizes(call, limit_indices)
    steps = (None,) * len(starts) if strides is None else args.sizes(call, strides)
    for axis, (start, limit, step) in enumerate(zip(starts, limits, steps, strict=True)):
        array = sliced(array, axis, start, limit, step)
    return array


@model("jax.lax", "slice_in_dim")
def slice_in_dim(call: Call, a: Value, start_index: Value, limit_index: Value, stride: Value = 1, axis: Value = 0) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    start, limit = (None if bound is None else args.size(call, bound) for bound in (start_index, limit_index))
    return sliced(array, along, start, limit, args.size(call, stride))


@model("jax.lax", "dynamic_slice")
def dynamic_slice(call: Call, a: Value, start_indices: Value, slice_sizes: Value) -> Array:
    return replace(args.array(call, a), shape=args.new_shape(call, slice_sizes), contents=None)


@model("jax.lax", "dynamic_slice_in_dim")
def dynamic_slice_in_dim(call: Call, a: Value, start_index: Value, slice_size: Value, axis: Value = 0) -> Array:
    return narrow(call, a, axis, start_index, slice_size)


@model("jax.lax", "dynamic_index_in_dim", "index_in_dim")
def index_in_dim(call: Call, a: Value, index: Value, axis: Value = 0, keepdims: Value = True) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    return replace(array, shape=shapes.reduce(array.shape, (along,), args.flag(keepdims)), contents=None)


@model("jax.lax", "dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_index_in_dim")
def dynamic_update(call: Call, a: Value, update: Value, *where: Value, axis: Value = None) -> Array:
    array = args.array(call, a)
    return replace(array, contents=None)


@model("jax.lax", "top_k")
def top_k(call: Call, a: Value, k: Value, *, axis: Value = -1) -> tuple[Array, Array]:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    shape = (*array.shape[:along], args.size(call, k), *array.shape[along + 1 :])
    return replace(array, shape=shape, contents=None), Array(shape, default_int(call.library), call.library)


@model(TORCH, "topk")
def topk(call: Call, a: Value, k: Value, axis: Value = -1, largest: Value = True) -> tuple[Array, Array]:
    return top_k(call, a, k, axis=axis)


@model("jax.nn", "one_hot")
def one_hot(call: Call, a: Value, num_classes: Value, *, dtype: Value = None, axis: Value = -1) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape) + 1, args.integer(axis))
    shape = (*array.shape[:along], args.size(call, num_classes), *array.shape[along:])
    return Array(shape, chosen(dtype, "jax", default_float("jax")), "jax")


@model("torch.nn.functional", "one_hot")
def torch_one_hot(call: Call, a: Value, num_classes: Value = None) -> Array:
    if num_classes is None:
        raise Unmodelled("as many classes as the largest element asks for")
    return Array((*args.array(call, a).shape, args.size(call, num_classes)), default_int("torch"), "torch")


@model(FUNCTIONS, "searchsorted", "digitize")
@model("torch", "searchsorted", "bucketize")
def searchsorted(call: Call, a: Value, b: Value, **options: Value) -> Array:
    """`digitize` and `bucketize` take the bins second."""
    found = args.array(call, b if call.path.endswith("searchsorted") else a)
    return Array(found.shape, default_int(call.library), call.library)
