"""What jaxtyping annotations state of the parameters of a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from codemods import terms
from codemods.evaluate import havoc
from codemods.formulas import both, equal
from codemods.values import Array, Class, DType, External, Function, Opaque, Reason, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_DTYPES: Mapping[str, str | None] = {
    "Float16": "float16", "BFloat16": "bfloat16", "Float32": "float32", "Float64": "float64", "Int8": "int8",
    "Int16": "int16", "Int32": "int32", "Int64": "int64", "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64", "Bool": "bool", "Float": None, "Int": None, "UInt": None, "Integer": None, "Shaped": None,
    "Num": None, "Real": None, "Inexact": None, "Complex": None,
}  # fmt: skip

_KINDS = {"builtins.int": "int", "builtins.float": "number"}  # an int will do for a float

_NAME = re.compile(r"[A-Za-z_]\w*")


def annotated(machine: Machine, function: Function, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values with which a function is executed when its caller is unknown: what is given, else a parameter
    of which its annotation is a fact, else an unknown one.
    """
    parameters: ast.arguments = function.node.args
    values = dict(given) | {each.arg: unseen(machine, function, each) for each in _named(function) if each.arg not in given}
    for parameter in (parameters.vararg, parameters.kwarg):
        if parameter is not None:
            values[parameter.arg] = machine.unknown(
                parameter.arg, f"`{parameter.arg}` is spread into `{function.name}`", parameter
            )
    return values


