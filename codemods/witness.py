"""What a run has seen of the file system, so that it can be told later whether it would see the same."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, TypeAlias

from codemods import disk

_SETTLED = 2_000_000_000  # nanoseconds; two changes of a file may bear the same time where that is coarse

_Stamp: TypeAlias = list[int]
_Record: TypeAlias = tuple[_Stamp, str]
"""When a file or folder was as it is, nothing if that is too fresh to tell, and a digest of what is in it."""


class Witness:
    """All answers of the file system, and of git.

    What bears the same stamp as before is taken to be unchanged, as git does; of anything else the contents are compared.

    Attributes:
        reliable: the answers can be told, and do not contradict each other.
        renewed: some bear another stamp than before, and are the same nevertheless.
    """

    def __init__(self) -> None:
        self.reliable = True
        self.renewed = False
        self._files: dict[str, _Record] = {}
        self._folders: dict[str, _Record] = {}
        self._kinds: dict[str, str] = {}
        self._asked: dict[str, list[str]] = {}  # of git, by working tree
        self._ignored: set[str] = set()

    def saw_data(self, path: str, data: bytes, status: os.stat_result) -> None:
        self._see(self._files, path, data, status)

    def saw_no_data(self, path: str) -> None:
        """Take note that a file cannot be read: that there is none can be told again, what else may be the matter cannot."""
        if disk.kind(path) == "file":
            self.reliable = False

    def saw_kind(self, path: str, kind: str) -> None:
        above = os.path.dirname(path)
        if not kind and above and not (self._kinds[above] if above in self._kinds else disk.kind(above)):
            return  # most modules that are looked for are in packages that are not there: to know that is enough
        self.reliable &= self._kinds.setdefault(path, kind) == kind

    def saw_entries(self, folder: str, entries: Iterable[os.DirEntry[str]], status: os.stat_result) -> None:
        self._see(self._folders, folder, _listed(entries), status)

    def saw_ignored(self, groups: Mapping[str, Iterable[str]], ignored: Set[str]) -> None:
        for tree, paths in groups.items():
            self._asked[tree] = sorted({*self._asked.get(tree, ()), *paths})
        self._ignored |= ignored

    def join(self, other: Witness) -> None:
        """Take over what another one saw that has started with all that this one had seen by then."""
        self.reliable &= other.reliable
        for own, others in ((self._files, other._files), (self._folders, other._folders)):
            for path, record in others.items():
                self.reliable &= own.setdefault(path, record)[1] == record[1]
        for path, kind in other._kinds.items():
            self.saw_kind(path, kind)
        self.saw_ignored(other._asked, other._ignored)

    def sees_the_same(self, ignored: Callable[[Mapping[str, list[str]]], Set[str]]) -> bool:
        """Say whether every answer would be the same now; `ignored` asks git."""
        try:
            return (
                all(disk.kind(path) == kind for path, kind in self._kinds.items())
                and all(self._holds(self._files, path, _data) for path in self._files)
                and all(self._holds(self._folders, path, _entries) for path in self._folders)
                and (not self._asked or ignored(self._asked) == self._ignored)
            )
        except OSError:
            return False

    def as_json(self) -> list[Any]:
        return [self._files, self._folders, self._kinds, self._asked, sorted(self._ignored)]

    @classmethod
    def from_json(cls, held: list[Any]) -> Witness:
        witness = cls()
        witness._files, witness._folders, witness._kinds, witness._asked, ignored = held
        witness._ignored = set(ignored)
        return witness

    def _see(self, records: dict[str, _Record], path: str, data: bytes, status: os.stat_result) -> None:
        record = _stamp(status), _digest(data)
        self.reliable &= records.setdefault(path, record)[1] == record[1]

    def _holds(self, records: dict[str, _Record], path: str, read: Callable[[str], bytes]) -> bool:
        stamp, digest = records[path]
        status = os.stat(path)
        if stamp and stamp == _numbers(status):
            return True
        if os.path.islink(path) or _digest(read(path)) != digest:
            return False
        records[path] = renewed = _stamp(status), digest
        self.renewed |= bool(renewed[0])
        return True


@contextmanager
def watching(witness: Witness) -> Iterator[None]:
    """Let a witness learn all that is asked of the file system."""
    token = disk.WITNESS.set(witness)
    try:
        yield
    finally:
        disk.WITNESS.reset(token)


def _data(path: str) -> bytes:
    return disk.read(path)[0]


def _entries(folder: str) -> bytes:
    return _listed(disk.entries(folder))


def _listed(entries: Iterable[os.DirEntry[str]]) -> bytes:
    return repr([(each.name, each.is_symlink(), each.is_dir(follow_symlinks=False)) for each in entries]).encode()


def _numbers(status: os.stat_result) -> _Stamp:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _stamp(status: os.stat_result) -> _Stamp:
    settled = max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - _SETTLED
    return _numbers(status) if settled else []


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
