"""What a run asks of the file system: each answer is told to a witness, if there is one."""

from __future__ import annotations

import os
import stat
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from codemods.unsaved import buffer_of

if TYPE_CHECKING:
    from codemods.witness import Witness

WITNESS: ContextVar[Witness | None] = ContextVar("WITNESS", default=None)


class Stamp(NamedTuple):
    """What tells a file that was changed, or replaced, since it was read."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def read(path: str) -> tuple[bytes, Stamp]:
    """Return the bytes of a regular file, as they will be once everything is saved.

    Raises:
        OSError: it cannot be read, or is something else: opening a pipe would wait for a writer.
    """
    if (held := buffer_of(path)) is not None:
        return held, Stamp(0, 0, len(held), -1)  # not that of what is on disk
    try:
        data, status = _read(path)
    except OSError:
        if (witness := WITNESS.get()) is not None:
            witness.saw_no_data(path)
        raise
    if (witness := WITNESS.get()) is not None:
        witness.saw_data(path, data, status)
    return data, Stamp.of(status)


def _read(path: str) -> tuple[bytes, os.stat_result]:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:  # it is read while it grows, or in pieces, or has no size, as in /proc
            chunks = [data]
            while chunk := os.read(descriptor, status.st_size + 1):
                chunks.append(chunk)
            data = b"".join(chunks)
        return data, status
    finally:
        os.close(descriptor)


def kind(path: str) -> str:
    """Return `file`, `folder` or `other` for what is at a path, links followed; nothing where there is nothing to be seen."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # a NUL byte
        found = ""
    else:
        found = "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"
    if (witness := WITNESS.get()) is not None:
        witness.saw_kind(path, found)
    return found


def is_file(path: str) -> bool:
    return kind(path) == "file"


def exists(path: str) -> bool:
    return kind(path) != ""


def entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name.

    Raises:
        OSError: it cannot be listed.
    """
    witness = WITNESS.get()
    status = os.stat(folder) if witness is not None else None
    with os.scandir(folder) as listing:
        found = sorted(listing, key=lambda entry: entry.name)
    if witness is not None and status is not None:
        witness.saw_entries(folder, found, status)
    return found
