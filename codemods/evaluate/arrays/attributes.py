"""Attributes of arrays: shape, dtype, and those that are arrays themselves."""

from __future__ import annotations

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.dtypes import itemsize
from codemods.evaluate.arrays.rearranging import matrix_transposed, reversed_axes
from codemods.evaluate.arrays.signatures import FUNCTIONS, UNKNOWN, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, At, DType, Quantized, Value


def attribute(value: Array | Quantized | DType, name: str) -> Value | None:
    """Return `value.name`; None if it is a method, or no attribute that is known."""
    match value:
        case Quantized(weight, scales):
            return {"weight": weight, "scales": scales}.get(name)
        case DType():
            return {"itemsize": itemsize(value), "name": value.name}.get(name)
        case At():
            return None
        case Array():
            return _of_array(value, name)


def _of_array(array: Array, name: str) -> Value | None:
    match name:
        case "shape":
            return array.shape
        case "ndim":
            return len(array.shape)
        case "size" if array.library not in ("torch", UNKNOWN):  # a method of torch's
            return shapes.total(array.shape)
        case "dtype":
            return _known_dtype(array)
        case "itemsize":
            return itemsize(_known_dtype(array))
        case "nbytes":
            return terms.multiply(shapes.total(array.shape), itemsize(_known_dtype(array)))
        case "T":
            return reversed_axes(array)
        case "mT":
            return matrix_transposed(array)
        case "at" if array.library == "jax":
            return At(array.shape, array.dtype, weak=array.weak)
        case "data" if array.library == "torch":
            return array
        case _:
            return None


def _known_dtype(array: Array) -> DType:
    if array.dtype is None:
        raise Unmodelled("the dtype of the array is not known")
    return array.dtype


def length(value: Array | Quantized) -> Int:
    """Return `len(value)`."""
    if isinstance(value, Quantized):
        return 2
    if not value.shape:
        shapes.fails("the length of a scalar")
    return value.shape[0]


@model(FUNCTIONS, "shape")
def shape(call: Call, a: Value) -> Value:
    return args.array(call, a).shape


@model(FUNCTIONS, "ndim")
def ndim(call: Call, a: Value) -> int:
    return len(args.array(call, a).shape)


@model(FUNCTIONS, "size")
def size(call: Call, a: Value, axis: Value = None) -> Int:
    sizes = args.array(call, a).shape
    return shapes.total(sizes) if axis is None else sizes[shapes.axis_of(len(sizes), args.integer(axis))]


@model("torch.Tensor", "size")
def torch_size(call: Call, a: Value, axis: Value = None) -> Value:
    sizes = args.array(call, a).shape
    return sizes if axis is None else sizes[shapes.axis_of(len(sizes), args.integer(axis))]


@model("torch.Tensor", "dim", "ndimension")
def torch_dim(call: Call, a: Value) -> int:
    return len(args.array(call, a).shape)


@model(("torch", "torch.Tensor"), "numel")
@model("torch.Tensor", "nelement")
def torch_numel(call: Call, a: Value) -> Int:
    return shapes.total(args.array(call, a).shape)


@model("torch.Tensor", "element_size")
def element_size(call: Call, a: Value) -> int:
    return itemsize(_known_dtype(args.array(call, a)))
