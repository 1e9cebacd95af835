"""The rules whose symptoms a text shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from codemods.diagnose.diagnosis import Diagnosis, Unplaced, geometry
from codemods.diagnose.kernels import is_of, is_operation, names
from codemods.diagnose.operands import operands
from codemods.diagnose.pasted import Pasted
from shapecheck.compiler.answer import memory_use
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.relation import Relation
from shapecheck.rule import Rule, Verdict
from shapecheck.symptom import KERNEL, Seen, Symptom

_MOST_UNPLACED = 3
_CONTEXT = 300  # characters behind words that are said of every kernel, which tell one time from the other
# Tracebacks, and reports of pytest and IPython, show lines of code.
_SOURCE = re.compile(r"\s*(?:-*>?\s*\d+\s+)?(?:raise\b|assert\b|f?[\"']|\])")


class _Match(NamedTuple):
    """A symptom where it was found: what it gives, and the lines of the text."""

    symptom: Symptom
    line: int
    text: str
    kernel: str
    read: Mapping[str, Any]


class _Candidate(NamedTuple):
    """A rule that a match may be about; `known` says whether the text shows the kernel, beside the words."""

    contract: Contract
    rule: Rule
    match: _Match
    known: bool


def diagnosed(pasted: Pasted) -> tuple[list[Diagnosis], list[Unplaced]]:
    """Return the broken rules that others tell of in a text, and what looks like that but is not known to be."""
    stated = _stated()
    found: list[Diagnosis] = []
    unplaced: dict[str, Unplaced] = {}
    by_place: dict[tuple[int, str], list[_Candidate]] = {}
    for symptom, uses in stated.items():
        for match in _matches(symptom, pasted):
            candidates = [each for contract, rule in uses if (each := _candidate(contract, rule, match, pasted))]
            if candidates:
                by_place.setdefault((match.line, symptom.anchor[:20]), []).extend(candidates)
            elif (why := _why_not(match, pasted)) and len(unplaced) < _MOST_UNPLACED:
                unplaced.setdefault(match.text, Unplaced(match.line + 1, match.text, why))
    for candidates in by_place.values():
        found += _settled(candidates, pasted)
    return found, list(unplaced.values())


def _stated() -> dict[Symptom, list[tuple[Contract, Rule]]]:
    """Return each symptom with the rules that have it."""
    stated: dict[Symptom, list[tuple[Contract, Rule]]] = {}
    for contract in CONTRACTS.values():
        for rule in contract.rules:
            for symptom in rule.symptoms:
                stated.setdefault(symptom, []).append((contract, rule))
    return stated


def _matches(symptom: Symptom, pasted: Pasted) -> Iterator[_Match]:
    """Yield where a symptom is in the text; what is said again, in the same words below the same frame, once."""
    text, anchor = pasted.squeezed, symptom.anchor
    seen: set[tuple[object, ...]] = set()
    at = text.find(anchor)
    while at >= 0:
        if match := symptom.pattern.match(text, at):
            line = pasted.line_at(at)
            if text[at - 1 : at] in ('"', "'") and _SOURCE.match(pasted.lines[line]):  # it can be raised, and was not
                at = text.find(anchor, at + len(anchor))
                continue
            groups = match.groupdict()
            for name in groups:
                start, end = match.span(name)
                if end == match.end():  # what a text ends with ends on its line
                    groups[name] = text[start : pasted.within_line(start, end)]
            frame = pasted.raised_in(line)
            follows = text[match.end() : match.end() + _CONTEXT] if symptom.seen is Seen.NAMED else ""
            key = (match.group(), follows, frame and (frame.path, frame.line))
            if key not in seen:
                seen.add(key)
                kernel = groups.pop(KERNEL, "")
                read = {name: symptom.read(name, value) for name, value in groups.items()}
                read |= {
                    name: value.value(read) if isinstance(value, Relation) else value for name, value in symptom.values.items()
                }
                yield _Match(symptom, line, pasted.shown(at, match.end()), kernel, read)
        at = text.find(anchor, at + len(anchor))


def _candidate(contract: Contract, rule: Rule, match: _Match, pasted: Pasted) -> _Candidate | None:
    """Return a rule that a match is about, if what must be seen besides is there."""
    if match.kernel:
        is_kernel = is_operation(contract, match.kernel, pasted.message(match.line))
        return _Candidate(contract, rule, match, True) if is_kernel else None
    raised = pasted.raised_in(match.line)
    inside = raised is not None and is_of(contract, raised)
    match match.symptom.seen:
        case Seen.RAISED:
            return _Candidate(contract, rule, match, True) if inside else None
        case Seen.WORDS:
            is_alone = raised is None or pasted.calls(contract.name, raised, match.line)
            return _Candidate(contract, rule, match, inside) if inside or is_alone else None
        case Seen.CALLED:
            own = pasted.own_frame(match.line)
            called = own is not None and pasted.calls(contract.name, own, match.line)
            return _Candidate(contract, rule, match, True) if called else None
        case Seen.NAMED:
            named = any(is_of(contract, frame) for frame in pasted.frames_in(pasted.section(match.line)))
            return _Candidate(contract, rule, match, True) if named or names(contract, pasted.message(match.line)) else None


def _why_not(match: _Match, pasted: Pasted) -> str:
    """Say what is missing for a match to be about one of the kernels; nothing where it is clear that it is not."""
    if match.kernel:
        return f"it is about {match.kernel!r}, which is none of the kernels that shapecheck knows"
    raised = pasted.raised_in(match.line)
    match match.symptom.seen:
        case Seen.WORDS:
            assert raised is not None
            return f"it was raised in {raised.path}, which is none of the kernels that shapecheck knows"
        case Seen.NAMED | Seen.CALLED:
            return "nothing around it names a kernel that shapecheck knows: give the whole traceback, or more of the log"
        case Seen.RAISED:
            return "" if raised is not None else "it is Python's own: give the whole traceback, which tells where it was raised"


def _settled(candidates: list[_Candidate], pasted: Pasted) -> Iterator[Diagnosis]:
    """Yield the rules that the words at one place are about."""
    known = any(each.known for each in candidates)
    contract = next(each.contract for each in candidates if each.known or not known)
    of_it = {each.rule.code: each for each in candidates if each.contract is contract and (each.known or not known)}
    verdicts = {code: each.rule.judge(geometry(contract, each.match.read)) for code, each in of_it.items()}
    kept = [code for code in of_it if verdicts[code] is Verdict.VIOLATED] or [
        code for code in of_it if verdicts[code] is Verdict.UNPROVEN
    ]
    for code in kept:
        yield _diagnosis(of_it[code], pasted, certain=len(kept) == 1 or verdicts[code] is Verdict.VIOLATED)


def _diagnosis(candidate: _Candidate, pasted: Pasted, *, certain: bool) -> Diagnosis:
    contract, rule, match, _ = candidate
    read = dict(match.read)
    used = limit = None
    if rule.needs_chip:
        message = " ".join(pasted.message(match.line).split())
        used, limit = memory_use(message)
        read = {**operands(contract, message), **read}
        memory = next((name for name in rule.names if name in ("smem_bytes", "vmem_bytes", "hbm_bytes")), "")
        if limit and memory:
            read[memory] = limit
    return Diagnosis(
        rule,
        contract,
        match.line + 1,
        match.text,
        read,
        used,
        limit,
        certain and match.symptom.seen is not Seen.CALLED,
        pasted.own_frame(match.line),
        match.symptom.argument or rule.argument,
    )
