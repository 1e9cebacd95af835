"""The files of a program as bytes: what they may change of modules that they import.

It looks at the bytes of files that import a module of that name, for what is assigned to attributes and what is changed in
place. A name is taken for that of the module wherever it stands: to know less is always sound.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codemods.callees import CALLEES
from codemods.disk import read
from codemods.evaluate.relevance import KERNELS, MUTATORS
from codemods.evaluate.sharing import ANYTHING, Changes
from codemods.nodes import nodes
from codemods.source import Source, SourceError

_IMPORTS = re.compile(
    rb"\b(?:import|from)\b((?:\\\r?\n|[^\n#(])*)(?:\(((?:[^)#]|#[^\n]*)*))?|['\"]([\w.]*)['\"]"  # on several lines, too
)
_STATEMENTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))|['\"](\w+(?:\.\w+)*)['\"]", re.MULTILINE
)
_WORD = re.compile(rb"\w+")
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
_REFLECTING = (b"setattr", b"delattr", b"vars", b"globals", b"__dict__")
"""One of these stands in whatever `_SETTERS` or `_COMPUTED` find; to look for them takes next to no time."""
_DISABLES = re.compile(rb"disable_asserts|set_run_validators|set_disabled|validators\.disabled")
_QUOTED = re.compile(rb"['\"](?:[\w.]*\.)?(\w+)['\"]|\b(\w+)[ \t]*=(?!=)")


@dataclass(frozen=True)
class File:
    """A file of the tree, and the names that it sets or changes of something that is not its own."""

    path: str
    data: bytes = field(repr=False)

    def mentions(self, name: bytes) -> bool:
        """Say whether a name stands in the file, as a whole word."""
        return name in self.data and re.search(rb"\b" + re.escape(name) + rb"\b", self.data) is not None

    @cached_property
    def stem(self) -> bytes:
        """The last part of its name as a module."""
        return _stem(self.path)

    @classmethod
    def read(cls, path: str) -> File | None:
        """Read a file; None if that is not possible."""
        try:
            return cls(path, read(path)[0])
        except OSError:
            return None

    def imports(self, stem: bytes) -> bool:
        """Say whether it may import a module whose name ends in this."""
        return stem in self.imported

    @cached_property
    def imported(self) -> frozenset[bytes]:
        """The words in its imports and in strings with dots: the modules that it may import."""
        texts = [text for found in _IMPORTS.findall(self.data) for text in found]
        return frozenset(word for text in texts for word in _WORD.findall(text))

    @cached_property
    def modules(self) -> frozenset[str]:
        """The dotted names of the modules that it imports, and those in strings: of a plugin, for example."""
        found = [name for names in _STATEMENTS.findall(self.data) for name in names if name]
        return frozenset(
            each.strip().partition(" ")[0] for names in found for each in names.decode("ascii", "replace").split(",")
        )

    @cached_property
    def lasting(self) -> frozenset[str]:
        """The names that it sets for good."""
        found = [name for receiver, name in self._stores if receiver not in (b"self", b"cls")]
        for several in _SEVERAL.findall(_lines(self.data, b"=", b".")):
            found += [part.rpartition(b".")[2] for part in several.split(b",") if b"." in part]
        found += _OTHERWISE.findall(self.data)
        return frozenset(map(bytes.decode, found)) | _quoted(_SETTERS.findall(self.data) if self._reflects else ())

    @cached_property
    def in_place(self) -> frozenset[str]:
        """The names of which it changes the objects."""
        found = _ITEMS.findall(_lines(self.data, b"=")) + _METHODS.findall(_lines(self.data, b".", b"("))
        return frozenset(map(bytes.decode, found))

    @cached_property
    def patched(self) -> frozenset[str]:
        """The names that it replaces for some time, as tests do."""
        return _quoted(_PATCHES.findall(self.data)) if b"patch" in self.data.lower() else frozenset()

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes that it sets of the `self` of methods."""
        return frozenset(name.decode() for receiver, name in self._stores if receiver == b"self")

    @cached_property
    def _stores(self) -> list[tuple[bytes, bytes]]:
        """The attributes that it sets, each behind what it is an attribute of."""
        return _STORES.findall(_lines(self.data, b"=", b"."))

    @cached_property
    def computed(self) -> frozenset[bytes]:
        """The objects of which it sets attributes with names that are computed."""
        found = _COMPUTED.findall(self.data) if self._reflects else ()
        return frozenset(name for match in found for name in match if name not in (b"", b"self", b"cls"))

    @cached_property
    def sets_kernels(self) -> bool:
        """Whether it may put something in the place of a kernel."""
        names = [name for name in KERNELS if self._may_set(name.encode())]
        return bool(names) and not (self.lasting | self.patched).isdisjoint(names)

    def _may_set(self, name: bytes) -> bool:
        """Say whether a name stands where something could be set by it: behind a dot, in quotes, or before `=`."""
        found = -1
        while (found := self.data.find(name, found + 1)) >= 0:
            before, after = self.data[found - 1 : found], self.data[found + len(name) :][:20].lstrip()
            if before in (b"'", b'"') or after.startswith(b"=") or (before == b"." and not after.startswith(b"import")):
                return True
        return False

    @cached_property
    def disables_assertions(self) -> bool:
        """Whether it turns the assertions of chex or the validators of attrs off."""
        return _DISABLES.search(self.data) is not None

    @cached_property
    def _reflects(self) -> bool:
        """Whether it may set attributes in another way than by assignments."""
        return any(word in self.data for word in _REFLECTING)


def _lines(data: bytes, *marks: bytes) -> bytes:
    """Return the lines in which all of these stand: a pattern that finds nothing in the others takes long to go through them."""
    lines = data.split(b"\n")
    for mark in marks:
        lines = [line for line in lines if mark in line]
    return b"\n".join(lines)


