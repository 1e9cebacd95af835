"""Source files whose calls carry markers of what the checker must say of them.

A marker ends the first line of a call: `#: SC102 violated`, `#: SC102 SC201 violated`, `#: SC102 unproven`,
`#: proven SC101 SC102`, `#: quiet` (no violation), `#: not-a-site`. A call without a marker must not be violated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codemods.analyse import analyse
from codemods.findings import CallSite
from codemods.source import Source
from shapecheck.chip import Chip
from shapecheck.rule import Verdict

_MARK = re.compile(r"#:\s*(.+?)\s*$")


def source_of(path: Path) -> Source:
    return Source(str(path), path.read_bytes())


def complaints(source: Source, root: Path, chips: tuple[Chip, ...] = ()) -> list[str]:
    """Return a line for each call of a file of which the checker says something else than its marker."""
    sites, findings = analyse([source], root=root, chips=chips)
    violated: dict[int, set[str]] = {}
    for finding in findings:
        if finding.verdict is Verdict.VIOLATED:
            violated.setdefault(finding.call.line, set()).add(finding.code)
    text = source.text.decode().splitlines()
    marks = {number: mark.group(1) for number, line in enumerate(text, 1) if (mark := _MARK.search(line))}
    return list(_compared(marks, _verdicts(sites), violated))


def _verdicts(sites: Sequence[CallSite]) -> dict[int, dict[str, Verdict]]:
    verdicts: dict[int, dict[str, Verdict]] = {}
    for site in sites:
        held = verdicts.setdefault(site.span.line, {})
        for code, verdict in site.verdicts.items():
            held[code] = Verdict.worst([held.get(code, verdict), verdict])
    return verdicts


def _compared(
    marks: Mapping[int, str], verdicts: Mapping[int, Mapping[str, Verdict]], violated: Mapping[int, set[str]]
) -> Iterator[str]:
    for line in sorted({*marks, *violated}):
        *codes, last = marks.get(line, "quiet").split()
        got, held = violated.get(line, set()), verdicts.get(line)
        match last:
            case "violated":
                good = got == set(codes)
            case "unproven":
                good = not got and held is not None and all(held.get(code) == "unproven" for code in codes)
            case "quiet":
                good = not got
            case "not-a-site":
                good = held is None
            case _:  # "proven SC101 SC102"
                good = not got and held is not None and all(held.get(code) == "proven" for code in (*codes[1:], last))
        if not good:
            shown = {code: str(verdict) for code, verdict in (held or {}).items() if verdict != "proven"}
            yield f"line {line}: wanted {marks.get(line, 'quiet')!r}, got violated {sorted(got)}, not proven {shown}"
