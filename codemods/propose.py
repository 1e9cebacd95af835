"""Repairs: which value makes a failing call legal, and where in the source to write it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.callees import Callee
from codemods.findings import Edit, ProposedFix
from codemods.literals import lone_literal
from codemods.source import Source
from codemods.verdicts import Judge, Outcome
from shapecheck.rule import Applicability, Rule, Verdict


@dataclass(frozen=True)
class Uses:
    """Which executions each argument expression serves, of all call sites of the run, by the node's id."""

    known: Mapping[int, Sequence[Mapping[str, Any]]]

    def allow(self, node: ast.expr, callee: Callee, parameter: str, value: Any) -> bool:
        """Say whether every call that takes its argument from this expression is certain to stay legal with `value`."""
        known = self.known.get(id(node), ())
        return bool(known) and all(callee.contract.permits(parameter, value, each) is Verdict.PROVEN for each in known)


def propose(
    source: Source,
    call: ast.Call,
    outcomes: Sequence[tuple[Judge, Outcome]],
    rule: Rule,
    uses: Uses,
    mentioned: Callable[[str], bool],
) -> ProposedFix | None:
    """Return the repair of a violated rule, if one value of one argument decides and its place is in this file.

    It is safe where the call fails in every execution that reaches it and the new value is written in the place of a
    literal: at the literal itself where every use of it stays legal, else at the call.

    Args:
        source: the file that holds the call.
        call: the call expression.
        outcomes: what the rule comes to in each execution.
        rule: the rule.
        uses: what else the argument's expression serves.
        mentioned: says whether another file of the tree mentions a name.
    """
    if rule.fix is None:
        return None
    judge = outcomes[0][0]
    callee, parameter = judge.callee, rule.fix.parameter
    node = judge.nodes.get(parameter)
    violated = [outcome for _, outcome in outcomes if outcome.verdict is Verdict.VIOLATED]
    value = _best(rule, callee, violated[0].known, [outcome.known for _, outcome in outcomes])
    if node is None or value is _NONE or not any(part is node for part in ast.walk(source.tree)):
        return None
    literal = node if isinstance(node, ast.Constant) else lone_literal(source.tree, node, mentioned)
    places: list[ast.expr] = []
    if literal is not None and all(uses.allow(use, callee, parameter, value) for use in literal_uses(source, node, literal)):
        places.append(literal)
    elif any(part is node for part in ast.walk(call)):
        places.append(node)
    if not places:
        return None
    place = places[0]
    always = len(violated) == len(outcomes)
    plain = isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and literal is not None)
    applicability = Applicability.SAFE if always and plain else Applicability.UNSAFE
    span = source.span(place)
    old = source.segment(place)
    new = _written(value, old)
    return ProposedFix(applicability, f"replace {old} by {new}", (Edit(span.start, span.end, new),))


_NONE = object()


def _best(rule: Rule, callee: Callee, failing: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> Any:
    """Return the best value for the failing execution that is legal in all of them."""
    assert rule.fix is not None
    contract = callee.contract
    for choice in contract.choices(rule, contract.complete(failing)):
        if all(contract.permits(rule.fix.parameter, choice, each) is Verdict.PROVEN for each in known):
            return choice
    return _NONE


def literal_uses(source: Source, node: ast.expr, literal: ast.expr) -> list[ast.expr]:
    """Return the expressions that take their value from a literal."""
    if node is literal:
        return [node]
    assert isinstance(node, ast.Name)
    return [
        part for part in ast.walk(source.tree)
        if isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Load)
    ]  # fmt: skip


def _written(value: Any, old: str) -> str:
    """Write a value as Python, in the quotes that stood there."""
    if isinstance(value, str) and old.startswith('"'):
        return f'"{value}"'
    return repr(value)
