"""The scanned program: its modules by name, and what is known of each function before it runs."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.evaluate.consumption import Consumption, consumptions
from codemods.evaluate.tree import Tree
from codemods.files import NOTEBOOK, searchable
from codemods.nodes import nodes
from codemods.source import Source, SourceError
from codemods.unsaved import read_bytes
from codemods.values import Array, Choice, Value

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
        return Source(path, read_bytes(path))
    except OSError:
        return Source(path, b"")


class Program:
    """The modules of the scanned tree, read on demand.

    Args:
        sources: the files that are scanned.
        root: the folder that absolute imports start from, besides those that the packages of the files lie in.
    """

    def __init__(self, sources: Iterable[Source], root: Path) -> None:
        self.tree = Tree(self._imported)
        self._sources: dict[str, Source] = {}
        self._add(sources)
        self.scanned = set(self._sources)
        self.executed: dict[str, Machine] = {}  # by path: the executions of the top levels of modules
        self.running: set[str] = set()  # the modules that are being executed
        self.attached: set[str] = set()  # those that were imported while their package was being executed
        self.allowance = IMPORT_STEPS
        self.left_out = 0  # modules that were not executed to their end
        self._root = root
        self._wide: dict[str, bool] = {}
        self._import_roots = {path: _import_root(path) for path in self._sources}
        self._roots = list(dict.fromkeys((str(root), *self._import_roots.values())))
        self._found: dict[tuple[str, str], str | None] = {}
        self._interprets: dict[str, bool] = {}
        self._conftests: dict[str, list[str]] = {}
        self._ids = itertools.count(1)
        self._consumptions: dict[str, dict[int, Consumption]] = {}
        self.scopes: dict[int, Scope] = {}
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
            self._wide[path] = source is not None and _WIDE.search(source.text) is not None
        return self._wide[path]

    def source(self, path: str) -> Source | None:
        """Return a file of the tree; None if it cannot be read or parsed."""
        if path not in self._sources:
            try:
                data = read_bytes(path)
                if len(data) > MAX_MODULE_BYTES:
                    return None
                source = Source(path, data)
                _ = source.tree
            except (OSError, SourceError):
                return None
            self._add([source])
        return self._sources[path]

    def find(self, module: str, importer: str) -> str | None:
        """Return the file of a module of the tree by its absolute dotted name; None for a foreign module."""
        if importer not in self._import_roots:
            self._import_roots[importer] = _import_root(importer)
        for start in dict.fromkeys((self._import_roots[importer], *self._roots)):
            key = (start, module)
            if key not in self._found:
                self._found[key] = _module_file(Path(start), module)
            if found := self._found[key]:
                return found
        return None

    def mentioning(self, name: str, beside: str, *, renamed: bool = False) -> Iterator[str]:
        """Yield the files of the tree that may import this name from the module `beside`.

        Such a file has the module's name as a whole word, and the name; or it imports all that the module has. Where the module
        may be `renamed`, it is enough that the name is that of an attribute.
        """
        stem = Path(beside).stem
        module = re.escape((Path(beside).resolve().parent.name if stem == "__init__" else stem).encode())
        relative = rb"|\bfrom\s+\.+\s*import\b" if stem == "__init__" else b""
        member = re.escape(name.encode()) + rb"\b"
        attribute = rb"|\.\s*" + member if renamed else b""
        words = [re.compile(rb"\b" + module + rb"\b" + relative + attribute), re.compile(rb"\b" + member + rb"|import\s*\*")]
        for file in (*self._root.rglob("*.py"), *self._root.rglob(f"*{NOTEBOOK}")):
            with suppress(OSError):
                if not file.samefile(beside) and _has_all(searchable(str(file), read_bytes(file)), words):
                    yield str(file)

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

    def conftests(self, path: str) -> list[str]:
        """Return the conftest files of the tree that pytest imports before the tests in a file, the nearest first."""
        if path not in self._conftests:
            folders = (each for each in Path(path).parents if each == self._root or self._root in each.parents)
            self._conftests[path] = [str(file) for folder in folders if (file := folder / "conftest.py").is_file()]
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
        file = Path(path)
        folders: list[str] = []
        folder = file.parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:  # the parent of `.` is `.`
            folders.insert(0, folder.name)
            folder = folder.parent
        return ".".join(folders)


def _has_all(data: bytes, words: Iterable[re.Pattern[bytes]]) -> bool:
    return all(word.search(data) for word in words)


def _import_root(path: str) -> str:
    """Return the folder that the top package of a file lies in."""
    folder = Path(path).parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _module_file(start: Path, module: str) -> str | None:
    if not module:
        return None
    base = start.joinpath(*module.split("."))
    for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
        if candidate.is_file():
            return str(candidate)
    return None
