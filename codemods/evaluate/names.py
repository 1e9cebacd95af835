"""Names: where they are looked up and where they are bound."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from codemods.evaluate.machine import Dies
from codemods.evaluate.program import Scope
from codemods.evaluate.state import UNBOUND
from codemods.values import External, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_BUILTINS = frozenset(dir(builtins))


def lookup(machine: Machine, node: ast.Name) -> Value:
    """Return the value of a name, as Python's scoping rules have it."""
    scope: Scope | None = machine.frame.scope
    first = True
    while scope is not None:
        if first or scope.kind != "class":  # a class's names are not seen from inside its functions
            value = machine.read((scope.id, node.id))
            if value is not UNBOUND:
                return value
            if scope.kind == "function" and node.id in scope.local:
                raise Dies  # UnboundLocalError
        first = False
        scope = machine.program.scopes[scope.parent] if scope.parent is not None else None
    if node.id in _BUILTINS:
        return External(f"builtins.{node.id}")
    return machine.unknown(node.id, f"`{node.id}` is not defined in the scanned source", node)


def bind(machine: Machine, name: str, value: Value) -> None:
    """Assign to a name in the scope that is being executed, or the one that a declaration names."""
    scope = machine.frame.scope
    if scope.kind == "function" and name not in scope.local:
        scope = _declared(machine, scope, name)
    machine.state.cells[(scope.id, name)] = value


def _declared(machine: Machine, scope: Scope, name: str) -> Scope:
    """Return the scope that `global` or `nonlocal` names."""
    parent = machine.program.scopes[scope.parent] if scope.parent is not None else None
    while parent is not None and parent.kind != "module":
        if parent.kind == "function" and name in parent.local:
            return parent
        parent = machine.program.scopes[parent.parent] if parent.parent is not None else None
    return machine.program.scopes[scope.module]


def assign(machine: Machine, target: ast.expr, value: Value) -> None:
    """Assign to a target: a name, an attribute, an item or a pattern of them."""
    from codemods.evaluate import containers, objects

    match target:
        case ast.Name(name):
            bind(machine, name, value)
        case ast.Attribute(receiver, name):
            objects.set_attribute(machine, machine.evaluate(receiver), name, value)
        case ast.Subscript(receiver, index):
            containers.set_item(machine, machine.evaluate(receiver), machine.evaluate(index), value)
        case ast.Starred(inner):
            assign(machine, inner, value)
        case ast.Tuple(targets) | ast.List(targets):
            for each, part in zip(targets, containers.unpack(machine, value, targets, target), strict=True):
                assign(machine, each, part)
        case _:
            pass


def forget(machine: Machine, names: set[str], why: str, node: ast.AST) -> None:
    """Make names unknown: a loop or handler may have assigned to them, nobody knows how often."""
    for name in sorted(names):
        bind(machine, name, machine.unknown(name, why, node))
