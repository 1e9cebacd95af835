"""Run the analysis over the files of a run, and keep of its findings what the settings ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from codemods.callers import Neighbours
from codemods.codes import UNUSED, severity
from codemods.evaluate.relevance import states_contract
from codemods.files import NOTEBOOK, Candidate, Found, Project, shown
from codemods.findings import CallSite, FileError, Finding, Note, Report
from codemods.nodes import depth
from codemods.notebook import source_of
from codemods.pool import spread
from codemods.source import Source, SourceError
from codemods.suppress import Suppressions, skips_file
from codemods.surroundings import Surroundings
from shapecheck.chip import Chip, chip_of
from shapecheck.rule import Verdict

if TYPE_CHECKING:
    from codemods.compiler import Compiler

_LARGEST = 10_000_000  # bytes; a parser needs a hundred times as much memory
_DEEPEST = 150  # levels of a syntax tree, each of which takes calls inside calls; of 5,000 public files the deepest has 46


_Located = TypeVar("_Located", Finding, CallSite)


class Analyse(Protocol):
    """What `codemods.analyse.analyse` does: judge every call of a known callee in `sources`."""

    def __call__(
        self,
        sources: list[Source],
        *,
        root: Path,
        chips: tuple[Chip, ...],
        unproven: bool = True,
        editable: Set[str] = frozenset(),
        geometries: bool = False,
        around: Surroundings | None = None,
    ) -> tuple[list[CallSite], list[Finding]]: ...


_Judge: TypeAlias = Callable[[list[Source]], tuple[list[CallSite], list[Finding]]]


class _Part(NamedTuple):
    """What there is to say of some files; `unreadable` are those that cannot be parsed."""

    call_sites: Sequence[CallSite] = ()
    findings: Sequence[Finding] = ()
    errors: Sequence[FileError] = ()
    unreadable: Sequence[FileError] = ()


class Run(NamedTuple):
    """What a run has to say.

    Attributes:
        report: its findings, in order.
        sources: the files they are in, by path, as they are now.
        strict: the files of which what is unproven counts for the exit status, by path.
        fixed: what is repaired in `sources`, and no longer in the report, which counts it once it is written.
    """

    report: Report
    sources: Mapping[str, Source]
    strict: frozenset[str] = frozenset()
    fixed: tuple[Finding, ...] = ()

    def counts(self, finding: Finding) -> bool:
        """Say whether a finding counts for the exit status."""
        return finding.verdict is Verdict.VIOLATED or finding.path in self.strict

    @property
    def failed(self) -> bool:
        """Whether one of the findings does."""
        return any(map(self.counts, self.report.findings))


@dataclass
class Examination:
    """The files of one project, and what there is to say of them.

    Attributes:
        judged: all that the analysis found.
        errors: what went wrong with them.
        kept: what neither the settings nor a comment leave out, with what is unproven.
        silenced: what would be among `kept` but for a comment.
        selected: the settings leave out rules that were judged.
        notes: what to tell besides.
        unreadable: the files that cannot be parsed, and are not among `sources`.
    """

    project: Project
    sources: Mapping[str, Source]
    judged: list[Finding]
    errors: list[FileError]
    call_sites: list[CallSite] = field(default_factory=list[CallSite])
    kept: list[Finding] = field(default_factory=list[Finding])
    silenced: list[Finding] = field(default_factory=list[Finding])
    selected: bool = False
    notes: list[Note] = field(default_factory=list[Note])
    unreadable: list[FileError] = field(default_factory=list[FileError])

    @property
    def findings(self) -> list[Finding]:
        """What there is to report: of what is unproven, nothing unless the settings ask for it."""
        return self._told(self.kept)

    @property
    def suppressed(self) -> int:
        """How many more there would be but for the comments."""
        return len(self._told(self.silenced))

    def _told(self, findings: Iterable[Finding]) -> list[Finding]:
        settings = self.project.settings
        told = settings.unproven or settings.strict
        return [finding for finding in findings if told or finding.verdict is Verdict.VIOLATED]


def check(found: Found, analyse: Analyse, compiler: Compiler | None = None) -> Run:
    """Check the files that were found; a file that cannot be parsed is reported, and the others are checked.

    A compiler is asked about the calls as well, each for the chips of its project.
    """
    projects, errors = load(found)
    examined: list[Examination] = []
    for project, sources in projects.items():
        asked = project.settings.unproven or project.settings.strict
        editing = partial(analyse, editable=found.others_of(project))
        examined.append(examine(project, sources, editing, unproven=asked, compiler=compiler))
    errors += [error for each in examined for error in each.unreadable]
    return summarise(found, examined, errors)


def load(found: Found) -> tuple[dict[Project, dict[str, Source]], list[FileError]]:
    """Return the files that can be read as text, by project and path, and an error for each of the others.

    Where a file states a contract of its own, the files of the run that may call its functions are among them.
    """
    projects: dict[Project, dict[str, Source]] = {}
    errors: list[FileError] = []
    for candidate in found.candidates:
        try:
            source = _source(candidate)
        except SourceError as error:
            errors.append(FileError(candidate.path, error.line, str(error), cell=error.cell))
        except Exception as error:
            errors.append(_crash(candidate.path, error))
        else:
            if source is not None:
                projects.setdefault(candidate.project, {})[candidate.path] = source
    for project, sources in projects.items():
        if stating := [source for source in sources.values() if b"contract" in source.text and _states_contract(source)]:
            called_from = Neighbours(stating, Path(shown(project.root))).callers(stating).sources
            others = found.others
            sources |= {source.path: source for source in called_from if source.path in others}
    return projects, errors


def examine(
    project: Project,
    sources: Mapping[str, Source],
    analyse: Analyse,
    *,
    unproven: bool = True,
    compiler: Compiler | None = None,
    noqa: bool = True,
) -> Examination:
    """Analyse the files of one project, and leave out what its settings or a comment suppress.

    Args:
        project: the folder and its settings.
        sources: its files, by path.
        analyse: what judges them.
        unproven: whether anybody asks for counterexamples and repairs of what is unproven, which take time to find.
        compiler: is asked about the calls of which `analyse` tells the sizes.
        noqa: whether `# noqa` is ours to obey.
    """
    settings = project.settings
    chips = tuple(chip_of(name) for name in settings.chips)
    root = Path(shown(project.root))  # so that a module found below it has the path that its source has here
    around = Surroundings(sources.values(), root)
    judge = partial(analyse, root=root, chips=chips, unproven=unproven, around=around)
    parts = spread(around.groups(), lambda group: _analysed(group, judge), lambda group: sum(len(each.text) for each in group))
    for source in sources.values():  # also those that others were busy with
        source.release()
    call_sites = [site for part in parts for site in part.call_sites]
    findings = [finding for part in parts for finding in part.findings]
    unreadable = {error.path: error for part in parts for error in part.unreadable}
    sources = {path: source for path, source in sources.items() if path not in unreadable}
    if compiler is not None:
        call_sites, refused = compiler.judge(call_sites, chips)
        findings = [*findings, *refused]
    errors = [error for part in parts for error in part.errors]
    result = Examination(project, sources, findings, errors, unreadable=[*unreadable.values()])
    findings_of, sites_of = _by_path(findings), _by_path(call_sites)
    reports = cache(settings.reports)  # a file may have thousands of findings
    for path, source in sources.items():
        own, sites = findings_of.get(path, []), sites_of.get(path, [])
        result.notes += [_passed_over(source, line) for line in source.passed_over()]
        if own or reports(UNUSED):
            suppressions = Suppressions(source, noqa=noqa)
            kept = suppressions.keep(own)
            remaining = set(map(id, kept))
            result.silenced += [finding for finding in own if id(finding) not in remaining and reports(finding.code)]
            own = [*kept, *suppressions.unused(sites)]
            result.notes += suppressions.unknown()
        result.kept += [finding for finding in own if reports(finding.code)]
        for site in sites:
            verdicts = {code: verdict for code, verdict in site.verdicts.items() if reports(code)}
            result.call_sites.append(replace(site, verdicts=verdicts))
            result.selected |= any(severity(code) != "hint" for code in site.verdicts.keys() - verdicts)
    return result


def summarise(found: Found, examined: Sequence[Examination], errors: Sequence[FileError], fixed: Sequence[Finding] = ()) -> Run:
    """Put together what is known of each project; `fixed` is what was repaired."""
    problems = [FileError(*problem) for problem in found.problems]
    report = Report(
        findings=sorted((finding for each in examined for finding in each.findings), key=_finding_order),
        call_sites=sorted((site for each in examined for site in each.call_sites), key=_site_order),
        errors=sorted(
            [*problems, *errors, *(error for each in examined for error in each.errors)],
            key=lambda error: (error.path, error.line),
        ),
        files=found.files,
        parsed=sum(len(each.sources) for each in examined),
        suppressed=sum(each.suppressed for each in examined),
        selected=any(each.selected for each in examined),
        notes=sorted((note for each in examined for note in each.notes), key=lambda note: (note.path, note.line)),
    )
    sources = {path: source for each in examined for path, source in each.sources.items()}
    strict = frozenset(path for each in examined if each.project.settings.strict for path in each.sources)
    return Run(report, sources, strict, tuple(sorted(fixed, key=_finding_order)))


def _passed_over(source: Source, line: int) -> Note:
    start = source.line_starts[line - 1]
    place = source.between(start, start).shown
    cell = f"in cell {place.cell.number} " if place.cell else ""
    return Note(source.path, place.line, f"{cell}is IPython's, and not checked: put the call into a line of its own")


def _states_contract(source: Source) -> bool:
    try:
        return states_contract(source.tree)
    except SourceError:  # which is reported when the file has its turn
        return False
    finally:
        source.release()


def _source(candidate: Candidate) -> Source | None:
    """Return the file; None where a comment asks to leave it alone."""
    largest = _LARGEST * (10 if candidate.path.endswith(NOTEBOOK) else 1)  # of a notebook, most is output
    if len(candidate.data) > largest:
        raise SourceError(f"is not checked: larger than {largest // 1_000_000} MB")
    source = source_of(candidate.path, candidate.data)
    return None if skips_file(source) else source


def parse(source: Source) -> None:
    """Parse a file, as it is to be checked.

    Raises:
        SourceError: that is not possible, or it is nested too deeply.
    """
    levels, line = depth(source.tree)
    if levels > _DEEPEST:
        cell = source.cell_at(line)
        place = (line - cell.first + 1, cell.number) if cell else (line,)
        raise SourceError(f"is not checked: nested too deeply, {levels} levels", *place)


def _analysed(sources: list[Source], analyse: _Judge) -> _Part:
    """Parse and analyse some files; one that cannot be parsed does not stop the others."""
    parsed: list[Source] = []
    unreadable: list[FileError] = []
    for source in sources:
        try:
            parse(source)
            parsed.append(source)
        except SourceError as error:
            unreadable.append(FileError(source.path, error.line, str(error), cell=error.cell))
        except Exception as error:
            unreadable.append(_crash(source.path, error))
    part = _isolated(parsed, analyse) if parsed else _Part()
    for source in sources:
        source.release()
    return part._replace(unreadable=unreadable)


def _isolated(sources: list[Source], analyse: _Judge) -> _Part:
    """Analyse the files together; should that crash, each by itself, so that one file costs no more than its own findings."""
    try:
        call_sites, findings = analyse(sources)
    except Exception as error:
        if len(sources) == 1:
            return _Part(errors=[_crash(sources[0].path, error)])
    else:
        return _Part(call_sites, findings)
    parts = [_isolated([source], analyse) for source in sources]
    return _Part(
        [site for part in parts for site in part.call_sites],
        [finding for part in parts for finding in part.findings],
        [error for part in parts for error in part.errors],
    )


def _crash(path: str, error: Exception) -> FileError:
    """Word a defect of ours that a file has brought to light; it must not cost the other files."""
    return FileError(path, 1, f"internal error, please report it: {error!r}")


def _by_path(items: Iterable[_Located]) -> dict[str, list[_Located]]:
    paths: dict[str, list[_Located]] = {}
    for item in items:
        paths.setdefault(item.path, []).append(item)
    return paths


def _finding_order(finding: Finding) -> tuple[str, int, int, str]:
    return finding.path, finding.span.line, finding.span.column, finding.code


def _site_order(site: CallSite) -> tuple[str, int, int]:
    return site.path, site.span.line, site.span.column
