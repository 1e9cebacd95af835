"""What runs reported, kept for a run that would report the same."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple

from codemods.disk import read
from codemods.files import Found
from codemods.git import ignored
from codemods.witness import Witness, watching

_FORMAT = 1
_MOST_FILES = 256
_MOST_BYTES = 64_000_000
_OWN = ("codemods.", "shapecheck.")


class Kept(NamedTuple):
    """What a run reported, and its exit status."""

    report: str
    status: int


class Cache:
    """The reports of earlier runs, a file each, in the user's cache folder: a scanned repository has no say in them.

    A report is kept with all that the run has seen of the file system, the files of this program included, and is good as long
    as another run would see the same. A file that cannot be read or written, or is damaged, is as good as none.

    Args:
        found: the files that the run looks at.
        asked: all else that the report depends on, as something whose `repr` tells.
    """

    def __init__(self, found: Found, asked: object) -> None:
        known = hashlib.blake2b(repr((_FORMAT, sys.version, os.getcwd(), asked, found.problems, found.files)).encode())
        for project, files in groupby(found.rest, lambda file: file.project):
            known.update(repr((project, [file.path for file in files])).encode())
        for path, data, _, project in found.candidates:
            known.update(repr((path, os.path.realpath(path), os.path.realpath(project.root), project, len(data))).encode())
            known.update(data)
        self._path = os.path.join(folder(), known.hexdigest()[:40])

    def recall(self) -> Kept | None:
        """Return what a run like this one reported, if it would report the same now."""
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            digest, _, held = read(self._path)[0].partition(b"\n")
            if digest != _digest(held):
                return None
            seen, *reported = json.loads(held)
            witness = Witness.from_json(seen)
            if witness.sees_the_same(ignored):
                if witness.renewed:
                    self._write(witness, Kept(*reported))
                else:
                    os.utime(self._path)
                return Kept(*reported)
        return None

    def keep(self, witness: Witness, kept: Kept) -> None:
        """Keep a report for later, and let go of the oldest where there are many."""
        with watching(witness), suppress(OSError):
            for name, module in [*sys.modules.items()]:
                if name.startswith(_OWN) and (path := getattr(module, "__file__", None)):
                    read(path)
            if witness.reliable and os.path.isabs(self._path):  # it is not where the user has no home
                self._write(witness, kept)
                _tidy(os.path.dirname(self._path))

    def _write(self, witness: Witness, kept: Kept) -> None:
        """Write the file; another process sees all of it or nothing."""
        import tempfile  # takes longer to import than a file takes to be read

        held = json.dumps([witness.as_json(), *kept]).encode()
        above = os.path.dirname(self._path)
        os.makedirs(above, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=above)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(held) + b"\n" + held)
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise


def folder() -> str:
    """Return the folder, which need not exist."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "shapecheck", "reports")


def _tidy(above: str) -> None:
    """Remove the files that have not been of use for longest; also what a run left behind that was killed."""
    with os.scandir(above) as listing:
        held = sorted(((each.stat(), each.path) for each in listing), key=lambda file: file[0].st_mtime_ns, reverse=True)
    total = 0
    for count, (status, path) in enumerate(held):
        total += status.st_size
        if count >= _MOST_FILES or total > _MOST_BYTES:
            with suppress(FileNotFoundError):  # another run was faster
                os.unlink(path)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()
