"""How many findings there are of each code."""

from __future__ import annotations

from collections import Counter

from codemods.check import Run
from codemods.codes import OWN_CODES
from codemods.report.counts import closing_line_of


def render(run: Run) -> str:
    """Return a line for each code, the most frequent first, and the line of counts."""
    report = run.report
    totals = Counter((finding.code, finding.name, str(finding.verdict)) for finding in report.findings)
    totals.update((error.code, OWN_CODES[error.code].name, "error") for error in report.errors)
    width = len(str(max(totals.values(), default=0)))
    rows = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{count:>{width}}  {code}  {name} ({verdict})" for (code, name, verdict), count in rows]
    lines.append(closing_line_of(report))
    return "".join(f"{line}\n" for line in lines)