def refined(machine: Machine, function: Function, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return what is given, and for what is unknown of it and annotated an array of which the annotation is a fact."""
    values = dict(given)
    for parameter in _named(function):
        value = given.get(parameter.arg)
        if isinstance(value, Opaque) and parameter.annotation is not None:
            array = _array(machine, parameter.annotation, parameter)
            if array is not None and _assume_shape(machine, value, array):
                values[parameter.arg] = array
    return values


def _assume_shape(machine: Machine, value: Opaque, array: Array) -> bool:
    """Go on with an execution in which an unknown array has this shape, unless it cannot."""
    shape = value.shape
    same = (equal(size, terms.of(shape.item(axis).symbol())) for axis, size in enumerate(array.shape))
    assumed = machine.state.assume(both(*same), branch=False)
    machine.state = assumed or machine.state
    return assumed is not None


def _named(function: Function) -> tuple[ast.arg, ...]:
    parameters: ast.arguments = function.node.args
    return (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)


def unseen(machine: Machine, function: Function, parameter: ast.arg, why: Reason | None = None) -> Value:
    """Return the value of a parameter that no caller shows: of its annotation, or unknown because of `why`."""
    name = parameter.arg
    if parameter.annotation is not None and (array := _array(machine, parameter.annotation, parameter)) is not None:
        return array
    usual = _default(machine, function, name)
    by_default = "" if usual is None else f", {usual!r} by default"
    text = f"`{name}` is a parameter of `{function.name}`{by_default}"
    stated = machine.evaluate(parameter.annotation) if isinstance(parameter.annotation, ast.Name) else None
    kind = _KINDS.get(stated.path, "") if isinstance(stated, External) else ""
    numbers = tuple(_numbers(machine, stated)) if isinstance(stated, Class) else ()
    why = why or Reason(text, function.path, parameter.lineno)
    return Opaque((machine.new_id(), name), name, why, default=usual, kind=kind, numbers=numbers)


def _numbers(machine: Machine, cls: Class) -> Iterator[tuple[str, str]]:
    """Yield the fields and properties of a class that it says are numbers, with their kinds."""
    for each in cls.parameters:
        if kind := _KINDS.get(f"builtins.{each.annotation}"):
            yield each.name, kind
    for name in machine.program.names.get(cls.scope, ()):
        match machine.read((cls.scope, name)):
            case Function(node=ast.FunctionDef(returns=ast.Name(stated)), kind="property" | "cached"):
                if kind := _KINDS.get(f"builtins.{stated}"):
                    yield name, kind
            case _:
                pass


def _default(machine: Machine, function: Function, name: str) -> Value:
    """Return the constant that a parameter is by default, also as an option of a command line; None where there is none."""
    parameters: ast.arguments = function.node.args
    positional = [*parameters.posonlyargs, *parameters.args]
    pairs = [
        *zip(positional[::-1], parameters.defaults[::-1], strict=False),
        *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True),
    ]
    written = next((default for parameter, default in pairs if parameter.arg == name), None)
    match written:
        case ast.Call(_, [first, *_]) if _path(machine, written.func) in ("typer.Option", "typer.Argument"):
            written = first
        case None:
            written = _of_decorators(machine, function, name)
        case _:
            pass
    return written.value if isinstance(written, ast.Constant) and is_constant(written.value) else None


def _of_decorators(machine: Machine, function: Function, name: str) -> ast.expr | None:
    """Return the `default` of the `click.option` that sets a parameter."""
    for decorator in getattr(function.node, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and _path(machine, decorator.func) in ("click.option", "click.argument"):
            names = {str(each.value).lstrip("-").replace("-", "_") for each in decorator.args if isinstance(each, ast.Constant)}
            if name in names:
                return next((keyword.value for keyword in decorator.keywords if keyword.arg == "default"), None)
    return None


def _path(machine: Machine, node: ast.expr) -> str:
    """Return the dotted path of what an expression stands for, if it is not of the scanned tree."""
    origin = machine.evaluate(node)
    return origin.path if isinstance(origin, External) else ""


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
    path = _path(machine, kind)
    name = path.rpartition(".")[2]
    if path in ("typing.Annotated", "typing.Optional"):
        return described(machine, first)
    if not path.startswith("jaxtyping.") or name not in _DTYPES or len(rest) != 1:
        return None
    axes = machine.evaluate(rest[0])
    return (name, first, axes) if isinstance(axes, str) else None


def _library(machine: Machine, kind: ast.expr) -> str:
    path = _path(machine, kind)
    return next((library for library in ("numpy", "torch") if path.startswith(library)), "jax")


def _shape(machine: Machine, axes: str, parameter: ast.arg) -> tuple[terms.Int, ...] | None:
    """Return the sizes; a name is one size in all annotations of the function, `_` and `?name` are any size."""
    shape: list[terms.Int] = []
    for position, axis in enumerate(axes.split()):
        axis = axis.rpartition("=")[2] if _NAME.match(axis) else axis  # `rows=4` documents a 4
        if axis.isdecimal():
            shape.append(int(axis))
        elif _NAME.fullmatch(axis) and axis != "_":
            shape.append(_size(machine, axis, parameter))
        elif re.fullmatch(r"_\w*|\?\w+", axis):
            size = machine.unknown(f"{parameter.arg}.shape[{position}]", "its annotation leaves the size open", parameter)
            shape.append(terms.of(terms.Symbol(size.key, size.text, 0, size.reason)))
        elif (size := _computed(machine, axis, parameter)) is not None:
            shape.append(size)
        else:  # variadic or broadcastable: not every rank or size follows
            return None
    return tuple(shape)


def run(machine: Machine, *annotations: ast.expr | None) -> None:
    """Execute what annotations do besides naming a type: now, later or never, as the version of Python and the file have it."""
    for each in annotations:
        if each is not None and any(isinstance(part, ast.Call | ast.NamedExpr) for part in ast.walk(each)):
            havoc.maybe(machine, lambda each=each: machine.evaluate(each), "an annotation may change it", each)


def _size(machine: Machine, name: str, parameter: ast.arg) -> terms.Int:
    """Return the size of the axis that the annotations give this name."""
    reason = Reason(f"`{name}` is an axis that the annotations name", machine.frame.scope.path, parameter.lineno)
    return terms.of(terms.Symbol((machine.frame.scope.id, "axis", name), name, 0, reason))


_ARITHMETIC = {ast.Add: terms.add, ast.Sub: terms.subtract, ast.Mult: terms.multiply}


def _computed(machine: Machine, axis: str, parameter: ast.arg) -> terms.Int | None:
    """Return the size that an axis such as `heads*2` states: jaxtyping computes it of the axes before."""

    def size(node: ast.expr) -> terms.Int | None:
        match node:
            case ast.Constant(int() as value):
                return value
            case ast.Name(name):
                return _size(machine, name, parameter)
            case ast.BinOp(left, op, right) if (function := _ARITHMETIC.get(type(op))) is not None:
                a, b = size(left), size(right)
                return None if a is None or b is None else function(a, b)
            case _:
                return None

    try:
        return size(ast.parse(axis, mode="eval").body)
    except SyntaxError:
        return None
