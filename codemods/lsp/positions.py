"""Places in a text as the protocol counts them: lines from 0, and in a line the units of an encoding, mostly UTF-16."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterator

from lsprotocol.types import Position, PositionEncodingKind, Range, TextEdit

_NEWLINE = re.compile("\r\n|\r|\n")  # no other character ends a line: not a form feed, nor U+2028
_LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_CODECS = {PositionEncodingKind.Utf8.value: ("utf-8", 1), PositionEncodingKind.Utf16.value: ("utf-16-le", 2)}


def units(text: str, encoding: str) -> int:
    """Return how many units a piece of a line takes."""
    if text.isascii() or encoding not in _CODECS:
        return len(text)
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


class Text:
    """A text, and its lines."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._encoding = encoding
        self._starts = [0, *(found.end() for found in _NEWLINE.finditer(text))]

    def position(self, offset: int) -> Position:
        """Return the position of a character."""
        line = bisect_right(self._starts, offset) - 1
        return Position(line, units(self.text[self._starts[line] : offset], self._encoding))

    def offset(self, position: Position) -> int:
        """Return the character at a position; one behind the end of a line is the end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        if line.isascii():
            return start + min(position.character, len(line))
        taken = 0
        for index, character in enumerate(line):
            if taken >= position.character:
                return start + index
            taken += units(character, self._encoding)
        return start + len(line)

    def range(self, start: int, end: int) -> Range:
        """Return the extent between two characters."""
        return Range(self.position(start), self.position(end))

    def edits(self, after: str) -> Iterator[TextEdit]:
        """Yield the edits that make another text of this one, each as short as can be."""
        lines, others = _LINE.findall(self.text), _LINE.findall(after)
        matcher = difflib.SequenceMatcher(None, lines, others, autojunk=False)
        for tag, first, last, other_first, other_last in matcher.get_opcodes():
            if tag != "equal":
                old, new = "".join(lines[first:last]), "".join(others[other_first:other_last])
                start, end = self._starts[first] if first < len(lines) else len(self.text), len(old)
                common = _common(old, new)
                common -= _splits(old, common) or _splits(new, common)
                trailing = _common(old[common:][::-1], new[common:][::-1])
                trailing -= _splits(old, len(old) - trailing) or _splits(new, len(new) - trailing)
                edit = self.range(start + common, start + end - trailing)
                yield TextEdit(edit, new[common : len(new) - trailing])


def _splits(text: str, offset: int) -> bool:
    """Say whether an offset is within the end of a line, where no position is."""
    return text[offset - 1 : offset + 1] == "\r\n" if offset else False


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
