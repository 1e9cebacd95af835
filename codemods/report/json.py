"""The format for programs.

Its keys are stable, and all are always there but `cell`, which a notebook has, and `notes`, which a run of `fix --adopt` has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codemods.check import Run
from codemods.codes import severity
from codemods.findings import CallSite, Contexts, Finding, ProposedFix, Report
from codemods.report.counts import Counts
from codemods.report.wording import plain, sentence
from codemods.source import Span

_VERSION = 1


def render(run: Run) -> str:
    """Return one JSON object."""
    report = run.report
    document = {
        "version": _VERSION,
        "findings": [_finding(finding) for finding in report.findings],
        "call_sites": [_call_site(site) for site in report.call_sites],
        "errors": [
            {"code": error.code, "path": error.path, **_cell(error.cell), "line": error.line, "message": error.message}
            for error in report.errors
        ],
        **({"notes": [vars(note) for note in report.notes]} if report.notes else {}),
        "summary": _summary(report),
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    span = finding.span.shown
    return {
        "code": finding.code,
        "name": finding.name,
        "verdict": finding.verdict,
        "severity": severity(finding.code),
        "path": finding.path,
        **_place(span),
        "end_line": span.end_line,
        "end_column": span.end_column,
        "call_line": finding.call.shown.line,
        "callee": finding.callee,
        "message": sentence(finding),
        "relation": finding.relation,
        "values": {name: {"value": plain(value.value), "origin": value.origin} for name, value in finding.values.items()},
        "counterexample": _plain_values(finding.counterexample),
        "contexts": _contexts(finding.contexts),
        "fix": _fix(finding.fix),
    }


def _place(span: Span) -> dict[str, int]:
    return {**_cell(span.cell.number if span.cell else None), "line": span.line, "column": span.column}


def _cell(number: int | None) -> dict[str, int]:
    return {} if number is None else {"cell": number}


def _plain_values(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {name: plain(value) for name, value in values.items()}


def _contexts(contexts: Contexts | None) -> dict[str, Any] | None:
    if contexts is None:
        return None
    return {"violating": contexts.violating, "total": contexts.total, "example": _plain_values(contexts.example)}


def _fix(fix: ProposedFix | None) -> dict[str, str] | None:
    return None if fix is None else {"applicability": fix.applicability, "message": fix.message}


def _call_site(site: CallSite) -> dict[str, Any]:
    return {
        "path": site.path,
        **_place(site.span.shown),
        "callee": site.callee,
        "contract": site.contract,
        "verdicts": dict(site.verdicts),
    }


def _summary(report: Report) -> dict[str, int]:
    counts = Counts.of(report.call_sites)
    return {
        "files": report.files,
        "parsed": report.parsed,
        "call_sites": sum(counts),
        "proven": counts.proven,
        "violated": counts.violated,
        "unproven": counts.unproven,
        "suppressed": report.suppressed,
        "baselined": report.baselined,
        "fixed": report.fixed,
    }
