"""shapecheck reads the sources as they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from . import ROOT, Answers, Place, questions, run, write


def answers(sources: Mapping[str, str], scratch: Path) -> Answers:
    """Run shapecheck: the findings that are violated are errors, a rule holds at a call if all its verdicts there are proven."""
    write(sources, scratch)
    command = [sys.executable, "-P", "-m", "codemods", "check", "--no-cache", "--output-format", "json", "."]
    report, _, seconds = run(command, scratch, PYTHONPATH=str(ROOT))
    asked = {question.place for file, text in sources.items() for question in questions(file, text)}
    errors: dict[Place, set[str]] = {}
    for finding in report["findings"]:
        if finding["verdict"] == "violated":
            errors.setdefault(Place(finding["path"], finding["call_line"]), set()).add(finding["code"])
    verdicts: dict[tuple[Place, str], set[str]] = {}
    for site in report["call_sites"]:
        for code, verdict in site["verdicts"].items():
            verdicts.setdefault((Place(site["path"], site["line"]), code), set()).add(verdict)
    held = {key for key, values in verdicts.items() if values == {"proven"}}
    elsewhere = sum(len(codes) for place, codes in errors.items() if place not in asked)
    return Answers(errors, held, {place for place, _ in verdicts}, elsewhere, seconds)
