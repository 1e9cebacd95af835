"""From what people have in hand, an error text, a traceback or a log, to the rule that is broken, and what would be legal."""

from __future__ import annotations

from codemods.diagnose import hang, own, symptoms
from codemods.diagnose.diagnosis import Diagnosis, Unplaced
from codemods.diagnose.pasted import Pasted, decoded

__all__ = ["Diagnosis", "Unplaced", "decoded", "diagnose"]


def diagnose(text: str) -> tuple[list[Diagnosis], list[Unplaced]]:
    """Return the broken rules that a text tells of, each once, in its order; and what it may tell of, but does not show."""
    pasted = Pasted(text)
    found, unplaced = symptoms.diagnosed(pasted)
    found.extend(own.diagnosed(pasted))
    if not found:  # what ends in an error does not hang
        found.extend(hang.diagnosed(pasted))
    found.sort(key=lambda each: each.line)
    return _once(found), unplaced


def _once(found: list[Diagnosis]) -> list[Diagnosis]:
    """Return one diagnosis of those that say the same, or less: a summary repeats an error without its numbers."""
    kept: list[Diagnosis] = []
    for each in found:
        if any(_says(other, each) for other in kept):
            continue
        kept = [other for other in kept if not _says(each, other)]
        kept.append(each)
    return kept


def _says(one: Diagnosis, other: Diagnosis) -> bool:
    """Say whether one diagnosis says all that another does."""
    return (
        one.rule.code == other.rule.code
        and one.contract.name == other.contract.name
        and other.read.items() <= one.read.items()
        and (other.place is None or one.place is not None)
    )