def _quoted(texts: Iterable[bytes]) -> frozenset[str]:
    return frozenset(name.decode() for text in texts for match in _QUOTED.findall(text) for name in match if name)


class Tree:
    """The files that a program is known to consist of, and the conftest files above them.

    Those are the scanned files, all that they import, and who may import them, with what they import themselves: the files that
    may be executed before. Any other file is taken to change nothing.

    Args:
        find: finds the file of a module by its name, for the file that imports it.
    """

    def __init__(self, find: Callable[[str, str], str | None]) -> None:
        self._find = find
        self._files: dict[str, File] = {}
        self._first: dict[str, File] = {}  # those that were there before anything was executed
        self._names: dict[str, frozenset[str]] = {}
        self._above: dict[str, list[File]] = {}  # by folder
        self.changes: dict[tuple[str, bool], Changes] = {}  # see `changes_before`

    def add(self, path: str, data: bytes) -> None:
        """Take a file among those of the program."""
        real = os.path.realpath(path)
        self._files[real] = File(real, data)
        self._names.clear()
        self.changes.clear()

    def settle(self) -> None:
        """Take the files that there are for those that are there before anything is executed."""
        self._first = dict(self._files)

    def restart(self) -> None:
        """Forget the files that were added since then."""
        if len(self._files) > len(self._first):
            self._files = dict(self._first)
            self._names.clear()
        self.changes.clear()

    def file(self, path: str) -> File:
        """Return one of the files."""
        return self._files[os.path.realpath(path)]

    def add_importer(self, path: str, data: bytes) -> None:
        """Take a file among those of the program that may import what is scanned, and what it imports itself."""
        self.add(path, data)
        for file in self._imported(self._files[os.path.realpath(path)]):
            self._files.setdefault(file.path, file)

    def _others(self, path: str) -> list[File]:
        """Return the files that may import a module, with the conftest files above it."""
        real = os.path.realpath(path)
        stem = _stem(real)
        return [file for file in self._files.values() if file.path != real and file.imports(stem)] + self._conftests(real)

    def _conftests(self, path: str) -> list[File]:
        """Return the conftest files that pytest imports before the tests in a file, with what they import from beside them."""
        folder = os.path.dirname(path)
        if folder not in self._above:
            above = [] if folder == os.path.dirname(folder) else self._conftests(folder)
            conftest = File.read(os.path.join(folder, "conftest.py"))
            self._above[folder] = above if conftest is None else [*above, conftest, *self._imported(conftest)]
        return [file for file in self._above[folder] if file.path != path]

    def _imported(self, file: File) -> Iterator[File]:
        """Yield the files that a file which is not executed may import."""
        for module in file.modules:
            found = self._find(module, file.path)
            if found is None:
                continue
            real = os.path.realpath(found)
            if (read := self._files.get(real) or File.read(real)) is not None:
                yield read

    def before_import(self, path: str, importers: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of a module that other files set, and those of which they change the objects, whoever imports them.

        What a file that the importers mention changes in place is known when they have imported it.
        """
        real = os.path.realpath(path)
        followed = {os.path.realpath(each) for each in importers}
        texts = [file for each in followed if (file := self._files.get(each)) is not None]
        conftests = {file.path: file for each in followed for file in self._conftests(each)}
        stem = _stem(real)
        bound, changed = set[str](), set[str]()
        for file in (*self._files.values(), *conftests.values()):
            if file.path != real and file.imports(stem):
                bound |= file.lasting | ({ANYTHING} if stem in file.computed else set())
                if file.path not in followed and not any(each.imports(file.stem) for each in texts):
                    changed |= file.in_place
        return frozenset(bound), frozenset(changed)

    def runs_before(self, path: str, importers: Iterable[str]) -> bool:
        """Say whether another file than the importers may call functions of a module before somebody imports it: one that imports
        the module, or one of them.
        """
        followed = {os.path.realpath(each) for each in (*importers, path)}
        stems = set(map(_stem, followed))
        conftests = (file for each in followed for file in self._conftests(each))
        return any(
            file.path not in followed and not stems.isdisjoint(file.imported) for file in (*self._files.values(), *conftests)
        )

    def before_call(self, path: str) -> frozenset[str]:
        """Return the names of a module that other files may set or change before a function runs, in tests also for some time."""
        if path not in self._names:
            stem, found = _stem(os.path.realpath(path)), set[str]()
            for file in self._others(path):
                found |= file.lasting | file.in_place | file.patched | ({ANYTHING} if stem in file.computed else set())
            self._names[path] = frozenset(found)
        return self._names[path]

    def disables_assertions(self, path: str) -> bool:
        """Say whether a file turns the assertions of chex or the validators of attrs off, be it for a while."""
        return any(file.disables_assertions for file in (*self._files.values(), *self._conftests(os.path.realpath(path))))

    def attributes(self, name: str, path: str) -> frozenset[str]:
        """Return the attributes that other files may set of the objects of a class."""
        real, word = os.path.realpath(path), name.encode()
        others = (file for file in self._files.values() if file.path != real and file.mentions(word))
        return frozenset[str]().union(*(file.own | file.lasting for file in others))

    def replaced_kernels(self, path: str) -> Mapping[str, str]:
        """Return the kernels in the place of which a file puts something, for good or in the tests of `path`, and the file."""
        real = os.path.realpath(path)
        conftests = self._conftests(real)
        known = {file.path: file for file in (*self._files.values(), *conftests) if file.sets_kernels and file.path != real}
        return {
            kernel: file.path
            for file in known.values()
            for kernel in CALLEES
            if (kernel.rpartition(".")[2] in file.lasting or file in conftests) and _replaces(file, *kernel.rsplit(".", 1))
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
