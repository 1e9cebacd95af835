"""Operations on each element, with broadcasting: operators, functions of one, two and three arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codemods import operations
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import cast, combined
from codemods.evaluate.arrays.dtypes import chosen, default_float, kind
from codemods.evaluate.arrays.products import matmul
from codemods.evaluate.arrays.promotion import inexact_numpy, promote
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, UNKNOWN, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.values import Array, DType, Opaque, Value

BOOL = DType("bool")

OPERATORS: Mapping[str, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "**": "power",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
    "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip

_ON_INTEGERS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "sub": operator.sub, "multiply": operator.mul, "mul": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "mod": operator.mod,
    "minimum": min, "maximum": max, "min": min, "max": max,
    "negative": operator.neg, "neg": operator.neg, "positive": operator.pos, "abs": abs, "absolute": abs,
    "square": lambda n: n * n,
}  # fmt: skip

_INEXACT = frozenset(
    {
        "divide", "true_divide", "div", "arctan2", "logaddexp", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt",
        "rsqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "sigmoid", "logistic",
        "reciprocal", "erf", "softmax", "gelu", "silu", "swish", "softplus", "log_sigmoid", "logsigmoid",
    }
)  # fmt: skip
_QUOTIENTS = frozenset({"divide", "true_divide"})
_COMPARISONS = frozenset(
    {
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "eq", "ne", "lt", "le", "gt", "ge", "isclose",
        "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite",
    }
)  # fmt: skip
_NEVER_WEAK = frozenset({"log2", "log10"})
_NOT_OF_BOOLS = frozenset({"floor_divide", "remainder", "mod", "fmod", "square", "left_shift", "right_shift"})
"""What libraries compute in integers of various widths if they are given nothing but truth values."""


def operation(name: str, library: str, operands: Sequence[Array]) -> Value:
    """Return the result of the operation called `name`, as all three libraries call it or one of them does."""
    shape = shapes.broadcast(*(operand.shape for operand in operands))
    if name in _COMPARISONS:
        return Array(shape, BOOL, library)
    if name in _INEXACT:
        dtype, weak = _inexact(name, library, operands)
        return Array(shape, dtype, library, weak=weak)
    dtype, weak = promote(library, operands)
    if _is_irregular(name, dtype, operands):
        return Array(shape, None, library)
    function = _ON_INTEGERS.get(name)
    contents = combined(function, operands, shape, dtype) if function else None
    return args.unboxed(Array(shape, dtype, library, contents, weak))


def _inexact(name: str, library: str, operands: Sequence[Array]) -> tuple[DType | None, bool]:
    """Return the dtype, and whether it is weak, of a function that has no integer result, like `sqrt`."""
    if library == "numpy" and name not in _QUOTIENTS:
        if any(each.weak for each in operands) and any(kind(each.dtype) != "float" for each in operands if not each.weak):
            return None, False
        return promote(library, [replace(each, dtype=inexact_numpy(each.dtype)) for each in operands])
    dtype, weak = promote(library, operands)
    return (default_float(library) if kind(dtype) in ("bool", "int") else dtype), weak and name not in _NEVER_WEAK


def _is_irregular(name: str, dtype: DType | None, operands: Sequence[Array]) -> bool:
    """Say whether the result has another dtype than the one in which the operands meet."""
    if name in ("power", "pow"):  # JAX: a power with an integer exponent may keep the dtype of the base
        base, exponent = operands
        mixed = base.weak or (not exponent.weak and kind(base.dtype) == "int" and base.dtype != exponent.dtype)
        return any(kind(each.dtype) == "bool" for each in operands) or (kind(exponent.dtype) == "int" and mixed)
    return kind(dtype) == "bool" and name in _NOT_OF_BOOLS


def binary(op: str, left: Value, right: Value) -> Value:
    """Return `left op right`, of which at least one is an array."""
    library = _library(left, right)
    call = Call(f"{library}.{op}", (left, right))
    operands = [args.array(call, left), args.array(call, right)]
    return matmul(call, left, right) if op == "@" else operation(OPERATORS[op], library, operands)


def inplace(op: str, left: Value, right: Value) -> Value:
    """Return what `left` is after `left op= right`: NumPy's and torch's arrays keep their shape and dtype."""
    result = binary(op, left, right)
    if not isinstance(left, Array) or left.library == "jax":
        return result
    if left.library == UNKNOWN:
        raise Unmodelled("whether the array is changed in place is not known")
    assert isinstance(result, Array | int)
    changed = args.array(Call(left.library, ()), result)
    return replace(left, contents=cast(changed, left.dtype))


def unary(op: str, value: Array) -> Value:
    """Return `-value`, `+value` or `~value`."""
    return operation({"-": "negative", "+": "positive", "~": "bitwise_not"}[op], value.library, (value,))


def _library(left: Value, right: Value) -> str:
    """Return the library of the result of an operator."""
    libraries = {each.library for each in (left, right) if isinstance(each, Array)}
    if not libraries:
        raise Unmodelled("none of the operands is an array")
    if len(libraries) == 1:
        return libraries.pop()
    if "torch" in libraries and "unknown" not in libraries:
        raise Unmodelled("torch and another library in one operation")
    if "jax" in libraries or "torch" in libraries:
        return (libraries & {"jax", "torch"}).pop()
    return UNKNOWN


_UNARY = (
    "abs", "negative", "positive", "square", "sign", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin",
    "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf", "isfinite", "logical_not", "bitwise_not",
)  # fmt: skip
_BINARY = (
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "minimum", "maximum", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "arctan2", "isclose",
)  # fmt: skip
_LAX_UNARY = (
    "abs", "neg", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "tanh", "logistic", "sign", "square", "erf",
)  # fmt: skip
_ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "softplus")


@model(FUNCTIONS, *_UNARY, "absolute", "cbrt", "arcsin", "arccos", "arctan", "invert")
@model("jax.numpy", "reciprocal")
@model(TORCH, *_UNARY, "reciprocal", "neg", "rsqrt", "sigmoid", "relu", "erf", "absolute")
@model("jax.lax", *_LAX_UNARY)
@model("jax.nn", *_ACTIVATIONS, "swish", "tanh", "log_sigmoid", "relu6")
@model("torch.nn.functional", *_ACTIVATIONS, "logsigmoid", "tanh", "relu6")
def unary_function(call: Call, a: Value, *, approximate: Value = None) -> Value:
    return operation(call.path.rpartition(".")[2], call.library, (args.array(call, a),))


@model(("jax.nn", "torch.nn.functional", *TORCH), "softmax", "log_softmax")
def softmax(call: Call, a: Value, axis: Value = -1, *, where: Value = None, dtype: Value = None) -> Array:
    array = args.array(call, a)
    made, weak = _inexact("softmax", call.library, [array])
    return Array(array.shape, chosen(dtype, call.library, made), call.library, weak=weak)


@model((*FUNCTIONS, *METHODS, *TORCH), "round")
@model(FUNCTIONS, "around", "nan_to_num")
def rounded(call: Call, a: Value, decimals: Value = 0) -> Array:
    return replace(args.array(call, a), contents=None, weak=False)


@model((*FUNCTIONS, *TORCH), "floor", "ceil", "trunc")
def whole(call: Call, a: Value) -> Value:
    """Of a number, a number: source makes it a size with `int(np.ceil(x))`."""
    if call.library == "numpy" and isinstance(a, float) and math.isfinite(a):
        return float(getattr(math, call.path.rpartition(".")[2])(a))
    if call.library == "numpy" and isinstance(a, Opaque) and (made := _whole_quotient(call, a)) is not None:
        return made
    array = args.array(call, a)
    regular = kind(array.dtype) == "float"  # of integers, older versions make floats
    return Array(array.shape, array.dtype if regular else None, array.library, weak=array.weak and regular)


def _whole_quotient(call: Call, value: Opaque) -> Opaque | None:
    """Return the whole number, still a float, that an unknown `a / b` is rounded to."""
    match value.key:
        case ("/", dividend, divisor):
            rounded = {"numpy.ceil": shapes.ceil_divide, "numpy.floor": operations.floordiv}.get(call.path)
            return replace(value, key=("/", rounded(dividend, divisor), 1)) if rounded else None
        case _:
            return None


@model(FUNCTIONS, *_BINARY, "equal", "power", "mod", "left_shift", "right_shift", "logaddexp", "fmod")
@model(TORCH, *_BINARY, "eq", "ne", "lt", "le", "gt", "ge", "mul", "sub", "div", "pow", "fmod", "logaddexp")
@model("jax.lax", "add", "sub", "mul", "max", "min", "rem", "pow", "eq", "ne", "lt", "le", "gt", "ge")
def binary_function(call: Call, a: Value, b: Value) -> Value:
    return operation(call.path.rpartition(".")[2], call.library, (args.array(call, a), args.array(call, b)))


@model("jax.lax", "div")
def lax_div(call: Call, a: Value, b: Value) -> Array:
    """Of integers, unlike elsewhere, an integer."""
    operands = [args.array(call, a), args.array(call, b)]
    dtype, weak = promote("jax", operands)
    return Array(shapes.broadcast(*(each.shape for each in operands)), dtype, "jax", weak=weak)


@model((*FUNCTIONS, "torch"), "where")
@model("jax.lax", "select")
def where(call: Call, condition: Value, a: Value, b: Value) -> Array:
    arrays = [args.array(call, each) for each in (condition, a, b)]
    dtype, weak = promote(call.library, arrays[1:])
    return Array(shapes.broadcast(*(each.shape for each in arrays)), dtype, call.library, weak=weak)


@model((*FUNCTIONS, *METHODS), "clip")
@model(TORCH, "clamp", "clip")
def clip(call: Call, a: Value, min: Value = None, max: Value = None, *, a_min: Value = None, a_max: Value = None) -> Array:
    bounds = [args.array(call, each) for each in (min, max, a_min, a_max) if each is not None]
    operands = [args.array(call, a), *bounds]
    dtype, weak = promote(call.library, operands)
    return Array(shapes.broadcast(*(each.shape for each in operands)), dtype, call.library, weak=weak)
