"""The one literal that a name stands for, where there is just one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any


def lone_literal(tree: ast.Module, name: ast.expr, mentioned: Callable[[str], bool]) -> ast.Constant | None:
    """Return the literal that a name is bound to, if nothing else in the file ever binds or changes that name.

    Names are compared in the whole file, whatever their scope: two variables of one name count as bound twice. A global
    that another file mentions is not lone.
    """
    if not isinstance(name, ast.Name) or _is_rebound(tree, name.id):
        return None
    bound = [node for node in ast.walk(tree) if _binds(node, name.id)]
    if len(bound) != 1:
        return None
    (node,) = bound
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.Constant):
        return None
    if node in tree.body and mentioned(name.id):
        return None
    return value


def _binds(node: ast.AST, name: str) -> bool:
    """Say whether a node assigns to a name, by itself."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name


def _is_rebound(tree: ast.Module, name: str) -> bool:
    """Say whether a name is bound by anything but plain assignments: a parameter, a loop, an import, `global`, `del`, ..."""
    plain = {id(target) for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets}
    plain |= {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    return any(name == other for node in ast.walk(tree) if id(node) not in plain for other in other_bindings(node))


def other_bindings(node: Any) -> Iterator[str]:
    """Yield the names that a node binds by itself."""
    match node:
        case ast.Name(id, ctx) if not isinstance(ctx, ast.Load):
            yield id
        case ast.arg(arg):
            yield arg
        case ast.alias(original, renamed):
            yield renamed or original.partition(".")[0]
        case ast.Global(names) | ast.Nonlocal(names):
            yield from names
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
            yield node.name
        case _:
            pass
