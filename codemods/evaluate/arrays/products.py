"""Products of matrices and what generalises them."""

from __future__ import annotations

from dataclasses import replace

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.dtypes import chosen
from codemods.evaluate.arrays.promotion import promote
from codemods.evaluate.arrays.shapes import Shape
from codemods.evaluate.arrays.signatures import FUNCTIONS, METHODS, TORCH, model
from codemods.evaluate.library import Call, Unmodelled
from codemods.terms import Int
from codemods.values import Array, Value


def _product(call: Call, shape: Shape, arrays: list[Array], dtype: Value = None) -> Array:
    promoted, weak = promote(call.library, [*map(args.firm, arrays)])
    return Array(shape, chosen(dtype, call.library, promoted), call.library, weak=weak and dtype is None)


@model((*FUNCTIONS, *TORCH), "matmul")
@model(TORCH, "mm", "bmm", "mv")
def matmul(call: Call, a: Value, b: Value, *, preferred_element_type: Value = None) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    return _product(call, shapes.matmul(left.shape, right.shape), [left, right], preferred_element_type)


@model((*FUNCTIONS, *METHODS, *TORCH), "dot")
def dot(call: Call, a: Value, b: Value, *, preferred_element_type: Value = None) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    if not left.shape or not right.shape:
        shape = (*left.shape, *right.shape)
    else:
        shapes.agree(left.shape[-1], right.shape[-2:][0])
        shape = (*left.shape[:-1], *right.shape[:-2], *(right.shape[-1:] if len(right.shape) > 1 else ()))
    return _product(call, shape, [left, right], preferred_element_type)


@model(FUNCTIONS, "vdot")
def vdot(call: Call, a: Value, b: Value) -> Array:
    return _product(call, (), [args.array(call, a), args.array(call, b)])


@model((*FUNCTIONS, "torch"), "inner")
def inner(call: Call, a: Value, b: Value) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    if not left.shape or not right.shape:
        return _product(call, (*left.shape, *right.shape), [left, right])
    shapes.agree(left.shape[-1], right.shape[-1])
    return _product(call, (*left.shape[:-1], *right.shape[:-1]), [left, right])


@model((*FUNCTIONS, *TORCH), "outer")
def outer(call: Call, a: Value, b: Value) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    return _product(call, (shapes.total(left.shape), shapes.total(right.shape)), [left, right])


@model((*FUNCTIONS, "torch"), "tensordot")
def tensordot(call: Call, a: Value, b: Value, axes: Value = 2, *, axis: Value = None) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    summed = axes if axis is None else axis
    if isinstance(summed, int):
        of_left, of_right = range(-summed, 0), range(summed)
    else:
        of_left, of_right = (args.integers(call, each) for each in args.elements(call, summed))
    left_axes, right_axes = shapes.axes_of(len(left.shape), of_left), shapes.axes_of(len(right.shape), of_right)
    if len(left_axes) != len(right_axes):
        shapes.fails("fewer or more axes of the one than of the other")
    for i, j in zip(left_axes, right_axes, strict=True):
        shapes.agree(left.shape[i], right.shape[j])
    return _product(call, (*_without(left.shape, left_axes), *_without(right.shape, right_axes)), [left, right])


def _without(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


@model((*FUNCTIONS, "torch"), "einsum")
def einsum(call: Call, subscripts: Value, *operands: Value, preferred_element_type: Value = None) -> Array:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise Unmodelled("`einsum` without plain subscripts")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    names = inputs.split(",")
    if len(names) != len(operands):
        shapes.fails("fewer or more arrays than the subscripts name")
    arrays = [args.ranked(call, operand, len(each)) for operand, each in zip(operands, names, strict=True)]
    if not arrow:
        joined = "".join(names)
        output = "".join(sorted(name for name in set(joined) if joined.count(name) == 1))
    sizes = _sizes(names, arrays)
    if len(set(output)) < len(output) or not set(output) <= sizes.keys():
        shapes.fails(f"the output of {subscripts!r}")
    return _product(call, tuple(sizes[name] for name in output), arrays, preferred_element_type)


def _sizes(names: list[str], arrays: list[Array]) -> dict[str, Int]:
    """Return the size of each name; the same name may stand for 1 and for another size."""
    if [len(each) for each in names] != [len(array.shape) for array in arrays]:
        shapes.fails("the ranks are not those of the subscripts")
    sizes: dict[str, Int] = {}
    for each, array in zip(names, arrays, strict=True):
        for name, size in zip(each, array.shape, strict=True):
            (sizes[name],) = shapes.broadcast((sizes.get(name, 1),), (size,))
    return sizes


@model("jax.lax", "dot_general")
def dot_general(
    call: Call, a: Value, b: Value, dimension_numbers: Value, precision: Value = None, preferred_element_type: Value = None
) -> Array:
    left, right = args.array(call, a), args.array(call, b)
    contracting, batch = args.elements(call, dimension_numbers)
    (left_sum, right_sum), (left_batch, right_batch) = (
        [args.integers(call, axes) for axes in args.elements(call, pair)] for pair in (contracting, batch)
    )
    common = [shapes.agree(left.shape[i], right.shape[j]) for i, j in zip(left_batch, right_batch, strict=True)]
    for i, j in zip(left_sum, right_sum, strict=True):
        shapes.agree(left.shape[i], right.shape[j])
    rows, columns = _without(left.shape, (*left_sum, *left_batch)), _without(right.shape, (*right_sum, *right_batch))
    made = _product(call, (*common, *rows, *columns), [left, right], preferred_element_type)
    return replace(made, weak=False)
