"""The line of counts that ends a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from codemods.findings import CallSite, Report


class Counts(NamedTuple):
    """How many call sites are legal for sure, illegal, and neither; and those of which no rule was judged."""

    proven: int = 0
    violated: int = 0
    unproven: int = 0
    unjudged: int = 0

    @classmethod
    def of(cls, call_sites: Iterable[CallSite]) -> Counts:
        """Count each call site by the worst verdict of its rules."""
        verdicts = [set(site.verdicts.values()) for site in call_sites]
        violated = sum("violated" in each for each in verdicts)
        proven = sum(each == {"proven"} for each in verdicts)
        unjudged = sum(not each for each in verdicts)
        return cls(proven, violated, len(verdicts) - proven - violated - unjudged, unjudged)


def closing_line(
    counts: Counts,
    *,
    files: int,
    errors: int = 0,
    suppressed: int = 0,
    baselined: int = 0,
    fixed: int = 0,
    selected: bool = False,
) -> str:
    """Return e.g. `3 call sites: 1 proven, 1 violated, 1 unproven; 120 files`; `selected`: not all rules have a say in it."""
    verdicts = [f"{counts.proven} proven", f"{counts.violated} violated", f"{counts.unproven} unproven"]
    verdicts += [f"{counts.unjudged} not judged"] if counts.unjudged else []
    sites = f"{number(sum(counts), 'call site')}{' by the selected rules alone' if selected else ''}"
    parts = [f"{sites}: {', '.join(verdicts)}", number(files, "file")]
    parts += [number(errors, "error")] if errors else []
    parts += [f"{number(suppressed, 'finding')} suppressed"] if suppressed else []
    parts += [f"{number(baselined, 'finding')} in the baseline"] if baselined else []
    parts += [f"{fixed} fixed"] if fixed else []
    return "; ".join(parts)


def closing_line_of(report: Report) -> str:
    """Return the closing line of a report."""
    return closing_line(
        Counts.of(report.call_sites),
        files=report.files,
        errors=len(report.errors),
        suppressed=report.suppressed,
        baselined=report.baselined,
        fixed=report.fixed,
        selected=report.selected,
    )


def number(count: int, noun: str) -> str:
    """Return e.g. `1 file`, `2 files`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
