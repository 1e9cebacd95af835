"""A rule: a relation with its code, its words, and what makes a failing call legal."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shapecheck.chip import CHIP_FACTS
from shapecheck.outcome import Outcome, Values
from shapecheck.relation import Relation
from shapecheck.symptom import Symptom


class Verdict(enum.StrEnum):
    """What is known of a rule at one call."""

    PROVEN = "proven"
    VIOLATED = "violated"
    UNPROVEN = "unproven"

    @classmethod
    def of(cls, outcome: Outcome) -> Verdict:
        return {True: cls.PROVEN, False: cls.VIOLATED}.get(outcome, cls.UNPROVEN)  # type: ignore[arg-type]

    @classmethod
    def worst(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Return what several verdicts come to: one violation is enough, a proof needs them all."""
        return max(verdicts, key=[cls.PROVEN, cls.UNPROVEN, cls.VIOLATED].index, default=cls.PROVEN)


class Applicability(enum.StrEnum):
    """How far a fix can be trusted.

    `safe`: a legal call keeps its meaning, an illegal one becomes legal. `unsafe`: the meaning or the cost may
    change, so the user must look. `display`: advice, never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True)
class Computed:
    """A function of `shapecheck` that returns a legal value where the sizes are only known at run time.

    Attributes:
        function: its name.
        sizes: the names whose values it takes, in order.
        limit: the keyword by which it takes the present value, which the result does not exceed; empty where it has none.
        imports_jax: whether it asks JAX for the device.
        note: what to know before one writes it.
    """

    function: str
    sizes: tuple[str, ...]
    limit: str = ""
    imports_jax: bool = False
    note: str = ""


@dataclass(frozen=True)
class Fix:
    """Other values for one parameter that may make a failing call legal.

    Attributes:
        parameter: the parameter to change.
        noun: what its values are called in a message, e.g. `"blocks"`.
        choices: the values to consider for a geometry, best first.
        evident: says whether a value is what is meant where another one stands: a typo can be corrected, a word cannot.
        computed: what to write where the sizes are only known at run time.
        at_least: what a quotient that may come to less is raised to.
    """

    parameter: str
    noun: str
    choices: Callable[[Values], Iterable[Any]]
    evident: Callable[[Any, Any], bool] = lambda present, value: True
    computed: Computed | None = None
    at_least: int | None = None


@dataclass(frozen=True)
class Cast:
    """Another dtype for one array argument, which makes a failing call legal."""

    argument: str
    dtype: str


@dataclass(frozen=True)
class Resize:
    """Other sizes for one axis that may make a failing call legal.

    Attributes:
        axis: the axis, in every array that has it.
        choices: the sizes to consider for a geometry, best first.
    """

    axis: str
    choices: Callable[[Values], Iterable[int]]


class Example(NamedTuple):
    """A call that breaks one rule, and the call repaired, as edits to the sample of a contract.

    `explain`, the pages of the documentation and the tests are made of it.

    Attributes:
        failing: by pieces of the sample, what stands in their place in the call that fails.
        repaired: what stands there in the repaired call: what `shapecheck fix` makes of the other, if it can; empty where that is
            the sample itself.
        chip: the chip that the failing call runs on, where that matters.
        moved_to: the chip that the repaired call runs on, where that is another.
    """

    failing: Mapping[str, str]
    repaired: Mapping[str, str] = {}
    chip: str = ""
    moved_to: str = ""

    def programs(self, sample: str) -> tuple[str, str]:
        """Return the failing and the repaired program.

        Raises:
            ValueError: the sample does not have what is to be replaced.
        """
        return _edited(sample, self.failing), _edited(sample, self.repaired)


def _edited(sample: str, edits: Mapping[str, str]) -> str:
    for old, new in edits.items():
        if old not in sample:
            raise ValueError(f"{old!r} is not in the sample")
        sample = sample.replace(old, new)
    return sample


def no_advice(values: Values) -> str | None:
    """Say nothing: the advice of a rule that has none."""


def constantly(advice: str) -> Callable[[Values], str]:
    """Return the advice that is the same whatever the values are."""
    return lambda values: advice


@dataclass(frozen=True)
class Rule:
    """One demand of a contract.

    Attributes:
        code: the stable code, e.g. `"SC102"`.
        name: the stable name, e.g. `"block-not-dividing"`.
        relation: what must hold.
        message: the demand in words, one line without a full stop.
        explanation: what goes wrong and what upstream says today; Markdown.
        argument: the parameter a finding points at when the call spells it out.
        fix: what makes a failing call legal, where one argument decides.
        advice: what else would be legal, given the values that are known; None where nothing can be said.
        enough: what is enough, where that is more than what must hold: between the two, the rule is unproven.
        on_tpu: whether it speaks of the TPU, so that it says nothing of a call that runs elsewhere, or in an interpreter.
        silent: whether a call that breaks it may compile all the same, and goes wrong, or hangs, when it runs.
        chips: the names of the chips that it speaks of; empty for all of them.
        per_device: whether it speaks of what one device gets, as those about the TPU do, so that it says nothing of a call
            that is split over several.
        symptoms: what others write where a call breaks it, by which `explain` knows it.
        example: a call that breaks it, and the call repaired; every rule of a known kernel has one.
    """

    code: str
    name: str
    relation: Relation
    message: str
    explanation: str
    argument: str
    fix: Fix | Cast | Resize | None = None
    advice: Callable[[Values], str | None] = no_advice
    enough: Relation | None = None
    on_tpu: bool = False
    silent: bool = False
    chips: tuple[str, ...] = ()
    per_device: bool = False
    symptoms: tuple[Symptom, ...] = ()
    example: Example | None = None

    def __hash__(self) -> int:  # rules are keys, and seldom share so much
        return hash((self.code, self.name, self.message))

    @property
    def is_hint(self) -> bool:
        """Whether a call that breaks it may be meant as it is."""
        return self.code.startswith("SC5")

    @property
    def needs_chip(self) -> bool:
        """Whether it takes a chip to judge it."""
        return bool(self.chips) or not CHIP_FACTS.isdisjoint(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names whose values it takes to judge it."""
        return self.relation.names if self.enough is None else tuple(dict.fromkeys(self.relation.names + self.enough.names))

    def judge(self, values: Values) -> Verdict:
        """Return the verdict on a geometry; what `values` lacks is unknown."""
        verdict = Verdict.of(self.relation.evaluate(values))
        if verdict is Verdict.PROVEN and self.enough is not None and self.enough.evaluate(values) is not True:
            return Verdict.UNPROVEN
        return verdict
