"""Repair what can be repaired: apply fixes, check the result, and so on until nothing is left to apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from codemods.check import Analyse, Examination, Run, examine, parse, summarise
from codemods.files import Candidate, Found
from codemods.findings import Edit, FileError, Finding, ProposedFix
from codemods.rewrite import RewriteError, apply, displacement, inspect, overlap
from codemods.source import Source
from codemods.write import WriteError
from shapecheck.rule import Applicability, Verdict

_ROUNDS = 10

Write: TypeAlias = Callable[[Candidate, bytes], None]
_Moves: TypeAlias = Mapping[str, Callable[[int], int]]  # by path: where the bytes of an edited file have moved to


class Change(NamedTuple):
    """A file that was repaired, before and after."""

    path: str
    before: bytes
    after: bytes


def fix(
    found: Found, analyse: Analyse, write: Write | None, *, unsafe: bool = False, adopting: bool = False
) -> tuple[Run, list[Change]]:
    """Repair the files that were found: the run tells what is fixed and what remains.

    Args:
        found: the files.
        analyse: finds what is to be repaired, and judges each repair.
        write: puts the new contents of a file in place; a `WriteError` leaves the file as it was. None: nothing is written.
        unsafe: apply fixes that may change what the program means or costs as well.
        adopting: afterwards, let what is legal call the kernel by its front door, and state its contract.
    """
    projects, errors = parse(found)
    candidates = {candidate.path: candidate for candidate in found.candidates}
    repairs = [_Repair(examine(project, sources, analyse), analyse, unsafe) for project, sources in projects.items()]
    changes: list[Change] = []
    for repair in repairs:
        repair.run()
        if adopting:
            repair.adopt()
        for path in repair.changed():
            change = Change(path, candidates[path].data, repair.current.sources[path].data)
            try:
                if write is not None:
                    write(candidates[path], change.after)
                changes.append(change)
            except WriteError as error:
                repair.restore(path, 1, str(error))
    fixed = [finding for repair in repairs for findings in repair.fixed.values() for finding in findings]
    errors += [error for repair in repairs for error in repair.errors]
    adopted = {path: notes for repair in repairs for path, notes in repair.adopted.items()}
    run = summarise(found, [repair.current for repair in repairs], errors, fixed)._replace(adopted=adopted)
    run.report.fixed = len(fixed) if write is not None else 0
    return run, changes


class _Key(NamedTuple):
    """What tells a finding from others, also once its file is edited: its code, and the call that begins at `start`."""

    path: str
    code: str
    callee: str
    start: int

    @classmethod
    def of(cls, finding: Finding) -> _Key:
        return cls(finding.path, finding.code, finding.callee, finding.call.start)

    def moved(self, moves: _Moves) -> _Key:
        return self._replace(start=moves[self.path](self.start)) if self.path in moves else self


class _Repair:
    """The files of one project on the way to their repair.

    Attributes:
        current: the files as they are now, and what there is to report of them.
        fixed: the findings that are repaired, by path.
        adopted: what was done to adopt the front door, by path.
        errors: files that had to be restored.
    """

    def __init__(self, original: Examination, analyse: Analyse, unsafe: bool) -> None:
        self.current = original
        self.fixed: dict[str, list[Finding]] = {}
        self.adopted: dict[str, tuple[str, ...]] = {}
        self.errors: list[FileError] = []
        self._original = original.sources
        self._analyse = analyse
        self._allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
        self._refused: dict[_Key, str] = {}
        self._careful: set[str] = set()  # the files in which one fix is made at a time

    def run(self) -> None:
        """Apply fixes until there are none to apply: one can make room for another that it overlapped."""
        for _ in range(_ROUNDS + 2 * len(self.current.kept)):
            chosen = self._choose()
            if not chosen:
                break
            self._apply(chosen)
        self.current.kept = [self._noted(finding) for finding in self.current.kept]

    def adopt(self) -> None:
        """Adopt the front door in each file where no violation comes up by it."""
        from codemods.adopt import adopt

        for path, source in self.current.sources.items():
            sites = [site for site in self.current.call_sites if site.path == path]
            adoption = adopt(source, sites, Path(self.current.project.root or "."))
            if not adoption.notes or path.endswith(".pyi"):
                continue
            before = self.current
            self._examine({path: adoption.source})
            if _broken_promises(before, self.current, {path: []}, {}):
                self._examine({path: source})
            else:
                self.adopted[path] = adoption.notes

    def changed(self) -> list[str]:
        """Return the files that are not as they were."""
        return sorted({*self.fixed, *self.adopted})

    def restore(self, path: str, line: int, reason: str) -> None:
        """Give up on a file that cannot be written: it is as it was before the first fix."""
        self.errors.append(FileError(path, line, f"is not fixed: {reason}"))
        self.fixed.pop(path, None)
        self.adopted.pop(path, None)
        self._examine({path: self._original[path]})

    def _examine(self, changed: Mapping[str, Source]) -> None:
        self.current = examine(self.current.project, {**self.current.sources, **changed}, self._analyse)

    def _noted(self, finding: Finding) -> Finding:
        """Say of a finding why its fix was not made."""
        reason = self._refused.get(_Key.of(finding))
        if reason is None or finding.fix is None:
            return finding
        return replace(finding, fix=ProposedFix(Applicability.DISPLAY, f"not fixed ({finding.fix.message}): {reason}"))

    def _choose(self) -> dict[str, list[Finding]]:
        """Return findings by path whose fixes do not get in each other's way; those of an outer call come first."""
        chosen: dict[str, list[Finding]] = {}
        made: dict[str, set[Edit]] = {}
        for finding in sorted(self.current.kept, key=lambda each: (each.call.start, -each.call.end, each.span.start)):
            others = made.setdefault(finding.path, set())
            if finding.path in self._careful and others:
                continue
            if self._may_fix(finding) and _compatible(finding, others) and self._passes(finding):
                chosen.setdefault(finding.path, []).append(finding)
                others.update(_edits([finding]))
        return chosen

    def _may_fix(self, finding: Finding) -> bool:
        return (
            finding.fix is not None
            and finding.fix.edits != ()
            and finding.fix.applicability in self._allowed
            and not finding.path.endswith(".pyi")
            and _Key.of(finding) not in self._refused
        )

    def _passes(self, finding: Finding) -> bool:
        try:
            for edit in _edits([finding]):
                inspect(self.current.sources[finding.path], edit)
        except RewriteError as error:
            self._refused[_Key.of(finding)] = str(error)
            return False
        return True

    def _apply(self, chosen: Mapping[str, list[Finding]]) -> None:
        """Make the edits, and take those back of files in which the result is not what the fixes promise.

        The fixes at fault are refused, and the others made again: one at a time where it is not known which are at fault.
        """
        before = self.current
        changed: dict[str, Source] = {}
        applied: dict[str, list[Finding]] = {}
        for path, findings in chosen.items():
            result, kept = self._edited(before.sources[path], findings)
            if kept:
                changed[path], applied[path] = result, kept
        if not applied:
            return
        moves = {path: displacement(_edits(findings)) for path, findings in applied.items()}
        self._examine(changed)
        broken = _broken_promises(before, self.current, applied, moves)
        for path, faults in broken.items():
            keys = [_Key.of(finding) for finding in applied[path]]
            guilty = keys if len(keys) == 1 else [key for key in keys if key in faults]
            self._refused |= {key: faults.get(key) or faults[None] for key in guilty}
            if not guilty:
                self._careful.add(path)
            del moves[path], applied[path]
        if broken:
            self._examine({path: before.sources[path] for path in broken})
        self._refused = {key.moved(moves): reason for key, reason in self._refused.items()}
        for path, findings in applied.items():
            self.fixed.setdefault(path, []).extend(findings)

    def _edited(self, source: Source, findings: list[Finding]) -> tuple[Source, list[Finding]]:
        """Make the edits of as many of the findings as go together; the others are refused."""
        try:
            return apply(source, _edits(findings)), findings
        except RewriteError:
            pass
        result, kept = source, list[Finding]()
        for finding in findings:
            try:
                result = apply(source, _edits([*kept, finding]))
                kept.append(finding)
            except RewriteError as error:
                self._refused[_Key.of(finding)] = str(error)
        return result, kept


