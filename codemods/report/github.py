"""Annotations of a GitHub workflow: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.check import Run
from codemods.codes import OWN_CODES, severity
from codemods.findings import Finding
from codemods.report.wording import in_cell, place, printable, sentence
from shapecheck.rule import Verdict


def render(run: Run) -> str:
    """Return one command a line; nothing where there is nothing to report."""
    return "".join(f"{line}\n" for line in _lines(run))


def _lines(run: Run) -> Iterator[str]:
    for finding in run.report.findings:
        span = run.sources[finding.path].in_file(finding.span)
        where = {"line": span.line, "col": span.column, "endLine": span.end_line, "endColumn": span.end_column}
        message = f"{finding.path}:{place(finding.span)}: {finding.code} {finding.name}: {sentence(finding)}"
        yield _command(_level(finding), finding.code, finding.path, where, message)
    for error in run.report.errors:
        message = f"{error.path}:{in_cell(error.cell)}{error.line}: {error.code} {OWN_CODES[error.code].name}: {error.message}"
        yield _command("error", error.code, error.path, {"line": 1 if error.cell else error.line}, message)
    for note in run.report.notes:
        yield _command("notice", "note", note.path, {"line": note.line}, f"{note.path}:{note.line}: {note.message}")


def _level(finding: Finding) -> str:
    if severity(finding.code) == "hint":
        return "notice"
    return "error" if finding.verdict is Verdict.VIOLATED else "warning"


def _command(level: str, code: str, path: str, place: dict[str, int], message: str) -> str:
    properties = {"title": f"shapecheck ({code})", "file": path, **place}
    listed = ",".join(f"{name}={_escape_property(str(value))}" for name, value in properties.items())
    return f"::{level} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
