"""The nodes of a file by their kinds: walking a syntax tree takes long, and many ask for a few of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


def nodes(tree: ast.Module, *kinds: type[_Node]) -> Iterator[_Node]:
    """Yield the nodes of these kinds; of all, where none is named."""
    by_kind = _by_kind(tree)
    for kind in kinds or by_kind:
        yield from by_kind.get(kind, ())  # type: ignore[misc]  # they are of this kind


@lru_cache(maxsize=16)
def _by_kind(tree: ast.Module) -> Mapping[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree):
        found.setdefault(type(node), []).append(node)
    return found
