"""How a file can name something of another module: by an import that it has, or by one to be added where it belongs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from codemods.findings import Edit
from codemods.nodes import nodes
from codemods.repairs.scopes import BINDERS, Import, bindings
from codemods.source import Source

_NEWLINE = re.compile(rb"\r\n|\r|\n")


class Reference(NamedTuple):
    """An expression for something of another module, and the edits that make it mean that."""

    text: str
    edits: tuple[Edit, ...] = ()


class Imports:
    """The imports of one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._listed: dict[int, list[tuple[int, Import]]] = {}  # the imports of a body, by its id

    def function(self, module: str, name: str, use: ast.AST) -> Reference:
        """Return how to name a function of `module` at `use`: by itself, or by its module where another thing has its name."""
        if (found := self._existing(module, name, use)) is not None:
            return found
        if name not in self._taken:
            return Reference(name, self._added(f"from {module} import {name}", use))
        if module not in self._taken:
            return Reference(f"{module}.{name}", self._added(f"import {module}", use))
        alias = self._free(f"{module}_{name}")
        return Reference(alias, self._added(f"from {module} import {name} as {alias}", use))

    def member(self, module: str, name: str, alias: str, use: ast.AST) -> Reference:
        """Return how to name a member of `module`, which is usually imported as `alias`, at `use`."""
        if (found := self._existing(module, name, use)) is not None:
            return found
        alias = self._free(alias)
        return Reference(f"{alias}.{name}", self._added(f"import {module} as {alias}", use))

    def existing(self, module: str, name: str, use: ast.AST) -> str | None:
        """Return the name that the file has for a member of `module` at `use`, if any."""
        found = self._existing(module, name, use)
        return found.text if found is not None else None

    def added(self, module: str, name: str, alias: str, use: ast.AST) -> tuple[Edit, ...]:
        """Return the edits that import a member of `module` as `alias`, which is free."""
        return self._added(f"from {module} import {name}" + (f" as {alias}" if alias != name else ""), use)

    def has(self, package: str) -> bool:
        """Say whether the file imports a package, or something of it, anywhere."""
        return package in self._packages

    @cached_property
    def _packages(self) -> set[str]:
        return {_root(node) for node in ast.walk(self._source.tree) if isinstance(node, Import)}

    def _existing(self, module: str, name: str, use: ast.AST) -> Reference | None:
        """Return the shortest name that the file has for it: one without the module, or with its alias."""
        found = [
            text
            for statement in self._before(use)
            for alias in statement.names
            if (text := _reached(statement, alias, module, name)) is not None
            and (alias.asname or alias.name.partition(".")[0]) not in self._bound_otherwise(statement)
        ]
        return Reference(min(found, key=lambda text: text.count("."))) if found else None

    def _before(self, use: ast.AST) -> Iterator[Import]:
        """Yield the imports that are certain to be done at `use`: those of the module, and of the functions around it."""
        for body, end in reversed(list(self._blocks_around(use))):
            yield from (statement for index, statement in self._imports_of(body) if index < end)

    def _blocks_around(self, use: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
        """Yield the bodies of the functions around a node and of the module, each with the position of what holds the node."""
        node = use
        while (parent := self._parents.get(id(node))) is not None:
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                position = self._positions.get(id(node), -1)
                if position >= 0:  # else a decorator or a default, which the body does not hold
                    yield parent.body, position
            node = parent

    @cached_property
    def _parents(self) -> dict[int, ast.AST]:
        return {id(child): node for node in ast.walk(self._source.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def _positions(self) -> dict[int, int]:
        """The position of each statement in the body of its function or module, by the id of its node."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        bodies = [node.body for node in nodes(self._source.tree, *kinds)]
        return {id(statement): position for body in bodies for position, statement in enumerate(body)}

    @cached_property
    def _ends(self) -> dict[int, int]:
        """The line on which the last of the statements of the top level ends that start on a line."""
        return {each.lineno: each.end_lineno or each.lineno for each in self._source.tree.body}

    def _imports_of(self, body: list[ast.stmt]) -> list[tuple[int, Import]]:
        if id(body) not in self._listed:
            self._listed[id(body)] = [(at, each) for at, each in enumerate(body) if isinstance(each, Import)]
        return self._listed[id(body)]

    @cached_property
    def _bindings(self) -> list[tuple[ast.AST, str]]:
        """Every node that binds a name in some scope of the file, with the name."""
        return [
            (node, name)
            for node in nodes(self._source.tree, ast.Import, ast.ImportFrom, *BINDERS)
            for part in (node.names if isinstance(node, Import) else () if isinstance(node, ast.alias) else (node,))
            for name in bindings(part)
        ]

    @cached_property
    def _taken(self) -> set[str]:
        """The names that mean something somewhere in the file; a builtin that it reads counts."""
        read = {node.id for node in nodes(self._source.tree, ast.Name)}
        return read | {name for _, name in self._bindings}

    def _bound_otherwise(self, statement: Import) -> set[str]:
        """The names that mean something else somewhere in the file than what a statement imports."""
        ours = {_spelled(statement, alias) for alias in statement.names}
        return {
            name
            for node, name in self._bindings
            if not (
                isinstance(node, Import) and {_spelled(node, alias) for alias in node.names if name in bindings(alias)} <= ours
            )
        }

    def _free(self, name: str) -> str:
        while name in self._taken:
            name = f"_{name}"
        return name

    def _added(self, statement: str, use: ast.AST) -> tuple[Edit, ...]:
        """Return the edit that adds an import: to one of the same module, else in isort's order, else below the docstring."""
        (node,) = ast.parse(statement).body
        assert isinstance(node, Import)
        body = self._source.tree.body
        *_, (_, index) = self._blocks_around(use)
        present = [each for at, each in self._imports_of(body) if at < index]
        for each in present:
            if (merged := self._merged(each, node)) is not None:
                return (merged,)
        return (self._placed(node, statement, present),)

    def _merged(self, present: Import, node: Import) -> Edit | None:
        """Return the edit that adds the name to an import of the same module."""
        if not (isinstance(present, ast.ImportFrom) and isinstance(node, ast.ImportFrom)):
            return None
        text, span = self._source.segment(present), self._source.span(present)
        if (present.module, present.level) != (node.module, 0) or "#" in text or present.names[0].name == "*":
            return None
        added, names = node.names[0], present.names
        shown = f"{added.name} as {added.asname}" if added.asname else added.name
        after = next((alias for alias in names if _member_key(alias.name) > _member_key(added.name)), None)
        last = names[-1]
        if present.lineno != present.end_lineno and len({alias.lineno for alias in names}) == len(names):
            indent = self._source.line(last.lineno)[: last.col_offset]
            separator = f",{self._newline(present.lineno)}{indent if indent.isspace() else ''}"
        else:
            separator = ", "
        at = self._offset(after.lineno, after.col_offset) if after else self._offset(last.end_lineno, last.end_col_offset)
        piece = f"{shown}{separator}" if after else f"{separator}{shown}"
        data = self._source.text
        return Edit(span.start, span.end, (data[span.start : at] + piece.encode() + data[at : span.end]).decode())

    def _placed(self, node: Import, statement: str, present: Sequence[Import]) -> Edit:
        section = _section(present)
        if section:
            smaller = [each for each in section if _order(each) < _order(node)]
            if smaller:
                return self._after(smaller[-1], statement, gap=False)
            return self._insertion(section[0].lineno - 1, statement + self._newline(section[0].lineno))
        earlier = [each for each in present if _category(each) <= _STANDARD]
        if earlier:
            return self._after(earlier[-1], statement, gap=True)
        if present:
            first = present[0].lineno
            return self._insertion(first - 1, statement + self._newline(first) * 2)
        body = self._source.tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
            return self._after(body[0], statement, gap=True)
        line = min(node.lineno for node in ast.walk(body[0]) if isinstance(node, ast.expr | ast.stmt))
        return self._insertion(line - 1, statement + self._newline(line) * 2)

    def _after(self, anchor: ast.stmt, statement: str, *, gap: bool) -> Edit:
        """Insert a line after a statement; with a `gap`, blank lines separate it from what is around it."""
        end = anchor.end_lineno or anchor.lineno
        while (further := self._ends.get(end, end)) > end:  # of those after a semicolon on the same line
            end = further
        newline = self._newline(end)
        before = newline if gap else ""
        if end == len(self._source.line_starts):  # the file ends without a newline
            return self._insertion(end, newline + before + statement)
        follows = gap and end < len(self._source.line_starts) and self._source.line(end + 1).strip() != ""
        return self._insertion(end, before + statement + newline + (newline if follows else ""))

    def _insertion(self, line: int, text: str) -> Edit:
        """Insert after a line."""
        starts = self._source.line_starts
        offset = starts[line] if line < len(starts) else len(self._source.text)
        return Edit(offset, offset, text)

    def _offset(self, line: int | None, column: int | None) -> int:
        return self._source.line_starts[(line or 1) - 1] + (column or 0)

    def _newline(self, line: int) -> str:
        found = _NEWLINE.search(self._source.text, self._source.line_starts[line - 1])
        return found[0].decode() if found else "\n"


_INSTALLED = frozenset({"jax", "torch", "torch_xla", "numpy", "jaxtyping", "ejkernel", "shapecheck"})
_FUTURE, _STANDARD, _OTHERS, _LOCAL = range(4)


def _reached(statement: Import, alias: ast.alias, module: str, name: str) -> str | None:
    """Return how a member of `module` is named by one name of an import."""
    if isinstance(statement, ast.Import):
        if alias.name == module:
            return f"{alias.asname or module}.{name}"
        inside = alias.asname is None and module.startswith(f"{alias.name.partition('.')[0]}.")
        return f"{module}.{name}" if inside and alias.name == module.partition(".")[0] else None
    if statement.level:
        return None
    path = f"{statement.module}.{alias.name}"
    if path == module:
        return f"{alias.asname or alias.name}.{name}"
    own = module == "shapecheck" and path == f"shapecheck.plan.{name}"
    return alias.asname or alias.name if path == f"{module}.{name}" or own else None


def _spelled(statement: Import, alias: ast.alias) -> tuple[str, str]:
    """Return the dotted path that a name of an import stands for, and the name; `import a.b` binds `a`."""
    if isinstance(statement, ast.ImportFrom):
        return f"{'.' * statement.level}{statement.module}.{alias.name}", alias.asname or alias.name
    root = alias.name.partition(".")[0]
    return (alias.name, alias.asname) if alias.asname else (root, root)


def _section(present: Sequence[Import]) -> list[Import]:
    """Return the imports among which one of an installed package belongs: those around the first of a known one."""
    others = [each for each in present if _category(each) is _OTHERS]
    if not others:
        return []
    known = [each for each in others if _root(each) in _INSTALLED]
    anchor = known[0] if known else others[0]
    section, end = [anchor], anchor.end_lineno or anchor.lineno
    for each in present[present.index(anchor) + 1 :]:
        if each.lineno > end + 1 or _category(each) is not _OTHERS:
            break
        section.append(each)
        end = each.end_lineno or each.lineno
    start = anchor.lineno
    for each in reversed(present[: present.index(anchor)]):
        if (each.end_lineno or each.lineno) < start - 1 or _category(each) is not _OTHERS:
            break
        section.insert(0, each)
        start = each.lineno
    return section


def _category(statement: Import) -> int:
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return _LOCAL
    root = _root(statement)
    return _FUTURE if root == "__future__" else _STANDARD if root in sys.stdlib_module_names else _OTHERS


def _root(statement: Import) -> str:
    return _module(statement).partition(".")[0]


def _module(statement: Import) -> str:
    return (statement.module or "") if isinstance(statement, ast.ImportFrom) else statement.names[0].name


def _order(statement: Import) -> tuple[bool, str]:
    """The key of isort's order inside a section: plain imports first, then by module."""
    return isinstance(statement, ast.ImportFrom), _module(statement).lower()


def _member_key(name: str) -> tuple[int, str]:
    """The key of isort's order inside an import: constants, classes, then the rest."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name
