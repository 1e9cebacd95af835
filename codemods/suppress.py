"""Comments that keep findings back: `# shapecheck: ignore[SC102]`, `# shapecheck: skip-file`, `# noqa: SC102`.

Of our own, a rule may be named as well: `# shapecheck: ignore[block-not-dividing]`.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from codemods.codes import OWN_CODES, UNUSED, code_of, known_codes, no_rule
from codemods.findings import CallSite, Edit, Finding, Note, ProposedFix
from codemods.source import Source, Span
from shapecheck.rule import Applicability, Verdict

_OWN_WORD = b"shapecheck:"
_WORTH_READING = re.compile(_OWN_WORD + b"|noqa", re.IGNORECASE)
IGNORE = re.compile(r"#\s*shapecheck:\s*ignore(?:\[([^\]]*)\]|(?![\w\[-]))")
_OURS = re.compile(r"#\s*shapecheck:")
_LISTED_BARE = re.compile(r"[\s:(=]*((?:SC\d+[,\s]*)+)", re.IGNORECASE)  # behind an `ignore` without brackets
_SKIP_FILE = re.compile(r"#\s*shapecheck:\s*skip-file(?![\w-])")
_NOQA = re.compile(r"#\s*noqa(?:\s*:\s*([A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)|(?!\s*:)(?![\w-]))", re.IGNORECASE)
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_LAYOUT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass
class _Comment:
    """One suppression: of `codes`, or of every code, on the lines from `first` to `last`."""

    codes: frozenset[str] | None
    first: int
    last: int
    token: tokenize.TokenInfo
    own: bool  # written for shapecheck, so that an unused one is worth a word
    used: set[str] = field(default_factory=set[str])

    def covers(self, finding: Finding) -> bool:
        """Say whether the finding is the comment's: by a line of the argument, or by an end of the call."""
        if self.codes is not None and finding.code not in self.codes:
            return False
        return any(self.first <= line <= self.last for line in _lines(finding))


def _lines(finding: Finding) -> set[int]:
    """Return the lines whose comments speak of a finding."""
    lines = {finding.call.line, finding.call.end_line}
    return lines if finding.span == finding.call else lines | {*range(finding.span.line, finding.span.end_line + 1)}


def may_suppress(source: Source) -> bool:
    """Say whether a file may hold comments that keep findings back."""
    return _WORTH_READING.search(source.text) is not None


