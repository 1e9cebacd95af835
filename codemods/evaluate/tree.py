"""The files of the tree as bytes: what they may change of modules that they mention.

It looks at the bytes of files that mention the name of the module, for what is assigned to attributes and what is changed in
place. A name is taken for that of the module wherever it stands: to know less is always sound.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codemods.callees import CALLEES
from codemods.config import Configuration
from codemods.evaluate.relevance import KERNELS, MUTATORS
from codemods.evaluate.sharing import ANYTHING, Changes
from codemods.files import discover
from codemods.nodes import nodes
from codemods.source import Source, SourceError
from codemods.words import Words

_START = rb"(?:^|;|\)[ \t]*:|\b(?:else|try|finally)[ \t]*:)[ \t]*"
_ENDS = rb"(?:\[[^\n]*\])?(?:[ \t]*:[^\n=]+)?[ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
_STORES = re.compile(_START + rb"(\w[\w.()\[\]'\"]*)\.(\w+)" + _ENDS, re.MULTILINE)
_SEVERAL = re.compile(_START + rb"\(?([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)\)?[ \t]*=(?!=)", re.MULTILINE)
_OTHERWISE = re.compile(rb"\b(?:del|for|as)[ \t]+[\w.\[\]'\"]*\.(\w+)\b")
_ITEMS = re.compile(_START + rb"(\w+)(?:\[[^\n]*\][ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)|[ \t]*(?:[-+*|&^])=)", re.MULTILINE)
_METHODS = re.compile(
    rb"\b(\w+)(?:\[[^\n\]]*\])?\.(?:" + "|".join(sorted(MUTATORS)).encode() + rb"|__setitem__|move_to_end|appendleft)\("
)
_SETTERS = re.compile(rb"(?:\b(?:setattr|delattr|vars|globals|__setattr__|__delattr__)\(|__dict__\b)([^\n]*\n?[^\n]*)")
_PATCHES = re.compile(rb"(?:\bmonkeypatch|\bmp|\bm|patch)\w*(?:\.\w+)*\(([^\n]*\n?[^\n]*\n?[^\n]*)")
_COMPUTED = re.compile(
    rb"(?:setattr|delattr)\(\s*(\w+)\s*,\s*[^'\"\s]|\bvars\((\w+)\)\[[^'\"]|\b(\w+)\.__dict__(?:\[[^'\"]|\.update)"
)
_QUOTED = re.compile(rb"['\"](?:[\w.]*\.)?(\w+)['\"]|\b(\w+)[ \t]*=(?!=)")


@dataclass(frozen=True)
class File:
    """A file of the tree, and the names that it sets or changes of something that is not its own."""

    path: str
    data: bytes = field(repr=False)

    def mentions(self, name: bytes) -> bool:
        """Say whether a name stands in the file, as a whole word."""
        return name in self.data and re.search(rb"\b" + re.escape(name) + rb"\b", self.data) is not None

    def imports(self, name: bytes) -> bool:
        """Say whether it may import a module whose name ends in this, by a statement or by a dotted path in a string."""
        if name not in self.data:
            return False
        word = rb"\b" + re.escape(name) + rb"\b"
        statement = rb"\b(?:import|from)\b[^\n#]*" + word + rb"|\bimport\s*\([^)]*" + word
        return re.search(statement + rb"|['\"][\w.]*" + word + rb"[\w.]*['\"]", self.data) is not None

    @cached_property
    def lasting(self) -> frozenset[str]:
        """The names that it sets for good."""
        found = [name for receiver, name in _STORES.findall(self.data) if receiver not in (b"self", b"cls")]
        for several in _SEVERAL.findall(self.data):
            found += [part.rpartition(b".")[2] for part in several.split(b",") if b"." in part]
        found += _OTHERWISE.findall(self.data)
        return frozenset(map(bytes.decode, found)) | _quoted(_SETTERS.findall(self.data))

    @cached_property
    def in_place(self) -> frozenset[str]:
        """The names of which it changes the objects."""
        return frozenset(name.decode() for pattern in (_ITEMS, _METHODS) for name in pattern.findall(self.data))

    @cached_property
    def patched(self) -> frozenset[str]:
        """The names that it replaces for some time, as tests do."""
        return _quoted(_PATCHES.findall(self.data)) if b"patch" in self.data.lower() else frozenset()

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes that it sets of the `self` of methods."""
        return frozenset(name.decode() for receiver, name in _STORES.findall(self.data) if receiver == b"self")

    @cached_property
    def computed(self) -> frozenset[bytes]:
        """The objects of which it sets attributes with names that are computed."""
        return frozenset(name for match in _COMPUTED.findall(self.data) for name in match if name not in (b"", b"self", b"cls"))


