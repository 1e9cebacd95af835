"""Changes as a patch that `git apply` takes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from codemods.fix import Change


def patch(change: Change) -> bytes:
    """Return the change of one file as a unified patch, byte for byte: lines end at a line feed, whatever else they hold."""
    name = os.fsencode(change.path.replace(os.sep, "/"))
    tail = b"\t" if b" " in name else b""  # without it git takes the name to end at the space
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(change.before),
        _lines(change.after),
        b"a/" + name + tail,
        b"b/" + name + tail,
    )
    return b"".join(_marked(lines))


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _marked(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
