"""What is inside a type hint: alternatives, jaxtyping arrays, the parts of containers and of records."""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, cast

from jaxtyping import AbstractArray

from shapecheck.paths import EACH

_SHAPE = re.compile(r"""\w\[.*,\s*["']""")  # as in `Float[Array, "rows columns"]`
_VALIDATOR_OF_VALUES = re.compile(r"\b(?:Is|IsEqual)\[")


class Member(NamedTuple):
    """A part of a container or record: the step of a path that leads to it, the name it adds, and its hint."""

    step: str
    name: str
    hint: Any


def alternatives(hint: Any) -> Iterator[Any]:
    """Yield what a union, an alias or `Annotated` stands for."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from alternatives(member)
    elif origin is Annotated:
        yield from alternatives(hint.__origin__)
    elif sys.version_info >= (3, 12) and isinstance(hint, typing.TypeAliasType):
        yield from alternatives(hint.__value__)
    elif sys.version_info >= (3, 12) and isinstance(origin, typing.TypeAliasType):
        arguments = zip(origin.__type_params__, typing.get_args(hint), strict=False)  # the last may have defaults
        yield from alternatives(_with_arguments(origin.__value__, dict(arguments)))
    else:
        yield hint


def _with_arguments(value: Any, arguments: Mapping[Any, Any]) -> Any:
    """Return what an alias stands for, with arguments in place of its parameters."""
    parameters = getattr(value, "__parameters__", ())
    return value[tuple(arguments.get(each, each) for each in parameters)] if parameters else arguments.get(value, value)


def arrays_of(hint: Any) -> list[type[AbstractArray]]:
    """Return the jaxtyping arrays that an argument so annotated may be."""
    return [member for member in alternatives(hint) if isinstance(member, type) and issubclass(member, AbstractArray)]


def arrays_within(hint: Any, outer: tuple[Any, ...] = ()) -> Iterator[type[AbstractArray]]:
    """Yield the jaxtyping arrays anywhere inside a hint; an alias or a record may stand inside itself."""
    if hint in outer:
        return
    yield from arrays_of(hint)
    for member in alternatives(hint):
        inside = (*typing.get_args(member), getattr(member, "leaftype", None), *(part.hint for part in members(member)))
        for inner in inside:  # of containers; of a PyTree; of records
            yield from arrays_within(inner, (*outer, hint))


def members(hint: Any) -> tuple[Member, ...]:
    """Return the parts of a container or of a record whose hints are known; of anything else, none."""
    origin: Any = typing.get_origin(hint)
    inside = typing.get_args(hint)
    if origin is tuple and inside[1:] != (...,):
        return tuple(Member(f"[{index}]", str(index), each) for index, each in enumerate(inside))
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(inside) == 2:
        return (Member(EACH, "", inside[1]),)
    if isinstance(origin, type) and issubclass(origin, Sequence) and inside:
        return (Member(EACH, "", inside[0]),)
    record = cast(Any, origin or hint)
    return _fields(record) if is_record(record) else ()


def is_record(hint: Any) -> bool:
    """Say whether a hint is a NamedTuple or a dataclass."""
    if not isinstance(hint, type):
        return False
    return dataclasses.is_dataclass(hint) or (issubclass(hint, tuple) and hasattr(cast(Any, hint), "_fields"))


@lru_cache(maxsize=256)
def _fields(record: Any) -> tuple[Member, ...]:
    """Return the fields of a record; where their annotations cannot be resolved, they may hold anything.

    Raises:
        TypeError: one of these states a shape, so nothing would check it.
    """
    try:
        hints = typing.get_type_hints(record, include_extras=True)
    except (NameError, AttributeError) as error:
        bases = cast("list[Any]", record.__mro__)
        stated: list[dict[str, Any]] = [
            each.__dict__.get("__annotations__", {})  # noqa: RUF063  since 3.14 `get_annotations` fails for the same reason
            for each in bases
        ]
        written = [str(each) for annotations in stated for each in annotations.values()]
        if any(map(_SHAPE.search, written)):
            raise TypeError(f"the fields of {record.__name__} cannot be resolved, so nothing would check them: {error}") from None
        hints = {}
    return tuple(Member(f".{name}", name, hints.get(name, Any)) for name in field_names(record))


def field_names(record: Any) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(getattr(record, "_fields", ()) or (field.name for field in dataclasses.fields(record)))


def looks_at_values(hint: Any) -> bool:
    """Say whether something in a hint may refuse one value and take another of the same type, shape and dtype.

    A validator of beartype calls a function of the value (`Is`) or compares it (`IsEqual`). A size such as `{rows}` is computed
    from an argument.
    """
    hints = list(_within(hint))
    validated = any(_VALIDATOR_OF_VALUES.search(repr(each)) for each in hints)
    return validated or any("{" in array.dim_str for each in hints for array in arrays_of(each))


def _within(hint: Any, outer: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield a hint and all hints inside it, also of what only its name is written: an alias, a `NewType`, a `TypeVar`."""
    if any(hint is each for each in outer):
        return
    yield hint
    named = (getattr(hint, attribute, None) for attribute in ("__value__", "__supertype__", "__bound__", "leaftype"))
    constraints = getattr(hint, "__constraints__", ())
    fields = (part.hint for part in members(hint))
    for each in (*named, *constraints, *typing.get_args(hint), typing.get_origin(hint), *fields):
        if each is not None:
            yield from _within(each, (*outer, hint))
