"""What the verdict on a call depends on, as a key: types, shapes and dtypes of arrays, values of other arguments."""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from shapecheck.hints import alternatives, arrays_within, field_names, is_record
from shapecheck.observe import is_array, is_quantized

Key: TypeAlias = tuple[Any, ...]
Keying: TypeAlias = Callable[..., tuple[Key, dict[str, Any]]]

_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None), type(Ellipsis)})
ANYTHING = (inspect.Parameter.empty, Any, object)
"""Annotations that refuse nothing."""


class Unkeyed(Exception):
    """The verdict depends on what may change behind an argument that looks the same."""


class Part(enum.Enum):
    """What of an argument the verdict depends on."""

    NOTHING = enum.auto()
    TYPE = enum.auto()
    SHAPES = enum.auto()
    VALUE = enum.auto()


def part_of(parameter: inspect.Parameter, named: Collection[str], valued: Collection[str]) -> Part:
    """Return what of an argument the annotation and the rules ask for."""
    hint = parameter.annotation
    if parameter.name in named:
        return Part.VALUE if parameter.name in valued else Part.SHAPES
    if any(hint is each for each in ANYTHING):
        return Part.NOTHING
    plain = all(type(each) is type for each in alternatives(hint)) and not any(arrays_within(hint))
    return Part.TYPE if plain else Part.SHAPES


def keying(signature: inspect.Signature, parts: Mapping[str, Part], arrays: Collection[str], looks: Sequence[str]) -> Keying:
    """Return a function with this signature that gives a key of a call, and its arguments by name; in as little time as can be.

    It is written out for the signature, as the methods of a dataclass are. It takes `arrays` for arrays with the attributes
    `looks`, or None, and the others for what can be hashed: of other arguments there is no such key, and it fails here or when
    it is hashed.
    """
    places: dict[str, Any] = {"_shapecheck_type": type}
    declared: list[str] = []
    described: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.KEYWORD_ONLY not in kinds[:position]:
            declared.append("*")
        places[default := f"_shapecheck_default_{position}"] = parameter.default
        declared.append(name if parameter.default is parameter.empty else f"{name}={default}")
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.POSITIONAL_ONLY not in kinds[position + 1 :]:
            declared.append("/")
        described += _described_by(parameter, parts[name], default, looks if name in arrays else ())
    named = ", ".join(f"{name!r}: {name}" for name in signature.parameters)
    source = f"def key({', '.join(declared)}):\n return ({''.join(f'{each}, ' for each in described)}), {{{named}}}"
    exec(source, places)
    key: Keying = places["key"]
    return key


def _described_by(parameter: inspect.Parameter, part: Part, default: str, looks: Sequence[str]) -> tuple[str, ...]:
    """Return the expressions that describe an argument in a key; `default` is the name of its default there."""
    name = parameter.name
    kind = f"_shapecheck_type({name})"
    if part is Part.NOTHING:
        return ()
    if part is Part.TYPE:
        return (kind,)
    if part is Part.VALUE or not looks:
        given = f"({kind}, {name})"
        return (given if parameter.default is parameter.empty else f"None if {name} is {default} else {given}",)
    described = (kind, *(f"{name}.{look}" for look in looks))
    if type(None) in alternatives(parameter.annotation):
        return tuple(f"None if {name} is None else {each}" for each in described)
    return described


LOOKS = (("aval",), ("shape", "dtype"))
"""What keys may have of arrays, the quickest first: JAX keeps an object for each shape and dtype, and tells it at once."""


def is_told_at_once(parameter: inspect.Parameter, part: Part, value: Any) -> bool:
    """Say whether a key of `keying` has all of an argument that the verdict depends on.

    It has not of an array with others inside, nor of a tuple: `(1, 2)` is equal to `(True, 2.0)`. And an object that is hashed
    by its identity may change.
    """
    if part in (Part.NOTHING, Part.TYPE):
        return True
    if is_array(value) and part is Part.SHAPES:
        plain = not (_has_parts(value) or _is_text(value)) and all(type(size) is int for size in value.shape)
        return plain and (not hasattr(value, "aval") or _is_of_jax(value))
    if type(value) is tuple:
        return value is parameter.default and all(map(_is_steady, value))  # pyright: ignore[reportUnknownArgumentType]
    return _is_steady(value)


def _has_parts(array: Any) -> bool:
    return is_record(type_of(array)) or is_quantized(array)


def _is_of_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and issubclass(type_of(value), jax.Array)  # `isinstance` asks the value, which may say what it likes


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _is_equal_to_none_else(kind: type) -> bool:
    """Say whether a type is equal to itself alone: a metaclass may have it otherwise."""
    return type_of(kind).__eq__ is type.__eq__


def _is_steady(value: Any) -> bool:
    """Say whether a value that can be hashed never changes."""
    numpy = sys.modules.get("numpy")
    if type(value) is tuple:
        return all(map(_is_steady, value))  # pyright: ignore[reportUnknownArgumentType]
    return (
        type(value) in _PLAIN
        or (isinstance(value, type) and _is_equal_to_none_else(value))
        or isinstance(value, enum.Enum)
        or (numpy is not None and isinstance(value, (numpy.dtype, numpy.generic)))
    )


ARRAYS: set[type] = set()
"""The types of arrays whose sizes are always plain integers; found as they come along."""


type_of: Callable[[Any], type[Any]] = type  # of a value that may be anything, pyright does not know the type


def add_to(key: list[Any], part: Part, value: Any) -> None:
    """Add to a key what it says of a value: its type, and after that as many things as the type takes."""
    kind = type_of(value)
    if part is Part.SHAPES and kind in ARRAYS:
        key += (kind, value.shape, value.dtype)
    elif part is Part.NOTHING:
        pass
    elif not _is_equal_to_none_else(kind):
        raise Unkeyed
    elif part is Part.TYPE:
        key.append(kind)
    elif kind in _PLAIN:
        key += (kind, value)
    elif is_array(value):
        key += (kind, *_described(part, kind, value))
        if _has_parts(value):
            key.append(_taken_apart(part, kind, value))
    else:
        key += (kind, _taken_apart(part, kind, value))


def _described(part: Part, kind: type, value: Any) -> Key:
    """Describe an array.

    A symbolic size of `jax.export` is not told from others: whether two are equal may not be known. The number in an array
    without axes is seen by relations, and the text in a string of numpy by a `Literal`.
    """
    numpy = sys.modules.get("numpy")
    if (part is Part.VALUE and value.shape == ()) or _is_text(value):
        if numpy is None or not isinstance(value, numpy.generic):
            raise Unkeyed
        return value.item(), value.dtype
    if not all(type(size) is int for size in value.shape) or not isinstance(value.dtype, Hashable):
        raise Unkeyed
    is_numpy = numpy is not None and kind is numpy.ndarray
    if is_numpy or (_is_of_jax(value) and not isinstance(value, sys.modules["jax"].core.Tracer)):
        ARRAYS.add(kind)
    return tuple(value.shape), value.dtype


def _taken_apart(part: Part, kind: type, value: Any) -> Any:
    """Describe a container or a record by what is in it, and a value that never changes by itself."""
    inside: list[Any] = []
    if kind in (list, tuple):
        inside = value
    elif kind is dict:
        inside = [each for item in value.items() for each in item]
    elif is_record(kind):
        inside = [getattr(value, name) for name in field_names(kind)]
    elif _is_steady(value):
        return value
    else:
        raise Unkeyed
    key: list[Any] = []
    for each in inside:
        add_to(key, part, each)
    return tuple(key)
