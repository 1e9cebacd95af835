"""The best repair of a finding: which strategy applies, and how far its result can be trusted."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from codemods.findings import ProposedFix
from codemods.repairs.cast import cast
from codemods.repairs.computed import Computations
from codemods.repairs.imports import Imports
from codemods.repairs.literal import Literals
from codemods.repairs.resize import resize
from codemods.repairs.site import Site
from codemods.source import Source
from codemods.verdicts import Judge, Outcome
from shapecheck.rule import Applicability, Cast, Fix, Resize, Rule, Verdict


class Repairs:
    """Finds repairs in one file.

    Args:
        source: the file.
        literals: changes what is written down, in any file.
    """

    def __init__(self, source: Source, literals: Literals) -> None:
        self._source = source
        self._literals = literals

    def propose(
        self, call: ast.Call, rule: Rule, verdict: Verdict, outcomes: Sequence[tuple[Judge, Outcome]], advice: str
    ) -> ProposedFix | None:
        """Return the repair of a rule that is violated or unproven, if there is any.

        What is unproven gets an unsafe one, and only where there is a counterexample: the call is legal today for some sizes.
        Where nothing can be written, what is violated gets the advice.
        """
        site = Site(self._source, call, rule, outcomes)
        found = None
        match rule.fix:
            case Cast():
                found = cast(site, self._imports, rule.fix) if verdict is Verdict.VIOLATED else None
            case Fix():
                found = self._value(site, rule.fix, verdict)
            case Resize():
                found = resize(site, self._literals.origins, rule.fix) if verdict is Verdict.VIOLATED else None
            case None:
                pass
        if found is None and verdict is Verdict.VIOLATED and advice:
            return ProposedFix(Applicability.DISPLAY, advice)
        return found

    def _value(self, site: Site, fix: Fix, verdict: Verdict) -> ProposedFix | None:
        if verdict is Verdict.VIOLATED:
            literal = self._literals.propose(site, fix)
            if literal is not None and not literal.poor:
                return literal.fix
            computed = self._computations.propose(site, fix)
            return computed or (literal.fix if literal is not None else None)
        computed = self._computations.propose(site, fix)
        if computed is not None and computed.edits and not any(outcome.counterexample for _, outcome in site.outcomes):
            return None
        return computed

    @cached_property
    def _imports(self) -> Imports:
        return Imports(self._source)

    @cached_property
    def _computations(self) -> Computations:
        return Computations(self._source, self._imports, self._literals.origins.tree, self._literals.judges)
