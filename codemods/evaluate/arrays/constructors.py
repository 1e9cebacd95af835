"""Arrays made from nothing, from numbers, and in the likeness of others."""

from __future__ import annotations

import math
from dataclasses import replace

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import broadcasted, cast, filled, reshaped
from codemods.evaluate.arrays.dtypes import chosen, default_float, default_int, dtype_of, kind
from codemods.evaluate.arrays.shapes import Shape
from codemods.evaluate.arrays.signatures import FUNCTIONS, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, DType, Opaque, Term, Value

_ELEMENTS = {"zeros": 0, "ones": 1}


def _made(call: Call, shape: Shape, dtype: DType | None) -> Array:
    """Return an array of zeros or the like; those of NumPy and torch are made to be filled, so what is in them is not known."""
    element = _ELEMENTS.get(call.path.rpartition(".")[2].removesuffix("_like")) if call.library == "jax" else None
    return Array(shape, dtype, call.library, None if element is None else filled(shape, dtype, element))


@model(FUNCTIONS, "zeros", "ones", "empty")
def zeros(call: Call, shape: Value, dtype: Value = None, order: Value = None) -> Array:
    return _made(call, args.new_shape(call, shape), chosen(dtype, call.library, default_float(call.library)))


@model("torch", "zeros", "ones", "empty", "rand", "randn")
def torch_zeros(call: Call, *sizes: Value, shape: Value = None, dtype: Value = None) -> Array:
    given = args.new_shape(call, *(sizes if shape is None else (shape,)))
    return _made(call, given, chosen(dtype, "torch", default_float("torch")))


@model("torch.Tensor", "new_zeros", "new_ones", "new_empty")
def new_zeros(call: Call, a: Value, *sizes: Value, shape: Value = None, dtype: Value = None) -> Array:
    given = args.new_shape(call, *(sizes if shape is None else (shape,)))
    return _made(call, given, chosen(dtype, "torch", args.array(call, a).dtype))


@model("numpy", "zeros_like", "ones_like", "empty_like")
def numpy_zeros_like(call: Call, a: Value, dtype: Value = None, order: Value = None, *, shape: Value = None) -> Array:
    return zeros_like(call, a, dtype, shape)


@model("jax.numpy", "zeros_like", "ones_like", "empty_like")
def zeros_like(call: Call, a: Value, dtype: Value = None, shape: Value = None) -> Array:
    like = args.array(call, a)
    made = _made(call, like.shape if shape is None else args.new_shape(call, shape), chosen(dtype, call.library, like.dtype))
    return replace(made, weak=like.weak and dtype is None and call.library == "jax")


