"""The same array with another dtype, on another device, or in another library."""

from __future__ import annotations

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import cast
from codemods.evaluate.arrays.dtypes import canonical, dtype_of, itemsize, kind
from codemods.evaluate.arrays.rearranging import reshape
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.values import Array, DType, External, Opaque, Quantized, Term, Value

DEVICE = External("torch.device()")


@model("torch", "device")
@model("torch_xla", "device")
@model("torch_xla.core.xla_model", "xla_device")
def device(call: Call, *which: Value, **options: Value) -> External:
    return DEVICE


# Dtype


def as_dtype(array: Array, dtype: DType | None) -> Array:
    made = canonical(dtype, array.library)
    return Array(array.shape, made, array.library, cast(array, made))


@model((*FUNCTIONS, *METHODS), "astype")
@model("jax.lax", "convert_element_type")
@model("torch.Tensor", "type")
def astype(call: Call, a: Value, dtype: Value) -> Array | Opaque:
    if isinstance(a, Opaque):
        return args.like(a, canonical(dtype_of(dtype), call.library))
    return as_dtype(args.array(call, a), dtype_of(dtype))


_TORCH_CASTS = {
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64", "bool": "bool",
    "short": "int16", "int": "int32", "long": "int64",
}  # fmt: skip


@model("torch.Tensor", *_TORCH_CASTS)
def torch_cast(call: Call, a: Value) -> Array | Opaque:
    dtype = DType(_TORCH_CASTS[call.path.rpartition(".")[2]])
    return args.like(a, dtype) if isinstance(a, Opaque) else as_dtype(args.array(call, a), dtype)


@model("torch.Tensor", "to")
def to(call: Call, a: Value, *targets: Value, dtype: Value = None) -> Array | Opaque:
    """`to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`."""
    if isinstance(a, Opaque):
        given = [dtype_of(target) for target in (*targets, dtype) if isinstance(target, External) and target != DEVICE]
        return args.like(a, given[0] if len(given) == 1 else None)
    array = args.array(call, a)
    for target in (*targets, dtype):
        if isinstance(target, Array):
            return as_dtype(array, target.dtype)
        if target == DEVICE or target is None or isinstance(target, str | bool | int):
            continue
        return as_dtype(array, dtype_of(target))  # None for a name that may be of either
    return array


@model("torch.Tensor", "type_as")
def type_as(call: Call, a: Value, b: Value) -> Array:
    return as_dtype(args.array(call, a), args.array(call, b).dtype)


@model("torch.Tensor", "view")
@model(METHODS, "view")
def view(call: Call, a: Value, *sizes: Value, dtype: Value = None) -> Array:
    """A reshape, or the same bytes as another dtype."""
    target = dtype if dtype is not None else sizes[0] if len(sizes) == 1 else None
    if not isinstance(target, DType | External):
        if call.library != "torch" and (len(sizes) > 2 or any(isinstance(size, int | Term) for size in sizes)):
            shapes.fails("a view of sizes instead of a dtype")
        if call.library != "torch":
            raise Unmodelled("the dtype of a view is not known")
        return reshape(call, a, *sizes)
    return _bitcast(args.array(call, a), canonical(dtype_of(target), call.library))


def _bitcast(array: Array, dtype: DType | None) -> Array:
    """Return the same bytes as another dtype: the last axis is longer or shorter by as much."""
    if array.dtype is None or dtype is None:
        raise Unmodelled("how the size of the elements changes is not known")
    old, new = itemsize(array.dtype), itemsize(dtype)
    if old == new:
        return Array(array.shape, dtype, array.library)
    if not array.shape:
        shapes.fails("a scalar is viewed as a dtype of another size")
    size = shapes.reshape((terms.multiply(array.shape[-1], old),), (-1, new))[0]
    return Array((*array.shape[:-1], size), dtype, array.library)


@model("jax.lax", "bitcast_convert_type")
def bitcast_convert_type(call: Call, a: Value, new_dtype: Value) -> Array:
    array, dtype = args.array(call, a), canonical(dtype_of(new_dtype), "jax")
    if array.dtype is None or dtype is None:
        raise Unmodelled("how the size of the elements changes is not known")
    old, new = itemsize(array.dtype), itemsize(dtype)
    if old == new:
        return Array(array.shape, dtype, "jax")
    return Array((*array.shape, old // new) if old > new else array.shape[:-1], dtype, "jax")


# Device


@model("jax", "block_until_ready")
@model("jax.lax", "with_sharding_constraint", "stop_gradient", "optimization_barrier", "reduce_precision")
@model("jax.ad_checkpoint", "checkpoint_name")
@model("jax.Array", "block_until_ready")
@model("torch.Tensor", "contiguous", "detach", "cpu", "cuda", "requires_grad_", "pin_memory")
def unchanged(call: Call, a: Value, *how: Value, **options: Value) -> Value:
    """Whatever it is, an array or a tree of them, it comes back as it was."""
    return a


@model("jax", "device_put")
def device_put(
    call: Call, a: Value, device: Value = None, *, src: Value = None, donate: Value = None, may_alias: Value = None
) -> Value:
    return _moved(call, a, "jax")


@model("jax", "device_get")
def device_get(call: Call, a: Value) -> Value:
    return _moved(call, a, "numpy")


def _moved(call: Call, value: Value, library: str) -> Value:
    """Move an array, or each array of a tuple."""
    match value:
        case Opaque():
            return value
        case Quantized(weight, scales):
            return Quantized(args.adopted(weight, library), args.adopted(scales, library))
        case tuple():
            return tuple(_moved(call, each, library) for each in value)
        case Array():
            return args.adopted(value, library)
        case _:
            raise Unmodelled("a tree of arrays")


@model((*FUNCTIONS, *METHODS), "copy")
@model(TORCH, "clone")
def copy(call: Call, a: Value, order: Value = None) -> Array:
    return args.array(call, a)


@model("torch.Tensor", "numpy")
def numpy(call: Call, a: Value, *, force: Value = False) -> Array:
    return args.adopted(args.array(call, a), "numpy")


# Numbers


@model((*METHODS, "torch.Tensor"), "item")
def item(call: Call, a: Value) -> Value:
    """Return the only element of an array of integers, as a number."""
    array = args.array(call, a)
    if kind(array.dtype) != "int":
        raise Unmodelled("the elements of the array are not known")
    contents = array.contents
    while isinstance(contents, tuple):
        (contents,) = contents if len(contents) == 1 else (shapes.fails("`item` of several elements"),)
    return contents if contents is not None else args.unknown_int(call, "an element of an array")


@model((*METHODS, "torch.Tensor"), "tolist")
def tolist(call: Call, a: Value) -> Value:
    """Return the elements as tuples, which is as near to lists as a model comes."""
    array = args.array(call, a)
    if array.contents is None:
        raise Unmodelled("the elements of the array are not known")
    return array.contents
