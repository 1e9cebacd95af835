"""Comprehensions and generator expressions over elements that are known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import containers, names
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Frame
from codemods.evaluate.program import Scope
from codemods.formulas import Formula, both
from codemods.values import Filtered, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def evaluate(machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    """Return a list, or what passes a filter that is not known."""
    found = _collect(machine, node, lambda: machine.evaluate(node.elt))
    if found is None:
        return machine.unknown(ast.unparse(node)[:60], "what is iterated is not known", node)
    if all(formula is True for formula, _ in found):
        return containers.make_list(machine, [value for _, value in found])
    return Filtered(tuple(found))


def evaluate_dict(machine: Machine, node: ast.DictComp) -> Value:
    found = _collect(machine, node, lambda: (machine.evaluate(node.key), machine.evaluate(node.value)))
    if found is None or not all(formula is True for formula, _ in found):
        return machine.unknown("a dict", "what is iterated is not known", node)
    try:
        return containers.make_dict(machine, [pair for _, pair in found])
    except Unmodelled as why:
        return machine.unknown("a dict", str(why), node)


def _collect(machine: Machine, node: Any, element: Callable[[], Value]) -> list[tuple[Formula, Value]] | None:
    """Return each element with the condition under which it is there; None where the elements are not known."""
    outer = machine.frame.scope
    scope = Scope(machine.new_id(), outer.path, outer.name, "comprehension", outer.id, outer.module)
    machine.program.scopes[scope.id] = scope
    found: list[tuple[Formula, Value]] = []

    def rounds(generators: Sequence[ast.comprehension], condition: Formula) -> None:
        if not generators:
            found.append((condition, element()))
            return
        first, *rest = generators
        for part in containers.elements(machine, machine.evaluate(first.iter)):
            machine.step()
            names.assign(machine, first.target, part)
            passes = condition
            for test in first.ifs:
                formula = machine.truth(machine.evaluate(test))
                outcome = machine.decide(formula)
                passes = both(passes, formula if outcome is None else outcome)
                if passes is False:
                    break
            if passes is not False:
                rounds(rest, passes)

    with machine.entered(Frame(scope)):
        try:
            rounds(node.generators, True)
        except Unmodelled:
            return None
    return found
