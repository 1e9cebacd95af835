"""What a value is unpacked into: `a, *b = value`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codemods.evaluate import containers, iteration
from codemods.evaluate.machine import Dies
from codemods.evaluate.shape_parts import Part, part_of
from codemods.evaluate.state import choose
from codemods.values import Choice, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def unpack(machine: Machine, value: Value, targets: Sequence[ast.expr], node: ast.AST) -> list[Value]:
    """Return a value for each target of an unpacking assignment."""
    starred = next((position for position, target in enumerate(targets) if isinstance(target, ast.Starred)), None)

    if (part := part_of(value)) is not None:
        return _unpack_shape(machine, part, targets, starred, node)

    def split(each: Value) -> Value:
        if isinstance(each, Opaque) and starred is None:
            return tuple(each.item(position) for position in range(len(targets)))
        parts = iteration.elements(machine, each)
        if starred is None:
            if len(parts) != len(targets):
                raise Dies
            return parts
        after = len(targets) - starred - 1
        if len(parts) < len(targets) - 1:
            raise Dies
        middle = containers.make_list(machine, parts[starred : len(parts) - after])
        return (*parts[:starred], middle, *parts[len(parts) - after :])

    whole = machine.spread(split, value)
    match whole:
        case tuple():
            return list(whole)
        case Choice(alternatives) if all(isinstance(each, tuple) for _, each in alternatives):
            return [choose((formula, each[position]) for formula, each in alternatives) for position in range(len(targets))]
        case _:
            names = [getattr(target, "id", "a target") for target in targets]
            return [machine.unknown(name, "what is unpacked into it is not known", node) for name in names]


def _unpack_shape(machine: Machine, part: Part, targets: Sequence[ast.expr], starred: int | None, node: ast.AST) -> list[Value]:
    """Unpack the shape of an unknown array, or a part of it: so many sizes it must have then."""
    if starred is not None:
        rest = machine.unknown("the rest of a shape", "how many axes there are is not known", node)
        front, back = range(starred), range(starred + 1 - len(targets), 0)
        return [*map(part.item, front), rest, *map(part.item, back)]
    found = part.sizes(len(targets))
    if found is None:
        return [machine.unknown("a size", "how many axes there are is not known", node) for _ in targets]
    condition, sizes = found
    assumed = machine.state.assume(condition, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed
    return [*sizes]