def _quoted(texts: Iterable[bytes]) -> frozenset[str]:
    return frozenset(name.decode() for text in texts for match in _QUOTED.findall(text) for name in match if name)


class Tree:
    """The files of a tree, read once.

    Args:
        root: the folder of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._mentioning: dict[str, list[File]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self.changes: dict[tuple[str, bool], Changes] = {}  # see `changes_before`

    @cached_property
    def _files(self) -> list[File]:
        found = discover([str(self._root)], Configuration(), Words([b"import"])).candidates
        return [File(os.path.realpath(each.path), each.data) for each in found]

    def _others(self, path: str) -> list[File]:
        """Return the files that mention a module."""
        real = os.path.realpath(path)
        if real not in self._mentioning:
            stem = _stem(real)
            self._mentioning[real] = [file for file in self._files if file.path != real and file.imports(stem)]
        return self._mentioning[real]

    @cached_property
    def _conftests(self) -> list[File]:
        return [file for file in self._files if file.path.endswith("conftest.py")]

    def before_import(self, path: str, importers: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of a module that other files set, and those of which they change the objects, whoever imports them.

        What a file that the importers mention changes in place is known when they have imported it.
        """
        followed = {os.path.realpath(each) for each in importers}
        texts = [file for file in self._files if file.path in followed]
        bound, changed = set[str](), set[str]()
        for file in self._others(path):
            bound |= file.lasting | ({ANYTHING} if _stem(os.path.realpath(path)) in file.computed else set())
            if file.path not in followed and not any(each.imports(_stem(file.path)) for each in texts):
                changed |= file.in_place
        return frozenset(bound), frozenset(changed)

    def before_call(self, path: str) -> frozenset[str]:
        """Return the names of a module that other files may set or change before a function runs, in tests also for some time."""
        if path not in self._names:
            real = os.path.realpath(path)
            conftests = (file for file in self._conftests if _is_conftest_of(file.path, real))
            found = set[str]()
            for file in (*self._others(path), *conftests):
                found |= file.lasting | file.in_place | file.patched | ({ANYTHING} if _stem(real) in file.computed else set())
            self._names[path] = frozenset(found)
        return self._names[path]

    def attributes(self, name: str, path: str) -> frozenset[str]:
        """Return the attributes that other files may set of the objects of a class."""
        real, word = os.path.realpath(path), name.encode()
        others = (file for file in self._files if file.path != real and file.mentions(word))
        return frozenset[str]().union(*(file.own | file.lasting for file in others))

    @cached_property
    def _replacements(self) -> list[tuple[str, File]]:
        """The kernels, by their dotted paths, in the place of which a file puts something."""
        words, found = Words(), list[tuple[str, File]]()
        for file in self._files:
            if words.occur_in(file.data) and not (file.lasting | file.patched).isdisjoint(KERNELS):
                found += [(kernel, file) for kernel in CALLEES if _replaces(file, *kernel.rsplit(".", 1))]
        return found

    def replaced_kernels(self, path: str) -> Mapping[str, str]:
        """Return the kernels in the place of which a file puts something, for good or in the tests of `path`, and the file."""
        real = os.path.realpath(path)
        return {
            kernel: file.path
            for kernel, file in self._replacements
            if file.path != real and (kernel.rpartition(".")[2] in file.lasting or _is_conftest_of(file.path, real))
        }


def _stem(path: str) -> bytes:
    """Return the last part of a module's name."""
    return os.fsencode(Path(path).parent.name if Path(path).stem == "__init__" else Path(path).stem)


def _replaces(file: File, module: str, name: str) -> bool:
    """Say whether a file sets this attribute of a module that it imports, or patches it by its path."""
    try:
        tree = Source(file.path, file.data).tree
    except SourceError:
        return False
    imported = {alias.asname or alias.name: alias.name for node in nodes(tree, ast.Import) for alias in node.names}
    imported |= {
        alias.asname or alias.name: f"{node.module}.{alias.name}" for node in nodes(tree, ast.ImportFrom) for alias in node.names
    }
    names = {local for local, path in imported.items() if path == module}
    for node in nodes(tree, ast.Attribute, ast.Call):
        match node:
            case ast.Attribute(receiver, attr, ctx=ast.Store()) if attr == name and ast.unparse(receiver) in names:
                return True
            case ast.Call(args=[receiver, ast.Constant(str(attr)), *_]) if attr == name and ast.unparse(receiver) in names:
                return True
            case ast.Call(args=[ast.Constant(str(path)), *_]) if path == f"{module}.{name}":
                return True
            case _:
                pass
    return False


def _is_conftest_of(file: str, path: str) -> bool:
    return Path(file).name == "conftest.py" and Path(file).parent in Path(path).parents
