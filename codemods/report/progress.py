"""What is being looked at, while a run takes its time; only on a terminal."""

from __future__ import annotations

import os
import time
from functools import partial
from types import TracebackType
from typing import Any, TextIO

from codemods.report.terminal import width
from codemods.report.wording import printable

_PATIENCE = 1.0  # seconds before there is anything to see
_PAUSE = 0.1  # seconds between two updates
_CLEAR = "\r\033[K"


class Progress:
    """One line that is written over again and again, and gone at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = time.monotonic() + _PATIENCE
        self._shown = False

    def watching(self, analyse: Any) -> Any:
        """Return an analysis that shows what it is looking at, if there is somebody to see it."""
        return partial(analyse, watch=lambda path: self._show(f"checking {path}")) if self._is_seen else analyse

    def compiling(self, done: int, total: int) -> None:
        """Show how many questions to the compiler are answered."""
        if self._is_seen:
            self._due = 0.0  # each takes its time, the first that of the start of libtpu
            self._show(f"compiled {done} of {total}")

    @property
    def _is_seen(self) -> bool:
        return self._stream.isatty() and os.environ.get("TERM") != "dumb"

    def _show(self, text: str) -> None:
        if time.monotonic() < self._due:
            return
        line = printable(text)[: max(20, width(self._stream) - 1)]
        self._stream.write(f"{_CLEAR}{line}".encode(self._stream.encoding, "replace").decode(self._stream.encoding))
        self._stream.flush()
        self._due, self._shown = time.monotonic() + _PAUSE, True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
