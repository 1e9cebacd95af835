"""What a code means: the words of its rule, for a terminal."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from codemods.codes import OWN_CODES, code_of, no_rule, severity
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS, FRONT_DOORS
from shapecheck.rule import Cast, Fix, Resize, Rule

_WIDTH = 88
_FIX = "Fix: "

COMPILER = "what libtpu 0.0.42 with JAX 0.10.2, and 0.0.50 with JAX 0.12.0, say of calls for v4 to v7x: `tests/compiler`"
"""What the rules about the TPU were read off."""


class Case(NamedTuple):
    """A program that breaks a rule, and the program repaired.

    Attributes:
        kernel: what is called; empty for a program that is about something else.
        failing: its source.
        repaired: what becomes of it.
        chip: the chip that it is for, where that matters.
        moved_to: the chip that the repaired one is for.
        in_source: whether `check` can tell; what only a run knows, such as a mesh, is told at call time.
    """

    kernel: str
    failing: str
    repaired: str
    chip: str = ""
    moved_to: str = ""
    in_source: bool = True


class Explanation(NamedTuple):
    """All that there is to say about a code, most of which is empty for codes without a rule.

    Attributes:
        code: the code.
        name: its name.
        message: what it demands, on one line.
        text: what goes wrong, and what is said of it today, in the words of the first contract that has the rule.
        demands: the relations, and what the names in them stand for.
        notes: what there is to know for those who have such a finding.
        others: what other contracts say, by the name of the kernel.
        cases: examples, each of another kind.
        hardware: where it holds.
        sources: what it was read off.
        related: the codes that have to do with it.
    """

    code: str
    name: str
    message: str
    text: str
    demands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    cases: tuple[Case, ...] = ()
    hardware: str = ""
    sources: tuple[str, ...] = ()
    related: tuple[str, ...] = ()

    @property
    def repairs(self) -> tuple[str, ...]:
        """The notes that say what `shapecheck fix` does."""
        return tuple(note for note in self.notes if note.startswith(_FIX))


def explanations() -> list[Explanation]:
    """Return the explanation of every code, in order; a code of several contracts has the words of the first."""
    rules: dict[str, list[tuple[Contract, Rule]]] = {}
    for contract in (*CONTRACTS.values(), *FRONT_DOORS):
        for rule in contract.rules:
            rules.setdefault(rule.code, []).append((contract, rule))
    return sorted([*map(_of_own, OWN_CODES), *(_of_rule(uses) for uses in rules.values())])


def case_of(contract: Contract, rule: Rule) -> Case | None:
    """Return the example of a rule, as a call of what the contract is for; None where there is none."""
    if (example := rule.example) is None:
        return None
    only_run = {f"{each.name}_size" for each in contract.parameters if each.names_axis}.union(
        each.name for each in contract.others if each.read_off is None
    )
    failing, repaired = example.programs(contract.sample)
    in_source = only_run.isdisjoint(rule.names)
    return Case(contract.name, failing, repaired, example.chip, example.moved_to or example.chip, in_source)


def explanation_of(code: str) -> Explanation:
    """Return the explanation of a code, or of the rule of that name.

    Raises:
        KeyError: there is none; the message gives the nearest.
    """
    if (found := code_of(code)) is None:
        raise KeyError(no_rule(code))
    return next(each for each in explanations() if each.code == found)


def explain(code: str) -> str:
    """Return all that there is to say about a code, or the rule of that name; raises as `explanation_of` does."""
    return as_text(explanation_of(code))


def explain_all() -> str:
    """Return one line for each code."""
    known = explanations()
    width = max(len(each.name) for each in known)
    return "".join(f"{each.code}  {each.name:<{width}}  {each.message}\n" for each in known)


def _of_own(code: str) -> Explanation:
    own = OWN_CODES[code]
    cases = () if own.example is None else (Case("", *own.example),)
    return Explanation(code, own.name, own.message, own.explanation, cases=cases, related=_named(own.explanation, code))


def _of_rule(uses: list[tuple[Contract, Rule]]) -> Explanation:
    first, rule = uses[0]
    said: dict[str, Contract] = {}
    shown: dict[str, tuple[Contract, Rule]] = {}
    for contract, each in uses:
        said.setdefault(each.explanation, contract)
        shown.setdefault(str(each.example), (contract, each))
    same = (each.code for each in first.rules if each.argument == rule.argument)
    return Explanation(
        rule.code,
        rule.name,
        rule.message,
        rule.explanation,
        demands=tuple(dict.fromkeys(line for contract, each in uses for line in _demands(contract, each))),
        notes=tuple(_notes(rule)),
        others=tuple((contract.name, text) for text, contract in said.items() if contract is not first),
        cases=tuple(case for use in shown.values() if (case := case_of(*use)) is not None),
        hardware=" ".join(_hardware(rule)),
        sources=tuple(_sources(rule, said.values())),
        related=tuple(sorted({*_named(rule.explanation, rule.code), *same} - {rule.code})),
    )


def _named(text: str, code: str) -> tuple[str, ...]:
    """Return the other codes that a text names."""
    return tuple(sorted({*re.findall(r"SC\d{3}", text)} - {code}))


def _sources(rule: Rule, contracts: Iterable[Contract]) -> Iterator[str]:
    yield from (contract.sources for contract in contracts)
    if rule.on_tpu:
        yield COMPILER
    if rule.needs_chip:
        yield "facts of chips: `docs/chips.md`"


def _hardware(rule: Rule) -> Iterator[str]:
    """Say where a rule holds."""
    if not rule.on_tpu and not rule.needs_chip:
        yield "any, as it holds wherever the call runs."
    if rule.on_tpu:
        yield "TPUs; it says nothing of a call that runs elsewhere, or in an interpreter."
    if rule.chips:
        yield f"Only {', '.join(rule.chips)}."
    if rule.needs_chip:
        yield "Judged only where a chip is declared: `--chip v5p`, or `chips` in `[tool.shapecheck]`."
    if rule.on_tpu or rule.per_device:
        yield "Sizes are those that one device gets."


def _demands(contract: Contract, rule: Rule) -> Iterator[str]:
    """Yield what a contract demands, what is enough where that is more, and what the names in it stand for."""
    yield f"{contract.name}: {rule.relation.text}"
    if rule.enough is not None:
        yield f"    which is certain if: {rule.enough.text}"
    relations = [rule.relation] if rule.enough is None else [rule.relation, rule.enough]
    used = dict(item for relation in relations for item in relation.used.items())
    yield from (f"    {name} = {text}" for name, text in used.items())


def _notes(rule: Rule) -> Iterator[str]:
    if severity(rule.code) == "hint":
        yield f"A hint: off unless selected, with `--select {rule.code}`."
    if rule.silent and not rule.is_hint:
        yield "The compiler does not see it: such a call may compile, and go wrong, or hang, when it runs."
    if rule.fix is not None:
        yield f"{_FIX}{' '.join(_repairs(rule.fix))}"
    yield f"Suppress: `# shapecheck: ignore[{rule.code}]` on the line of the call or of the argument."


def _repairs(fix: Fix | Cast | Resize) -> Iterator[str]:
    """Say what `shapecheck fix` does about it."""
    match fix:
        case Cast(argument, dtype):
            yield f"`shapecheck fix` casts `{argument}` to {dtype}; from a dtype that is no integer, only with `--unsafe-fixes`."
        case Resize(axis):
            yield f"with `--unsafe-fixes`, the nearest `{axis}` that is legal, where the shapes of the arrays write it down."
        case Fix():
            yield (
                f"`shapecheck fix` gives `{fix.parameter}` the best of the {fix.noun} that are legal: where the value is written "
                "down, if all that it serves stays legal, else at the call."
            )
            if fix.at_least is not None:
                yield f"With `--unsafe-fixes`, `a // b` becomes `max({fix.at_least}, a // b)`."
            elif fix.computed is not None:
                clamps = ", also in place of a clamp such as `min(16, n)`" if fix.computed.limit else ""
                function = f"`shapecheck.{fix.computed.function}`"
                yield f"With `--unsafe-fixes`, {function} where the sizes are known at run time only{clamps}."


def as_text(explanation: Explanation) -> str:
    """Return an explanation for a terminal, or another place that knows no markup."""
    return "".join(f"{line}\n" for line in _lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.code} {explanation.name}"
    yield from ("", *_wrapped(explanation.message), "")
    if explanation.demands:
        yield from ("What must hold:", *(f"    {demand}" for demand in explanation.demands), "")
    yield from _wrapped(explanation.text)
    for kernel, text in explanation.others:
        yield from ("", *_wrapped(f"{kernel}: {text}"))
    for case in explanation.cases[:1]:
        yield from ("", *_example(case))
    if explanation.hardware:
        yield from ("", *_wrapped(f"Hardware: {explanation.hardware}"))
    for note in explanation.notes:
        yield from ("", *_wrapped(note))
    if explanation.sources:
        yield from ("", *_wrapped(f"Sources: {'; '.join(explanation.sources)}."))
    if explanation.related:
        yield from ("", *_wrapped(f"See also: {', '.join(explanation.related)}."))


def _example(case: Case) -> Iterator[str]:
    """Yield a failing program with the lines that repair it."""
    yield f"A call that breaks it{f', on a {case.chip}' if case.chip else ''}, and its repair:"
    if case.failing == case.repaired:
        yield from (f"      {line}".rstrip() for line in case.failing.splitlines())
        yield f"which is legal on a {case.moved_to}."
    compared = difflib.unified_diff(case.failing.splitlines(), case.repaired.splitlines(), n=1000, lineterm="")
    yield from (f"    {line[0]} {line[1:]}".rstrip() for line in islice(compared, 3, None))  # behind the names of the files


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
