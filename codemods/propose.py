"""Repairs: which value makes a failing call legal, and where in the source to write it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.callees import Callee
from codemods.findings import Edit, ProposedFix
from codemods.literals import lone_literal
from codemods.source import Source
from codemods.verdicts import Judge, Outcome
from shapecheck.rule import Applicability, Rule, Verdict

Known = Mapping[str, Any]
"""The names of a call whose values are certain in one execution."""


@dataclass(frozen=True)
class Repairs:
    """Finds repairs in one file.

    Attributes:
        source: the file.
        uses: what is known in each execution that takes an argument from an expression, by the id of its node.
        mentioned: says whether another file may import a name from this one.
    """

    source: Source
    uses: Mapping[int, Sequence[Known]]
    mentioned: Callable[[str], bool]

    def propose(self, call: ast.Call, outcomes: Sequence[tuple[Judge, Outcome]], rule: Rule) -> ProposedFix | None:
        """Return the repair of a violated rule, if another value of one argument of the call is one.

        It is safe where the call fails in every execution that reaches it, and no comment would be lost.
        """
        judge = outcomes[0][0]
        node = judge.nodes.get(rule.fix.parameter) if rule.fix is not None else None
        if node is None:
            return None
        failing = [outcome.known for _, outcome in outcomes if outcome.verdict is Verdict.VIOLATED]
        for value in _values(rule, judge.callee, failing[0], [outcome.known for _, outcome in outcomes]):
            place = self._place(call, node, lambda known, value=value: _permits(rule, judge.callee, value, known))
            if place is None:
                return None
            old = self.source.segment(place)
            new = _written(value, old)
            span = self.source.span(place)
            safe = len(failing) == len(outcomes) and "#" not in old
            applicability = Applicability.SAFE if safe else Applicability.UNSAFE
            return ProposedFix(applicability, f"replace {old} by {new}", (Edit(span.start, span.end, new),))
        return None

    def _place(self, call: ast.Call, node: ast.expr, legal: Callable[[Known], bool]) -> ast.expr | None:
        """Return where to write the value: at the literal if every use of it stays legal, else at the call's argument."""
        literal = node if isinstance(node, ast.Constant) else lone_literal(self.source.tree, node, self.mentioned)
        if literal is not None and self._contains(literal):
            served = [self.uses.get(id(each), ()) for each in self._readers(node, literal)]
            if all(known and all(map(legal, known)) for known in served):
                return literal
        return node if any(part is node for part in ast.walk(call)) else None

    def _contains(self, node: ast.expr) -> bool:
        return any(part is node for part in ast.walk(self.source.tree))

    def _readers(self, node: ast.expr, literal: ast.expr) -> Iterator[ast.expr]:
        """Yield the expressions that take their value from a literal: itself, or every mention of its name."""
        if node is literal:
            yield node
            return
        name = node.id if isinstance(node, ast.Name) else ""
        for part in ast.walk(self.source.tree):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                yield part


def _values(rule: Rule, callee: Callee, failing: Known, known: Sequence[Known]) -> Iterator[Any]:
    """Yield the values that repair the failing execution and are legal in all, best first."""
    for value in callee.contract.choices(rule, callee.contract.complete(failing)):
        if all(_permits(rule, callee, value, each) for each in known):
            yield value


def _permits(rule: Rule, callee: Callee, value: Any, known: Known) -> bool:
    assert rule.fix is not None
    return callee.contract.permits(rule.fix.parameter, value, callee.contract.complete(known)) is Verdict.PROVEN


def _written(value: Any, old: str) -> str:
    """Write a value as Python, in the quotes that stood there."""
    if isinstance(value, str) and old.startswith('"'):
        return f'"{value}"'
    return repr(value)
