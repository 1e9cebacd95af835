"""The nodes of a syntax tree: walking it takes long, and many ask for a few of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_LEAVES = frozenset({"ctx", "id", "attr", "arg", "op", "ops", "kind", "type_comment", "conversion", "level", "module",
                     "asname"})  # fmt: skip
"""The fields that hold no node, or one that says no more than its parent does: an operator, or whether a name is read or set."""

_CHILDLESS = frozenset({ast.Name, ast.Constant})
"""More than half of the nodes of a file."""


class _Below(dict[type[ast.AST], Callable[[Any], list[ast.AST]]]):
    """For each kind of node, what returns the nodes right below one."""

    def __missing__(self, kind: type[ast.AST]) -> Callable[[Any], list[ast.AST]]:
        fields = tuple(field for field in kind._fields if field not in _LEAVES)

        def below(node: Any) -> list[ast.AST]:
            found: list[ast.AST] = []
            for field in fields:
                held = getattr(node, field, None)
                if isinstance(held, ast.AST):
                    found.append(held)
                elif isinstance(held, list):
                    found += [each for each in held if isinstance(each, ast.AST)]  # pyright: ignore[reportUnknownVariableType]
            return found

        return self.setdefault(kind, below)


_BELOW = _Below({
    # the most frequent kinds, none of whose fields is ever empty
    ast.Name: lambda node: [],
    ast.Constant: lambda node: [],
    ast.Attribute: lambda node: [node.value],
    ast.keyword: lambda node: [node.value],
    ast.Expr: lambda node: [node.value],
    ast.Starred: lambda node: [node.value],
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.UnaryOp: lambda node: [node.operand],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.Tuple: lambda node: [*node.elts],
    ast.List: lambda node: [*node.elts],
    ast.Assign: lambda node: [*node.targets, node.value],
    ast.If: lambda node: [node.test, *node.body, *node.orelse],
})  # fmt: skip


def excerpt(node: ast.AST) -> str:
    """Return the source of a node for a message, cut to a readable length."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below one in their order, but for operators and contexts; much faster than `ast`'s own."""
    return _BELOW[type(node)](node)


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all below it, level by level."""
    found = [node]
    for each in found:  # those that are added on the way have their turn as well
        if (kind := type(each)) not in _CHILDLESS:
            found += _BELOW[kind](each)
    return found


class Visitor(ast.NodeVisitor):
    """A `NodeVisitor` that visits no operators and contexts."""

    _visitors: Mapping[type[ast.AST], Callable[[Any, Any], None]] = {}

    def __init_subclass__(cls) -> None:
        own = {getattr(ast, name.removeprefix("visit_")): each for name, each in vars(cls).items() if name.startswith("visit_")}
        cls._visitors = {**cls._visitors, **own}

    def visit(self, node: ast.AST) -> None:
        self._visitors.get(type(node), Visitor.generic_visit)(self, node)

    def generic_visit(self, node: ast.AST) -> None:
        visitors = self._visitors
        for child in _BELOW[type(node)](node):
            kind = type(child)
            if kind in visitors:
                visitors[kind](self, child)
            elif kind not in _CHILDLESS:
                self.generic_visit(child)


def holds(tree: ast.Module, node: ast.AST) -> bool:
    """Say whether a node is part of a file: the file itself, or one that has a position."""
    line: int = getattr(node, "lineno", 0)
    around = (each for each in tree.body if _first_line(each) <= line <= (each.end_lineno or 0))
    return node is tree or any(each is node for statement in around for each in walk(statement))


def _first_line(statement: ast.stmt) -> int:
    """Return where a statement begins; the line of a function or class is the one behind its decorators."""
    return min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])


def nodes(tree: ast.Module, *kinds: type[_Node]) -> Iterator[_Node]:
    """Yield the nodes of these kinds; of all, where none is named."""
    by_kind = _survey(tree).by_kind
    for kind in kinds or by_kind:
        yield from by_kind.get(kind, ())  # type: ignore[misc]  # they are of this kind


def depth(tree: ast.AST) -> tuple[int, int]:
    """Return how many levels a syntax tree has, and a line on the last of them."""
    found = _survey(tree)
    return found.levels, found.line


class _Survey(NamedTuple):
    by_kind: Mapping[type[ast.AST], list[ast.AST]]
    levels: int
    line: int


@lru_cache(maxsize=16)
def _survey(tree: ast.AST) -> _Survey:
    by_kind: dict[type[ast.AST], list[ast.AST]] = {}
    level, levels, line = [tree], 0, 1
    while level:
        below: list[ast.AST] = []
        for node in level:
            kind = type(node)
            if kind in by_kind:
                by_kind[kind].append(node)
            else:
                by_kind[kind] = [node]
            if kind not in _CHILDLESS:
                below += _BELOW[kind](node)
        levels += 1
        line = next((each.lineno for each in level if isinstance(each, ast.expr | ast.stmt)), line)
        level = below
    return _Survey(by_kind, levels, line)
