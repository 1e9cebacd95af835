"""Files that may call the functions that hold a call site: with them, the values that those functions get are known."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codemods.config import Configuration
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


def find(sources: Sequence[Source], root: Path, beside: Sequence[Source] = ()) -> Callers:
    """Return the other files below `root` that may import a function of `sources` that reaches a kernel.

    Such a file has both the name of the function and that of its module in it, as whole words. Those that are known already
    are `beside`.
    """
    exported = {source.path: _exported(source.tree) for source in sources}
    names = frozenset[str]().union(*exported.values())
    wanted = [(Words([_module(path)]), Words(map(str.encode, each))) for path, each in exported.items() if each]
    if not names:
        return Callers([], names)
    known = {os.path.realpath(source.path) for source in (*sources, *beside)}
    callers: list[Source] = []
    for candidate in discover([str(root)], Configuration(), Words(name.encode() for name in names)).candidates:
        fits = any(all(words.occur_in(searchable(candidate.path, candidate.data)) for words in pair) for pair in wanted)
        if fits and len(callers) < MAX_CALLERS and os.path.realpath(candidate.path) not in known:
            with suppress(SourceError):  # a file that nobody asked for may be broken
                source = source_of(candidate.path, candidate.data)
                _ = source.tree
                callers.append(source)
    return Callers(callers, names)


def importers(sources: Sequence[Source], root: Path) -> Iterator[Candidate]:
    """Return files below `root` that may import one of `sources`: what else they change is not known when it is executed."""
    stems = {source.path: _module(source.path) for source in sources}
    known = {os.path.realpath(path) for path in stems}
    words = Words(stems.values())
    found = (
        candidate
        for candidate in discover([str(root)], Configuration(), words).candidates
        if os.path.realpath(candidate.path) not in known and any(map(words.occur_in, _IMPORT.findall(candidate.data)))
    )
    return itertools.islice(found, MAX_IMPORTERS)


def _module(path: str) -> bytes:
    """Return the last part of a module's name."""
    file = Path(path).resolve()
    return os.fsencode(file.parent.name if file.stem == "__init__" else file.stem)


def _exported(tree: ast.Module) -> set[str]:
    """Return the functions and classes of a module's top level that reach a kernel."""
    names = relevance(tree, frozenset(), frozenset()).names()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and node.name in names}
