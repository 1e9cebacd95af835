"""Changes as a patch that `git apply` takes."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator

from codemods.fix import Change


def patch(change: Change) -> bytes:
    """Return the change of one file as a unified patch, byte for byte: lines end at a line feed, whatever else they hold."""
    path = os.fsencode(change.path.replace(os.sep, "/"))
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(change.before),
        _lines(change.after),
        _name(b"a/" + path),
        _name(b"b/" + path),
    )
    return b"".join(_marked(lines))


def _name(path: bytes) -> bytes:
    """Return a path as git reads it: in quotes, with escapes as in C, where it holds a character that would end it."""
    escaped = re.sub(rb'[\x00-\x1f"\\\x7f]', lambda found: b"\\%03o" % ord(found[0]), path)
    if escaped != path:
        return b'"' + escaped + b'"'
    return path + b"\t" if b" " in path else path  # without the tab git takes the name to end at the space


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _marked(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
