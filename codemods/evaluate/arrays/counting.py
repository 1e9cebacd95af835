"""Functions of which the elements decide how much they give: known where the call says how much to give."""

from __future__ import annotations

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays.dtypes import default_int
from codemods.evaluate.arrays.elementwise import BOOL
from codemods.evaluate.arrays.signatures import FUNCTIONS, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, Value


def _given(call: Call, size: Value) -> tuple[Int]:
    if size is None:
        raise Unmodelled("how many elements there are of that kind is not known")
    return (args.size(call, size),)


@model("jax.numpy", "unique")
def unique(call: Call, a: Value, *, shape: Value = None, fill_value: Value = None) -> Array:
    array = args.array(call, a)
    return Array(_given(call, shape), array.dtype, call.library)


@model("jax.numpy", "nonzero")
def nonzero(call: Call, a: Value, *, shape: Value = None, fill_value: Value = None) -> tuple[Array, ...]:
    array = args.array(call, a)
    return (Array(_given(call, shape), default_int("jax"), "jax"),) * len(array.shape)


@model("jax.numpy", "flatnonzero")
def flatnonzero(call: Call, a: Value, *, shape: Value = None, fill_value: Value = None) -> Array:
    return Array(_given(call, shape), default_int("jax"), "jax")


@model("jax.numpy", "argwhere")
def argwhere(call: Call, a: Value, *, shape: Value = None, fill_value: Value = None) -> Array:
    return Array((*_given(call, shape), len(args.array(call, a).shape)), default_int("jax"), "jax")


@model("jax.numpy", "bincount")
def bincount(call: Call, a: Value, weights: Value = None, minlength: Value = 0, *, length: Value = None) -> Array:
    made = Array(_given(call, length), default_int("jax"), "jax")
    if weights is not None:
        raise Unmodelled("a count with weights")
    return made


@model(FUNCTIONS, "isin")
def isin(call: Call, a: Value, test_elements: Value) -> Array:
    return Array(args.array(call, a).shape, BOOL, call.library)
