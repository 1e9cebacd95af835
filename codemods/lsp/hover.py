"""What is told of a call when one points at it: its geometry, and the verdict of each rule with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from lsprotocol import types

from codemods.findings import CallSite, Finding, Value
from codemods.report.wording import is_known, sentence
from shapecheck.rule import Verdict

_MARKS = {Verdict.VIOLATED: "**violated**", Verdict.UNPROVEN: "unproven"}
_SHOWN = 4  # different values of one name


class Pointed(NamedTuple):
    """A call, and what is told of it."""

    cell: int | None
    range: types.Range
    markdown: str


def markdown(site: CallSite, findings: Iterable[Finding]) -> str:
    """Return the description of a call; `findings` are those of it that are not proven."""
    return "\n".join(_lines(site, sorted(findings, key=lambda each: (each.verdict is Verdict.UNPROVEN, each.code))))


def _lines(site: CallSite, findings: Sequence[Finding]) -> Iterator[str]:
    counts = {verdict: sum(each is verdict for each in site.verdicts.values()) for verdict in Verdict}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    yield f"**{site.callee}**: {summary or 'no rule applies'}"
    yield ""
    if site.values:
        yield from ("| | value | from |", "|---|---|---|")
        yield from (f"| `{name}` | {_values(values)} | {_origins(name, values)} |" for name, values in site.values.items())
        yield ""
    for verdict, group in groupby(findings, key=lambda each: each.verdict):
        yield from (f"- {_MARKS[verdict]} `{each.code}` {each.name}: {_escaped(sentence(each))}" for each in group)
    told = {each.code for each in findings}
    for verdict in (Verdict.VIOLATED, Verdict.UNPROVEN):  # which nobody asked to be explained
        if rest := [code for code, each in site.verdicts.items() if each is verdict and code not in told]:
            yield f"- {_MARKS[verdict]}: {', '.join(rest)}"
    if proven := [code for code, verdict in site.verdicts.items() if verdict is Verdict.PROVEN]:
        yield f"- proven: {', '.join(proven)}"


def _values(values: Sequence[Value]) -> str:
    known = [_code(repr(each.value)) for each in values if is_known(each)]
    texts = list(dict.fromkeys(known if len(known) == len(values) else [*known, "?"]))
    return ", ".join([*texts[:_SHOWN], *(["..."] if len(texts) > _SHOWN else [])])


def _origins(name: str, values: Sequence[Value]) -> str:
    origins = dict.fromkeys(each.origin for each in values if each.origin not in ("", name, repr(each.value)))
    return ", ".join([*map(_code, list(origins)[:_SHOWN]), *(["..."] if len(origins) > _SHOWN else [])])


def _code(text: str) -> str:
    """Return text in backticks; a bar would end the cell of the table."""
    return f"`{text.replace('|', chr(92) + '|')}`" if "`" not in text else _escaped(text)


def _escaped(text: str) -> str:
    """Return text in which nothing is taken for markdown but backticks."""
    return "".join(f"\\{each}" if each in "\\*_[]<>|#" else each for each in text)
