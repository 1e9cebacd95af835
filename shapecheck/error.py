"""The error of a call that breaks its contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import TypeCheckError

from shapecheck.contract import Contract
from shapecheck.observe import Observation, mesh_axes_inside, sharding_note
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.paths import Key, spelled
from shapecheck.rule import Rule, Verdict, no_advice

_LONGEST_RELATION = 100  # characters; a longer one is told in words


@dataclass(frozen=True)
class Violation:
    """One rule that a call breaks.

    Attributes:
        rule: the rule; of a violation that was pickled, without its functions (`fix` and `advice`).
        values: what the relation's names stand for, those that make it fail.
        advice: what would be legal instead; empty where nothing can be said.
        undefined: why the relation has no value for these; empty where it has one, and fails.
        key: the indices and keys of the elements whose values these are, where arguments hold several arrays under one name.
        others: how many other elements break the rule.
        places: where the elements of arrays stand whose numbers these are, by name.
    """

    rule: Rule
    values: Mapping[str, Any]
    advice: str
    undefined: str = ""
    key: Key = ()
    others: int = 0
    places: Mapping[str, str] = field(default_factory=dict[str, str])

    def __reduce__(self) -> tuple[type[Violation], tuple[Any, ...]]:
        plain = replace(self.rule, fix=None, advice=no_advice, symptoms=())
        return Violation, (plain, self.values, self.advice, self.undefined, self.key, self.others, self.places)


class ContractError(TypeCheckError, ValueError):
    """A call that its contract forbids, raised before the callee runs.

    A `jaxtyping.TypeCheckError`, for that is what it is, and a `ValueError`, which is what JAX's kernels raise.

    Attributes:
        callee: the name of the function that was called.
        violations: every rule that the call breaks; empty where an argument is refused by its annotation.
    """

    def __init__(self, message: str, callee: str, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(message)
        self.callee = callee
        self.violations = violations

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.callee, self.violations), vars(self)


def violations_of(contract: Contract, values: Values) -> tuple[Violation, ...]:
    """Return every rule of `contract` that is violated, hints aside, with the values at fault.

    A relation that has no value for a call, as it divides by 0, does not hold. Where others are violated, it is these that tell
    why, as that of a block that must be positive does.
    """
    violated = tuple(
        Violation(rule, _at_fault(rule, values), contract.advice(rule, values))
        for rule in contract.applicable(values)
        if not rule.is_hint and rule.judge(values) is Verdict.VIOLATED
    )
    return violated or tuple(
        Violation(rule, {name: values[name] for name in rule.relation.names}, "", undefined)
        for rule in contract.applicable(values)
        if (undefined := rule.relation.undefined(values))
    )


def violations_in(contract: Contract, observations: Iterable[Observation]) -> tuple[Violation, ...]:
    """Return every rule that is violated by an observation, with the values of the first that does."""
    found: dict[int, Violation] = {}
    for each in observations:
        for violation in violations_of(contract, each.values):
            first = found.setdefault(id(violation.rule), replace(violation, key=each.key, others=-1))
            found[id(violation.rule)] = replace(first, others=first.others + each.elements)
    return tuple(found.values())


def _at_fault(rule: Rule, values: Values) -> dict[str, Any]:
    return {name: values[name] for name in rule.relation.at_fault(values) if values.get(name, UNKNOWN) is not UNKNOWN}


def contract_error(contract: Contract, violations: tuple[Violation, ...], notes: Iterable[str] | None = None) -> ContractError:
    """Return the error that tells each violation, its values and where they come from, and what would be legal.

    Args:
        notes: what it says at its beginning; None: whose sizes these are, if here they are those of a shard.
    """
    count = "1 relation does" if len(violations) == 1 else f"{len(violations)} relations do"
    lines = [f"{contract.name}: {count} not hold", *(f"  {note}" for note in (sharding_note() if notes is None else notes))]
    for violation in violations:
        lines.append(f"  {_headline(violation)}")
        lines += (f"        {_assignment(name, value, contract, violation)}" for name, value in violation.values.items())
        others = f"and so in {violation.others} more" if violation.others else ""
        lines += (f"        {each}" for each in (others, violation.undefined, violation.advice) if each)
    return ContractError("\n".join(lines), contract.name, violations)


def _headline(violation: Violation) -> str:
    rule = violation.rule
    if rule.name == rule.relation.text:
        return f"{rule.code} {rule.name}"
    broken = " and ".join(part.text for part in rule.relation.broken(violation.values)) or rule.relation.text
    return f"{rule.code} {rule.name}: {broken if len(broken) <= _LONGEST_RELATION else rule.message}"


def _assignment(name: str, value: Any, contract: Contract, violation: Violation) -> str:
    origin = violation.places.get(name) or spelled(contract.origins[name], violation.key)
    return f"{name} = {value!r}" + (f"   ({origin}{_whole(origin, value)})" if origin != name else "")


def _whole(origin: str, value: Any) -> str:
    """Say, inside `shard_map`, how large the axis is that has this size on one shard; which mesh axis splits it is not known."""
    if ".shape[" not in origin or not (axes := mesh_axes_inside()):
        return ""
    wholes = [f"{value * size!r} if split over mesh axis {axis!r} of size {size}" for axis, size in axes.items() if size > 1]
    return " of one shard" + "".join(f"; {whole}" for whole in wholes)
