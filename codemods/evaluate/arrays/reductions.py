"""Reductions and running totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from codemods import terms
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import element, filled, flat, holds_all, nest, positions
from codemods.evaluate.arrays.dtypes import bits, chosen, default_int, kind
from codemods.evaluate.arrays.promotion import inexact
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call
from codemods.terms import Int
from codemods.values import Array, DType, Value

_ON_INTEGERS: Mapping[str, Callable[[Sequence[int]], int]] = {
    "sum": sum, "prod": prod, "max": max, "min": min, "amax": max, "amin": min,
}  # fmt: skip
_ON_TERMS: Mapping[str, Callable[[Int, Int], Int]] = {
    "sum": terms.add, "prod": terms.multiply, "max": terms.maximum, "min": terms.minimum,
    "amax": terms.maximum, "amin": terms.minimum,
}  # fmt: skip


def _reduced(call: Call, array: Array, axis: Value, keepdims: Value, dtype: DType | None) -> Value:
    axes = args.axes(call, axis)
    keep = args.flag(keepdims)
    shape = shapes.reduce(array.shape, axes, keep)
    function = _ON_INTEGERS.get(call.path.rpartition(".")[2])
    ...
