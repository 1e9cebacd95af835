"""What the worker does: check a document, or make an edit that repairs it, with all that the editor has not saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from lsprotocol.types import TextEdit

from codemods.analyse import analyse
from codemods.check import Examination, examine, parse
from codemods.config import ConfigError, Configuration
from codemods.files import NOTEBOOK, Candidate, Found, Project, Stamp, left_out, project_of, searchable, shown
from codemods.findings import FileError, Finding
from codemods.fix import Change, fix
from codemods.ignores import comments
from codemods.lsp.diagnostics import Told, of_error, of_finding, of_note, range_of
from codemods.lsp.hover import Pointed, markdown
from codemods.lsp.positions import Text
from codemods.lsp.reach import reaches_contract
from codemods.lsp.settings import EditorSettings
from codemods.notebook import source_of
from codemods.promises import Key
from codemods.rewrite import RewriteError, apply
from codemods.unsaved import unsaved
from codemods.words import Words


class Ask(NamedTuple):
    """What is asked of a document: to check it, or to edit it.

    Attributes:
        path: the document.
        buffers: what the editor holds, by path.
        settings: those of the editor.
        encoding: how the editor counts in a line.
    """

    path: str
    buffers: Mapping[str, bytes]
    settings: EditorSettings
    encoding: str


class Check(NamedTuple):
    """Check the document."""

    ask: Ask


class Fix(NamedTuple):
    """Make the safe fixes; with a `key` the fix of that finding, be it safe or not."""

    ask: Ask
    key: Key | None = None


class Ignore(NamedTuple):
    """Add the comment that ignores a finding."""

    ask: Ask
    key: Key


class Checked(NamedTuple):
    """What there is to show of a document."""

    told: Sequence[Told] = ()
    pointed: Sequence[Pointed] = ()


class Edited(NamedTuple):
    """The edits by path and, of a notebook, by the number of the cell; where there are none, the reason."""

    edits: Mapping[tuple[str, int | None], Sequence[TextEdit]]
    reason: str = ""


Question: TypeAlias = Check | Fix | Ignore
Answer: TypeAlias = Checked | Edited


def answer(question: Question) -> Answer:
    """Answer one question; paths are told from the root of the project, wherever the editor was started."""
    ask = question.ask
    try:
        project = project_of(os.path.dirname(ask.path), Configuration(ask.settings.overlay))
    except ConfigError as error:
        failed = Checked([of_error(FileError(ask.path, 1, str(error)))])
        return failed if isinstance(question, Check) else Edited({}, str(error))
    with unsaved(ask.buffers), chdir(project.root if os.path.isdir(project.root) else os.curdir):
        match question:
            case Check():
                return _check(ask, project)
            case Fix(_, key):
                return _fix(ask, project, key)
            case Ignore(_, key):
                return _ignore(ask, project, key)


def _found(ask: Ask, project: Project) -> Found:
    """Return the document as a run finds it; nothing where the settings exclude it, or it calls nothing that has a contract."""
    data = ask.buffers[ask.path]
    named = Words().occur_in(searchable(ask.path, data))
    if left_out(ask.path, project.settings) or not (named or reaches_contract(ask.path, data, Path(project.root))):
        return Found((), (), files=1)
    return Found((Candidate(shown(ask.path), data, Stamp(0, 0, 0, -1), project),), (), files=1)


def _examined(ask: Ask, project: Project) -> tuple[Examination | None, list[FileError]]:
    projects, errors = parse(_found(ask, project))
    for sources in projects.values():  # the document, if it can be parsed
        return examine(project, sources, partial(analyse, values=True)), errors
    return None, errors


def _check(ask: Ask, project: Project) -> Checked:
    examination, errors = _examined(ask, project)
    if examination is None:
        return Checked([of_error(error) for error in errors])
    (source,) = examination.sources.values()
    told = [of_finding(finding, source, ask.encoding) for finding in examination.findings]
    told += [of_error(error) for error in examination.errors]
    told += [of_note(note) for note in examination.notes if not ask.path.endswith(NOTEBOOK)]  # there it does not say which cell
    pointed = [
        Pointed(
            site.span.cell.number if site.span.cell else None,
            range_of(site.span, source, ask.encoding),
            markdown(site, [each for each in examination.judged if each.call == site.span and each.code in site.verdicts]),
        )
        for site in examination.call_sites
    ]
    return Checked(told, pointed)


def _fix(ask: Ask, project: Project, key: Key | None) -> Edited:
    wanted: Callable[[Finding], bool] = (lambda each: True) if key is None else (lambda each: Key.of(each) == key)
    run, changes = fix(_found(ask, project), analyse, None, unsafe=key is not None, wanted=wanted)
    refused = (each.fix.message for each in run.report.findings if each.fix is not None and wanted(each))
    return _edited(changes, ask, next(refused, "there is nothing to fix any more"))


def _ignore(ask: Ask, project: Project, key: Key) -> Edited:
    try:
        examination, _ = _examined(ask, project)
        found = [each for each in examination.findings if Key.of(each) == key] if examination is not None else []
        if examination is None or not found:
            return Edited({}, "the finding is not there any more")
        (source,) = examination.sources.values()
        after = apply(source, list(comments(source, found)))
    except RewriteError as error:
        return Edited({}, f"no comment is added: {error}")
    return _edited([Change(source.path, source.data, after.data)], ask, "")


def _edited(changes: Sequence[Change], ask: Ask, reason: str) -> Edited:
    edits: dict[tuple[str, int | None], Sequence[TextEdit]] = {}
    for change in changes:
        path = os.path.abspath(change.path)
        before, after = _texts(path, change.before), _texts(path, change.after)
        for cell, text in before.items():
            if text != after[cell]:
                edits[path, cell] = list(Text(text, ask.encoding).edits(after[cell]))
    return Edited(edits, "" if edits else reason)


def _texts(path: str, data: bytes) -> dict[int | None, str]:
    """Return the text of a file, or of each code cell of a notebook by its number."""
    if not path.endswith(NOTEBOOK):
        return {None: source_of(path, data).text.decode()}
    return {number: "".join(cell["source"]) for number, cell in enumerate(json.loads(data)["cells"], 1)}
