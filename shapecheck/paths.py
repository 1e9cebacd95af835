"""Where a value stands inside an argument: `cache.k_pages`, `pair[0]`, `caches[*]` for each element of `caches`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

EACH = "[*]"
"""The step of a path that stands for every element of a sequence, or every value of a mapping."""

Key: TypeAlias = tuple[Any, ...]
"""The indices and keys that a path's `[*]` stand for, in their order."""

_STEP = re.compile(r"\.(\w+)|\[(\*|\d+)\]")


def root_of(path: str) -> str:
    """Return the name of the argument that a path begins with."""
    return path.partition(".")[0].partition("[")[0]


def spelled(path: str, key: Key) -> str:
    """Return the path of one element: `caches[17].k_pages`."""
    for each in key:
        path = path.replace(EACH, f"[{each!r}]", 1)
    return path


def elements(value: Any, path: str) -> dict[Key, Any]:
    """Return what stands at a path inside `value`, by its key; what has no such part is left out."""
    found: dict[Key, Any] = {(): value}
    for attribute, index in _STEP.findall(path):
        step = _Step(attribute, index)
        found = {(*key, *more): part for key, each in found.items() for more, part in step.parts(each)}
    return found


class _Step:
    """One step of a path, of which either the attribute or the index is empty."""

    def __init__(self, attribute: str, index: str) -> None:
        self.attribute = attribute
        self.index = index

    def parts(self, value: Any) -> Iterator[tuple[Key, Any]]:
        """Yield what it leads to from a value, each with what it adds to the key."""
        if self.attribute:
            if hasattr(value, self.attribute):
                yield (), getattr(value, self.attribute)
        elif self.index == "*":
            yield from (((key,), part) for key, part in _items(value))
        elif isinstance(value, Sequence) and int(self.index) < len(cast(Sequence[Any], value)):
            yield (), value[int(self.index)]


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return cast(Mapping[Any, Any], value).items()
    return enumerate(cast(Sequence[Any], value)) if isinstance(value, Sequence) and not isinstance(value, str) else ()
