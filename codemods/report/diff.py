"""A change as people read it; `codemods.patch` is for git."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from codemods.fix import Change
from codemods.report.wording import printable
from codemods.source import Source

_COLORS = {"---": "\033[1m", "+++": "\033[1m", "@": "\033[36m", "-": "\033[31m", "+": "\033[32m"}


def render(change: Change, source: Source, *, color: bool) -> str:
    """Return the change of a file as a unified diff: characters that a terminal would obey are replaced."""
    before, after = (_lines(data.decode(source.encoding, "replace")) for data in (change.before, change.after))
    path = printable(change.path)
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")
    return "".join(f"{line}\n" for line in (_colored(lines) if color else lines))


def _lines(text: str) -> list[str]:
    lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    return [printable(line) for line in (lines if lines[-1] else lines[:-1])]


def _colored(lines: Iterator[str]) -> Iterator[str]:
    for position, line in enumerate(lines):
        start = line[:3] if position < 2 else line[:1]
        yield f"{_COLORS[start]}{line}\033[0m" if start in _COLORS else line
