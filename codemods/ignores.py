"""Accept what is found today: add the comments that suppress it, so that only what is new is reported."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from codemods.check import Analyse, Run, examine, parse, summarise
from codemods.codes import UNUSED
from codemods.files import Candidate, Found
from codemods.findings import Edit, FileError, Finding
from codemods.fix import Change, Write
from codemods.rewrite import RewriteError, apply
from codemods.source import Source
from codemods.suppress import IGNORE, offset, tokens
from codemods.write import WriteError

_NO_CODE = (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_STRING_STARTS, _STRING_ENDS = (
    tuple(getattr(tokenize, f"{kind}STRING_{end}", -1) for kind in "FT")  # since Python 3.12 and 3.14
    for end in ("START", "END")
)


def add_ignores(found: Found, analyse: Analyse, write: Write | None) -> tuple[Run, list[Change]]:
    """Add a comment for each finding of the files; return what remains to report, and the changes.

    The comments are added only to a file that has none of these findings afterwards, and is the same program.
    """
    projects, errors = parse(found)
    changes: list[Change] = []
    examined = [examine(project, sources, analyse) for project, sources in projects.items()]
    for index, before in enumerate(examined):
        commented: dict[str, Source] = {}
        findings = [finding for finding in before.findings if finding.code != UNUSED]
        for path, source in before.sources.items():
            try:
                edits = list(comments(source, [finding for finding in findings if finding.path == path]))
                if edits:
                    commented[path] = apply(source, edits)
            except RewriteError as error:
                errors.append(FileError(path, 1, f"no comments are added: {error}"))
        after = examine(before.project, {**before.sources, **commented}, analyse)
        remaining = {finding.path for finding in after.findings if finding.code != UNUSED}
        kept: dict[str, Source] = {}
        for path, source in commented.items():
            change = Change(path, before.sources[path].data, source.data)
            try:
                if path in remaining:
                    raise WriteError("a finding would remain")
                if write is not None:
                    write(_candidate(found, change), change.after)
            except WriteError as error:
                errors.append(FileError(path, 1, f"no comments are added: {error}"))
            else:
                kept[path] = source
                changes.append(change)
        if kept != commented:
            after = examine(before.project, {**before.sources, **kept}, analyse)
        examined[index] = after
    return summarise(found, examined, errors), changes


def _candidate(found: Found, change: Change) -> Candidate:
    """Return the file of a change; one that names no kernel was looked at only because it calls a function with a contract."""
    try:
        candidate = found.candidate(change.path)
    except OSError as error:
        raise WriteError(f"it cannot be read: {error.strerror}") from None
    if candidate.data != change.before:
        raise WriteError("it was changed while it was being checked")
    return candidate


class _Layout(NamedTuple):
    """Where comments may stand in a file.

    Attributes:
        ends: the lines that may end in a comment, each with the one that is there: not those that end in a backslash or
            inside a string.
        begins: the first line of the logical line that a line is a part of.
    """

    ends: Mapping[int, tokenize.TokenInfo | None]
    begins: Mapping[int, int]

    @classmethod
    def of(cls, source: Source) -> _Layout:
        ends: dict[int, tokenize.TokenInfo | None] = {}
        begins: dict[int, int] = {}
        comment: tokenize.TokenInfo | None = None
        first = strings = 0
        for token in tokens(source):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                comment = token
            elif token.type in (tokenize.NEWLINE, tokenize.NL):
                if not strings:  # between the braces of one, only newer versions of Python have comments
                    ends[line] = comment
                comment = None
                if token.type == tokenize.NEWLINE:
                    begins.update(dict.fromkeys(range(first, line + 1), first))
                    first = 0
            elif token.type not in _NO_CODE:
                first = first or line
                strings += (token.type in _STRING_STARTS) - (token.type in _STRING_ENDS)
        return cls(ends, begins)

    def place(self, finding: Finding) -> tuple[int, bool]:
        """Return the line to write the comment for a finding on, or else the one to write it above."""
        span, call = finding.span, finding.call
        for line in (span.line, span.end_line, call.line, call.end_line):
            if line in self.ends:
                return line, True
        if call.line not in self.begins:
            raise RewriteError("where a comment may stand is not certain")
        return self.begins[call.line], False


def comments(source: Source, findings: Iterable[Finding]) -> Iterator[Edit]:
    """Yield the edits that add the comments, one for each line that gets one."""
    findings = list(findings)
    if not findings:
        return
    layout = _Layout.of(source)
    places: dict[tuple[int, bool], set[str]] = {}
    for finding in findings:
        places.setdefault(layout.place(finding), set()).add(finding.code)
    for (line, behind), codes in places.items():
        listed = ", ".join(sorted(codes))
        text = f"# shapecheck: ignore[{listed}]"
        code = source.line(line)
        if not behind:
            indent = code[: len(code) - len(code.lstrip(" \t"))]
            start = source.line_starts[line - 1]
            yield Edit(start, start, f"{indent}{text}{source.newline(line)}")
            continue
        comment = layout.ends[line]
        own = IGNORE.search(comment.string) if comment is not None else None
        if comment is not None and own is not None and own[1] is not None:
            end = offset(source, (line, comment.start[1] + own.end(1)))
            yield Edit(end, end, f", {listed}" if own[1].strip() else listed)
        else:
            end = offset(source, (line, len(code)))
            yield Edit(end, end, f"{'' if code.endswith('  ') else '  '}{text}")
