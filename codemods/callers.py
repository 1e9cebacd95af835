"""Files that may call the functions that hold a call site: with them, the values that those functions get are known."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codemods.config import Configuration
from codemods.disk import read
from codemods.evaluate.relevance import relevance
from codemods.files import Candidate, discover, searchable
from codemods.notebook import source_of
from codemods.source import Source, SourceError
from codemods.words import Words

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.MULTILINE)
MAX_IMPORTERS = 100  # files, of one run
MAX_CALLERS = 40  # files; a name that more of them mention is too common to tell anything


class Callers(NamedTuple):
    """The files, and the names by which they may reach a kernel."""

    sources: list[Source]
    names: frozenset[str]


class Neighbours:
    """The other files below `root` that have the name of one of the modules in them, as a whole word.

    Args:
        sources: the modules.
        root: the folder.
    """

    def __init__(self, sources: Collection[Source], root: Path) -> None:
        paths = [source.path for source in sources]
        stems = set(map(_module, paths))
        known = set(map(os.path.realpath, paths))
        words = Words(stems)
        self.importers: list[Candidate] = []
        self._naming: dict[str, frozenset[bytes]] = {}  # by path: the modules
        for candidate in discover([str(root)], Configuration(), words, known=set(map(os.path.abspath, paths))).candidates:
            if os.path.realpath(candidate.path) in known:  # by another name
                continue
            self._naming[candidate.path] = words.all_in(searchable(candidate.path, candidate.data))
            if len(self.importers) < MAX_IMPORTERS and any(map(words.occur_in, _IMPORT.findall(candidate.data))):
                self.importers.append(candidate)

    def callers(self, sources: Collection[Source]) -> Callers:
        """Return the files that may import a function of some of the modules that reaches a kernel.

        Such a file has both the name of the function and that of its module in it, as whole words.
        """
        exported = {source.path: _exported(source.tree) for source in sources}
        names = frozenset[str]().union(*exported.values())
        wanted = [(_module(path), Words(map(str.encode, each))) for path, each in exported.items() if each]
        callers: list[Source] = []
        for path, modules in self._naming.items():
            own = [words for module, words in wanted if module in modules]
            if not own or len(callers) == MAX_CALLERS:
                continue
            with suppress(SourceError, OSError):  # a file that nobody asked for may be broken
                data, _ = read(path)
                if any(words.occur_in(searchable(path, data)) for words in own):
                    source = source_of(path, data)
                    _ = source.tree
                    callers.append(source)
        return Callers(callers, names)


def _module(path: str) -> bytes:
    """Return the last part of a module's name."""
    file = Path(path).resolve()
    return os.fsencode(file.parent.name if file.stem == "__init__" else file.stem)


def _exported(tree: ast.Module) -> set[str]:
    """Return the functions and classes of a module's top level that reach a kernel."""
    names = relevance(tree, frozenset(), frozenset()).names()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and node.name in names}
