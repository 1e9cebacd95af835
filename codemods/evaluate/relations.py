"""Relations of a contract as conditions on what is unknown of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codemods.evaluate.machine import Dies, Exhausted, Frame
from codemods.evaluate.program import Scope
from codemods.formulas import Formula
from codemods.values import Value
from shapecheck.relation import Relation

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def formula_of(machine: Machine, relation: Relation, named: Mapping[str, Value]) -> Formula | None:
    """Return the condition under which a relation holds for these values; None where it cannot be stated."""
    scope = Scope(machine.new_id(), "", relation.text, "module", None, 0)
    machine.program.scopes[scope.id] = scope
    base = machine.state
    machine.state = base.fork()
    machine.state.cells.bind(scope.id, named.items())
    try:
        with machine.entered(Frame(scope)):
            return machine.truth(machine.evaluate(relation.tree))
    except (Dies, Exhausted):
        return None
    finally:
        machine.state = base
