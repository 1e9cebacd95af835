"""A report of GitLab's Code Quality: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from codemods.check import Run
from codemods.codes import OWN_CODES, severity
from codemods.findings import Finding
from codemods.report.fingerprints import fingerprints
from codemods.report.wording import in_cell, place, sentence
from shapecheck.rule import Verdict


def render(run: Run) -> str:
    """Return one JSON array, of the findings and of the files that cannot be checked; it has no place for notes."""
    issues: list[dict[str, Any]] = []
    for finding, fingerprint in zip(run.report.findings, fingerprints(run), strict=True):
        line = run.sources[finding.path].in_file(finding.span).line
        where = f"{place(finding.span)}: " if finding.span.cell else ""
        text = f"{where}{finding.name}: {sentence(finding)}"
        issues.append(_issue(finding.code, finding.path, line, text, _severity(finding), fingerprint))
    for error in run.report.errors:
        text = f"{in_cell(error.cell)}{OWN_CODES[error.code].name}: {error.message}"
        fingerprint = hashlib.sha256(f"{error.path}\0{error.message}".encode(errors="surrogateescape")).hexdigest()[:32]
        issues.append(_issue(error.code, error.path, 1 if error.cell else error.line, text, "blocker", fingerprint))
    return json.dumps(issues, indent=2) + "\n"


def _issue(code: str, path: str, line: int, text: str, level: str, fingerprint: str) -> dict[str, Any]:
    return {
        "description": f"{code} {text}",
        "check_name": code,
        "fingerprint": fingerprint,
        "severity": level,
        "location": {"path": path.replace(os.sep, "/"), "lines": {"begin": line}},
    }


def _severity(finding: Finding) -> str:
    if severity(finding.code) == "hint":
        return "info"
    return "critical" if finding.verdict is Verdict.VIOLATED else "minor"
