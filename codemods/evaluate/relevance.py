"""Which functions of a file are worth executing, by the names that they mention."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from codemods.callees import WORDS
from codemods.values import Class, Function

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_KERNELS = frozenset(word.decode() for word in WORDS)


def mentions(node: ast.AST, words: set[str]) -> bool:
    """Say whether one of the words stands in a piece of source as a name or an attribute."""
    return not words.isdisjoint(_names(node))


def reaching(tree: ast.Module, words: Iterable[str] = ()) -> set[str]:
    """Return the names that may stand for a kernel or for something that reaches one, as far as this file tells.

    `words` are further names that do, by what other files tell. A function with a contract of its own counts as a kernel.
    """
    words = {*_KERNELS, *words, *_contracted(tree)}
    for node in ast.walk(tree):  # other names that a kernel is imported under
        if isinstance(node, ast.alias) and node.asname and node.name.rpartition(".")[2] in words:
            words.add(node.asname)
    definitions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign)
    ]
    mentioned = {id(node): _names(node) for node in definitions}
    grown = True
    while grown:
        grown = False
        for node in definitions:
            if mentioned[id(node)] & words and not (bound := _bound(node)) <= words:
                words |= bound
                grown = True
    return words


def states_contract(tree: ast.Module) -> bool:
    """Say whether a function of the file has a contract of its own."""
    return bool(_contracted(tree))


def _contracted(tree: ast.Module) -> set[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if any(mentions(each, {"contract"}) for each in node.decorator_list)}


def _names(node: ast.AST) -> set[str]:
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _bound(node: Any) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for target in targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name | ast.Attribute) and not isinstance(part.ctx, ast.Load)
    }


def rebound(tree: ast.Module) -> set[str]:
    """Return the globals that some function rebinds: when another function runs, they may hold anything."""
    return {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}


_MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
    )
)


def changed_in_functions(tree: ast.Module) -> set[str]:
    """Return the names of objects that some function changes in place.

    When another function runs, nobody knows whether and how often the first has run before.
    """
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
    return {name for function in functions for part in ast.walk(function) if (name := _changed(part)) not in (None, "self")}


def _changed(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(value=target, ctx=ast.Store() | ast.Del()) | ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(name), attr=method)):
            return name if method in _MUTATORS else None
        case ast.Call(func=ast.Name("setattr" | "delattr"), args=[target, *_]):
            pass
        case _:
            return None
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def assigned_attributes(owner: Class, machine: Machine) -> set[str]:
    """Return the attributes that methods of a class other than its initializer set."""
    methods = [held for name, held in machine.members(owner.scope).items() if name not in ("__init__", "setUp")]
    return {name for held in methods if isinstance(held, Function) for name in machine.program.bindings(held.node).attributes}
