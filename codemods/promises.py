"""What fixes promise: their findings are gone, and nothing else comes up; which of them are at fault if it is not so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from codemods.check import Examination
from codemods.findings import Edit, Finding
from codemods.rewrite import displacement, overlap
from shapecheck.rule import Verdict

Moves: TypeAlias = Mapping[str, Callable[[int], int]]
"""By path: where the bytes of an edited file have moved to."""


class Key(NamedTuple):
    """What tells a finding from others, also once its file is edited: its code, and the call that begins at `start`."""

    path: str
    code: str
    callee: str
    start: int

    @classmethod
    def of(cls, finding: Finding) -> Key:
        return cls(finding.path, finding.code, finding.callee, finding.call.start)

    def moved(self, moves: Moves) -> Key:
        return self._replace(start=moves[self.path](self.start)) if self.path in moves else self


class Group(NamedTuple):
    """Findings whose fixes are made or undone together, as they edit the same files; and the edits of each file."""

    findings: Sequence[Finding]
    edits: Mapping[str, Sequence[Edit]]


Faults: TypeAlias = dict[Key | None, str]
"""The reasons by the repairs at fault; by None where it is not known which those are."""


def broken_promises(before: Examination, after: Examination, groups: Sequence[Group]) -> dict[int, Faults]:
    """Return the groups, by position, whose files are not what their fixes promise, each with the reasons.

    A finding is still there, or a violation has come up. What was violated may be unproven now: not every call may be known.

    Args:
        before, after: what there was to say before and after the edits.
        groups: what was to be repaired.
    """
    moves = moves_of(groups)
    repaired = {Key.of(each).moved(moves): (index, each) for index, group in enumerate(groups) for each in group.findings}
    known = {Key.of(finding).moved(moves) for finding in before.judged if finding.verdict is Verdict.VIOLATED}
    broken: dict[int, Faults] = {}

    def blame(path: str, reason: str) -> None:
        """In a file that was not edited it is the doing of one that was."""
        editing = [index for index, group in enumerate(groups) if path in group.edits]
        for index in editing or range(len(groups)):
            broken.setdefault(index, {})[None] = reason

    for finding in after.judged:
        key = Key.of(finding)
        if key in repaired:
            index, each = repaired[key]
            if finding.verdict is Verdict.VIOLATED or each.verdict is Verdict.UNPROVEN:
                broken.setdefault(index, {})[Key.of(each)] = f"{finding.code} would remain"
        elif finding.verdict is Verdict.VIOLATED and key not in known:
            reason = f"{finding.code} would come up at {finding.path}:{finding.span.line}"
            near = [value for moved, value in repaired.items() if moved._replace(code=key.code) == key]
            for index, each in near:
                broken.setdefault(index, {})[Key.of(each)] = reason
            if not near:
                blame(finding.path, reason)
    calls = Counter(site.path for site in before.call_sites)
    calls.subtract(site.path for site in after.call_sites)
    for path, lost in calls.items():
        if lost > 0:
            blame(path, "a call of a kernel would no longer be recognised")
    for error in after.errors:
        if error not in before.errors:
            blame(error.path, "the result cannot be judged")
    return broken


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Put those findings together whose fixes edit the same files."""
    groups: list[tuple[set[str], list[Finding]]] = []
    for finding in findings:
        paths = set(edits_of([finding]))
        touched = [group for group in groups if group[0] & paths]
        groups = [group for group in groups if group not in touched]
        members = [each for _, group in touched for each in group]
        groups.append((paths.union(*(each for each, _ in touched)), [*members, finding]))
    return [members for _, members in groups]


def moves_of(groups: Iterable[Group]) -> Moves:
    return {path: displacement(edits) for group in groups for path, edits in group.edits.items()}


def edits_of(findings: Iterable[Finding]) -> dict[str, list[Edit]]:
    """Return the edits of the findings' fixes by path; one that several need, such as an import, is made once."""
    edits: dict[str, dict[Edit, None]] = {}
    for finding in findings:
        for edit in finding.fix.edits if finding.fix else ():
            edits.setdefault(edit.path or finding.path, {})[replace(edit, path="")] = None
    return {path: list(own) for path, own in edits.items()}


def compatible(edits: Iterable[Edit], made: Collection[Edit]) -> bool:
    return not any(overlap(edit, other) for edit in edits if edit not in made for other in made)
