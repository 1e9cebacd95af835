"""The words that make a file worth parsing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

# `codemods.callees.WORDS`, which a test compares: loading the contracts takes longer than reading a thousand files.
KERNELS = frozenset(
    {
        b"extended_paged_attention",
        b"multi_queries_paged_attention",
        b"page_attention",
        b"paged_attention",
        b"ragged_paged_attention",
        b"shapecheck",
    }
)


_WORD = re.compile(rb"\w+")
_MANY = 30  # names; to look for each of so many takes longer than to take a file apart


class Words:
    """A set of names to look for in the bytes of a file, as whole words."""

    def __init__(self, names: Iterable[bytes] = KERNELS) -> None:
        self._names = sorted(names)
        # Searching for a plain substring is many times faster than for a pattern: look for the fewest that cover all names.
        self._longest = max(map(len, self._names), default=0)
        self._many = len(self._names) > _MANY and all(map(_WORD.fullmatch, self._names))

    @cached_property
    def _parts(self) -> list[bytes]:
        return [name for name in self._names if not any(other in name for other in self._names if other != name)]

    def occur_in(self, data: bytes) -> bool:
        """Say whether one of the names stands in `data` by itself, not as a part of a longer name."""
        if self._many:
            return bool(self.all_in(data))
        return any(self._occurs_around(part, data) for part in self._parts)

    def _occurs_around(self, part: bytes, data: bytes) -> bool:
        """Say so of the names that have this part."""
        at = data.find(part)
        while at >= 0:
            last = at + self._longest
            found = self._pattern.search(data, max(0, at - self._longest), last + 1)
            if found and found.end() <= last:  # else it may be cut off
                return True
            at = data.find(part, at + 1)
        return False

    def all_in(self, data: bytes) -> frozenset[bytes]:
        """Return those of the names that stand in `data` by themselves."""
        if self._many:
            return frozenset(self._names).intersection(_WORD.findall(data))
        return frozenset(self._pattern.findall(data))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(rb"\b(?:" + b"|".join(map(re.escape, self._names)) + rb")\b")
