"""Reductions and running totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from math import prod

from codemods import operations, terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import cast, flat, folded, reshaped
from codemods.evaluate.arrays.dtypes import bits, chosen, default_float, default_int, kind
from codemods.evaluate.arrays.elementwise import BOOL, binary_function
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call
from codemods.terms import Int
from codemods.values import Array, DType, ListRef, Value, as_int

_ON_INTEGERS: Mapping[str, Callable[[Sequence[int]], int]] = {
    "sum": sum, "prod": prod, "max": max, "min": min, "amax": max, "amin": min,
}  # fmt: skip
_ON_TERMS: Mapping[str, Callable[[Int, Int], Int]] = {
    "sum": terms.add, "prod": terms.multiply, "max": operations.maximum, "min": operations.minimum,
    "amax": operations.maximum, "amin": operations.minimum,
}  # fmt: skip


def _name(call: Call) -> str:
    return call.path.rpartition(".")[2]


def _reduced(call: Call, array: Array, axis: Value, keepdims: Value, dtype: DType | None) -> Value:
    """Return an array reduced by the function that was called."""
    axes, keep = args.axes(call, axis), args.flag(keepdims)
    rank = len(array.shape)
    gone = range(rank) if axes is None else shapes.axes_of(rank, axes)
    made = Array(shapes.reduce(array.shape, axes, keep), dtype, call.library)
    function = _ON_INTEGERS.get(_name(call))
    contents = folded(array, gone, function, dtype) if function else None
    if contents is None:
        return made
    kept = Array(shapes.reduce(array.shape, axes, True), dtype, call.library, contents)
    return args.unboxed(kept if keep else reshaped(kept, made.shape))


def _total_dtype(library: str, dtype: DType | None) -> DType | None:
    """Return the dtype of a sum, which has room for more than its parts."""
    if kind(dtype) not in ("bool", "int") or dtype is None:
        return dtype
    default = default_int(library)
    if library == "torch" or default is None or kind(dtype) == "bool" or bits(dtype) >= bits(default):
        return default if kind(dtype) == "bool" or library == "torch" else dtype
    return DType(f"u{default.name}") if dtype.name.startswith("u") else default


@model((*FUNCTIONS, *METHODS), "sum", "prod")
def total(
    call: Call, a: Value, axis: Value = None, dtype: Value = None, *, keepdims: Value = False, where: Value = None
) -> Value:
    number = _of_numbers(call, a, axis) if where is None and dtype is None else None
    if number is not None:
        return number
    array = args.array(call, a)
    if where is not None:
        array = replace(array, contents=None)
    return _reduced(call, array, axis, keepdims, chosen(dtype, call.library, _total_dtype(call.library, array.dtype)))


@model((*FUNCTIONS, *METHODS), "max", "min")
@model(FUNCTIONS, "amax", "amin")
def extreme(
    call: Call, a: Value, axis: Value = None, *, keepdims: Value = False, initial: Value = None, where: Value = None
) -> Value:
    number = _of_numbers(call, a, axis) if initial is None and where is None else None
    if number is not None:
        return number
    array = args.array(call, a)
    if initial is not None or where is not None:
        array = replace(array, contents=None)
    return _reduced(call, array, axis, keepdims, array.dtype)


def _of_numbers(call: Call, a: Value, axis: Value) -> Int | None:
    """Return what NumPy makes of a sequence of integers, not all of them known: `np.prod(shape)`."""
    if call.library != "numpy" or axis is not None or not isinstance(a, tuple | ListRef):
        return None
    numbers = [as_int(element) for element in args.elements(call, a)]
    if not numbers or any(number is None or isinstance(number, bool) for number in numbers):
        return None
    return reduce(_ON_TERMS[_name(call)], (number for number in numbers if number is not None))


@model((*FUNCTIONS, *METHODS), "mean", "std", "var")
def mean(
    call: Call,
    a: Value,
    axis: Value = None,
    dtype: Value = None,
    *,
    ddof: Value = 0,
    keepdims: Value = False,
    where: Value = None,
) -> Value:
    array = args.array(call, a)
    whole = kind(array.dtype) in ("bool", "int")
    return _reduced(
        call, array, axis, keepdims, chosen(dtype, call.library, default_float(call.library) if whole else array.dtype)
    )


@model(("jax.numpy.linalg", "numpy.linalg"), "norm")
def norm(call: Call, a: Value, ord: Value = None, axis: Value = None, keepdims: Value = False) -> Value:
    return inexact_reduction(call, a, axis, keepdims=keepdims)


@model(FUNCTIONS, "median")
@model(("jax.nn", "jax.scipy.special"), "logsumexp")
def inexact_reduction(call: Call, a: Value, axis: Value = None, *, keepdims: Value = False) -> Value:
    array = args.array(call, a)
    whole = kind(array.dtype) in ("bool", "int")
    return _reduced(call, array, axis, keepdims, default_float(call.library) if whole else array.dtype)


@model((*FUNCTIONS, *METHODS), "argmax", "argmin")
def argmax(call: Call, a: Value, axis: Value = None, *, keepdims: Value = False) -> Value:
    return _reduced(call, args.array(call, a), axis, keepdims, default_int(call.library))


@model((*FUNCTIONS, *METHODS), "any", "all")
def any_(call: Call, a: Value, axis: Value = None, *, keepdims: Value = False, where: Value = None) -> Value:
    return _reduced(call, args.array(call, a), axis, keepdims, BOOL)


@model(FUNCTIONS, "count_nonzero")
def count_nonzero(call: Call, a: Value, axis: Value = None, keepdims: Value = False) -> Value:
    return _reduced(call, args.array(call, a), axis, keepdims, default_int(call.library))


# torch


@model(TORCH, "sum", "prod")
def torch_total(call: Call, a: Value, axis: Value = None, keepdims: Value = False, *, dtype: Value = None) -> Value:
    array = args.array(call, a)
    return _reduced(call, array, axis, keepdims, chosen(dtype, "torch", _total_dtype("torch", array.dtype)))


@model(TORCH, "mean", "amax", "amin", "logsumexp")
def torch_mean(call: Call, a: Value, axis: Value = None, keepdims: Value = False, *, dtype: Value = None) -> Value:
    array = args.array(call, a)
    return _reduced(call, array, axis, keepdims, chosen(dtype, "torch", array.dtype))


@model(TORCH, "std", "var")
def torch_std(
    call: Call, a: Value, axis: Value = None, *, correction: Value = 1, unbiased: Value = True, keepdims: Value = False
) -> Value:
    if isinstance(axis, bool):
        axis = None
    array = args.array(call, a)
    return _reduced(call, array, axis, keepdims, array.dtype)


@model(TORCH, "argmax", "argmin")
def torch_argmax(call: Call, a: Value, axis: Value = None, keepdims: Value = False) -> Value:
    return _reduced(call, args.array(call, a), axis, keepdims, default_int("torch"))


@model(TORCH, "any", "all")
def torch_any(call: Call, a: Value, axis: Value = None, keepdims: Value = False) -> Value:
    array = args.array(call, a)
    return _reduced(call, array, axis, keepdims, array.dtype if array.dtype in (None, DType("uint8")) else BOOL)


@model(TORCH, "max", "min")
def torch_extreme(call: Call, a: Value, axis: Value = None, keepdims: Value = False) -> Value:
    """Of all elements; along one axis, with the places where they stand; or the larger of two arrays, element by element."""
    array = args.array(call, a)
    if axis is None:
        return _reduced(call, array, None, False, array.dtype)
    if isinstance(axis, Array):
        return binary_function(replace(call, path=f"torch.{_name(call)}imum"), a, axis)
    made = _reduced(call, array, args.integer(axis), keepdims, array.dtype)
    return made, Array(made.shape, default_int("torch"), "torch")


# Running totals


@model((*FUNCTIONS, *METHODS), "cumsum", "cumprod")
def cumsum(call: Call, a: Value, axis: Value = None, dtype: Value = None) -> Array:
    array = args.array(call, a)
    if axis is None:
        array = reshaped(array, (shapes.total(array.shape),))
    found = _total_dtype(call.library, array.dtype)
    if call.library == "jax" and kind(array.dtype) != "bool":
        found = array.dtype
    return _running(call, array, chosen(dtype, call.library, found))


@model(TORCH, "cumsum", "cumprod")
def torch_cumsum(call: Call, a: Value, axis: Value, *, dtype: Value = None) -> Array:
    array = args.array(call, a)
    return _running(call, array, chosen(dtype, "torch", _total_dtype("torch", array.dtype)))


def _running(call: Call, array: Array, dtype: DType | None) -> Array:
    made = Array(array.shape, dtype, call.library)
    if len(array.shape) != 1 or array.contents is None or _name(call) != "cumsum":
        return made
    return replace(made, contents=cast(replace(array, contents=tuple(accumulate(flat(array)))), dtype))


@model("jax.lax", "cumsum", "cumprod", "cummax", "cummin")
def lax_cumsum(call: Call, a: Value, axis: Value = 0, reverse: Value = False) -> Array:
    return replace(args.array(call, a), contents=None)


@model(FUNCTIONS, "diff")
def diff(call: Call, a: Value, n: Value = 1, axis: Value = -1) -> Array:
    array = args.array(call, a)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    size = shapes.not_negative(terms.subtract(array.shape[along], args.integer(n)))
    return replace(array, shape=(*array.shape[:along], size, *array.shape[along + 1 :]), contents=None)
