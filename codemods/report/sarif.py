"""SARIF 2.1.0, which code scanning services read: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from codemods.check import Run
from codemods.codes import severity
from codemods.explain import Explanation, as_text, explanations
from codemods.files import NOTEBOOK
from codemods.findings import FileError, Finding, Note
from codemods.report.fingerprints import fingerprints
from codemods.report.wording import sentence
from codemods.source import Source, Span
from codemods.version import version
from shapecheck.rule import Verdict

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(run: Run) -> str:
    """Return one SARIF log with one run."""
    report = run.report
    rules = {each.code: each for each in explanations()}
    used = sorted({finding.code for finding in report.findings})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "shapecheck", "version": version(), "rules": [_rule(rules[code]) for code in used]}},
                "invocations": [
                    {
                        "executionSuccessful": not report.errors,
                        "toolExecutionNotifications": [
                            *(_notification(error, "error", {"id": error.code}) for error in report.errors),
                            *(_notification(note, "note", {"id": "note"}) for note in report.notes),
                        ],
                    }
                ],
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, run.sources, used.index(finding.code), fingerprint)
                    for finding, fingerprint in zip(report.findings, fingerprints(run), strict=True)
                ],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(explanation: Explanation) -> dict[str, Any]:
    return {
        "id": explanation.code,
        "name": explanation.name,
        "shortDescription": {"text": explanation.message},
        "fullDescription": {"text": explanation.text, "markdown": explanation.text},
        "help": {"text": as_text(explanation)},
        "defaultConfiguration": {"level": "note" if severity(explanation.code) == "hint" else "error"},
    }


def _result(finding: Finding, sources: Mapping[str, Source], index: int, fingerprint: str) -> dict[str, Any]:
    region = _region(sources[finding.path].in_file(finding.span))
    fix = _fix(finding, sources)
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _level(finding),
        "message": {"text": sentence(finding)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path)}, "region": region}}],
        "partialFingerprints": {"shapecheck/v1": fingerprint},
        **({"fixes": [fix]} if fix else {}),
    }


def _region(span: Span) -> dict[str, int]:
    return {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}


def _fix(finding: Finding, sources: Mapping[str, Source]) -> dict[str, Any] | None:
    """Return a repair; None where there is none, or where it is to a file that is not at hand, or to the code in a notebook."""
    if finding.fix is None or not finding.fix.edits:
        return None
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in finding.fix.edits:
        path = edit.path or finding.path
        source = sources.get(path)
        if source is None or path.endswith(NOTEBOOK):
            return None
        inserted = {"insertedContent": {"text": edit.replacement}} if edit.replacement else {}
        changes.setdefault(path, []).append({"deletedRegion": _region(source.between(edit.start, edit.end)), **inserted})
    return {
        "description": {"text": f"{finding.fix.message} ({finding.fix.applicability})"},
        "artifactChanges": [
            {"artifactLocation": {"uri": _uri(path)}, "replacements": replacements} for path, replacements in changes.items()
        ],
    }


def _notification(told: FileError | Note, level: str, descriptor: dict[str, str]) -> dict[str, Any]:
    location = {"artifactLocation": {"uri": _uri(told.path)}, "region": {"startLine": told.line}}
    return {
        "descriptor": descriptor,
        "level": level,
        "message": {"text": told.message},
        "locations": [{"physicalLocation": location}],
    }


def _level(finding: Finding) -> str:
    if severity(finding.code) == "hint":
        return "note"
    return "error" if finding.verdict is Verdict.VIOLATED else "warning"


def _uri(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")))
