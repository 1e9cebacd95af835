"""From what people have in hand, an error text, a traceback or a log, to the rule that is broken, and what would be legal."""

from __future__ import annotations

from codemods.diagnose import arguments, hang, own, symptoms
from codemods.diagnose.backend import Remark, remarked
from codemods.diagnose.diagnosis import Diagnosis, Unplaced
from codemods.diagnose.pasted import Pasted, decoded

__all__ = ["Diagnosis", "Remark", "Unplaced", "decoded", "diagnose", "remarked"]


def diagnose(text: str) -> tuple[list[Diagnosis], list[Unplaced]]:
    """Return the broken rules that a text tells of, each once, in its order; and what it may tell of, but does not show."""
    pasted = Pasted(text)
    found, unplaced = symptoms.diagnosed(pasted)
    found.extend(arguments.diagnosed(pasted))
    found.extend(own.diagnosed(pasted))
    if not found:  # what ends in an error does not hang
        found.extend(hang.diagnosed(pasted))
    return _once(found), unplaced


def _once(found: list[Diagnosis]) -> list[Diagnosis]:
    """Return one diagnosis of those that say the same, or less: a summary repeats an error without its numbers."""
    by_rule: dict[tuple[str, str, str], list[Diagnosis]] = {}
    for each in found:
        kept = by_rule.setdefault((each.rule.code, each.rule.name, each.contract.name), [])
        if not any(_says(other, each) for other in kept):
            kept[:] = [*(other for other in kept if not _says(each, other)), each]
    return sorted((each for kept in by_rule.values() for each in kept), key=lambda each: each.line)


def _says(one: Diagnosis, other: Diagnosis) -> bool:
    """Say whether one diagnosis of a rule says all that another does."""
    return all(name in one.read and one.read[name] == value for name, value in other.read.items()) and (
        other.place is None or one.place is not None
    )
