"""Repair what can be repaired: apply fixes, check the result, and so on until nothing is left to apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from codemods.check import Analyse, Examination, Run, examine, load, parse, summarise
from codemods.files import Candidate, Found
from codemods.findings import CallSite, Edit, FileError, Finding, Note, ProposedFix
from codemods.notebook import source_of
from codemods.pool import spread
from codemods.promises import Group, Key, broken_promises, compatible, edits_of, grouped, moves_of
from codemods.rewrite import RewriteError, apply, inspect, origin
from codemods.source import Source, SourceError, Span
from codemods.write import WriteError
from shapecheck.rule import Applicability, Verdict

_ROUNDS = 10

Write: TypeAlias = Callable[[Candidate, bytes], None]


class Change(NamedTuple):
    """A file that was repaired, before and after."""

    path: str
    before: bytes
    after: bytes


def fix(
    found: Found,
    analyse: Analyse,
    write: Write | None,
    *,
    unsafe: bool = False,
    adopting: bool = False,
    wanted: Callable[[Finding], bool] = lambda finding: True,
) -> tuple[Run, list[Change]]:
    """Repair the files that were found: the run tells what is fixed and what remains.

    Args:
        found: the files.
        analyse: finds what is to be repaired, and judges each repair.
        write: puts the new contents of a file in place; a `WriteError` leaves the file as it was. None: nothing is written.
        unsafe: apply fixes that may change what the program means or costs as well.
        adopting: afterwards, let what is legal call the kernel by its front door, and state its contract.
        wanted: says whether a finding is to be repaired.
    """
    projects, errors = load(found)
    repairs: list[_Repair] = []
    for project, sources in projects.items():
        editing = partial(analyse, editable=found.others_of(project))
        original = examine(project, sources, editing)
        errors += original.unreadable
        repairs.append(_Repair(original, found, editing, unsafe, wanted))
    for repair in repairs:
        repair.run()
        if adopting:
            repair.adopt()
    changes: list[Change] = []
    for repair in repairs:  # nothing is written as long as something may go wrong elsewhere
        unwritten: dict[str, str] = {}
        for path in repair.changed():
            change = repair.change(path)
            try:
                if write is not None:
                    write(repair.candidate(path), change.after)
                changes.append(change)
            except WriteError as error:
                unwritten[path] = str(error)
        if unwritten:
            repair.restore(unwritten)
        repair.finish()
    fixed = [finding for repair in repairs for finding in repair.fixed]
    errors += [error for repair in repairs for error in repair.errors]
    run = summarise(found, [repair.current for repair in repairs], errors, fixed)
    run.report.notes += [note for repair in repairs for path in sorted(repair.notes) for note in repair.notes[path]]
    run.report.fixed = len(fixed) if write is not None else 0
    return run, changes


class _Edited(NamedTuple):
    """Files with the edits of some findings made, and why those of the others are not."""

    sources: Mapping[str, Source]
    refused: Mapping[Key, str]


class _Repair:
    """The files of one project on the way to their repair.

    Attributes:
        current: the files as they are now, and what there is to report of them.
        fixed: the findings that are repaired, where they were at first.
        notes: what was done to adopt the front door, and what was not, by path.
        errors: files that had to be restored.
    """

    def __init__(
        self, original: Examination, found: Found, analyse: Analyse, unsafe: bool, wanted: Callable[[Finding], bool]
    ) -> None:
        self.current = original
        self.fixed: list[Finding] = []
        self.notes: dict[str, list[Note]] = {}
        self.errors: list[FileError] = []
        self._original = dict(original.sources)
        self._found = found
        self._candidates: dict[str, Candidate] = {}  # the files that are looked at only because they hold a literal
        self._analyse = analyse
        self._allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
        self._wanted = wanted
        self._refused: dict[Key, str] = {}
        self._careful: set[str] = set()  # the files in which one fix is made at a time
        self._origins: dict[str, list[Callable[[int], int]]] = {}  # by path: where bytes were before each round of edits

    def run(self) -> None:
        """Apply fixes until there are none to apply: one can make room for another that it overlapped."""
        for _ in range(_ROUNDS + 2 * len(self.current.kept)):
            chosen = self._choose()
            if not chosen:
                break
            self._apply(chosen)

    def adopt(self) -> None:
        """Adopt the front door in each file where no violation comes up by it."""
        from codemods.adopt import adopt

        root = Path(self.current.project.root or ".")
        sites: dict[str, list[CallSite]] = {}
        for site in self.current.call_sites:
            sites.setdefault(site.path, []).append(site)
        notes: dict[str, Sequence[tuple[Span, str]]] = {}
        adopted: dict[str, Source] = {}
        for path, source in self.current.sources.items():
            adoption = adopt(source, sites.get(path, []), root)
            source.release()
            if adoption.notes and not path.endswith(".pyi"):
                notes[path] = adoption.notes
                if adoption.source is not source:
                    adopted[path] = adoption.source
        for path, reason in self._unadopted(adopted).items():
            notes[path] = [(notes[path][0][0], f"not adopted: {reason}")]
        for path, own in notes.items():
            self.notes[path] = [Note(path, self._span_at_first(path, span).shown.line, text) for span, text in own]

    def _unadopted(self, adopted: Mapping[str, Source]) -> dict[str, str]:
        """Put files in the place of what they were, and return why some are not: half by half, where it is not all together."""
        if not adopted:
            return {}
        before = self.current
        self._examine(adopted)
        broken = broken_promises(before, self.current, [Group((), dict.fromkeys(adopted, ()))])
        if not broken:
            return {}
        self.current = before
        if len(adopted) == 1:
            return dict.fromkeys(adopted, next(iter(broken[0].values())))
        paths = list(adopted)
        halves = paths[: len(paths) // 2], paths[len(paths) // 2 :]
        return {
            path: reason for half in halves for path, reason in self._unadopted({each: adopted[each] for each in half}).items()
        }

    def changed(self) -> list[str]:
        """Return the files that are not as they were."""
        sources = self.current.sources
        return sorted(path for path, source in self._original.items() if sources[path].data != source.data)

    def change(self, path: str) -> Change:
        return Change(path, self._original[path].data, self.current.sources[path].data)

    def candidate(self, path: str) -> Candidate:
        """Return the file that is to be written.

        Raises:
            WriteError: it is not what was read.
        """
        try:
            candidate = self._candidates.get(path) or self._found.candidate(path)
        except OSError as error:
            raise WriteError(f"it cannot be read: {error.strerror}") from None
        if candidate.data != self._original[path].data:
            raise WriteError("it was changed while it was being checked")
        return candidate

    def restore(self, unwritten: Mapping[str, str]) -> None:
        """Give up on files that cannot be written, each for a reason: they are as they were before the first fix."""
        self.errors += [FileError(path, 1, f"is not fixed: {reason}") for path, reason in unwritten.items()]
        self.fixed = [finding for finding in self.fixed if not unwritten.keys() & edits_of([finding])]
        self.notes = {path: notes for path, notes in self.notes.items() if path not in unwritten}
        self._refused = {key: reason for key, reason in self._refused.items() if key.path not in unwritten}
        self._examine({path: self._original[path] for path in unwritten})

    def finish(self) -> None:
        """Say of the findings that remain why their fixes were not made."""
        self.current.kept = [self._noted(finding) for finding in self.current.kept]

    def _examine(self, changed: Mapping[str, Source]) -> None:
        self.current = examine(self.current.project, {**self.current.sources, **changed}, self._analyse)

    def _noted(self, finding: Finding) -> Finding:
        """Say of a finding why its fix was not made."""
        reason = self._refused.get(Key.of(finding))
        if reason is None or finding.fix is None:
            return finding
        return replace(finding, fix=ProposedFix(Applicability.DISPLAY, f"not fixed ({finding.fix.message}): {reason}"))

    def _choose(self) -> list[Finding]:
        """Return findings whose fixes do not get in each other's way.

        Those of an outer call come first; of one call, those of what fails, as the other verdicts may change by them.
        """
        chosen: list[Finding] = []
        made: dict[str, set[Edit]] = {}
        order = {path: number for number, path in enumerate(self.current.sources)}

        def precedence(each: Finding) -> tuple[int, int, int, bool, int]:
            return order[each.path], each.call.start, -each.call.end, each.verdict is not Verdict.VIOLATED, each.span.start

        for finding in sorted(filter(self._may_fix, self.current.kept), key=precedence):
            edits = edits_of([finding])
            if any(made.get(path) for path in self._careful.intersection(edits)):
                continue
            if all(compatible(own, made.get(path, ())) for path, own in edits.items()):
                chosen.append(finding)
                for path, own in edits.items():
                    made.setdefault(path, set()).update(own)
        return chosen

    def _may_fix(self, finding: Finding) -> bool:
        return (
            finding.fix is not None
            and finding.fix.edits != ()
            and finding.fix.applicability in self._allowed
            and not finding.path.endswith(".pyi")
            and Key.of(finding) not in self._refused
            and self._wanted(finding)
        )

    def _readable(self, finding: Finding) -> bool:
        """Read the files that a fix edits, and say whether that is possible."""
        try:
            for path in edits_of([finding]):
                self._source(path)
        except (SourceError, OSError) as error:
            self._refused[Key.of(finding)] = getattr(error, "strerror", None) or str(error)
            return False
        return True

    def _weight(self, findings: Sequence[Finding]) -> int:
        return sum(len(self._source(path).text) for path in edits_of(findings))

    def _source(self, path: str) -> Source:
        """Return a file as it is now; one that names no kernel is read, as it is to be edited.

        Raises:
            OSError, SourceError: it cannot be read, or could not be checked once it is edited.
        """
        if path not in self.current.sources and path not in self._original:
            candidate = self._found.candidate(path)
            source = source_of(path, candidate.data)
            parse(source)
            self._candidates[path], self._original[path] = candidate, source
            self.current.sources = {**self.current.sources, path: self._original[path]}
        return self.current.sources[path]

    def _apply(self, chosen: Sequence[Finding]) -> None:
        """Make the edits, and take those back in which the result is not what the fixes promise.

        The fixes at fault are refused, and the others made again: one at a time where it is not known which are at fault.
        """
        before = self.current
        changed: dict[str, Source] = {}
        groups: list[Group] = []
        together = grouped(filter(self._readable, chosen))
        for findings, edited in zip(together, spread(together, self._edited, self._weight), strict=True):
            self._refused |= edited.refused
            kept = [finding for finding in findings if Key.of(finding) not in edited.refused]
            if kept:
                changed |= edited.sources
                groups.append(Group(kept, edits_of(kept)))
        if not groups:
            return
        self._examine(changed)
        while groups and (broken := broken_promises(before, self.current, groups)):
            for index, faults in broken.items():
                keys = [Key.of(finding) for finding in groups[index].findings]
                guilty = keys if len(keys) == 1 else [key for key in keys if key in faults]
                self._refused |= {key: faults.get(key) or faults[None] for key in guilty}
                if not guilty:
                    self._careful.update(groups[index].edits)
            self._examine({path: before.sources[path] for index in broken for path in groups[index].edits})
            groups = [group for index, group in enumerate(groups) if index not in broken]
        moves = moves_of(groups)
        self._refused = {key.moved(moves): reason for key, reason in self._refused.items()}
        self.fixed += [self._at_first(finding) for group in groups for finding in group.findings]
        for source in before.sources.values():
            source.release()
        for group in groups:
            for path, edits in group.edits.items():
                self._origins.setdefault(path, []).append(origin(before.sources[path].text, edits))

    def _at_first(self, finding: Finding) -> Finding:
        """Return a finding with the places that it had before the first edit."""
        span, call = (self._span_at_first(finding.path, each) for each in (finding.span, finding.call))
        return replace(finding, span=span, call=call)

    def _span_at_first(self, path: str, span: Span) -> Span:
        """Return a piece of a file as it was before the first edit."""
        ends = [span.start, span.end]
        for back in reversed(self._origins.get(path, ())):
            ends = [back(each) for each in ends]
        return self._original[path].between(*ends) if path in self._origins else span

    def _edited(self, findings: Sequence[Finding]) -> _Edited:
        """Make the edits of as many of the findings as go together; the others are refused."""
        refused: dict[Key, str] = {}
        whole = [finding for finding in findings if self._is_whole(finding, refused)]
        try:
            return _Edited(self._applied(whole), refused)
        except RewriteError:
            pass
        sources: dict[str, Source] = {}
        kept: list[Finding] = []
        for finding in whole:
            try:
                sources = self._applied([*kept, finding])
                kept.append(finding)
            except RewriteError as error:
                refused[Key.of(finding)] = str(error)
        return _Edited(sources, refused)

    def _is_whole(self, finding: Finding, refused: dict[Key, str]) -> bool:
        """Say whether each edit of a fix is, by itself; one that is not is refused."""
        try:
            for path, edits in edits_of([finding]).items():
                for edit in edits:
                    inspect(self._source(path), edit)
        except (RewriteError, SourceError) as error:
            refused[Key.of(finding)] = str(error)
        return Key.of(finding) not in refused

    def _applied(self, findings: Sequence[Finding]) -> dict[str, Source]:
        return {path: apply(self._source(path), edits) for path, edits in edits_of(findings).items()}
