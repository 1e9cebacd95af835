"""Text that an editor holds and has not saved: whoever reads one of these files gets it instead."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_buffers: ContextVar[Mapping[str, bytes]] = ContextVar("buffers")


@contextmanager
def unsaved(buffers: Mapping[str, bytes]) -> Iterator[None]:
    """Let each of these paths hold other bytes than those on disk."""
    token = _buffers.set({os.path.realpath(path): data for path, data in buffers.items()})
    try:
        yield
    finally:
        _buffers.reset(token)


def buffer_of(path: str | Path) -> bytes | None:
    """Return what an editor holds of a file; None for one that it has not opened."""
    buffers = _buffers.get(None)
    return buffers.get(os.path.realpath(path)) if buffers else None


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a file as they will be once everything is saved.

    Raises:
        OSError: it cannot be read.
    """
    data = buffer_of(path)
    return Path(path).read_bytes() if data is None else data
