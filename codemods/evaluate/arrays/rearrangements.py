"""einops: what a pattern such as `"b (h d) -> b h d"` makes of a shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from codemods import operations
from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.contents import reshaped
from codemods.evaluate.arrays.dtypes import kind
from codemods.evaluate.arrays.shapes import Shape
from codemods.evaluate.arrays.signatures import UNKNOWN
from codemods.evaluate.library import Call, Unmodelled, models
from codemods.terms import Int
from codemods.values import Array, Opaque, Value

_Side: TypeAlias = tuple[tuple[str, ...], ...]
"""One side of a pattern: for each axis the names that it is composed of."""

_TOKEN = re.compile(r"\(([^()]*)\)|(\.\.\.|\w+)")
_REST = "..."


@models("einops.rearrange", "einops.repeat", "einops.reduce")
def rearranged(call: Call) -> Value:
    """`rearrange(x, pattern, **sizes)`, `repeat(...)`, `reduce(x, pattern, reduction, **sizes)`."""
    reduces = call.path.endswith("reduce")
    given = dict(call.keywords)
    a = given.pop("tensor", None) if not call.positional else call.positional[0]
    pattern = given.pop("pattern", None) if len(call.positional) < 2 else call.positional[1]
    how = (given.pop("reduction", None) if len(call.positional) < 3 else call.positional[2]) if reduces else None
    if not isinstance(pattern, str):
        raise Unmodelled("the pattern is not known")
    left, right = _parsed(pattern)
    array = _array(a, left)
    left, right = (_with_rest(side, left, array) for side in (left, right))
    sizes = _sizes(left, array.shape, {name: args.size(call, size) for name, size in given.items()})
    before, after = ([name for axis in side for name in axis] for side in (left, right))
    if not reduces and not set(before) <= set(after):
        shapes.fails(f"{pattern!r} drops an axis")
    shape = tuple(shapes.total(_size(name, sizes) for name in axis) for axis in right)
    if before == after:
        return reshaped(array, shape)
    dtype = array.dtype if not reduces or (how in ("max", "min") or (how == "sum" and kind(array.dtype) == "float")) else None
    return replace(array, shape=shape, dtype=dtype, contents=None)


def _parsed(pattern: str) -> tuple[_Side, _Side]:
    left, arrow, right = pattern.partition("->")
    if not arrow:
        shapes.fails(f"{pattern!r} is no pattern")
    return _axes(left), _axes(right)


def _axes(side: str) -> _Side:
    if not re.fullmatch(rf"\s*((?:{_TOKEN.pattern})\s*)*", side):
        raise Unmodelled(f"the pattern {side.strip()!r} is not followed")
    found = _TOKEN.findall(side)
    return tuple(tuple(inner.split()) if not single else _one(single) for inner, single in found)


def _one(name: str) -> tuple[str, ...]:
    return () if name == "1" else (name,)


def _array(value: Value, left: _Side) -> Array:
    """Return the argument as an array: of an unknown one, the pattern says the rank."""
    if isinstance(value, Array):
        return value
    if isinstance(value, Opaque) and (_REST,) not in left:
        return replace(args.ranked(Call("", ()), value, len(left)), library=UNKNOWN)
    raise Unmodelled("the shape of what is rearranged is not known")


def _with_rest(side: _Side, left: _Side, array: Array) -> _Side:
    """Put a name for each axis in the place of `...`."""
    if any(_REST in axis and len(axis) > 1 for axis in side):
        raise Unmodelled("a pattern that merges all axes of `...`")
    rest = tuple((f"{_REST}{place}",) for place in range(len(array.shape) - len(left) + 1))
    return tuple(axis for each in side for axis in (rest if each == (_REST,) else (each,)))


def _sizes(left: _Side, shape: Shape, given: Mapping[str, Int]) -> dict[str, Int]:
    """Return the size of each name: what is given, and what follows from the axes."""
    if len(left) != len(shape):
        shapes.fails(f"a pattern of {len(left)} axes for an array of {len(shape)}")
    sizes = dict(given)
    for names, size in zip(left, shape, strict=True):
        open_ = [name for name in names if name not in sizes and not name.isdecimal()]
        known = shapes.total(_size(name, sizes) for name in names if name not in open_)
        if len(open_) > 1:
            shapes.fails(f"the sizes of {' and '.join(open_)} do not follow")
        if open_:
            if known == 0 or (isinstance(size, int) and isinstance(known, int) and size % known):
                shapes.fails(f"an axis of size {size} is no multiple of {known}")
            sizes[open_[0]] = operations.floordiv(size, known)
        elif len(names) != 1 or set(names) & given.keys():
            shapes.agree(size, known)
    return sizes


def _size(name: str, sizes: Mapping[str, Int]) -> Int:
    if name.isdecimal():
        return int(name)
    if name not in sizes:
        shapes.fails(f"the size of {name} does not follow")
    return sizes[name]
