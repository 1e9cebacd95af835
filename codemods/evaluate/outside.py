"""What other files of the tree may change of a module: when, and whether before a function runs, nobody knows.

It looks at the bytes of files that mention the name of the module, for what is assigned to attributes and what is changed in
place. A name is taken for that of the module wherever it stands: to know less is always sound.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.callees import CALLEES
from codemods.config import Configuration
from codemods.evaluate import objects
from codemods.evaluate.relevance import MUTATORS, rebound
from codemods.evaluate.sharing import ANYTHING, Changes, changes
from codemods.evaluate.state import PATCHED
from codemods.files import discover
from codemods.nodes import nodes
from codemods.source import Source, SourceError
from codemods.values import Opaque, Reason
from codemods.words import Words

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine
    from codemods.evaluate.program import Program

_START = rb"(?:^|;|\)[ \t]*:|\b(?:else|try|finally)[ \t]*:)[ \t]*"
_ENDS = rb"(?:\[[^\n]*\])?(?:[ \t]*:[^\n=]+)?[ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
_STORES = re.compile(_START + rb"(\w[\w.()\[\]'\"]*)\.(\w+)" + _ENDS, re.MULTILINE)
_SEVERAL = re.compile(_START + rb"\(?([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)\)?[ \t]*=(?!=)", re.MULTILINE)
_OTHERWISE = re.compile(rb"\b(?:del|global|for|as|in)[ \t]+[\w.\[\]'\"]*\.(\w+)\b")
_ITEMS = re.compile(_START + rb"(\w+)(?:\[[^\n]*\][ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)|[ \t]*(?:[-+*|&^])=)", re.MULTILINE)
_METHODS = re.compile(rb"\b(\w+)(?:\[[^\n\]]*\])?\.(?:" + "|".join(sorted(MUTATORS)).encode() + rb"|__setitem__|move_to_end|appendleft)\(")
_SETTERS = re.compile(rb"(?:\b(?:setattr|delattr|vars|globals|__setattr__|__delattr__)\(|__dict__\b)([^\n]*\n?[^\n]*)")
_PATCHES = re.compile(rb"(?:\bmonkeypatch|\bmp|\bm|patch)\w*(?:\.\w+)*\(([^\n]*\n?[^\n]*\n?[^\n]*)")
_COMPUTED = re.compile(rb"(?:setattr|delattr)\(\s*(\w+)\s*,\s*[^'\"\s]|\bvars\((\w+)\)\[[^'\"]|\b(\w+)\.__dict__(?:\[[^'\"]|\.update)")
_QUOTED = re.compile(rb"['\"](?:[\w.]*\.)?(\w+)['\"]|\b(\w+)[ \t]*=(?!=)")

_WHY = "another file may change it"


@dataclass(frozen=True)
class _File:
    """A file of the tree, and the names that it sets or changes of something that is not its own."""

    path: str
    data: bytes = field(repr=False)

    def mentions(self, name: bytes) -> bool:
        return name in self.data and re.search(rb"\b" + re.escape(name) + rb"\b", self.data) is not None

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


class Outside:
    """The files of a tree, read once.

    Args:
        root: the folder of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[str, frozenset[str]] = {}

    @cached_property
    def _files(self) -> list[_File]:
        found = discover([str(self._root)], Configuration(), Words([b"import"])).candidates
        return [_File(os.path.realpath(each.path), each.data) for each in found]

    def _others(self, path: str) -> Iterator[_File]:
        """Yield the files that mention a module."""
        real = os.path.realpath(path)
        stem = _stem(real)
        return (file for file in self._files if file.path != real and file.mentions(stem))

    def before_import(self, path: str, importers: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of a module that other files set, and those of which they change the objects, whoever imports them.

        What a file that the importers mention changes in place is known when they have imported it.
        """
        followed = {os.path.realpath(each) for each in importers}
        texts = [file for file in self._files if file.path in followed]
        bound, changed = set[str](), set[str]()
        for file in self._others(path):
            bound |= file.lasting | ({ANYTHING} if _stem(os.path.realpath(path)) in file.computed else set())
            if file.path not in followed and not any(each.mentions(_stem(file.path)) for each in texts):
                changed |= file.in_place
        return frozenset(bound), frozenset(changed)

    def before_call(self, path: str) -> frozenset[str]:
        """Return the names of a module that other files may set or change before a function runs, also for some time, as tests do."""
        if path not in self._names:
            real = os.path.realpath(path)
            conftests = (file for file in self._files if _is_conftest_of(file.path, real))
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

    def replaced_kernels(self, path: str) -> Mapping[str, str]:
        """Return the kernels, by their dotted paths, in the place of which a file puts something: for good, or in tests of `path`."""
        real = os.path.realpath(path)
        found: dict[str, str] = {}
        for file in self._files:
            if file.path == real:
                continue
            names = file.lasting | (file.patched if _is_conftest_of(file.path, real) else frozenset())
            for kernel in CALLEES:
                module, _, name = kernel.rpartition(".")
                if name in names and module in _imported(file):
                    found[kernel] = file.path
        return found


def _stem(path: str) -> bytes:
    """Return the last part of a module's name."""
    return os.fsencode(Path(path).parent.name if Path(path).stem == "__init__" else Path(path).stem)


def _imported(file: _File) -> set[str]:
    """Return the dotted paths of all that a file imports."""
    try:
        tree = Source(file.path, file.data).tree
    except SourceError:
        return set()
    return {alias.name for node in nodes(tree, ast.Import) for alias in node.names} | {
        f"{node.module}.{alias.name}" for node in nodes(tree, ast.ImportFrom) for alias in node.names
    }


def _is_conftest_of(file: str, path: str) -> bool:
    return Path(file).name == "conftest.py" and Path(file).parent in Path(path).parents


def settle(machine: Machine, path: str, scope_id: int) -> None:
    """Forget of a module that was executed what others may have changed of it before somebody imports it."""
    bound, changed = machine.program.outside.before_import(path, machine.program.running)
    for name, value in machine.members(scope_id).items():
        if name in bound | changed or ANYTHING in bound:
            objects.forget(machine, value)
        if name in bound or ANYTHING in bound:
            machine.state.cells[(scope_id, name)] = machine.unknown(name, _WHY)


def found_changes(program: Program, path: str, *, mine: bool) -> Changes:
    """Return what may have changed of a module before a function runs: other files change it, and its own functions."""
    others = program.outside.before_call(path)
    source = program.source(path)
    if mine or source is None:
        return Changes(set(others), set(others), set(), set(others))
    own = changes(source.tree)
    return Changes({*own.names, *others}, {*own.attributes, *others}, own.own, {*own.bound, *others, *rebound(source.tree)})


def replace_kernels(program: Program, path: str) -> None:
    """Take note that a kernel is another function."""
    for kernel, by in program.outside.replaced_kernels(path).items():
        program.cells[(PATCHED, kernel)] = Opaque((program.new_id(),), kernel, Reason("a file puts another function in its place", by))
