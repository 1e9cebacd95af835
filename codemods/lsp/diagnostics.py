"""Findings as an editor shows them."""

from __future__ import annotations

from typing import NamedTuple

from lsprotocol import types

from codemods.codes import OWN_CODES, UNUSED, severity
from codemods.findings import FileError, Finding, Note
from codemods.lsp.positions import units
from codemods.promises import Key
from codemods.report.wording import sentence
from codemods.source import Source, Span
from shapecheck.rule import Applicability, Verdict

NAME = "shapecheck"


class Repair(NamedTuple):
    """What can be done about a finding: the message of its fix, and whether that is safe; none for a finding that has none."""

    key: Key
    message: str | None
    safe: bool


class Told(NamedTuple):
    """One diagnostic, of a cell of a notebook or of the file, and how to repair it."""

    cell: int | None
    diagnostic: types.Diagnostic
    repair: Repair | None = None


def of_finding(finding: Finding, source: Source, encoding: str) -> Told:
    """Return the diagnostic of a finding."""
    fix = finding.fix if finding.fix is not None and finding.fix.edits else None
    diagnostic = types.Diagnostic(
        range_of(finding.span, source, encoding),
        f"{finding.name}: {sentence(finding)}",
        severity=_severity(finding),
        code=finding.code,
        source=NAME,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == UNUSED else None,
    )
    repair = Repair(Key.of(finding), fix.message if fix else None, fix is not None and fix.applicability is Applicability.SAFE)
    return Told(_cell(finding.span), diagnostic, repair)


def of_error(error: FileError) -> Told:
    """Return the diagnostic of a file that cannot be checked: the whole line, as the parser's columns are not to be relied on."""
    return Told(error.cell, _on_line(error.line, f"{OWN_CODES[error.code].name}: {error.message}", error.code))


def of_note(note: Note) -> Told:
    """Return the diagnostic of a note."""
    told = _on_line(note.line, note.message, None)
    told.severity = types.DiagnosticSeverity.Information
    return Told(None, told)


def range_of(span: Span, source: Source, encoding: str) -> types.Range:
    """Return where a piece of a file is; in a notebook, in its cell."""
    shown = span.shown

    def position(line: int, column: int, counted: int) -> types.Position:
        return types.Position(counted - 1, units(source.line(line)[: column - 1], encoding))

    return types.Range(position(span.line, span.column, shown.line), position(span.end_line, span.end_column, shown.end_line))


def _severity(finding: Finding) -> types.DiagnosticSeverity:
    if severity(finding.code) == "hint":
        return types.DiagnosticSeverity.Information
    return types.DiagnosticSeverity.Error if finding.verdict is Verdict.VIOLATED else types.DiagnosticSeverity.Warning


def _cell(span: Span) -> int | None:
    return span.cell.number if span.cell else None


def _on_line(line: int, message: str, code: str | None) -> types.Diagnostic:
    place = types.Range(types.Position(line - 1, 0), types.Position(line, 0))
    return types.Diagnostic(place, message, severity=types.DiagnosticSeverity.Error, code=code, source=NAME)
