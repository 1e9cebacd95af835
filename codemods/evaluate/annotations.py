"""What jaxtyping annotations state of the parameters of a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codemods import terms
from codemods.values import Array, DType, External, Function, Opaque, Reason, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_DTYPES: Mapping[str, str | None] = {
    "Float16": "float16", "BFloat16": "bfloat16", "Float32": "float32", "Float64": "float64", "Int8": "int8",
    "Int16": "int16", "Int32": "int32", "Int64": "int64", "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64", "Bool": "bool", "Float": None, "Int": None, "UInt": None, "Integer": None, "Shaped": None,
    "Num": None, "Real": None, "Inexact": None, "Complex": None,
}  # fmt: skip

_NAME = re.compile(r"[A-Za-z_]\w*")


def annotated(machine: Machine, function: Function, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values with which a function is executed when its caller is unknown: what is given, else a parameter
    of which its annotation is a fact, else an unknown one.
    """
    parameters: ast.arguments = function.node.args
    values = dict(given)
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        if parameter.arg not in values:
            values[parameter.arg] = _parameter(machine, function, parameter)
    for parameter in (parameters.vararg, parameters.kwarg):
        if parameter is not None:
            values[parameter.arg] = machine.unknown(
                parameter.arg, f"`{parameter.arg}` is spread into `{function.name}`", parameter
            )
    return values


def _parameter(machine: Machine, function: Function, parameter: ast.arg) -> Value:
    name = parameter.arg
    why = f"`{name}` is a parameter of `{function.name}`"
    if parameter.annotation is None:
        why += " without a shape annotation"
    elif (array := _array(machine, parameter.annotation, parameter)) is not None:
        return array
    return Opaque((machine.new_id(), name), name, Reason(why, function.path, parameter.lineno))


def _array(machine: Machine, annotation: ast.expr, parameter: ast.arg) -> Array | None:
    """Return the array that an annotation describes."""
    found = described(machine, annotation)
    if found is None:
        return None
    name, kind, axes = found
    shape = _shape(machine, axes, parameter)
    dtype = _DTYPES[name]
    return None if shape is None else Array(shape, DType(dtype) if dtype else None, _library(machine, kind))


def described(machine: Machine, annotation: ast.expr) -> tuple[str, ast.expr, str] | None:
    """Return the parts of `Float[Array, "batch heads 128"]`, also inside a string, `Annotated` or a union.

    They are the name of the jaxtyping type, the expression of the array type, and the axes; None if it is another type.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return None
    match annotation:
        case ast.BinOp(left, ast.BitOr(), right):  # `Float[...] | None`: None has no shape to break a rule
            sides = [described(machine, side) for side in (left, right)]
            return sides[0] or sides[1] if None in sides else None
        case ast.Subscript(kind, ast.Tuple([first, *rest])):
            pass
        case ast.Subscript(kind, first):
            rest = []
        case _:
            return None
    origin = machine.evaluate(kind)
    path = origin.path if isinstance(origin, External) else ""
    name = path.rpartition(".")[2]
    if path in ("typing.Annotated", "typing.Optional"):
        return described(machine, first)
    if not path.startswith("jaxtyping.") or name not in _DTYPES or len(rest) != 1:
        return None
    axes = machine.evaluate(rest[0])
    return (name, first, axes) if isinstance(axes, str) else None


def _library(machine: Machine, kind: ast.expr) -> str:
    origin = machine.evaluate(kind)
    path = origin.path if isinstance(origin, External) else ""
    return next((library for library in ("numpy", "torch") if path.startswith(library)), "jax")


def _shape(machine: Machine, axes: str, parameter: ast.arg) -> tuple[terms.Int, ...] | None:
    """Return the sizes; a name is one size in all annotations of the function, `_` and `?name` are any size."""
    shape: list[terms.Int] = []
    for position, axis in enumerate(axes.split()):
        axis = axis.rpartition("=")[2] if _NAME.match(axis) else axis  # `rows=4` documents a 4
        if axis.isdecimal():
            shape.append(int(axis))
        elif _NAME.fullmatch(axis) and axis != "_":
            key: Any = (machine.frame.scope.id, "axis", axis)
            reason = Reason(f"`{axis}` is an axis that the annotations name", machine.frame.scope.path, parameter.lineno)
            shape.append(terms.of(terms.Symbol(key, axis, 0, reason)))
        elif re.fullmatch(r"_\w*|\?\w+", axis):
            size = machine.unknown(f"{parameter.arg}.shape[{position}]", "its annotation leaves the size open", parameter)
            shape.append(terms.of(terms.Symbol(size.key, size.text, 0, size.reason)))
        else:  # variadic, broadcastable or computed: not every rank or size follows
            return None
    return tuple(shape)
