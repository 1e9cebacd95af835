"""The nodes of a syntax tree: walking it takes long, and many ask for a few of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_LEAVES = frozenset({"ctx", "id", "attr", "arg", "op", "ops", "kind", "type_comment", "conversion", "level", "module",
                     "asname"})  # fmt: skip
"""The fields that hold no node, or one that says no more than its parent does: an operator, or whether a name is read or set."""


@cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in _LEAVES)


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below one in their order, but for operators and contexts; much faster than `ast`'s own."""
    found: list[ast.AST] = []
    for field in _fields(type(node)):
        held = getattr(node, field, None)
        if isinstance(held, ast.AST):
            found.append(held)
        elif isinstance(held, list):
            found += [each for each in held if isinstance(each, ast.AST)]  # pyright: ignore[reportUnknownVariableType]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all below it, level by level."""
    found = [node]
    for each in found:  # those that are added on the way have their turn as well
        found += children(each)
    return found


class Visitor(ast.NodeVisitor):
    """A `NodeVisitor` that visits no operators and contexts."""

    _visitors: Mapping[str, Callable[[Any, Any], None]] = {}

    def __init_subclass__(cls) -> None:
        own = {name.removeprefix("visit_"): each for name, each in vars(cls).items() if name.startswith("visit_")}
        cls._visitors = {**cls._visitors, **own}

    def visit(self, node: ast.AST) -> None:
        visitor = self._visitors.get(type(node).__name__)
        if visitor is not None:
            visitor(self, node)
        else:
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for child in children(node):
            self.visit(child)


def nodes(tree: ast.Module, *kinds: type[_Node]) -> Iterator[_Node]:
    """Yield the nodes of these kinds; of all, where none is named."""
    by_kind = _by_kind(tree)
    for kind in kinds or by_kind:
        yield from by_kind.get(kind, ())  # type: ignore[misc]  # they are of this kind


@lru_cache(maxsize=16)
def _by_kind(tree: ast.Module) -> Mapping[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in walk(tree):
        found.setdefault(type(node), []).append(node)
    return found
