"""Repairs that write another value: at the literal that the present one comes from, else at the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from codemods import geometry
from codemods.callees import Callee
from codemods.findings import Edit, ProposedFix
from codemods.repairs.origins import Origins
from codemods.repairs.site import Site, replacing, rewriting
from codemods.repairs.trails import Trail
from codemods.repairs.tree import Tree
from codemods.verdicts import Judge
from shapecheck.rule import Applicability, Fix, Rule, Verdict

Known = Mapping[str, Any]
"""The names of a call whose values are certain in one execution."""


class Proposal(NamedTuple):
    """A fix; it is `poor` where something that is computed from the sizes does better."""

    fix: ProposedFix
    poor: bool


@dataclass(frozen=True)
class _Use:
    """One execution of a call that takes an argument from a literal."""

    trail: Trail
    judge: Judge
    known: Known


class Literals:
    """Proposes other literals.

    Args:
        origins: where literals are.
        judges: what is known of the calls of all files.
    """

    def __init__(self, origins: Origins, judges: Sequence[Judge]) -> None:
        self.origins = origins
        self.judges = list({id(judge): judge for judge in judges}.values())
        self._uses: dict[str, list[_Use]] = {}

    def propose(self, site: Site, fix: Fix) -> Proposal | None:
        return self._at_literals(site, fix) or self._at_call(site, fix)

    def _at_literals(self, site: Site, fix: Fix) -> Proposal | None:
        """Change the literals that the failing executions have the argument from, if all that they serve stays legal."""
        uses = self._uses_of(fix.parameter)
        here = {id(judge) for judge, _ in site.outcomes}
        failing = {id(judge) for judge, outcome in site.outcomes if site.fails(outcome)}
        guilty = [use for use in uses if id(use.judge) in failing]
        literals = {id(use.trail.literal): use.trail.literal for use in guilty}
        reached = {id(arrival) for judge, _ in site.outcomes if id(judge) in failing for arrival in judge.arrivals}
        if not literals or len(guilty) < len(reached) or not all(map(self._tree.may_edit, literals.values())):
            return None
        if not self.origins.free(self._around(uses, literals)):
            return None
        edits: list[Edit] = []
        messages: list[str] = []
        safe, poor = True, False
        for literal in literals.values():
            served = [use for use in uses if use.trail.literal is literal]
            ours = [use for use in served if id(use.judge) in here]
            old = ours[0].trail.value
            value = _best(site, fix, [use.known for use in ours if id(use.judge) in failing], [use.known for use in ours])
            if value is None or not all(_permits(use.judge, fix, value.new, use.known) for use in served):
                return None
            always = all(id(use.judge) in failing for use in ours)
            if not isinstance(value.new, int) and not (always and all(_breaks(fix, use) for use in served)):
                return None  # another mode, or none, where the present one is legal in some executions, or in another call
            kept_type = type(value.new) is type(old) or not any(use.trail.annotated for use in served)
            slow = _is_slow(site, fix, old, value.new)
            safe = safe and always and kept_type and fix.evident(old, value.new) and not slow
            poor = poor or (slow and _varies(site, fix))
            text = _written(value.new, self._tree.source_of(literal).segment(literal))
            proposed = rewriting(site, self._tree, literal, text, Applicability.SAFE)
            edits += proposed.edits
            safe = safe and proposed.applicability is Applicability.SAFE
            messages.append(proposed.message + (_note(site.rule, site.callee, ours[0].known) if slow else ""))
        applicability = Applicability.SAFE if safe else Applicability.UNSAFE
        return Proposal(ProposedFix(applicability, ", ".join(messages), tuple(edits)), poor)

    def _at_call(self, site: Site, fix: Fix) -> Proposal | None:
        """Write a value that is legal in all executions in place of the argument; what varies stays, and what sets a name."""
        node = site.argument(fix.parameter)
        if node is None or self._varies(node) or any(isinstance(part, ast.NamedExpr) for part in ast.walk(node)):
            return None
        value = _best(site, fix, site.failing, [outcome.known for _, outcome in site.outcomes])
        if value is None or (not site.always_fails and not isinstance(value.new, int)):
            return None
        old = site.failing[0].get(fix.parameter)
        slow = _is_slow(site, fix, old, value.new)
        safe = site.always_fails and fix.evident(old, value.new) and not (slow or (fix.at_least is not None and divides(node)))
        text = _written(value.new, site.source.segment(node))
        note = _note(site.rule, site.callee, site.failing[0]) if slow else ""
        applicability = Applicability.SAFE if safe else Applicability.UNSAFE
        poor = (slow and _varies(site, fix)) or (fix.at_least is not None and divides(node))
        return Proposal(replacing(site.source, node, text, applicability, note=note), poor)

    def _varies(self, node: ast.expr) -> bool:
        """Say whether a name is a parameter, a loop's variable or set more than once."""
        variables = self._tree.variables(node) if isinstance(node, ast.Name) else ()
        return bool(variables) and self._tree.uses(variables[-1]).lone_value is None

    @property
    def _tree(self) -> Tree:
        return self.origins.tree

    def _uses_of(self, parameter: str) -> list[_Use]:
        """Return every execution of every call that has an argument from a literal."""
        if parameter not in self._uses:
            self._uses[parameter] = list(self._found(parameter))
        return self._uses[parameter]

    def _found(self, parameter: str) -> Iterator[_Use]:
        for judge in self.judges:
            known = judge.constants
            if parameter not in known:
                continue
            spelled = next((own for own, name in judge.callee.renamed.items() if name == parameter), parameter)
            for arrival in judge.arrivals:
                trail = self.origins.trail(
                    arrival, geometry.nodes(judge.callee, arrival).get(parameter), spelled, known[parameter]
                )
                if trail is not None:
                    yield _Use(trail, judge, known)

    def _around(self, uses: Sequence[_Use], literals: Mapping[int, ast.expr]) -> list[Trail]:
        """Return all trails that share a holder with those of the literals: another value may go the same way."""
        ours = [use.trail for use in uses if id(use.trail.literal) in literals]
        holders = frozenset(holder for trail in ours for holder in trail.holders)
        others = [use.trail for use in uses if id(use.trail.literal) not in literals and use.trail.holders & holders]
        reads = frozenset(each for trail in others for each in trail.reads)
        return [Trail(trail.literal, trail.reads | reads, trail.holders) for trail in ours]