class Suppressions:
    """The suppressing comments of one file; without `noqa`, only our own."""

    def __init__(self, source: Source, *, noqa: bool = True) -> None:
        self._source = source
        self._noqa = noqa

    @cached_property
    def _comments(self) -> list[_Comment]:
        return [comment for comment in _comments(self._source) if self._noqa or comment.own]

    @cached_property
    def _has_own(self) -> bool:
        """Whether some may be ours, which speak of other lines than their own and are to have an effect."""
        return _OWN_WORD in self._source.text

    def keep(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that no comment covers."""
        return [finding for finding in findings if not self._suppressed(finding)]

    def unused(self, call_sites: Collection[CallSite]) -> Iterator[Finding]:
        """Yield a finding for each comment that `keep` had no use for, of a code that was judged in this file."""
        judged = {code for site in call_sites for code in site.verdicts}
        for comment in self._comments if self._has_own else ():
            unused = sorted((comment.codes or set()) - comment.used)
            idle = [code for code in unused if code in judged or code not in known_codes()]
            if comment.own and (idle or not (comment.codes or comment.used)):
                yield _unused(self._source, comment.token, idle)

    def unknown(self) -> Iterator[Note]:
        """Yield a note for each comment of ours that does not say what it may seem to say.

        It has a word that is neither a code nor the name of a rule; names codes outside of brackets, which has no effect; or is
        no suppression.
        """
        for token in tokens(self._source) if self._has_own else ():
            if token.type == tokenize.COMMENT:
                for message in _misunderstandings(token.string):
                    yield Note(self._source.path, _span(self._source, token).shown.line, f"suppression comment: {message}")

    def _suppressed(self, finding: Finding) -> bool:
        if not self._has_own and not any(_NOQA.search(self._source.line(line)) for line in _lines(finding)):
            return False
        covering = [comment for comment in self._comments if comment.covers(finding)]
        for comment in covering:
            comment.used.add(finding.code)
        return bool(covering)


def _misunderstandings(comment: str) -> Iterator[str]:
    found = IGNORE.search(comment)
    if found is None:
        if _OURS.search(comment) and not _SKIP_FILE.search(comment):
            yield f"{comment!r} suppresses nothing; write `ignore`, `ignore[CODE]` or `skip-file`"
    elif found[1] is None:
        if listed := _LISTED_BARE.match(comment, found.end()):
            yield f"it ignores every rule; for {listed[1].strip(' ,')} alone, write ignore[{listed[1].strip(' ,')}]"
    else:
        for word in sorted((_codes(found[1]) or set()) - set(known_codes())):
            begun = [code for code in known_codes() if code.startswith(word.upper())]
            yield f"{word!r} is the beginning of {len(begun)} codes; name each" if begun else no_rule(word)


def skips_file(source: Source) -> bool:
    """Say whether a comment asks to leave the whole file alone."""
    return b"skip-file" in source.text and any(
        token.type == tokenize.COMMENT and _SKIP_FILE.search(token.string) for token in tokens(source)
    )


def _comments(source: Source) -> Iterator[_Comment]:
    """Yield the comments: one after code speaks of its line, one of ours on a line of its own of the code that follows.

    That is the next logical line, or, between brackets, the next line that holds code.
    """
    waiting: list[tokenize.TokenInfo] = []
    begun: list[tuple[tokenize.TokenInfo, int]] = []
    depth = line = 0
    for token in tokens(source):
        if token.type == tokenize.COMMENT and token.start[0] == line:
            yield from _parse(token, line, line, alone=False)
        elif token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE:
            for comment, first in begun:
                yield from _parse(comment, first, token.start[0], alone=True)
            begun.clear()
        elif token.type not in _LAYOUT:
            for comment in waiting:
                if depth:
                    yield from _parse(comment, token.start[0], token.start[0], alone=True)
                else:
                    begun.append((comment, token.start[0]))
            waiting.clear()
            line = token.end[0]
            if token.type == tokenize.OP:
                depth += (token.string in _OPEN) - (token.string in _CLOSE)
    for comment in waiting:
        yield from _parse(comment, 0, 0, alone=True)


def _parse(token: tokenize.TokenInfo, first: int, last: int, *, alone: bool) -> Iterator[_Comment]:
    if found := IGNORE.search(token.string):
        yield _Comment(_codes(found[1]), first, last, token, own=True)
    if not alone and (found := _NOQA.search(token.string)):
        yield _Comment(_codes(found[1]), first, last, token, own=False)


def _codes(listed: str | None) -> frozenset[str] | None:
    """Return the codes that are listed, also by the names of their rules; a word that is neither stays as it is."""
    return None if listed is None else frozenset(code_of(word) or word for word in listed.replace(",", " ").split())


def tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens of a file, as far as there are any; their columns count code points, from 0."""
    text = io.StringIO(source.code.decode(), newline=None)  # lines end where the parser says they do: at a lone CR as well
    try:
        yield from tokenize.generate_tokens(text.readline)
    except (tokenize.TokenError, SyntaxError):  # the parser has its say about that
        return


def _unused(source: Source, token: tokenize.TokenInfo, codes: Collection[str]) -> Finding:
    span = _span(source, token)
    own = OWN_CODES[UNUSED]
    listed = ", ".join(codes)
    message = f"nothing to suppress{' of ' if codes else ''}{listed}"
    fix = ProposedFix(Applicability.SAFE, f"remove {listed or 'the comment'}", (_removal(source, token, codes),))
    return Finding(UNUSED, own.name, Verdict.VIOLATED, source.path, span, span, "", message, "", {}, fix=fix)


def _span(source: Source, token: tokenize.TokenInfo) -> Span:
    (line, column), (_, end) = token.start, token.end
    return Span(offset(source, token.start), offset(source, token.end), line, column + 1, line, end + 1, source.cell_at(line))


def offset(source: Source, position: tuple[int, int]) -> int:
    """Return where a position of a token is in the file's text."""
    line, column = position
    return source.line_starts[line - 1] + len(source.line(line)[:column].encode())


def _removal(source: Source, token: tokenize.TokenInfo, codes: Collection[str]) -> Edit:
    """Return the edit that takes codes out of a comment of ours; one that has none left goes, but what else it says stays."""
    found = IGNORE.search(token.string)
    assert found is not None
    start, after = offset(source, token.start), token.string[found.end() :]
    if found[1] is None and (bare := _LISTED_BARE.match(after)):  # codes without brackets
        after = after[bare.end() :].removeprefix(")")

    def within(first: int, last: int, replacement: str) -> Edit:
        return Edit(start + len(token.string[:first].encode()), start + len(token.string[:last].encode()), replacement)

    kept = [code for code in (found[1] or "").replace(",", " ").split() if (code_of(code) or code) not in codes]
    if kept and codes:
        return within(*found.span(1), ", ".join(kept))
    others = token.string[: found.start()].strip(), after.strip(" \t:,;-")
    if others[1]:
        return within(found.start(), len(token.string), others[1] if others[1].startswith("#") else f"# {others[1]}")
    if others[0]:
        return within(len(others[0]), len(token.string), "")
    line, column = token.start
    before = source.line(line)[:column]
    if before.strip():
        return Edit(offset(source, (line, len(before.rstrip()))), offset(source, token.end), "")
    end = source.line_starts[line] if line < len(source.line_starts) else len(source.text)
    return Edit(source.line_starts[line - 1], end, "")
