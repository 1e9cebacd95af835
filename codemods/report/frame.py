"""The lines of code around a finding, with carets below it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from codemods.report.wording import printable
from codemods.source import Source, Span

_AROUND = 2  # lines above and below
_WIDEST = 160  # columns of code to show


class FrameLine(NamedTuple):
    """A line of a frame: its number, or as many blanks, and the code or the carets."""

    margin: str
    text: str


def frame(source: Source, span: Span) -> Iterator[FrameLine]:
    """Yield the frame of a span; of one that goes over several lines the first is marked, to its end."""
    begins, ends = (span.cell.first, span.cell.last) if span.cell else (1, len(source.line_starts))
    first, last = max(begins, span.line - _AROUND), min(ends, span.line + _AROUND)
    margin = " " * len(str(last - begins + 1))
    code = source.line(span.line)
    begin, end = span.column - 1, span.end_column - 1 if span.end_line == span.line else len(code)
    shift = max(0, end - _WIDEST)  # a long line is shown from where its end can be seen
    shift = min(shift, begin)
    yield FrameLine(margin, "")
    for number in range(first, last + 1):
        yield FrameLine(
            str(number - begins + 1).rjust(len(margin)), printable(source.line(number)[shift : shift + _WIDEST]).rstrip()
        )
        if number == span.line:
            shown = code[shift : min(end, shift + _WIDEST)]
            indent = _width(printable(code[shift:begin]))
            yield FrameLine(margin, " " * indent + "^" * max(1, _width(printable(shown)) - indent))
    yield FrameLine(margin, "")


def _width(text: str) -> int:
    """Return how many columns a terminal needs."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) != 0 for each in text)
