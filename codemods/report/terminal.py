"""What a stream can show: colors, and so many columns."""

from __future__ import annotations

import os
from typing import TextIO

_FALLBACK = 80


def is_colored(stream: TextIO) -> bool:
    """Say whether escapes go to a stream: https://no-color.org has the last word, https://force-color.org the one before it."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def width(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream is, which `shutil.get_terminal_size` tells of standard output alone."""
    try:
        return int(os.environ.get("COLUMNS", "")) or _FALLBACK
    except ValueError:
        pass
    try:
        return os.get_terminal_size(stream.fileno()).columns or _FALLBACK
    except (OSError, ValueError):
        return _FALLBACK
