"""The formats for people: one line a finding, or its code and the values behind it as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codemods.check import Run
from codemods.codes import OWN_CODES
from codemods.findings import FileError, Finding
from codemods.report.counts import closing_line_of
from codemods.report.frame import WIDEST, frame
from codemods.report.wording import assignments, in_cell, place, printable, python_says, sentence, shown
from codemods.source import Source
from shapecheck.rule import Applicability, Verdict


class _Style(NamedTuple):
    """Terminal escapes; all empty: no color."""

    bold: str = ""
    red: str = ""
    blue: str = ""
    reset: str = ""


_COLORS = _Style(bold="\033[1m", red="\033[1;31m", blue="\033[34m", reset="\033[0m")


def render(run: Run, *, color: bool, frames: bool, width: int = WIDEST) -> str:
    """Return what was fixed, the findings, the errors and the counts; with `frames` the code of each finding."""
    style = _COLORS if color else _Style()
    report = run.report
    verb = "fixed" if report.fixed else "would be fixed"
    lines = [_fixed(finding, verb) for finding in run.fixed]
    lines += [f"{printable(note.path)}:{note.line}: {printable(note.message)}" for note in report.notes]
    for group in _grouped(report.findings) if frames else []:
        lines += [_heading(group, style), *_details(group, run.sources[group[0].path], style, width), ""]
    lines += [] if frames else [_head(finding, sentence(finding), style) for finding in report.findings]
    lines += [_error(error, style) for error in report.errors]
    lines += _fixable(report.findings)
    lines.append(closing_line_of(report))
    return "".join(f"{line}\n" for line in lines)


def _grouped(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Return the findings, those together that one unknown keeps from being told of a call."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        is_unknown = finding.verdict is Verdict.UNPROVEN and finding.reason
        key = (finding.path, finding.call.start, finding.reason) if is_unknown else (number,)
        groups.setdefault(key, []).append(finding)
    return groups.values()


def _heading(group: list[Finding], style: _Style) -> str:
    first, *others = group
    if not others:
        return _head(first, first.message, style)
    where = f"{style.bold}{printable(first.path)}{style.reset}:{place(first.call)}"
    codes = ", ".join(finding.code for finding in group)
    return f"{where}: {style.red}{codes}{style.reset}: {len(group)} rules cannot be told of {printable(first.callee)}"


def _head(finding: Finding, message: str, style: _Style) -> str:
    where = f"{style.bold}{printable(finding.path)}{style.reset}:{place(finding.span)}"
    mark = " [*]" if _applicability(finding) is Applicability.SAFE else ""
    return f"{where}: {style.red}{finding.code}{style.reset} {finding.name}: {printable(message)}{mark}"


def _details(group: list[Finding], source: Source, style: _Style, width: int) -> Iterator[str]:
    first, *others = group
    span = first.call if others else first.span
    lines = list(frame(source, span, width - len(f"{span.line + 2} | ")))
    margin = " " * len(lines[0].margin)
    for line in lines:
        yield f"{style.blue}{line.margin} |{style.reset}{f' {line.text}' if line.text else ''}"
    for label, text in _notes_together(group) if others else _notes(first):
        yield f"{margin} {style.blue}={style.reset} {style.bold}{label}{style.reset}: {printable(text)}"


def _notes_together(group: list[Finding]) -> Iterator[tuple[str, str]]:
    """Yield what findings have in common, then the demand of each, and what is known to break or repair it."""
    yield "because", group[0].reason
    for finding in group:
        yield f"{finding.code} {finding.name}", finding.message
        for label, text in (*_failing(finding), *_repair(finding)):
            yield f"{finding.code} {label}", text


def _notes(finding: Finding) -> Iterator[tuple[str, str]]:
    if error := python_says(finding):
        yield "Python says", error
        return
    if finding.relation:
        yield ("cannot be told" if finding.verdict is Verdict.UNPROVEN else "does not hold"), finding.relation
    for name, value in finding.values.items():
        yield "where", f"{name} = {shown(value)}"
    if finding.reason:
        yield "because", finding.reason
    yield from _failing(finding)
    if finding.advice:
        yield "help", finding.advice
    yield from _repair(finding)


def _failing(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.counterexample:
        yield "fails when", assignments(finding.counterexample)
    if (contexts := finding.contexts) and contexts.violating:
        example = f", e.g. where {assignments(contexts.example)}" if contexts.example else ""
        yield "fails in", f"{contexts.violating} of the {contexts.total} cases in which the source reaches this call{example}"


def _repair(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.fix is not None and finding.fix.message != finding.advice:
        yield "help" if not finding.fix.edits else f"{finding.fix.applicability} fix", finding.fix.message


def _error(error: FileError, style: _Style) -> str:
    where = f"{style.bold}{printable(error.path)}{style.reset}:{in_cell(error.cell)}{error.line}:1"
    name = OWN_CODES[error.code].name
    return f"{where}: {style.red}{error.code}{style.reset} {name}: {printable(error.message)}"


def _fixed(finding: Finding, verb: str) -> str:
    where = f"{printable(finding.path)}:{place(finding.span)}"
    return f"{where}: {finding.code} {finding.name}: {verb}: {printable(finding.fix.message if finding.fix else '')}"


def _fixable(findings: list[Finding]) -> Iterator[str]:
    safe = sum(_applicability(finding) is Applicability.SAFE for finding in findings)
    unsafe = sum(_applicability(finding) is Applicability.UNSAFE for finding in findings)
    if safe:
        yield f"[*] {safe} fixable with `shapecheck fix`" + (f" ({unsafe} more with `--unsafe-fixes`)" if unsafe else "")
    elif unsafe:
        yield f"{unsafe} fixable with `shapecheck fix --unsafe-fixes`"


def _applicability(finding: Finding) -> Applicability | None:
    return finding.fix.applicability if finding.fix and finding.fix.edits else None
