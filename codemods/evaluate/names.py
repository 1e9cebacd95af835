"""Names: where they are looked up and where they are bound."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codemods.evaluate.machine import Dies
from codemods.evaluate.memory import Cell
from codemods.evaluate.program import Scope
from codemods.evaluate.state import PATCHED, UNBOUND
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
    patched = machine.state.read((PATCHED, f"builtins.{node.id}"))
    if patched is not UNBOUND:
        return patched
    if node.id in _BUILTINS:
        return External(f"builtins.{node.id}")
    return machine.unknown(node.id, f"`{node.id}` is not defined in the scanned source", node)


def bind(machine: Machine, name: str, value: Value) -> None:
    """Assign to a name in the scope that is being executed, or the one that a declaration names."""
    store(machine, cell_of(machine, name), value)


def store(machine: Machine, cell: Cell, value: Value) -> None:
    """Put a value where a name, or an attribute of a module or a class, is found."""
    machine.state.cells[cell] = value
    if cell in machine.named_unseen:
        from codemods.evaluate.externals import bound_later

        bound_later(machine, cell, value)


def cell_of(machine: Machine, name: str) -> Cell:
    """Return the cell that assigning to a name sets."""
    scope = machine.frame.scope
    if scope.kind == "function" and name not in scope.local:
        scope = _declared(machine, scope, name)
    return scope.id, name


def rebind(machine: Machine, name: str) -> None:
    """Put what a class body has assigned to a name that it declares `global` or `nonlocal` where that is."""
    scope = machine.frame.scope
    value = machine.state.cells.pop((scope.id, name), UNBOUND)
    if value is not UNBOUND:
        store(machine, (_declared(machine, scope, name).id, name), value)


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
    from codemods.evaluate import unpacking

    match target:
        case ast.Name(name):
            bind(machine, name, value)
        case ast.Attribute() | ast.Subscript():
            put(machine, place(machine, target), value)
        case ast.Starred(inner):
            assign(machine, inner, value)
        case ast.Tuple(targets) | ast.List(targets):
            for each, part in zip(targets, unpacking.unpack(machine, value, targets, target), strict=True):
                assign(machine, each, part)
        case _:
            pass


@dataclass(frozen=True)
class Place:
    """Where an assignment puts its value: a name, an attribute or an item; receiver and index are evaluated once."""

    target: ast.expr
    receiver: Value = None
    index: Value = None


def place(machine: Machine, target: ast.expr) -> Place:
    """Evaluate what a target names."""
    match target:
        case ast.Attribute(receiver):
            return Place(target, machine.evaluate(receiver))
        case ast.Subscript(receiver, index):
            return Place(target, machine.evaluate(receiver), machine.evaluate(index))
        case _:
            return Place(target)


def held(machine: Machine, place: Place) -> Value:
    """Return what a place holds."""
    from codemods.evaluate import containers, objects

    target, text = place.target, ast.unparse(place.target)[:60]
    match target:
        case ast.Attribute(attr=name):
            return machine.spread(lambda each: objects.attribute(machine, each, name, target), place.receiver, text=text)
        case ast.Subscript():
            return containers.item_of_any(machine, place.receiver, place.index, text)
        case ast.Name():
            return lookup(machine, target)
        case _:
            raise AssertionError(target)


def put(machine: Machine, place: Place, value: Value) -> None:
    """Assign to a place."""
    from codemods.evaluate import containers, objects

    match place.target:
        case ast.Attribute(attr=name):
            objects.set_attribute(machine, place.receiver, name, value)
        case ast.Subscript():
            containers.set_item(machine, place.receiver, place.index, value)
        case target:
            assign(machine, target, value)


def forget(machine: Machine, names: set[str], why: str, node: ast.AST) -> None:
    """Make names unknown: a loop or handler may have assigned to them, nobody knows how often."""
    for name in sorted(names):
        bind(machine, name, machine.unknown(name, why, node))
