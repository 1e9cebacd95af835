"""Which argument an annotation refuses, and why, in fewer words than the type checker's."""

from __future__ import annotations

import inspect
import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from beartype import BeartypeConf
from beartype.door import is_bearable
from jaxtyping import jaxtyped  # pyright: ignore[reportUnknownVariableType]

from shapecheck.observe import dtype_of, is_array, is_quantized, shape_of, sharding_note
from shapecheck.signature import arrays_of

_LONGEST_REASON = 120  # characters; of a dtype that is refused, it lists every one that is not
_MODULES = re.compile(r"(?:\w+\.)+(?=\w)")


def refuser(callee: str, signature: inspect.Signature, conf: BeartypeConf) -> Callable[..., str | None]:
    """Return a function of a call's arguments that tells of the first one that its annotation refuses.

    Arguments are taken in the order of the signature and in one jaxtyping scope, as `jaxtyped` does: of two that
    disagree on the size of an axis, the later one is refused.
    """

    def first_refused(*args: Any, **kwargs: Any) -> str | None:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            parameter = signature.parameters[name]
            hint = parameter.annotation
            for each in _items(parameter, value):
                if hint is not parameter.empty and not is_bearable(each, hint, conf=conf):
                    return "\n".join(_lines(callee, name, hint, each))
        return None

    first_refused.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return jaxtyped(first_refused, typechecker=None)


def _items(parameter: inspect.Parameter, value: Any) -> tuple[Any, ...]:
    """Return the values that an annotation speaks of: each of `*args` and `**kwargs`."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return value
    return tuple(value.values()) if parameter.kind is parameter.VAR_KEYWORD else (value,)


def _lines(callee: str, name: str, hint: Any, value: Any) -> Iterator[str]:
    yield f"{callee}: argument {name!r} is refused"
    yield from (f"  {note}" for note in sharding_note())
    yield f"  expected {_spelled(hint, value)}"
    reason = _reason(hint, value)
    yield f"  got {_shown(value)}" + (f": {reason}" if reason else "")


def _spelled(hint: Any, value: Any) -> str:
    """Return a hint as one would write it, without the names of modules, nor validators that were not reached."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_spelled(member, value) for member in typing.get_args(hint))
    if origin is Annotated and not is_bearable(value, hint.__origin__):
        return _spelled(hint.__origin__, value)
    if hint is types.NoneType:
        return "None"
    return _MODULES.sub("", hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint))


def _shown(value: Any) -> str:
    return _Brief().repr(value) if is_quantized(value) else f"{_Brief().repr(value)} ({type(value).__name__})"


class _Brief(reprlib.Repr):
    """Short, and arrays by dtype and shape: writing their numbers would fetch them from the device."""

    def repr_instance(self, x: Any, level: int) -> str:
        if is_array(x):
            return f"{dtype_of(x)}[{','.join(map(str, shape_of(x)))}]"
        if is_quantized(x):
            return f"{type(x).__name__}(weight={self.repr1(x.weight, level)}, scales={self.repr1(x.scales, level)})"
        return super().repr_instance(x, level)


def _reason(hint: Any, value: Any) -> str:
    """Return jaxtyping's reason, of the first kind of array that `value` is; empty where it is a long list."""
    if not is_array(value):
        return ""
    kinds = (array for array in arrays_of(hint) if array.array_type is Any or isinstance(value, array.array_type))
    reason = next((kind.__instancecheck_str__(value) for kind in kinds), "")
    return reason if len(reason) <= _LONGEST_REASON else ""
