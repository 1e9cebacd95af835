"""Answers of earlier runs, one file each, by the question and all that the answer depends on."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shapecheck.compiler.answer import Answer
from shapecheck.compiler.question import Question

_FORMAT = 1  # of the replies
_FLAGS = ("JAX_", "XLA_", "LIBTPU_", "TPU_LIBRARY_PATH")  # the beginnings of variables that set up JAX, XLA and libtpu


def cache_folder() -> Path:
    """Return the folder, which need not exist."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "shapecheck", "compile")


class Cache:
    """The replies of the worker that are kept in a folder; a file that cannot be read or written is as good as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, question: Question) -> Answer | None:
        """Return the answer to a question, if it is known."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            held = json.loads(self._path(question).read_bytes())
            if held["key"] == _key(question):
                return Answer.read(question, held["reply"], cached=True)
        return None

    def put(self, question: Question, reply: Mapping[str, Any]) -> None:
        """Keep a reply; another process sees all of it or nothing."""
        path = self._path(question)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
            try:
                with os.fdopen(handle, "w") as file:
                    json.dump({"key": _key(question), "reply": reply}, file)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise

    def _path(self, question: Question) -> Path:
        digest = hashlib.sha256(_key(question).encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.json"


def _key(question: Question) -> str:
    flags = {name: value for name, value in os.environ.items() if name.startswith(_FLAGS)}
    return json.dumps([_FORMAT, question.key, _versions(), flags], sort_keys=True)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of what compiles."""
    versions: dict[str, str] = {}
    for name in ("jax", "jaxlib", "libtpu", "libtpu-nightly"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