class _Value(NamedTuple):
    new: Any


def _best(site: Site, fix: Fix, failing: Sequence[Known], served: Sequence[Known]) -> _Value | None:
    """Return the best value for a failing execution that is legal in all that it would serve."""
    if not failing:
        return None
    judge, contract = site.outcomes[0][0], site.callee.contract
    for value in contract.choices(site.rule, contract.complete(failing[0]), judge.chips):
        if all(_permits(judge, fix, value, known) for known in served):
            return _Value(value)
    return None


def _permits(judge: Judge, fix: Fix, value: Any, known: Known) -> bool:
    contract = judge.callee.contract
    return contract.permits(fix.parameter, value, contract.complete(known), judge.chips) is Verdict.PROVEN


def _breaks(fix: Fix, use: _Use) -> bool:
    """Say whether a value that a call has is illegal there for certain."""
    contract, chips = use.judge.callee.contract, use.judge.chips
    return contract.permits(fix.parameter, use.trail.value, contract.complete(use.known), chips) is Verdict.VIOLATED


def _varies(site: Site, fix: Fix) -> bool:
    """Say whether the sizes that a value depends on differ between executions."""
    return any(len(site.known(name)) > 1 for name in _sizes(site, fix))


def _sizes(site: Site, fix: Fix) -> list[str]:
    names = fix.computed.sizes if fix.computed is not None else ()
    return [site.callee.contract.axes[name][0] for name in names]


def _is_slow(site: Site, fix: Fix, old: Any, new: Any) -> bool:
    """Say whether a value is less than half of what there was, or of what the sizes allow: then the call is slow."""
    if not isinstance(old, int) or not isinstance(new, int):
        return False
    return any(2 * new < min(old, known.get(name, old)) for known in site.failing for name in _sizes(site, fix))


def _note(rule: Rule, callee: Callee, known: Known) -> str:
    """Tell what else would do."""
    other = rule.advice(callee.contract.complete(known))
    return f"; faster: {other}" if other else ""


def _written(value: Any, old: str) -> str:
    """Write a value as Python, in the quotes that stood there."""
    if isinstance(value, str) and old.startswith('"'):
        return f'"{value}"'
    return repr(value)


def divides(node: ast.expr) -> bool:
    """Say whether an expression is a quotient, `a // b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
