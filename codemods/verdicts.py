"""The verdict of each rule at each call site, from the executions that reach it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from codemods import geometry
from codemods.callees import FITS, TYPE_ERROR
from codemods.evaluate.machine import Arrival, Machine
from codemods.evaluate.program import Program
from codemods.evaluate.relations import formula_of
from codemods.formulas import Formula, both, integers
from codemods.search import counterexample
from codemods.splitting import consistent, follows
from codemods.terms import Term, symbols
from codemods.values import Opaque, Reason, Value, describe, is_constant
from shapecheck.chip import Chip
from shapecheck.contract import ON_TPU
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import Relation
from shapecheck.rule import Rule, Verdict

MAX_COMBINATIONS = 64  # of the alternatives of the arguments that one rule speaks of
MAX_TEXT = 80  # characters of a condition in a reason


@dataclass(frozen=True)
class Outcome:
    """What one rule comes to in one execution.

    Attributes:
        verdict: the verdict.
        values: the value of each name of the relation, in the alternative that decided.
        known: the values of all names of the call that are constants, in that alternative.
        reason: why it is unproven.
        failing: the values under which it is known to fail.
        question: what does not follow, and what is known.
    """

    verdict: Verdict
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    known: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: Reason | None = None
    failing: Mapping[str, Any] | None = None
    question: tuple[Formula, Sequence[Formula]] | None = None

    @cached_property
    def counterexample(self) -> Mapping[str, Any] | None:
        """Values of the unknowns under which it fails; to seek them takes long, and is for an outcome that is reported."""
        return self.failing if self.question is None else counterexample(*self.question)


class Judge:
    """Judges the rules of a kernel's contract in one execution that reaches it; `arrivals` are all that do not differ.

    `like` judges an execution that reaches another call in the same way, and with the same values.
    """

    def __init__(self, arrival: Arrival, chips: Sequence[Chip], like: Judge | None = None) -> None:
        self.arrival = arrival
        self.arrivals = [arrival]
        self._like = like
        self.callee = arrival.callee
        self.arguments = geometry.bind(self.callee, arrival)
        self.nodes = geometry.nodes(self.callee, arrival)
        self.chips = chips
        self._outcomes: dict[Rule, Outcome] = {}
        self.conditional = any(condition.branch for condition in arrival.path)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply: those about a chip or about elements only where these are known."""
        if self._like is not None:
            return self._like.rules
        contract = self.callee.contract
        on_tpu = (self.callee.on_tpu or bool(self.chips)) and not self.arrival.interpreted and contract.uses_tpu(self.constants)
        places = [chip.facts for chip in self.chips] or [{}]
        found = {id(rule) for facts in places for rule in contract.applicable({**self._held, **facts, ON_TPU: on_tpu})}
        return (*(rule for rule in contract.rules if id(rule) in found), FITS)

    @cached_property
    def _applicable(self) -> frozenset[Rule]:
        return self._like._applicable if self._like is not None else frozenset(self.rules)

    def applies(self, rule: Rule) -> bool:
        """Say whether a rule applies: to look through `rules` takes longer."""
        return rule in self._applicable

    def judge(self, rule: Rule) -> Outcome:
        """Return the verdict of a rule: over all alternatives of the arguments that it speaks of, on every chip."""
        if rule not in self._outcomes:
            known = self._like.judge(rule) if self._like is not None else None
            proven = known is not None and known.verdict is Verdict.PROVEN  # what any other outcome tells is of one place
            self._outcomes[rule] = known if known is not None and proven else self._judge_anew(rule)
        return self._outcomes[rule]

    def _judge_anew(self, rule: Rule) -> Outcome:
        outcome = self._fits() if rule is FITS else self._judge(rule)
        if outcome.verdict is Verdict.VIOLATED and rule is not FITS and geometry.type_error(self.callee, self.arrival):
            return Outcome(Verdict.UNPROVEN, reason=Reason("the arguments do not fit the parameters", *self._place()))
        return outcome

    def _fits(self) -> Outcome:
        """Say whether the arguments fit the signature."""
        error = geometry.type_error(self.callee, self.arrival)
        values = {TYPE_ERROR: error}
        if error is None and self.arrival.spread:
            return Outcome(Verdict.UNPROVEN, reason=Reason("not all arguments of the call are known", *self._place()))
        if error is None:
            return Outcome(Verdict.PROVEN, values)
        return self._join([(True, Outcome(Verdict.VIOLATED, values))], certain=not self.conditional)

    def _judge(self, rule: Rule) -> Outcome:
        names = dict.fromkeys(self.callee.contract.owners.get(name) for name in rule.names)
        owners = [name for name in names if name in self.arguments]
        spread = [geometry.alternatives(self.arguments[owner]) for owner in owners]
        combinations = list(itertools.islice(itertools.product(*spread), MAX_COMBINATIONS + 1))
        if len(combinations) > MAX_COMBINATIONS:
            several = " and ".join(f"`{name}`" for name, values in zip(owners, spread, strict=True) if len(values) > 1)
            return Outcome(Verdict.UNPROVEN, reason=Reason(f"{several} may have too many values", *self._place()))
        every = len(combinations)
        if not any(name.endswith("_rank") for name in rule.names):  # that is for the rule about ranks to say
            combinations = [each for each in combinations if self._has_rank(owners, each)] or combinations
        outcomes: list[tuple[Formula, Outcome]] = []
        for combination in combinations:
            condition = both(*(formula for formula, _ in combination))
            chosen = {owner: value for owner, (_, value) in zip(owners, combination, strict=True)}
            same = all(value is self.arguments[owner] for owner, value in chosen.items())
            arguments = self.arguments if same else {**self.arguments, **chosen}
            known = [each.formula for each in self.arrival.path] + [condition]
            if condition is False or not consistent(known):
                continue
            chips = [chip for chip in self.chips if not rule.chips or chip.name in rule.chips] if rule.needs_chip else [None]
            on_each = [self._judge_one(rule, arguments, known, chip) for chip in chips]
            worst = Verdict.worst(each.verdict for each in on_each)  # the code is to run on every one of them
            outcomes.append((condition, next(each for each in on_each if each.verdict is worst)))
        return self._join(outcomes, certain=len(combinations) == every and not self.conditional)

    def _has_rank(self, owners: Sequence[str], combination: Sequence[tuple[Formula, Value]]) -> bool:
        return geometry.has_rank(self.callee, {name: value for name, (_, value) in zip(owners, combination, strict=True)})

    def _join(self, outcomes: Sequence[tuple[Formula, Outcome]], *, certain: bool) -> Outcome:
        """One violated alternative is a violation only if the source spells it out: if all are, and it is `certain` that one of
        them comes to pass.
        """
        worst = [outcome for _, outcome in outcomes if outcome.verdict is not Verdict.PROVEN]
        if not worst:
            return outcomes[0][1] if outcomes else Outcome(Verdict.UNPROVEN, reason=Reason("no execution reaches it"))
        violated = [(condition, outcome) for condition, outcome in outcomes if outcome.verdict is Verdict.VIOLATED]
        if len(violated) == len(outcomes) and certain:
            return violated[0][1]
        if violated:
            condition, first = violated[0]
            shown = {name: value for name, value in first.values.items() if is_constant(value)}
            return Outcome(Verdict.UNPROVEN, first.values, first.known, self._condition(condition), shown)
        return worst[0]

    def _condition(self, alternative: Formula) -> Reason:
        """Say on what it depends whether an execution that fails takes place."""
        branches = [each.formula for each in self.arrival.path if each.branch]
        conditions = [*branches, *([] if alternative is True else [alternative])]
        if not conditions:
            return Reason("it fails where the ranks are right", *self._place())
        text = str(conditions[-1])
        if len(text) > MAX_TEXT or "\n" in text:
            return Reason("it fails under a condition that is not known", *self._place())
        return Reason(f"it fails if {text}, which is not known", *self._place())

    def _place(self) -> tuple[str, int]:
        path, node = self.arrival.source
        return path, node.lineno

    def _judge_one(self, rule: Rule, arguments: Mapping[str, Value], known: Sequence[Formula], chip: Chip | None) -> Outcome:
        held = self._held if arguments is self.arguments else geometry.values_of(self.callee, arguments)
        constants = self.constants if held is self._held else certain(held)
        if chip is not None:
            held = {**held, **chip.facts}
            constants = {**constants, **chip.facts}
        outcome = self._judge_relation(rule.relation, arguments, held, constants, known)
        if outcome.verdict is not Verdict.PROVEN or rule.enough is None:
            return outcome
        enough = self._judge_relation(rule.enough, arguments, held, constants, known)
        if enough.verdict is Verdict.PROVEN:
            return outcome
        reason = enough.reason or Reason("what the compiler makes of it is not known to the byte", *self._place())
        return Outcome(Verdict.UNPROVEN, outcome.values, constants, reason)

    def _judge_relation(
        self,
        relation: Relation,
        arguments: Mapping[str, Value],
        held: Mapping[str, Value],
        constants: Mapping[str, Any],
        known: Sequence[Formula],
    ) -> Outcome:
        values = {name: self._value(name, held, arguments) for name in relation.names}
        if all(_is_known(value) for value in values.values()):
            verdict = Verdict.of(relation.evaluate(values))
            reason = Reason("it divides by 0, or compares what cannot be compared") if verdict is Verdict.UNPROVEN else None
            return Outcome(verdict, values, constants, reason)
        formula = _formula_of(relation, tuple((name, type(value), value) for name, value in values.items()))
        if formula is None:
            return Outcome(Verdict.UNPROVEN, values, constants, _reason(values.values()))
        used = set().union(*map(integers, (formula, *known)))
        facts = [*known, *(fact for array in self.callee.contract.arrays
                           for fact in geometry.shape_facts(array, arguments.get(array.name), used))]  # fmt: skip
        outcome = follows(formula, facts)
        if outcome is not None:
            return Outcome(Verdict.of(outcome), values, constants)
        seen = not any(map(geometry.is_missing, values.values()))  # what is not there has no value to give as an example
        reason = _reason(values.values())
        return Outcome(Verdict.UNPROVEN, values, constants, reason, question=(formula, facts) if seen else None)

    @cached_property
    def _held(self) -> dict[str, Value]:
        return geometry.values_of(self.callee, self.arguments)

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The names of the call whose value is certain in this execution."""
        return certain(self._held)

    def value(self, name: str) -> Value:
        """Return the value of a name: one that is unknown, with the reason, where the call does not define it."""
        return self._value(name, self._held, self.arguments)

    def why(self, name: str, arguments: Mapping[str, Value]) -> Reason | None:
        """Return the reason for which the value of a name is not known, for arguments without alternatives."""
        return _reason([self._value(name, geometry.values_of(self.callee, arguments), arguments)])

    def _value(self, name: str, held: Mapping[str, Value], arguments: Mapping[str, Value]) -> Value:
        qualified = self.callee.contract.axes.get(name, (name,))[0]
        if qualified in held:
            return held[qualified]
        argument = self.callee.contract.owners.get(name, "")
        return geometry.missing(name, argument, arguments.get(argument, UNKNOWN), self.nodes.get(argument), self.arrival)

    def origin(self, name: str) -> str:
        """Return the expression that a name's value comes from, in the words of the call where it has them; empty for none."""
        origin = self.callee.contract.origins.get(name, "")
        argument = self.callee.contract.owners.get(name, "")
        node = self.nodes.get(argument)
        if node is None or not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return ast.unparse(node) if node is not None and origin == argument else origin
        return ast.unparse(node) + origin.removeprefix(argument) if origin.startswith(argument) else origin

    def shown(self, values: Mapping[str, Value]) -> dict[str, tuple[Any, str]]:
        """Return values with their origins for a report: of an unknown one, what is known of it stands for the origin."""
        return {
            name: (value, self.origin(name))
            if _is_known(value)
            else (UNKNOWN, self.origin(name) if isinstance(value, Opaque) else describe(value))
            for name, value in values.items()
        }


@lru_cache(maxsize=4096)  # the cases of a test ask the same over and over
def _formula_of(relation: Relation, named: tuple[tuple[str, type, Value], ...]) -> Formula | None:
    """State a relation of these values; their types tell apart those that Python takes for equal."""
    return formula_of(Machine(Program((), Path())), relation, {name: value for name, _, value in named})


def certain(held: Mapping[str, Value]) -> dict[str, Any]:
    """Return the names whose value is certain."""
    return {name: value for name, value in held.items() if _is_known(value)}


def _is_known(value: Value) -> bool:
    return all(map(_is_known, value)) if isinstance(value, tuple) else is_constant(value)


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


def plain(value: Value) -> Any:
    """Return a value for a report: a constant as it is, anything else in words."""
    return value if _is_known(value) else describe(value)
