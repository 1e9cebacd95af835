"""What a code means: the words of its rule, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from codemods.codes import OWN_CODES, code_of, no_rule, severity
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS, FRONT_DOORS
from shapecheck.rule import Cast, Fix, Resize, Rule

_WIDTH = 88
_FIX = "Fix: "


class Explanation(NamedTuple):
    """All that there is to say about a code; `demands` and `notes` are empty for codes without a rule."""

    code: str
    name: str
    message: str
    text: str
    demands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
    own = [Explanation(code, *each) for code, each in OWN_CODES.items()]
    return sorted([*own, *(_of_rule(uses) for uses in rules.values())])


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
    return "\n".join(_lines(explanation_of(code))) + "\n"


def explain_all() -> str:
    """Return one line for each code."""
    known = explanations()
    width = max(len(each.name) for each in known)
    return "".join(f"{each.code}  {each.name:<{width}}  {each.message}\n" for each in known)


def _of_rule(uses: list[tuple[Contract, Rule]]) -> Explanation:
    _, rule = uses[0]
    demands = tuple(dict.fromkeys(line for contract, each in uses for line in _demands(contract, each)))
    return Explanation(rule.code, rule.name, rule.message, rule.explanation, demands, tuple(_notes(rule)))


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
    if rule.needs_chip:
        yield "Judged only where a chip is declared: `--chip v5p`, or `chips` in `[tool.shapecheck]`."
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


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.code} {explanation.name}"
    yield from ("", *_wrapped(explanation.message), "")
    if explanation.demands:
        yield from ("What must hold:", *(f"    {demand}" for demand in explanation.demands), "")
    yield from _wrapped(explanation.text)
    for note in explanation.notes:
        yield from ("", *_wrapped(note))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
