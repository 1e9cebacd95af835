"""Put the new contents of a file in place of the old, whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from codemods import overwrite
from codemods.files import Stamp

_SUFFIX = ".tmp"


class WriteError(Exception):
    """A file that is left as it was."""


def write(path: str, data: bytes, stamp: Stamp) -> None:
    """Replace the contents of a file, unless it is no longer the one that `stamp` was taken of.

    A symbolic link stays one and its target is written; the mode and, where there are several, the hard links stay.

    Raises:
        WriteError: the file was changed meanwhile, or cannot be written.
    """
    path = os.path.realpath(path)
    try:
        status = os.stat(path)
        if Stamp.of(status) != stamp:
            raise WriteError("it was changed while it was being checked")
        if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
            raise WriteError("it is read-only")
        if status.st_nlink > 1:  # a rename would part the file from its other names
            _overwrite(path, data)
            return
        try:
            _replace(path, data, status)
        except PermissionError:  # no leave to create files in the folder, or to make one like the old
            _overwrite(path, data)
    except OSError as error:
        raise WriteError(f"it cannot be written: {error.strerror or error}") from None


def _replace(path: str, data: bytes, status: os.stat_result) -> None:
    """Write beside the file and rename: whoever reads, or interrupts, has the old contents or the new."""
    folder, name = os.path.split(path)
    prefix = f".shapecheck-{zlib.crc32(os.fsencode(name)):08x}-"  # not the name itself, which may be as long as names can be
    _remove_stale(folder, prefix)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=_SUFFIX)
    try:
        with _lock(temporary):
            with open(descriptor, "wb") as file:
                file.write(data)
            if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(temporary, status.st_uid, status.st_gid)
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
            for each in os.listxattr(path) if hasattr(os, "listxattr") else ():  # access lists are among them
                os.setxattr(temporary, each, os.getxattr(path, each))
            os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):  # interrupted just after it was renamed
            os.unlink(temporary)
        raise


def _remove_stale(folder: str, prefix: str) -> None:
    """Remove what runs that were killed left of a file: nobody holds the lock any more.

    The search for files takes none of it, as its name does not end like that of a Python file.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and name.endswith(_SUFFIX):
                with suppress(OSError), _lock(path := os.path.join(folder, name)) as ours:
                    if ours:
                        os.unlink(path)


@contextmanager
def _lock(path: str) -> Iterator[bool]:
    """Hold the lock of a file, which goes with the process; say whether it is ours: not where another has it, or none exist."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = True
        except OSError:
            ours = False
        yield ours
    finally:
        os.close(descriptor)


def _overwrite(path: str, data: bytes) -> None:
    """Write into the file itself: not by this process, which may be killed at any moment."""
    command = [sys.executable, "-I", "-S", overwrite.__file__, path, str(len(data))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        _, message = process.communicate(data)
    if process.returncode:
        raise OSError(message.decode(errors="replace").strip())
