"""What is found in a text: the rule that is broken, with the numbers that the text gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from codemods.diagnose.pasted import Frame
from shapecheck.chip import CHIPS, FIRST_GENERATION
from shapecheck.contract import ON_TPU, Contract
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.rule import Fix, Rule, Verdict


@dataclass(frozen=True)
class Diagnosis:
    """A rule that a text says is broken.

    Attributes:
        rule: the rule.
        contract: whose it is.
        line: where the text says so, from 1.
        text: the words, on one line.
        read: the values that the text gives, by the names of the contract.
        used: of a memory that is full, the bytes that were wanted, and
        limit: those that there are.
        certain: whether it can be nothing else.
        place: where in the user's own code the call is, as far as the text shows it.
        argument: the argument at fault.
    """

    rule: Rule
    contract: Contract
    line: int
    text: str
    read: Mapping[str, Any] = field(default_factory=dict[str, Any])
    used: int | None = None
    limit: int | None = None
    certain: bool = True
    place: Frame | None = None
    argument: str = ""

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values of every name, for a call of which only this is known."""
        return geometry(self.contract, self.read)

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The values to show: those that the relation speaks of, or else all that were read."""
        known = {name: value for name in self.rule.names if (value := self.values.get(name, UNKNOWN)) is not UNKNOWN}
        stated = {name: value for name, value in known.items() if name in self.read or self._is_read(name)}
        return stated or dict(self.read)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What would be legal, in words; of several chips that it may be, each that has something else to say."""
        if not self.rule.needs_chip or "chip_generation" in self.values or self.limit is None:
            # What else holds on a TPU speaks of sizes that are not known here: it says nothing about the rule at hand.
            values = self.values if self.rule.on_tpu else {**self.values, ON_TPU: False}
            return tuple(filter(None, (self.contract.advice(self.rule, values), self._conditional(values))))
        said: dict[str, list[str]] = {}
        for chip in CHIPS:
            if chip.generation >= FIRST_GENERATION and self.limit in chip.facts.values():
                words = self.contract.advice(self.rule, {**self.values, **chip.facts})
                said.setdefault(words, []).append(chip.name)
        if len(said) == 1:
            return tuple(filter(None, said))
        return tuple(f"on {', '.join(chips)}: {words}" for words, chips in said.items() if words)

    @cached_property
    def also(self) -> tuple[Rule, ...]:
        """The other rules that the numbers of the text alone break."""
        return tuple(
            rule
            for rule in self.contract.applicable(self.values)
            if rule.code != self.rule.code
            and not rule.is_hint
            and all(name in self.read or self._is_read(name) or name.removesuffix("_type") in self.read for name in rule.names)
            and rule.judge(self.values) is Verdict.VIOLATED
        )

    def _is_read(self, name: str) -> bool:
        """Say whether the size of an axis was read, of the array that has it first."""
        return any(each in self.read for each in self.contract.axes.get(name, ())[:1])

    def _conditional(self, values: Values) -> str:
        """Say which values the fix would offer if more were known, and what must hold then."""
        fix = self.rule.fix
        if not isinstance(fix, Fix):
            return ""
        legal: list[str] = []
        conditions: list[str] = []
        for choice in fix.choices(values):
            changed = self.contract.complete({**values, fix.parameter: choice})
            speaking = [rule for rule in self.contract.applicable(changed) if fix.parameter in rule.names and not rule.is_hint]
            verdicts = [rule.judge(changed) for rule in speaking]
            if Verdict.VIOLATED not in verdicts:
                told = [rule.message for rule, each in zip(speaking, verdicts, strict=True) if each is Verdict.UNPROVEN]
                legal.append(str(choice) + (f" ({', '.join(told)})" if told else ""))
                conditions += told
        return f"legal {fix.noun}: {', '.join(legal)}" if conditions else ""


class Unplaced(NamedTuple):
    """Words that a broken rule is told by, of which nothing shows that they are about one of the kernels."""

    line: int
    text: str
    reason: str


def geometry(contract: Contract, read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of every name that follow from some, without any defaults; a shape gives the sizes of its axes."""
    stated = {name: value for name, value in read.items() if name in contract.origins or name in contract.aliases}
    for array in contract.arrays:
        shape = stated.get(f"{array.name}_shape")
        if isinstance(shape, tuple):
            stated |= {name: value for name, value in array.sizes(shape).items() if name not in stated}
    unread = [name for each in contract.parameters for name in (each.name, f"{each.name}_type") if name not in stated]
    unread += [f"{each.name}_rank" for each in contract.arrays if f"{each.name}_rank" not in stated]
    return contract.complete({**contract.geometry(**stated), **dict.fromkeys(unread, UNKNOWN)})
