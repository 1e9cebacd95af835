"""The verdict of each rule at each call site, from the executions that reach it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from codemods import geometry
from codemods.evaluate.machine import Arrival, Machine
from codemods.evaluate.program import Program
from codemods.evaluate.relations import formula_of
from codemods.facts import Facts
from codemods.formulas import Formula, both, integers
from codemods.search import counterexample
from codemods.terms import Term, symbols
from codemods.values import Opaque, Reason, Value, describe, is_constant
from shapecheck.chip import Chip
from shapecheck.contract import CORES
from shapecheck.relation import UNKNOWN
from shapecheck.rule import Rule, Verdict

MAX_COMBINATIONS = 64  # of the alternatives of the arguments that one rule speaks of


@dataclass(frozen=True)
class Outcome:
    """What one rule comes to in one execution.

    Attributes:
        verdict: the verdict.
        values: the value of each name of the relation, in the alternative that decided, with its origin.
        known: the values of all names of the call that are constants, in that alternative.
        reason: why it is unproven.
        counterexample: values of the unknowns under which it fails.
    """

    verdict: Verdict
    values: Mapping[str, tuple[Value, str]] = field(default_factory=dict[str, tuple[Value, str]])
    known: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: Reason | None = None
    counterexample: Mapping[str, Any] | None = None


class Judge:
    """Judges the rules of a kernel's contract in one execution that reaches it; `arrivals` are all that do not differ."""

    def __init__(self, arrival: Arrival, chips: Sequence[Chip]) -> None:
        self.arrival = arrival
        self.arrivals = [arrival]
        self.callee = arrival.callee
        self.arguments = geometry.bind(self.callee, arrival)
        self.nodes = geometry.nodes(self.callee, arrival)
        self.chips = chips
        self._outcomes: dict[Rule, Outcome] = {}
        self._conditional = any(condition.branch for condition in arrival.path)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply: those about a chip or about elements only where these are known."""
        held = geometry.values_of(self.callee, self.arguments) | ({CORES: None} if self.chips else {})
        return tuple(self.callee.contract.applicable(held))

    def judge(self, rule: Rule) -> Outcome:
        """Return the verdict of a rule: over all alternatives of the arguments that it speaks of, on every chip."""
        if rule not in self._outcomes:
            self._outcomes[rule] = self._judge(rule)
        return self._outcomes[rule]

    def _judge(self, rule: Rule) -> Outcome:
        names = dict.fromkeys(geometry.owner(self.callee, name) for name in rule.relation.names)
        owners = [name for name in names if name in self.arguments]
        spread = [geometry.alternatives(self.arguments[owner]) for owner in owners]
        combinations = list(itertools.islice(itertools.product(*spread), MAX_COMBINATIONS + 1))
        if len(combinations) > MAX_COMBINATIONS:
            return Outcome(Verdict.UNPROVEN, reason=Reason("its arguments have too many possible values"))
        outcomes: list[Outcome] = []
        for combination in combinations:
            condition = both(*(formula for formula, _ in combination))
            arguments = self.arguments | dict(zip(owners, (value for _, value in combination), strict=True))
            known = [each.formula for each in self.arrival.path] + [condition]
            if condition is False or not _consistent(known):
                continue
            chips = self.chips if CORES in rule.relation.names else (None,)
            outcomes += [self._judge_one(rule, arguments, known, chip) for chip in chips]
        return self._join(outcomes)

    def _join(self, outcomes: Sequence[Outcome]) -> Outcome:
        """One violated alternative is a violation only if the source spells it out: if all are, and none is a branch."""
        worst = [outcome for outcome in outcomes if outcome.verdict is not Verdict.PROVEN]
        if not worst:
            return outcomes[0] if outcomes else Outcome(Verdict.UNPROVEN, reason=Reason("no execution reaches it"))
        violated = [outcome for outcome in worst if outcome.verdict is Verdict.VIOLATED]
        if len(violated) == len(outcomes) and not self._conditional:
            return violated[0]
        if violated:
            shown = {name: value for name, (value, _) in violated[0].values.items() if is_constant(value)}
            why = Reason("it fails in an execution that depends on a condition that is not known", *self._place())
            return Outcome(Verdict.UNPROVEN, violated[0].values, violated[0].known, why, shown)
        return worst[0]

    def _place(self) -> tuple[str, int]:
        path, node = self.arrival.source
        return path, node.lineno

    def _judge_one(self, rule: Rule, arguments: Mapping[str, Value], known: Sequence[Formula], chip: Chip | None) -> Outcome:
        held = geometry.values_of(self.callee, arguments)
        if chip is not None:
            held[CORES] = chip.cores_per_device
        named = {name: self._value(name, held, arguments) for name in rule.relation.names}
        values = {name: (value, self.origin(name)) for name, value in named.items()}
        constants = {name: value for name, value in held.items() if _is_known(value)}
        if all(_is_known(value) for value in named.values()):
            verdict = rule.judge(named)
            reason = Reason("it divides by 0, or compares what cannot be compared") if verdict is Verdict.UNPROVEN else None
            return Outcome(verdict, values, constants, reason)
        formula = formula_of(Machine(Program((), Path())), rule.relation, named)
        if formula is None:
            return Outcome(Verdict.UNPROVEN, values, constants, _reason(named.values()))
        used = set().union(*map(integers, (formula, *known)))
        facts = [*known, *(fact for array in self.callee.contract.arrays
                           for fact in geometry.shape_facts(array, arguments.get(array.name), used))]  # fmt: skip
        outcome = Facts(facts).decide(formula)
        if outcome is not None:
            return Outcome(Verdict.of(outcome), values, constants)
        seen = not any(map(geometry.is_missing, named.values()))  # what is not there has no value to give as an example
        example = counterexample(formula, facts) if seen else None
        return Outcome(Verdict.UNPROVEN, values, constants, _reason(named.values()), example)

    def constants(self) -> dict[str, Any]:
        """Return the names of the call whose value is certain in this execution."""
        held = geometry.values_of(self.callee, self.arguments)
        return {name: value for name, value in held.items() if _is_known(value)}

    def _value(self, name: str, held: Mapping[str, Value], arguments: Mapping[str, Value]) -> Value:
        qualified = self.callee.contract.axes.get(name, (name,))[0]
        if qualified in held:
            return held[qualified]
        argument = geometry.owner(self.callee, name)
        return geometry.missing(name, argument, arguments.get(argument, UNKNOWN), self.nodes.get(argument))

    def origin(self, name: str) -> str:
        """Return the expression that a name's value comes from, in the words of the call where it has them."""
        origin = self.callee.contract.origins[name]
        argument = geometry.owner(self.callee, name)
        node = self.nodes.get(argument)
        if node is None or not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return ast.unparse(node) if node is not None and origin == argument else origin
        return ast.unparse(node) + origin.removeprefix(argument) if origin.startswith(argument) else origin


def _is_known(value: Value) -> bool:
    return all(map(_is_known, value)) if isinstance(value, tuple) else is_constant(value)


def _consistent(known: Sequence[Formula]) -> bool:
    held: list[Formula] = []
    for formula in known:
        if Facts(held).decide(formula) is False:
            return False
        held.append(formula)
    return True


def _reason(values: Any) -> Reason | None:
    """Return why the first unknown among the values is unknown."""
    for value in values:
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, Opaque):
                return part.reason
            for symbol in sorted(symbols(part), key=lambda each: each.text) if isinstance(part, Term) else ():
                if isinstance(symbol.reason, Reason):
                    return symbol.reason
    return None


def shown(values: Mapping[str, tuple[Value, str]]) -> dict[str, tuple[Any, str]]:
    """Return values with their origins for a report: of an unknown one, what is known of it stands for the origin."""
    return {
        name: (value, origin) if _is_known(value) else (UNKNOWN, origin if isinstance(value, Opaque) else describe(value))
        for name, (value, origin) in values.items()
    }


def plain(value: Value) -> Any:
    """Return a value for a report: a constant as it is, anything else in words."""
    return value if _is_known(value) else describe(value)