@model("torch", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
def torch_zeros_like(call: Call, a: Value, *, dtype: Value = None) -> Array:
    like = args.array(call, a)
    return _made(call, like.shape, chosen(dtype, "torch", like.dtype))


@model((*FUNCTIONS, "jax.lax", "torch"), "full")
def full(call: Call, shape: Value, fill_value: Value, dtype: Value = None) -> Array:
    fill = _fill(call, fill_value)
    made = _filled(call, args.new_shape(call, shape), fill, chosen(dtype, call.library, fill.dtype))
    return replace(made, weak=fill.weak and dtype is None and call.library == "jax")


@model((*FUNCTIONS, "jax.lax"), "full_like")
def full_like(call: Call, a: Value, fill_value: Value, dtype: Value = None, *, shape: Value = None) -> Array:
    like = args.array(call, a)
    given = like.shape if shape is None else args.new_shape(call, shape)
    made = _filled(call, given, _fill(call, fill_value), chosen(dtype, call.library, like.dtype))
    return replace(made, weak=like.weak and dtype is None and call.library == "jax")


@model("torch", "full_like")
def torch_full_like(call: Call, a: Value, fill_value: Value, *, dtype: Value = None) -> Array:
    like = args.array(call, a)
    return _filled(call, like.shape, _fill(call, fill_value), chosen(dtype, "torch", like.dtype))


@model("torch.Tensor", "new_full")
def new_full(call: Call, a: Value, shape: Value, fill_value: Value, *, dtype: Value = None) -> Array:
    made = chosen(dtype, "torch", args.array(call, a).dtype)
    return _filled(call, args.new_shape(call, shape), _fill(call, fill_value), made)


def _fill(call: Call, value: Value) -> Array:
    """Return what to fill with: of an unknown value the shape does not matter, since it is broadcast."""
    return Array((), None, call.library) if isinstance(value, Opaque) else args.array(call, value)


def _filled(call: Call, shape: Shape, fill: Array, dtype: DType | None) -> Array:
    spread = broadcasted(fill, shapes.broadcast_to(fill.shape, shape))
    return Array(shape, dtype, call.library, cast(spread, dtype) if call.library == "jax" else None)


@model(FUNCTIONS, "array", "asarray")
@model("numpy", "asanyarray", "ascontiguousarray")
@model("torch", "tensor", "as_tensor", "asarray", "from_numpy")
def array(call: Call, a: Value, dtype: Value = None, order: Value = None, *, ndmin: Value = 0) -> Array | Opaque:
    if isinstance(a, Opaque) and (parts := _repeated(a)) is not None:
        once = array(call, parts[0], dtype)
        assert isinstance(once, Array)
        count = shapes.not_negative(terms.multiply(once.shape[0], parts[1]))
        return replace(once, shape=(count, *once.shape[1:]), contents=None)
    if isinstance(a, Opaque) and a.at_least is None and not a.kind and ndmin == 0 and call.path != "numpy.ascontiguousarray":
        return args.like(a, chosen(dtype, call.library, None))
    made = args.array(call, a)
    wanted = chosen(dtype, call.library, made.dtype)
    weak = made.weak and dtype is None and call.library == "jax"
    made = replace(made, dtype=wanted, contents=cast(made, wanted), weak=weak)
    missing = max(0, args.integer(ndmin) - len(made.shape))
    if call.path == "numpy.ascontiguousarray" and not made.shape:
        missing = 1
    return reshaped(made, (*(1,) * missing, *made.shape)) if missing else made


def _repeated(value: Opaque) -> tuple[tuple[Value, ...], Int] | None:
    """Return the elements of `[...] * n` and the unknown `n`; None for anything else."""
    match value.key:
        case ("repeated", tuple(parts), count) if parts:
            return parts, count
        case _:
            return None


@model(FUNCTIONS, "arange")
@model("torch", "arange")
def arange(call: Call, start: Value = None, stop: Value = None, step: Value = None, dtype: Value = None) -> Array:
    if stop is None:
        start, stop = None, start
    bounds = (0 if start is None else start, stop, 1 if step is None else step)
    if any(isinstance(bound, float) for bound in bounds):
        return _float_range(call, *bounds, dtype=dtype)
    first, last, by = (args.size(call, bound) for bound in bounds)
    surely = all(isinstance(bound, int | Term | Array) or bound.at_least is not None for bound in bounds)
    made = chosen(dtype, call.library, default_int(call.library) if surely else None)
    shape = (shapes.steps(first, last, by),)
    if not isinstance(first, int) or not isinstance(by, int):
        return Array(shape, made, call.library)
    return Array(shape, made, call.library, filled(shape, made, lambda position: first + position[0] * by))


def _float_range(call: Call, first: Value, last: Value, by: Value, dtype: Value) -> Array:
    if not all(isinstance(bound, int | float) for bound in (first, last, by)) or not by:
        raise Unmodelled("a range between unknown bounds, one of them a float")
    length = max(0, math.ceil((last - first) / by))
    return Array((length,), chosen(dtype, call.library, default_float(call.library)), call.library)


@model(FUNCTIONS, "linspace")
@model("torch", "linspace")
def linspace(call: Call, start: Value, stop: Value, num: Value = 50, endpoint: Value = True, *, dtype: Value = None) -> Array:
    if not all(isinstance(bound, int | float | Term) for bound in (start, stop)):
        raise Unmodelled("`linspace` between bounds that may be arrays")
    return Array(args.new_shape(call, num), chosen(dtype, call.library, default_float(call.library)), call.library)


@model(FUNCTIONS, "eye", "identity")
@model("torch", "eye")
def eye(call: Call, N: Value, M: Value = None, k: Value = 0, dtype: Value = None) -> Array:  # as NumPy has it
    if call.path.endswith("identity") and M is not None:
        M, dtype = None, M
    shape = (args.size(call, N), args.size(call, N if M is None else M))
    return Array(shape, chosen(dtype, call.library, default_float(call.library)), call.library)


@model("jax", "ShapeDtypeStruct")
def shape_dtype_struct(call: Call, shape: Value, dtype: Value, *, weak_type: Value = False) -> Array:
    return Array(args.new_shape(call, shape), dtype_of(dtype), "jax")


@model("jax.lax", "iota")
def iota(call: Call, dtype: Value, shape: Value) -> Array:
    made = chosen(dtype, "jax", None)
    shape = args.new_shape(call, shape)
    return Array(shape, made, "jax", filled(shape, made, lambda position: position[0]))


@model("jax.lax", "broadcasted_iota")
def broadcasted_iota(call: Call, dtype: Value, shape: Value, axis: Value) -> Array:
    made, shape = chosen(dtype, "jax", None), args.new_shape(call, shape)
    along = shapes.axis_of(len(shape), args.integer(axis))
    return Array(shape, made, "jax", filled(shape, made, lambda position: position[along]))


_SCALARS = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16",
)  # fmt: skip


@model("jax.numpy", *_SCALARS)
@model("numpy", *(name for name in _SCALARS if name != "bfloat16"))
def cast_to(call: Call, a: Value = 0) -> Value:
    """`jnp.int32(x)`; NumPy's, of a known number, is that number: source uses it as one."""
    made = args.array(call, a)
    dtype = chosen(call.path.rpartition(".")[2], call.library, None)
    if isinstance(a, Term) and kind(dtype) == "int" and call.library == "numpy":
        return a
    return args.unboxed(Array(made.shape, dtype, call.library, cast(made, dtype)))


@model(FUNCTIONS, "dtype")
def dtype(call: Call, a: Value) -> DType:
    found = dtype_of(a)
    if found is None:
        raise Unmodelled("a dtype that is not known")
    return found
