"""Which argument an annotation refuses, and why, in fewer words than the type checker's."""

from __future__ import annotations

import inspect
import re
import reprlib
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from beartype import BeartypeConf
from beartype.door import is_bearable

from shapecheck.hints import alternatives, arrays_of, arrays_within, field_names, is_record, members
from shapecheck.observe import dtype_of, is_array, is_quantized, shape_of, sharding_note
from shapecheck.paths import elements, spelled

_LONGEST_REASON = 120  # characters; of a dtype that is refused, it lists every one that is not
_MODULES = re.compile(r"(?:\w+\.)+(?=\w)")


CONF = BeartypeConf(is_pep484_tower=True)  # `float` takes an int, as it does for static type checkers
_NEVER = (typing.NoReturn, typing.Never)


class Part(NamedTuple):
    """A value inside an argument, with the path that leads to it and the hint that it is to fit."""

    path: str
    hint: Any
    value: Any


def refused_argument(callee: str, signature: inspect.Signature, arguments: Mapping[str, Any]) -> str | None:
    """Tell of the first argument that its annotation refuses, by the signature's order; in the scope of jaxtyping one is in.

    Of two arrays that disagree on the size of an axis, the later one is refused.
    """
    for name, value in arguments.items():
        parameter = signature.parameters[name]
        for each in _items(parameter, value):
            if parameter.annotation is not parameter.empty and (part := _refused(Part(name, parameter.annotation, each))):
                return "\n".join(_lines(f"{callee}: argument {part.path!r} is refused", part))
    return None


def refused_result(callee: str, hint: Any, result: Any) -> str | None:
    """Tell what of a result its annotation refuses."""
    part = None if hint in _NEVER else _refused(Part("result", hint, result))
    if part is None:
        return None
    where = "" if part.path == "result" else f" in {part.path}"
    return "\n".join(_lines(f"{callee}: the return value is refused{where}", part))


def _items(parameter: inspect.Parameter, value: Any) -> tuple[Any, ...]:
    """Return the values that an annotation speaks of: each of `*args` and `**kwargs`."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return tuple(value)
    return tuple(value.values()) if parameter.kind is parameter.VAR_KEYWORD else (value,)


def _refused(part: Part) -> Part | None:
    """Return the first part that its hint refuses.

    Of a container or record with arrays in it, beartype looks at few elements, which it draws: here, all come before, in order.
    """
    refused = next(_refused_inside(part), None)
    return refused or (None if is_bearable(part.value, part.hint, conf=CONF) else part)


def _refused_inside(part: Part) -> Iterator[Part]:
    """Yield what is refused of a value by the one alternative that it may be, if that holds arrays."""
    meant = _alternatives_for(part)
    if len(meant) == 1 and members(meant[0]) and any(arrays_within(meant[0])):
        for member in members(meant[0]):
            for key, value in elements(part.value, member.step).items():
                if refused := _refused(Part(part.path + spelled(member.step, key), member.hint, value)):
                    yield refused


def _alternatives_for(part: Part) -> list[Any]:
    """Return the alternatives that a container or record may be, by its type, and if these are several, by what is in it."""
    others = [each for each in alternatives(part.hint) if not arrays_of(each)]
    if not any(map(members, others)):
        return []
    meant = [each for each in others if is_bearable(part.value, typing.get_origin(each) or each, conf=CONF)]
    return meant if len(meant) < 2 else [each for each in meant if is_bearable(part.value, each, conf=CONF)]


def _lines(headline: str, part: Part) -> Iterator[str]:
    yield headline
    yield from (f"  {note}" for note in sharding_note())
    yield f"  expected {_spelled(part.hint, part.value)}"
    reason = _reason(part.hint, part.value)
    yield f"  got {_shown(part.value)}" + (f": {reason}" if reason else "")


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
    if is_quantized(value):
        return _Brief().repr(value)
    jax = sys.modules.get("jax")  # whose arrays are of another type wherever they are traced
    name = "Array" if jax is not None and isinstance(value, jax.Array) else type(value).__name__
    return f"{_Brief().repr(value)} ({name})"


class _Brief(reprlib.Repr):
    """Short, and arrays by dtype and shape: writing their numbers would fetch them from the device."""

    def repr_instance(self, x: Any, level: int) -> str:
        if is_array(x):
            return f"{dtype_of(x)}[{','.join(map(str, shape_of(x)))}]"
        if is_quantized(x) or is_record(type(x)):
            names = ("weight", "scales") if is_quantized(x) else field_names(type(x))
            fields = (f"{name}={self.repr1(getattr(x, name), level - 1)}" for name in names) if level > 0 else ("...",)
            return f"{type(x).__name__}({', '.join(fields)})"
        return super().repr_instance(x, level)


def _reason(hint: Any, value: Any) -> str:
    """Return jaxtyping's reason, of the first kind of array that `value` is; empty where it is a long list."""
    if not is_array(value):
        return ""
    kinds = (array for array in arrays_of(hint) if array.array_type is Any or isinstance(value, array.array_type))
    reason = next((kind.__instancecheck_str__(value) for kind in kinds), "")
    return reason if len(reason) <= _LONGEST_REASON else ""
