"""The line of counts that ends a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from codemods.findings import CallSite


class Counts(NamedTuple):
    """How many call sites are legal for sure, illegal, and neither."""

    proven: int = 0
    violated: int = 0
    unproven: int = 0

    @classmethod
    def of(cls, call_sites: Iterable[CallSite]) -> Counts:
        """Count each call site by the worst verdict of its rules."""
        verdicts = [set(site.verdicts.values()) for site in call_sites]
        violated = sum("violated" in each for each in verdicts)
        proven = sum(each <= {"proven"} for each in verdicts)
        return cls(proven, violated, len(verdicts) - proven - violated)


def closing_line(counts: Counts, *, files: int, errors: int = 0, fixed: int = 0) -> str:
    """Return e.g. `3 call sites: 1 proven, 1 violated, 1 unproven; 120 files`."""
    verdicts = ", ".join(f"{count} {name}" for name, count in counts._asdict().items())
    parts = [f"{number(sum(counts), 'call site')}: {verdicts}", number(files, "file")]
    parts += [number(errors, "error")] if errors else []
    parts += [f"{fixed} fixed"] if fixed else []
    return "; ".join(parts)


def number(count: int, noun: str) -> str:
    """Return e.g. `1 file`, `2 files`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
