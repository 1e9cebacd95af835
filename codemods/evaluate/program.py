"""The scanned program: its modules by name, and what is known of each function before it runs."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.disk import entries, is_file, kind, read
from codemods.evaluate.consumption import Consumption, consumptions
from codemods.evaluate.tree import Tree
from codemods.files import below, searchable, shown
from codemods.nodes import nodes
from codemods.source import Source, SourceError
from codemods.values import Array, Choice, Class, Reason, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

IMPORT_STEPS = 60_000  # of all modules together that are only imported for the sake of one file
_INTERPRETER = re.compile(rb"""tpu_interpret_mode|\.pallas_call\s*=(?!=)|["'](?:[\w.]+\.)?pallas_call["']""")
"""`force_tpu_interpret_mode` and `set_tpu_interpret_mode` of pallas.tpu; something else in the place of `pl.pallas_call`."""

_INTERPRETED = re.compile(rb"\binterpret\s*=\s*True\b")
MAX_MODULE_BYTES = 2_000_000  # a module beyond this is data, not code to follow

_WIDE = re.compile(rb"""jax_enable_x64["']\s*,\s*(?!False)|\benable_x64\((?!False)|JAX_ENABLE_X64|config\.jax_enable_x64\s*=""")


@dataclass(frozen=True)
class Scope:
    """A module, function, class or comprehension that is being executed: where its names live and are looked up.

    Attributes:
        id: names of this scope are in the cells `(id, name)`.
        path: its file.
        name: its name, for messages.
        kind: `module`, `function` or `class`.
        parent: the scope around it, None for a module.
        module: the scope of its module.
        local: the names that it binds itself; of a module or class, those that it happens to have bound.
    """

    id: int
    path: str
    name: str
    kind: str
    parent: int | None
    module: int
    local: frozenset[str] = frozenset()
    package: str = ""


def _read(path: str) -> Source:
    """Read a file that is not part of the program; an empty one where that is not possible."""
    try:
        return Source(path, read(path)[0])
    except OSError:
        return Source(path, b"")


class Program:
    """The modules of the scanned tree, read on demand.

    A file has one path here: that of its source, or else the one that reports show. Which package it belongs to, and what it
    can import, is told by where it lies: not by the working folder, nor by the symbolic links on the way.

    Args:
        sources: the files that are scanned.
        root: the folder that absolute imports start from, besides its `src` and those that the packages of the files lie in.
    """

    def __init__(self, sources: Iterable[Source], root: Path) -> None:
        self.tree = Tree(self._imported)
        self._root = Path(os.path.realpath(root))
        self._given = {source.path: source for source in sources}
        self._given_paths = {os.path.realpath(path): path for path in reversed(self._given)}
        self._import_roots = {path: _import_root(path) for path in self._given}
        self._roots = list(dict.fromkeys((str(self._root), str(self._root / "src"), *self._import_roots.values())))
        self._found: dict[tuple[str, str], str | None] = {}
        self._names_in: dict[str, frozenset[str]] = {}  # by folder
        self._conftests: dict[str, list[str]] = {}
        self._ids = itertools.count(1)
        for source in self._given.values():
            self.tree.add(source.path, source.text)
        self._begin()

    def restart(self) -> None:
        """Forget all that was executed, and the modules that were read for it."""
        self.tree.restart()
        self._begin()

    def _begin(self) -> None:
        self._sources = dict(self._given)
        self._paths = dict(self._given_paths)  # those of sources, by where they really lie
        self.scanned = set(self._given)
        self.executed: dict[str, Machine] = {}  # by path: the executions of the top levels of modules
        self.running: set[str] = set()  # the modules that are being executed
        self.attached: set[str] = set()  # those that were imported while their package was being executed
        self.allowance = IMPORT_STEPS
        self.left_out = 0  # modules that were not executed to their end
        self.changed_callees: dict[int, Reason] = {}  # by call: why what it calls may be something else than before
        self._wide: dict[str, bool] = {}
        self._interprets: dict[str, bool] = {}
        self._consumptions: dict[str, dict[int, Consumption]] = {}
        self.scopes: dict[int, Scope] = {}
        self.classes: dict[int, Class] = {}  # of the objects that code which is not followed may see
        self.module_scopes: dict[str, int] = {}  # by path
        self.cells: dict[tuple[int, str], Value] = {}  # what executed modules hold
        self.names: dict[int, set[str]] = {}  # by scope or object: its names among them
        self.arrays: dict[tuple[int, str], Value] = {}  # those among them that hold arrays

    def scan(self, sources: Collection[Source]) -> None:
        """Take files among those that are scanned; one that was only imported so far is to be executed anew."""
        self._add(sources)
        for source in sources:
            self.scanned.add(source.path)
            self.executed.pop(source.path, None)

    def _add(self, sources: Iterable[Source]) -> None:
        for source in sources:
            self._sources[source.path] = source
            self._paths.setdefault(os.path.realpath(source.path), source.path)
            self.tree.add(source.path, source.text)

    def keep(self, cells: Mapping[tuple[int, str], Value]) -> None:
        """Keep what the top level of a module left behind."""
        self.cells.update(cells)
        for cell, value in cells.items():
            self.names.setdefault(cell[0], set()).add(cell[1])
            if isinstance(value, Array | tuple | Choice):
                self.arrays[cell] = value

    def new_id(self) -> int:
        """Return a number that no scope, object or unknown value of this program has."""
        return next(self._ids)

    def consumption(self, path: str, node: ast.AST) -> Consumption:
        """Say how an expression of a file that makes an iterator is consumed."""
        if path not in self._consumptions:
            source = self.source(path)
            self._consumptions[path] = consumptions(source.tree) if source is not None else {}
        return self._consumptions[path].get(id(node), "later")

    def may_be_wide(self, path: str) -> bool:
        """Say whether a file turns JAX's 64-bit types on, be it for a while: what jit makes of integers is not known then."""
        if path not in self._wide:
            source = self._sources.get(path)
            self._wide[path] = source is not None and b"64" in source.text and _WIDE.search(source.text) is not None
        return self._wide[path]

    def source(self, path: str) -> Source | None:
        """Return a file of the tree; None if it cannot be read or parsed."""
        if path in self._sources:
            source = self._sources[path]
            try:
                _ = source.tree
            except SourceError:
                return None
        else:
            try:
                data, _ = read(path)
                if len(data) > MAX_MODULE_BYTES:
                    return None
                source = Source(path, data)
                _ = source.tree
            except (OSError, SourceError):
                return None
            self._add([source])
        return source

    def find(self, module: str, importer: str) -> str | None:
        """Return the file of a module of the tree by its absolute dotted name; None for a foreign module."""
        if importer not in self._import_roots:
            self._import_roots[importer] = _import_root(importer)
        for start in dict.fromkeys((self._import_roots[importer], *self._roots)):
            key = (start, module)
            if key not in self._found:
                file = _module_file(start, module) if self._may_hold(start, module) else None
                self._found[key] = None if file is None else self.path_of(file)
            if found := self._found[key]:
                return found
        return None

    def _may_hold(self, folder: str, module: str) -> bool:
        """Say whether a module may be in a folder, by the names in it: most modules that are imported are not in the tree."""
        first, _, rest = module.partition(".")
        if folder not in self._names_in:
            try:
                listed = entries(folder) if kind(folder) == "folder" else []
            except OSError:  # it cannot be listed; what is in it may be read
                return True
            self._names_in[folder] = frozenset(entry.name for entry in listed)
        names = self._names_in[folder]
        if rest:
            return first in names and self._may_hold(os.path.join(folder, first), rest)
        return first in names or f"{first}.py" in names

    def path_of(self, file: str | Path) -> str:
        """Return the path that a file of the tree has here."""
        return self._paths.get(os.path.realpath(file)) or shown(str(file))

    def mentioning(self, name: str, beside: str, *, renamed: bool = False) -> Iterator[str]:
        """Yield the files of the tree that may import this name from the module `beside`.

        Such a file has the module's name as a whole word, and the name; or it imports all that the module has. Where the module
        may be `renamed`, it is enough that the name is that of an attribute.
        """
        real = _real(beside)
        stem = real.stem
        module = re.escape((real.parent.name if stem == "__init__" else stem).encode())
        relative = rb"|\bfrom\s+\.+\s*import\b" if stem == "__init__" else b""
        member = re.escape(name.encode()) + rb"\b"
        attribute = rb"|\.\s*" + member if renamed else b""
        words = [re.compile(rb"\b" + module + rb"\b" + relative + attribute), re.compile(rb"\b" + member + rb"|import\s*\*")]
        own = os.path.realpath(beside)
        for file in self._all_files:
            with suppress(OSError):
                if os.path.realpath(file) != own and _has_all(searchable(file, read(file)[0]), words):
                    yield self.path_of(file)

    @cached_property
    def _all_files(self) -> list[str]:
        return [str(Path(file)) for file in below(str(self._root)) if not file.endswith(".pyi")]

    def absolute(self, statement: ast.ImportFrom, importer: str) -> str:
        """Return the absolute dotted name of the module that an import names, relative or not."""
        if not statement.level:
            return statement.module or ""
        parts = self.package_of(importer).split(".")
        kept = parts[: len(parts) - statement.level + 1]
        return ".".join([*kept, *([statement.module] if statement.module else [])])

    def _imported(self, module: str, importer: str) -> str | None:
        """Return the file of a module that is imported by this name, which begins with dots if it is relative."""
        name = module.lstrip(".")
        return self.find(self.absolute(ast.ImportFrom(name or None, [], len(module) - len(name)), importer), importer)

    def executed_by(self, module: str, importer: str) -> Iterator[str]:
        """Yield the files of the tree that the import of a module executes: its own, and those of the packages around it."""
        dots = module[: len(module) - len(module.lstrip("."))]
        parts = module[len(dots) :].split(".")
        for end in range(0 if dots else 1, len(parts) + 1):
            if (found := self._imported(dots + ".".join(parts[:end]), importer)) is not None:
                yield found

    def conftests(self, path: str) -> list[str]:
        """Return the conftest files of the tree that pytest imports before the tests in a file, the nearest first."""
        if path not in self._conftests:
            folders = (each for each in _real(path).parents if each.is_relative_to(self._root))
            self._conftests[path] = [self.path_of(file) for folder in folders if is_file(str(file := folder / "conftest.py"))]
        return self._conftests[path]

    def declares(self, words: re.Pattern[bytes]) -> bool:
        """Say whether a file that was read so far has words like these."""
        return any(words.search(source.text) for source in self._sources.values())

    def interprets(self, path: str) -> bool:
        """Say whether a file, a conftest.py above it or what they import may put Pallas' interpreter in the place of the TPU."""
        if path not in self._interprets:
            pending = [path, *self.conftests(path)]
            own, seen = set(pending), set(pending)
            self._interprets[path] = False
            while pending:
                each = pending.pop()
                held = self._sources.get(each) or _read(each)
                if _INTERPRETER.search(held.text) or (
                    each in own and b"pallas_call" in held.text and _INTERPRETED.search(held.text)
                ):
                    self._interprets[path] = True
                    break
                imported = {file for file in self._imports(held) if file in self._sources} - seen
                seen |= imported
                pending += imported
        return self._interprets[path]

    def _imports(self, source: Source) -> Iterator[str]:
        """Yield the files of the tree that a file imports; JAX itself, which has the interpreter, does not use it by that."""
        try:
            tree = source.tree
        except SourceError:
            return
        for node in nodes(tree, ast.Import, ast.ImportFrom):
            module = self.absolute(node, source.path) if isinstance(node, ast.ImportFrom) else ""
            names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
            for name in names:
                if name.partition(".")[0] != "jax" and (found := self.find(name, source.path)) is not None:
                    yield found

    def dotted(self, path: str) -> str:
        """Return the dotted name of a module by its file."""
        package, stem = self.package_of(path), Path(path).stem
        return package if stem == "__init__" else f"{package}.{stem}" if package else stem

    def package_of(self, path: str) -> str:
        """Return the dotted name of the package that a file belongs to; empty for a script."""
        return ".".join(_real(path).relative_to(_import_root(path)).parts[:-1])


def _has_all(data: bytes, words: Iterable[re.Pattern[bytes]]) -> bool:
    return all(word.search(data) for word in words)


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


def _import_root(path: str) -> str:
    """Return the folder that the top package of a file lies in."""
    folder = _real(path).parent
    while is_file(str(folder / "__init__.py")) and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _module_file(start: str, module: str) -> str | None:
    if not module:
        return None
    base = os.path.join(start, *module.split("."))
    return next((each for each in (os.path.join(base, "__init__.py"), f"{base}.py") if is_file(each)), None)