_Faults: TypeAlias = dict[_Key | None, str]  # the reasons by the repairs at fault, by None where it is not known which those are


def _broken_promises(
    before: Examination, after: Examination, applied: Mapping[str, list[Finding]], moves: _Moves
) -> dict[str, _Faults]:
    """Return the files that are not what their fixes promise, each with the reasons.

    A finding is still there, or a violation has come up. What was violated may be unproven now: not every call may be known.

    Args:
        before, after: what there was to say before and after the edits.
        applied: what was to be repaired, by path.
        moves: where the bytes of an edited file have moved to, by path.
    """
    repaired = {_Key.of(each).moved(moves): each for findings in applied.values() for each in findings}
    known = {_Key.of(finding).moved(moves) for finding in before.judged if finding.verdict is Verdict.VIOLATED}
    broken: dict[str, _Faults] = {}
    for finding in after.judged:
        key = _Key.of(finding)
        if key in repaired and (finding.verdict is Verdict.VIOLATED or repaired[key].verdict is Verdict.UNPROVEN):
            broken.setdefault(finding.path, {})[_Key.of(repaired[key])] = f"{finding.code} would remain"
        elif finding.verdict is Verdict.VIOLATED and key not in known:
            reason = f"{finding.code} would come up at {finding.path}:{finding.span.line}"
            near = [_Key.of(each) for moved, each in repaired.items() if moved._replace(code=key.code) == key]
            # In a file that was not edited it is the doing of one that was.
            for path in [finding.path] if finding.path in applied else applied:
                broken.setdefault(path, {}).update(dict.fromkeys(near or [None], reason))
    calls = Counter(site.path for site in before.call_sites)
    calls.subtract(site.path for site in after.call_sites)
    for path in applied:
        if calls[path] > 0:
            broken.setdefault(path, {})[None] = "a call of a kernel would no longer be recognised"
    for error in after.errors:
        if error.path in applied:
            broken.setdefault(error.path, {})[None] = "the result cannot be judged"
    return broken


def _edits(findings: Iterable[Finding]) -> list[Edit]:
    """Return the edits of the findings' fixes; one that several need, such as an import, is made once."""
    return list(dict.fromkeys(edit for finding in findings if finding.fix for edit in finding.fix.edits))


def _compatible(finding: Finding, made: Collection[Edit]) -> bool:
    return not any(overlap(edit, other) for edit in _edits([finding]) if edit not in made for other in made)
