"""The call that a repair is for, and what its rule comes to there."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codemods.callees import Callee
from codemods.findings import Edit, ProposedFix
from codemods.repairs.tree import Tree
from codemods.source import Source
from codemods.verdicts import Judge, Outcome
from shapecheck.rule import Applicability, Rule, Verdict


@dataclass(frozen=True)
class Site:
    """A call, one rule of its contract, and the outcome in each execution that reaches it."""

    source: Source
    call: ast.Call
    rule: Rule
    outcomes: Sequence[tuple[Judge, Outcome]]

    @property
    def callee(self) -> Callee:
        return self.outcomes[0][0].callee

    @cached_property
    def failing(self) -> list[Mapping[str, Any]]:
        """What is known in each execution in which the rule fails."""
        return [outcome.known for _, outcome in self.outcomes if self.fails(outcome)]

    def fails(self, outcome: Outcome) -> bool:
        """Say whether an execution fails, if it takes place: that may depend on what is not known."""
        values = self.callee.contract.complete(outcome.known)
        return outcome.verdict is Verdict.VIOLATED or self.rule.judge(values) is Verdict.VIOLATED

    @property
    def always_fails(self) -> bool:
        return len(self.failing) == len(self.outcomes)

    def written(self, parameter: str) -> ast.expr | None:
        """Return the expression of an argument, in the call or in a partial, if it is the same in every execution."""
        nodes = [judge.nodes.get(parameter) for judge, _ in self.outcomes]
        return nodes[0] if all(each is nodes[0] for each in nodes) else None

    def argument(self, parameter: str) -> ast.expr | None:
        """Return the expression of an argument, if the call itself writes it down, and it is the same in every execution."""
        node = self.written(parameter)
        return node if node is not None and any(part is node for part in ast.walk(self.call)) else None

    def known(self, name: str) -> list[Any]:
        """Return the distinct values of a name, in all executions in which it is known."""
        return list(dict.fromkeys(outcome.known[name] for _, outcome in self.outcomes if name in outcome.known))


def replacing(
    source: Source, node: ast.expr, text: str, applicability: Applicability, *more: Edit, note: str = ""
) -> ProposedFix:
    """Return the fix that writes `text` in place of an expression; a comment that would be lost makes it unsafe."""
    old, span = source.segment(node), source.span(node)
    if "#" in old and applicability is Applicability.SAFE:
        applicability = Applicability.UNSAFE
    return ProposedFix(applicability, f"replace {shown(old)} by {text}{note}", (Edit(span.start, span.end, text), *more))


def rewriting(site: Site, tree: Tree, literal: ast.expr, text: str, applicability: Applicability) -> ProposedFix:
    """Return the fix that writes `text` in place of a literal, which may stand in another file than the call."""
    source = tree.source_of(literal)
    fix = replacing(source, literal, text, applicability)
    if source is site.source:
        return fix
    edits = tuple(dataclasses.replace(edit, path=source.path) for edit in fix.edits)
    return dataclasses.replace(fix, message=f"{fix.message} in {source.path}:{literal.lineno}", edits=edits)


def shown(text: str) -> str:
    """Return a piece of source on one line."""
    return " ".join(text.split())
