"""Enums: their members, what a member is besides, and the member of a value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.evaluate import havoc
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.values import Bound, Class, External, Function, Instance, Opaque, Value, ancestry, is_constant, same

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

PLAIN = frozenset({"enum.Enum"})
NUMBERS = frozenset({"enum.IntEnum", "builtins.int"})
STRINGS = frozenset({"enum.StrEnum", "builtins.str"})
FLAGS = frozenset({"enum.Flag", "enum.IntFlag"})
KNOWN = PLAIN | NUMBERS | STRINGS | FLAGS

_OWN_WAYS = ("__new__", "_generate_next_value_", "_ignore_", "__set_name__")


def is_enum(bases: list[str]) -> bool:
    """Say whether a class with these bases outside the scanned tree is an enum of which the members can be told."""
    return any(base in KNOWN and base.startswith("enum.") for base in bases) and all(base in KNOWN for base in bases)


def make_members(machine: Machine, cls: Class, node: ast.ClassDef) -> tuple[str, ...]:
    """Make the members of an enum: objects with a `name` and a `value`; return their names."""
    bases = {base.path for base in ancestry(cls) if isinstance(base, External)}
    followed = all(_member(machine, cls, name) is UNBOUND for name in _OWN_WAYS)
    made: list[tuple[Value, Instance]] = []
    names: list[str] = []
    for name in _assigned(node):
        written = machine.read((cls.scope, name))
        if written is UNBOUND or isinstance(written, Function) or (name.startswith("_") and name.endswith("_")):
            continue
        value = _value(written, name, [value for value, _ in made], bases) if followed else None
        names.append(name)
        alias = next((member for known, member in made if value is not None and known == value), None)
        if alias is None:
            besides = (
                value if type(value) is int and bases & NUMBERS else value if type(value) is str and bases & STRINGS else None
            )
            alias = Instance(machine.new_id(), cls, besides)
            shown = machine.unknown(f"{cls.name}.{name}.value", "its class decides what it is") if value is None else value
            machine.state.cells[(alias.id, "value")] = machine.state.cells[(alias.id, "_value_")] = shown
            machine.state.cells[(alias.id, "name")] = machine.state.cells[(alias.id, "_name_")] = name
            initializer = _member(machine, cls, "__init__")
            if isinstance(initializer, Function):
                machine.call(initializer, (alias, *(written if isinstance(written, tuple) else (written,))))
        made.append((value, alias))
        machine.state.cells[(cls.scope, name)] = alias
    return tuple(names)


def _assigned(node: ast.ClassDef) -> list[str]:
    """Return the names that a class body assigns to, in order."""
    targets: list[ast.expr] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets.append(statement.target)
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return list(dict.fromkeys(part.id for part in parts if isinstance(part, ast.Name)))


def _value(written: Value, name: str, before: list[Value], bases: set[str]) -> Value:
    """Return the value of a member, None where it is not known."""
    automatic = isinstance(written, Opaque) and isinstance(written.key, tuple) and written.key[1:] == ("call", "enum.auto")
    if automatic:
        if bases & STRINGS:
            return name.lower() if "enum.StrEnum" in bases else None
        numbers = [value for value in before if type(value) is int]
        if len(numbers) != len(before) or numbers != sorted(numbers):
            return None  # versions of Python differ
        last = numbers[-1] if numbers else 0
        return 1 << last.bit_length() if bases & FLAGS else last + 1
    kind = int if bases & NUMBERS else str if bases & STRINGS else None
    if kind is not None and type(written) is not kind:
        return None  # the type makes something else of it
    return written if is_constant(written) or (isinstance(written, tuple) and all(map(is_constant, written))) else None


def member_of(machine: Machine, cls: Class, positional: tuple[Value, ...]) -> Value:
    """Return what `Enum(value)` gives."""
    held = [machine.read((cls.scope, name)) for name in cls.members]
    for value in positional if len(positional) == 1 else ():
        for member in held:
            if member == value or (is_constant(value) and same(machine.read((member.id, "value")), value)):
                return member
    if (asked := _member(machine, cls, "_missing_")) is not UNBOUND:
        havoc.maybe(machine, lambda: machine.call(Bound(cls, asked), positional), f"`{cls.name}` looks for a member")
    raise Unmodelled(f"which member of `{cls.name}` it is is not known")


def _member(machine: Machine, cls: Class, name: str) -> Value:
    from codemods.evaluate.objects import class_member

    return class_member(machine, cls, name)
