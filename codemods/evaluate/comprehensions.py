"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import containers, havoc, iteration, names, objects
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Frame
from codemods.evaluate.program import Scope
from codemods.evaluate.state import UNBOUND
from codemods.formulas import Formula, both
from codemods.values import Filtered, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def evaluate(machine: Machine, node: ast.ListComp | ast.SetComp) -> Value:
    """Return a list, or what passes a filter that is not known."""
    found = _collect(machine, node, lambda: machine.evaluate(node.elt))
    if found is None:
        return machine.unknown(ast.unparse(node)[:60], "what is iterated is not known", node)
    if all(formula is True for formula, _ in found):
        values = [value for _, value in found]
        return containers.make_set(machine, values) if isinstance(node, ast.SetComp) else containers.make_list(machine, values)
    return Filtered(tuple(found))


def evaluate_generator(machine: Machine, node: ast.GeneratorExp) -> Value:
    """Return what a generator expression gives, if it is used up where it stands."""
    how = machine.program.consumption(machine.frame.scope.path, node)
    collected: list[list[tuple[Formula, Value]] | None] = []
    collect: Callable[[], None] = lambda: collected.append(_collect(machine, node, lambda: machine.evaluate(node.elt)))  # noqa: E731
    if how == "later":
        havoc.later(machine, collect, "a generator changes it", node)
        known = False
    else:
        known = how == "whole" or partly(machine, collect, node)
        if known and not collected:
            collect()
    found = collected[-1] if known else None
    for _, value in () if known else (pair for each in collected for pair in each or ()):
        havoc.leak(machine, value)
    if found is None:
        return machine.unknown(ast.unparse(node)[:60], "a generator expression that is not followed", node)
    if all(formula is True for formula, _ in found):
        return iteration.make_iterator(machine, [value for _, value in found])
    return Filtered(tuple(found))


def partly(machine: Machine, run: Callable[[], object], node: ast.AST) -> bool:
    """Execute what may end early, unseen; say whether that makes no difference: it changes nothing and raises nothing."""
    base, mark, arrivals = machine.state, machine.new_id(), len(machine.arrivals)
    machine.state = base.fork()
    try:
        with machine.memory.watching() as written:
            run()
        if not havoc.lasting(machine, written, mark) and len(machine.arrivals) == arrivals:
            return True
    except Dies:
        pass
    del machine.arrivals[arrivals:]
    machine.state = base
    havoc.maybe(machine, run, "what consumes it may end early", node)
    return False


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
    known = True
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    plain = all(map(_is_plain, parts))

    def rounds(generators: Sequence[ast.comprehension], condition: Formula) -> None:
        nonlocal known
        if not generators:
            found.append((condition, element()))
            return
        first, *rest = generators
        iterated = machine.evaluate(first.iter)
        try:
            element_at = iteration.walk(machine, iterated)
            position = 0
            while (part := element_at(position)) is not UNBOUND:
                position += 1
                machine.step()
                names.assign(machine, first.target, part)
                tested(first.ifs, rest, condition)
        except Unmodelled as why:
            known = False
            any_round(first, rest, iterated, str(why))

    def tested(tests: Sequence[ast.expr], rest: Sequence[ast.comprehension], condition: Formula) -> None:
        if not tests:
            return rounds(rest, condition)
        formula = machine.truth(machine.evaluate(tests[0]))
        outcome = machine.decide(formula)
        if outcome is not None:
            return tested(tests[1:], rest, condition) if outcome else None
        go_on: Callable[[], None] = lambda: tested(tests[1:], rest, both(condition, formula))  # noqa: E731
        if plain and not rest and not tests[1:]:
            return go_on()
        return machine.part(formula, (go_on, lambda: None))

    def any_round(first: ast.comprehension, rest: Sequence[ast.comprehension], iterated: Value, why: str) -> None:
        def run() -> None:
            if objects.iterates(machine, iterated):
                havoc.everything(machine, "an iterator of the source may change it", node)
            names.assign(machine, first.target, machine.unknown(ast.unparse(first.target), why, first.iter))
            tested(first.ifs, rest, machine.coin("there is another element"))

        havoc.leak_elements(machine, iterated)  # the target may be one of them
        havoc.maybe(machine, run, "a comprehension changes it", node)

    with machine.entered(Frame(scope)):
        rounds(node.generators, True)
    return found if known else None


def _is_plain(node: ast.expr) -> bool:
    """Say whether evaluating an expression changes nothing and cannot fail."""
    return isinstance(node, ast.Name | ast.Constant) or (isinstance(node, ast.Tuple) and all(map(_is_plain, node.elts)))
