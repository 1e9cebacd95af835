"""What a function's signature says of its arguments: annotations resolved, arrays and their axes found."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import AbstractDtype

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.axes import VARIADIC, axes_of
from shapecheck.hints import alternatives, arrays_of, arrays_within, members
from shapecheck.outcome import UNKNOWN

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Reading:
    """A signature, read.

    Attributes:
        signature: with its annotations resolved: no strings are left; what cannot be resolved is `Any`.
        arrays: the parameters that are jaxtyping arrays, and such arrays inside containers and records, in order.
        parameters: the others, but `*args` and `**kwargs`, and the other fields of records.
        unresolved: the annotations that are `Any` for they name what is not there when the function is decorated.
    """

    signature: inspect.Signature
    arrays: tuple[ArrayArgument, ...]
    parameters: tuple[Parameter, ...]
    unresolved: tuple[str, ...]

    def of_arrays(self) -> Reading:
        """Return the reading without those annotations that say nothing of a jaxtyping array."""
        written = self.signature.parameters.values()
        parameters = [each.replace(annotation=_of_arrays(each.annotation)) for each in written]
        result = _of_arrays(self.signature.return_annotation)
        return replace(self, signature=self.signature.replace(parameters=parameters, return_annotation=result))


def read_signature(function: Callable[..., Any]) -> Reading:
    """Read the signature of a function, or of what wraps one: a jit object, a `functools.partial`.

    Raises:
        TypeError: an annotation with a shape cannot be resolved, so nothing would ever check it.
        RelationError: a shape holds a comparison, which jaxtyping does not check.
    """
    signature = _signature_of(function)
    namespace = _namespace_of(function)
    hints, unresolved = _resolved_hints(signature, namespace)
    for annotation in unresolved:
        if _states_a_shape(annotation, namespace):
            raise TypeError(f"{name_of(function)}: the annotation {annotation} cannot be resolved, so nothing would check it")
    for array in (array for hint in hints.values() for array in arrays_within(hint)):
        axes_of(array.dim_str)  # of containers and of the result as well: a comparison is misread wherever it stands
    parameters = [parameter.replace(annotation=hints[name]) for name, parameter in signature.parameters.items()]
    named = [parameter for parameter in parameters if parameter.kind not in _VARIABLE]
    arguments = [argument for parameter in named for argument in _arguments(parameter, hints.keys() - {parameter.name})]
    return Reading(
        signature.replace(parameters=parameters, return_annotation=hints["return"]),
        tuple(argument for argument in arguments if isinstance(argument, ArrayArgument)),
        tuple(argument for argument in arguments if isinstance(argument, Parameter)),
        unresolved,
    )


def _of_arrays(hint: Any) -> Any:
    return hint if any(arrays_within(hint)) else Any


def named_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has the name and the docstring: the function, or the one inside a `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; of an object that can be called, that of its type."""
    function = named_function(function)
    return getattr(function, "__name__", type(function).__name__)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _namespace_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of the function that wrote the annotations, whatever wraps it."""
    function = inspect.unwrap(named_function(inspect.unwrap(function)))
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    return getattr(function, "__globals__", {})


def _resolved_hints(signature: inspect.Signature, namespace: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the hints by parameter, the result's as `return`; and the source of those that cannot be resolved."""
    written = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    written["return"] = signature.return_annotation
    hints: dict[str, Any] = dict.fromkeys(written, Any)
    unresolved: list[str] = []
    for name, hint in written.items():
        try:
            hints[name] = _evaluated(hint, namespace)
        except (NameError, AttributeError):
            unresolved.append(hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else str(hint))
    return hints, tuple(unresolved)


def _evaluated(hint: Any, namespace: dict[str, Any]) -> Any:
    """Evaluate the strings in a hint."""

    def probe() -> None: ...

    probe.__annotations__ = {"hint": hint}
    return typing.get_type_hints(probe, namespace, include_extras=True)["hint"]


def _states_a_shape(annotation: str, namespace: dict[str, Any]) -> bool:
    """Say whether an annotation that cannot be evaluated is one of jaxtyping: `Float[Array, "batch heads"]`.

    Its `Float` may be what is missing, and so may `batch`, for linters remove the quotes of `Float[Array, "batch"]`.
    """
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        match node:
            case ast.Subscript(_, ast.Tuple([ast.Name() | ast.Attribute() | ast.BinOp(), ast.Constant(str())])):
                return True
            case ast.Subscript(kind, ast.Tuple()) if _is_array_kind(ast.unparse(kind), namespace):
                return True
            case _:
                pass
    return False


def _is_array_kind(expression: str, namespace: dict[str, Any]) -> bool:
    try:
        kind = eval(expression, namespace)
    except (NameError, AttributeError):
        return False
    return isinstance(kind, type) and issubclass(kind, AbstractDtype)


def _arguments(parameter: inspect.Parameter, taken: Set[str]) -> Iterator[ArrayArgument | Parameter]:
    """Yield what relations may speak of: the parameter, and what its annotation states of the parts of it.

    A part whose name is that of another parameter has none.
    """
    if arrays_of(parameter.annotation):
        yield _array_argument(parameter.name, parameter.annotation, "")
        return
    yield Parameter(parameter.name, UNKNOWN if parameter.default is inspect.Parameter.empty else parameter.default)
    yield from (part for part in _parts(parameter.name, parameter.name, parameter.annotation) if part.name not in taken)


def _parts(name: str, path: str, hint: Any, outer: tuple[Any, ...] = ()) -> Iterator[ArrayArgument | Parameter]:
    """Yield the arrays inside a container or record, and the other fields of a record; one may stand inside itself."""
    holding = [each for each in alternatives(hint) if members(each)]
    if len(holding) != 1 or holding[0] in outer:  # of several, it is not known which one is given
        return
    for member in members(holding[0]):
        inner, place = f"{name}_{member.name}" if member.name else name, path + member.step
        if arrays_of(member.hint):
            yield _array_argument(inner, member.hint, place)
        else:
            if member.step.startswith("."):
                yield Parameter(inner, path=place)
            yield from _parts(inner, place, member.hint, (*outer, holding[0]))


def _array_argument(name: str, hint: Any, path: str) -> ArrayArgument:
    shapes = {axes_of(array.dim_str) for array in arrays_of(hint)}
    axes = shapes.pop() if len(shapes) == 1 else (VARIADIC,)  # of alternatives that disagree, no axis can be named
    quantizable = any(map(_is_quantized_type, alternatives(hint)))
    return ArrayArgument(name, axes, quantizable, path)


def _is_quantized_type(hint: Any) -> bool:
    fields: Any = getattr(hint, "_fields", None) or getattr(hint, "__dataclass_fields__", ())
    return {"weight", "scales"} <= set(fields)
