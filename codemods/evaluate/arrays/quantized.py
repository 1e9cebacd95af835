"""The int8 pages of JAX's paged attention: `quantization_utils`."""

from __future__ import annotations

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.conversions import as_dtype
from codemods.evaluate.arrays.dtypes import dtype_of
from codemods.evaluate.arrays.elementwise import operation
from codemods.evaluate.arrays.signatures import model
from codemods.evaluate.library import Call, Unmodelled
from codemods.values import Array, DType, Quantized, Value

UTILS = "jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils"
INT8 = DType("int8")


@model(UTILS, "QuantizedTensor")
def quantized_tensor(call: Call, weight: Value, scales: Value) -> Quantized:
    if not isinstance(weight, Array) or not isinstance(scales, Array):
        raise Unmodelled("weight or scales of a quantized tensor are not known")
    return Quantized(weight, scales)


@model(UTILS, "quantize_to_int8")
def quantize_to_int8(call: Call, a: Value) -> Quantized:
    array = args.array(call, a)
    return Quantized(Array(array.shape, INT8), _scales(array))


@model(UTILS, "get_quantization_scales")
def get_quantization_scales(call: Call, a: Value) -> Array:
    return _scales(args.array(call, a))


def _scales(array: Array) -> Array:
    return Array(shapes.reduce(array.shape, (-1,), keepdims=True), array.dtype)


@model(UTILS, "to_int8")
def to_int8(call: Call, a: Value, h: Value) -> Array:
    return Array(shapes.broadcast(args.array(call, a).shape, args.array(call, h).shape), INT8)


@model(UTILS, "from_int8")
def from_int8(call: Call, a: Value, h: Value, dtype: Value = None) -> Value:
    wanted = DType("bfloat16") if dtype is None else dtype_of(dtype)
    scaled = operation("multiply", "jax", (as_dtype(args.array(call, a), wanted), args.array(call, h)))
    number = args.scalar(127.5, "jax")
    assert number is not None
    return operation("divide", "jax", (scaled, number))


@model(UTILS, "unquantize_from_int8")
def unquantize_from_int8(call: Call, a: Value, dtype: Value = None) -> Value:
    if not isinstance(a, Quantized):
        raise Unmodelled("a quantized tensor that is not known")
    return from_int8(call, a.weight, a.scales, dtype)
