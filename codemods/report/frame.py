"""The lines of code around a finding, with carets below it."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from codemods.report.wording import printable
from codemods.source import Source, Span

_AROUND = 2  # lines above and below
WIDEST = 160  # columns to take where nothing else limits them
_NARROWEST = 20  # columns of code, however narrow the terminal is
_CUT = "..."  # in place of what is left out at an end of a longer line


class FrameLine(NamedTuple):
    """A line of a frame: its number, or as many blanks, and the code or the carets."""

    margin: str
    text: str


def frame(source: Source, span: Span, widest: int = WIDEST) -> Iterator[FrameLine]:
    """Yield the frame of a span; of one that goes over several lines the first is marked, to its end.

    Of longer lines than `widest` columns of code a part is shown.
    """
    widest = max(_NARROWEST, widest)
    begins, ends = (span.cell.first, span.cell.last) if span.cell else (1, len(source.line_starts))
    first, last = max(begins, span.line - _AROUND), min(ends, span.line + _AROUND)
    margin = " " * len(str(last - begins + 1))
    code = source.line(span.line)
    begin, end = span.column - 1, span.end_column - 1 if span.end_line == span.line else len(code)
    shift = min(_skipped(code, end, widest), begin)
    yield FrameLine(margin, "")
    for number in range(first, last + 1):
        yield FrameLine(str(number - begins + 1).rjust(len(margin)), _part(source.line(number), shift, widest))
        if number == span.line:
            indent = _width(_before(code, shift, begin))
            shown = min(_width(_part(code, shift, widest)), _width(_before(code, shift, end)))
            yield FrameLine(margin, " " * indent + "^" * max(1, shown - indent))
    yield FrameLine(margin, "")


def _skipped(line: str, end: int, widest: int) -> int:
    """Return how many characters to leave out at the beginning of a line so that one at `end` is seen."""
    if _width(printable(line)) <= widest or _width(printable(line[:end])) <= widest - len(_CUT):
        return 0
    return end - _fitting(line[:end][::-1], widest - 2 * len(_CUT))


def _part(line: str, shift: int, widest: int) -> str:
    """Return what is shown of a line behind its first `shift` characters, marked where something is left out."""
    text = _before(line, shift, len(line)).rstrip()
    if _width(text) <= widest:
        return text
    return text[: _fitting(text, widest - len(_CUT))] + _CUT


def _fitting(text: str, columns: int) -> int:
    """Return how many characters at the beginning fit into so many columns."""
    return bisect_right(list(accumulate(_width(printable(each)) for each in text)), columns)


def _before(line: str, shift: int, end: int) -> str:
    """Return what is shown of a line from its first `shift` characters to an end."""
    return (_CUT if shift and line else "") + printable(line[shift:end])


def _width(text: str) -> int:
    """Return how many columns a terminal needs."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) != 0 for each in text)
