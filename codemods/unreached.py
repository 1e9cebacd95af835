"""Calls of kernels that no execution reached, found by their names alone: they are listed as unproven, not left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.callees import CALLEES, Callee
from codemods.nodes import nodes
from codemods.repairs.scopes import BINDERS, bindings


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, Callee]]:
    """Yield the calls of a file whose function is bound by an import of a known kernel, and by nothing else in the file."""
    imported = _imported(tree)
    if not imported:
        return
    for node in nodes(tree, ast.Call):
        if (path := _dotted(node.func, imported)) in CALLEES:
            yield node, CALLEES[path]


def _imported(tree: ast.Module) -> Mapping[str, str]:
    """Return what each name stands for that is bound by absolute imports of one thing, and in no other way."""
    paths: dict[str, set[str]] = {}
    for node in nodes(tree, ast.ImportFrom):
        for alias in node.names if not node.level else ():
            paths.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
    for node in nodes(tree, ast.Import):
        for alias in node.names:
            root = alias.name if alias.asname else alias.name.partition(".")[0]
            paths.setdefault(alias.asname or root, set()).add(root)
    others = {node.id for node in nodes(tree, ast.Name) if node.id in paths and not isinstance(node.ctx, ast.Load)}
    kinds = [kind for kind in BINDERS if kind not in (ast.alias, ast.Name)]
    others |= {name for node in nodes(tree, *kinds) for name in bindings(node)}
    return {name: next(iter(found)) for name, found in paths.items() if len(found) == 1 and name not in others}


def _dotted(node: ast.expr, imported: Mapping[str, str]) -> str:
    match node:
        case ast.Name(name):
            return imported.get(name, "")
        case ast.Attribute(value, name) if path := _dotted(value, imported):
            return f"{path}.{name}"
        case _:
            return ""
