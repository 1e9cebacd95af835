"""From parsed files to call sites and findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.callees import FITS, Callee
from codemods.callers import Neighbours
from codemods.evaluate.entries import FILE_STEPS, Execution
from codemods.evaluate.machine import Arrival
from codemods.evaluate.program import Program
from codemods.findings import CallSite, Contexts, Finding, ProposedFix, Value
from codemods.geometry import is_of_another
from codemods.nodes import nodes, walk
from codemods.repairs.literal import Literals
from codemods.repairs.origins import Origins
from codemods.repairs.propose import Repairs
from codemods.repairs.tree import Tree
from codemods.source import Source, Span
from codemods.suppress import may_suppress
from codemods.surroundings import Surroundings
from codemods.unreached import calls
from codemods.values import Choice, Opaque, Reason
from codemods.values import Value as AbstractValue
from codemods.verdicts import Judge, Outcome, plain
from shapecheck.chip import Chip
from shapecheck.rule import Applicability, Rule, Verdict

_CATCHES_ALL = frozenset({"Exception", "BaseException"})
if TYPE_CHECKING:
    from codemods.known import Geometry

BUDGET = Reason("budget: it takes too many steps to follow")


MAX_UNPROVEN = 32
"""Executions of one call that are unproven and are told apart; a loop may give a thousand."""


@dataclass
class Site:
    """A call expression and the executions that reach it; `unseen` says why there may be others, `unreached` why none does."""

    source: Source
    node: ast.Call
    callee: Callee
    arrived: list[Arrival] = field(default_factory=list[Arrival])
    unseen: Reason | None = None
    unreached: Reason | None = None

    @cached_property
    def span(self) -> Span:
        return self.source.span(self.node)

    @cached_property
    def parts(self) -> frozenset[int]:
        """The ids of the nodes of the call."""
        return frozenset(map(id, walk(self.node)))

    @property
    def expected(self) -> bool:
        """Whether every execution that reaches it is expected to fail."""
        return all(each.expected for each in self.arrived)

    @cached_property
    def handlers(self) -> list[ast.ExceptHandler]:
        """What catches the errors of the call where it stands, and does not raise them again."""
        blocks = (block for block in nodes(self.source.tree, ast.Try, ast.TryStar) if block.handlers)
        around = (block for block in blocks if any(self.node in walk(statement) for statement in block.body))
        return [each for block in around for each in block.handlers if not isinstance(each.body[-1], ast.Raise)]

    def catches(self, error: str) -> bool:
        """Say whether one of these catches such an error, by the names that it is written with."""
        names = _CATCHES_ALL | {error}
        caught = (each.type and [part for part in walk(each.type) if isinstance(part, ast.Name)] for each in self.handlers)
        return any(parts is None or any(part.id in names for part in parts) for parts in caught)


@dataclass(frozen=True)
class Judged:
    """One rule at one site: the outcome in each execution, and the one that decides the verdict."""

    rule: Rule
    verdict: Verdict
    outcomes: Sequence[tuple[Judge, Outcome]]
    decisive: Outcome


def analyse(
    sources: list[Source],
    *,
    root: Path,
    chips: tuple[Chip, ...] = (),
    unproven: bool = True,
    editable: Set[str] = frozenset(),
    geometries: bool = False,
    values: bool = False,
    around: Surroundings | None = None,
    watch: Callable[[str], None] | None = None,
) -> tuple[list[CallSite], list[Finding]]:
    """Judge every call of a known kernel in `sources`.

    Args:
        sources: parsed files that may hold such calls.
        root: the folder from which the tree's modules are imported.
        chips: the TPUs that the code is to run on; a rule that depends on the chip must hold on each.
        unproven: whether anybody asks for what is unproven. Where not, only its place is told, in a file with comments that
            may be about it.
        editable: the paths of further files that a repair may change.
        geometries: whether to say with which values each call is reached, for the compiler.
        values: whether to say it by the names of its contract, for people.
        around: the files that are scanned together with these; none: there are no others.
        watch: is told the path of each file before it is executed.

    Returns:
        The call sites, and a finding for each rule at each of them that is violated, or unproven and asked for.
    """
    around = around or Surroundings(sources, root)
    program = around.program()
    sites = find_sites(program, sources, around.neighbours, watch or (lambda path: None))
    like: dict[Hashable, Judge] = {}
    judges = {id(site): list(judges_of(site, chips, like)) for site in sites}
    explained = {Verdict.VIOLATED, Verdict.UNPROVEN} if unproven else {Verdict.VIOLATED}
    tree = Tree(program, {source.path for source in around.sources} | editable)
    literals = Literals(Origins(tree), [judge for group in judges.values() for judge in group])
    holders = {site.source.path: site.source for site in sites}
    repairs = {path: Repairs(source, literals) for path, source in holders.items()}
    commented = {path: may_suppress(source) for path, source in holders.items()}
    call_sites: list[CallSite] = []
    findings: list[Finding] = []
    for site in sites:
        judged = list(_judge(site, judges[id(site)]))
        callee = site.callee
        verdicts: dict[str, Verdict] = {}
        for each in judged:  # several relations of a user share one code
            known = verdicts.get(each.rule.code)
            verdicts[each.rule.code] = each.verdict if known is None else Verdict.worst((known, each.verdict))
        sizes = tuple(_known(site, judges[id(site)])) if geometries else ()
        held = _values(judges[id(site)]) if values else {}
        call_sites.append(CallSite(site.source.path, site.span, callee.name, callee.contract.name, verdicts, sizes, held))
        if not site.expected:
            finder = repairs[site.source.path]
            told = {Verdict.VIOLATED, Verdict.UNPROVEN} if commented[site.source.path] else explained
            open_ = [each for each in judged if each.verdict in told]
            findings += [_finding(site, each, finder if each.verdict in explained else None) for each in open_]
    return call_sites, findings


def find_sites(program: Program, sources: Sequence[Source], neighbours: Neighbours, watch: Callable[[str], None]) -> list[Site]:
    """Execute the files, then those that may call a function with a call site; return the call sites that are reached."""
    wanted = {source.path for source in sources}
    sites: dict[tuple[int, str], Site] = {}
    unfinished: set[int] = set()
    others: set[int] = set()

    def execute(files: Iterable[Source], names: Iterable[str], allowance: int) -> None:
        for source in files:
            watch(source.path)
            execution = Execution(program, source, names, allowance)
            execution.run()
            for each in execution.arrived:
                path, node = each.source
                held = program.source(path)
                if is_of_another(each.callee, each):
                    others.add(id(node))
                elif path in wanted and held is not None:
                    key = (id(node), each.callee.contract.name)
                    interpreted = each.interpreted or program.interprets(path) or program.interprets(source.path)
                    if key not in sites:
                        sites[key] = Site(held, node, each.callee)
                    sites[key].arrived.append(replace(each, interpreted=True) if interpreted else each)
            for node in execution.unfinished:
                unfinished.update(map(id, nodes(node, ast.Call) if isinstance(node, ast.Module) else walk(node)))

    execute(sources, (), FILE_STEPS)
    holders = {site.source.path: site.source for site in sites.values()}
    callers = neighbours.callers(list(holders.values()))
    program.scan(callers.sources)
    execute(callers.sources, callers.names, min(FILE_STEPS, FILE_STEPS * len(sources) // max(1, len(callers.sources))))
    for site in sites.values():
        site.unseen = BUDGET if id(site.node) in unfinished else program.changed_callees.get(id(site.node))
    seen = {*others, *(id(site.node) for site in sites.values())}
    unreached = ((source, node, callee) for source in sources for node, callee in calls(source.tree) if id(node) not in seen)
    return [*sites.values(), *(_unreached(*each, BUDGET if id(each[1]) in unfinished else None) for each in unreached)]


def _unreached(source: Source, node: ast.Call, callee: Callee, unseen: Reason | None) -> Site:
    """Return a site of which nothing is known but its place."""
    nothing = Arrival((source.path, node), callee, (), {}, {}, (), expected=False, spread=True)
    return Site(source, node, callee, [nothing], unseen, unseen or Reason("no execution that the source shows reaches it"))


def judges_of(site: Site, chips: tuple[Chip, ...], like: dict[Hashable, Judge]) -> Iterator[Judge]:
    """Yield a judge for each execution that reaches a site; executions that differ in nothing share one.

    `like` are the first judges of executions that differ only in the site that they reach, of all sites.
    """
    judges: dict[Hashable, Judge] = {}
    for arrival in site.arrived:
        values = (arrival.positional, *sorted(arrival.keywords.items(), key=itemgetter(0)), *arrival.case.items())
        key = (id(arrival.callee), arrival.path, arrival.spread, arrival.expected, arrival.interpreted, *map(_distinct, values))
        try:
            judge = judges.get(key)
        except TypeError:  # a value that cannot be hashed
            yield Judge(arrival, chips)
            continue
        if judge is None:
            judge = judges[key] = Judge(arrival, chips, like.get(key))
            like.setdefault(key, judge)
        else:
            judge.arrivals.append(arrival)
        yield judge


def _distinct(value: AbstractValue) -> Hashable:
    """Return a key that is the same only for the same value: 1, 1.0 and True are three."""
    match value:
        case tuple():
            return tuple(map(_distinct, value))
        case Choice(alternatives):
            return tuple((formula, _distinct(each)) for formula, each in alternatives)
        case Opaque():  # what is known of it besides its identity matters too
            return (value, value.kind, value.pure, value.dtype, value.shaped, (type(value.default), value.default))
        case _:
            return type(value), value


def _judge(site: Site, judges: Sequence[Judge]) -> Iterator[Judged]:
    """Put the verdicts of all executions together: one that is spelled out and fails is enough, a proof needs them all."""
    judges = [judge for judge in judges if not judge.arrival.expected] or judges
    if site.unreached is not None:
        nothing = Outcome(Verdict.UNPROVEN, reason=site.unreached)
        yield from (Judged(rule, Verdict.UNPROVEN, [(judges[0], nothing)], nothing) for rule in judges[0].rules)
        return
    for rule in site.callee.rules:
        outcomes = list(_outcomes(rule, [judge for judge in judges if judge.applies(rule)]))
        of = {verdict: [outcome for _, outcome in outcomes if outcome.verdict is verdict] for verdict in Verdict}
        error = "TypeError" if rule is FITS else "" if rule.silent else "ValueError"  # by which the call fails
        if error and of[Verdict.VIOLATED] and not site.expected and site.catches(error):
            caught = replace(of[Verdict.VIOLATED][0], reason=Reason(f"the code around the call catches a {error}"))
            yield Judged(rule, Verdict.UNPROVEN, outcomes, caught)
        elif of[Verdict.VIOLATED] and not site.expected:
            yield Judged(rule, Verdict.VIOLATED, outcomes, of[Verdict.VIOLATED][0])
        elif len(outcomes) < len(judges):
            continue  # a rule about what is not known of every execution has nothing to say unless it fails
        elif open_ := of[Verdict.UNPROVEN] or of[Verdict.VIOLATED]:
            yield Judged(rule, Verdict.UNPROVEN, outcomes, open_[0])
        elif site.unseen is not None:
            yield Judged(rule, Verdict.UNPROVEN, outcomes, replace(outcomes[0][1], reason=site.unseen))
        else:
            yield Judged(rule, Verdict.PROVEN, outcomes, outcomes[0][1])


def _outcomes(rule: Rule, judges: Sequence[Judge]) -> Iterator[tuple[Judge, Outcome]]:
    """Judge executions; where many are unproven, the others only if their values are known, for a violation takes no more."""
    unproven: Outcome | None = None
    count = 0
    for judge in judges:
        if unproven is not None and count >= MAX_UNPROVEN and not judge.constants.keys() >= {*rule.names}:
            yield judge, unproven
            continue
        outcome = judge.judge(rule)
        if outcome.verdict is Verdict.UNPROVEN:
            unproven, count = outcome, count + 1
        yield judge, outcome


def _known(site: Site, judges: Sequence[Judge]) -> Iterable[Geometry]:
    from codemods.known import geometries  # with the compiler, which most runs do not need

    return geometries(judges, unreached=site.unreached, unseen=site.unseen)


def _values(judges: Sequence[Judge]) -> dict[str, list[Value]]:
    """Return the different values of each axis, dtype and parameter; of many executions, those of the first."""
    contract = judges[0].callee.contract
    names = [*contract.axes, *(f"{array.name}_dtype" for array in contract.arrays), *(each.name for each in contract.parameters)]
    held: dict[str, list[Value]] = {name: [] for name in names}
    for judge in judges[:MAX_UNPROVEN]:
        for name, (value, origin) in judge.shown({name: judge.value(name) for name in names}).items():
            if (each := Value(value, origin)) not in held[name]:
                held[name].append(each)
    return held


def _finding(site: Site, judged: Judged, repairs: Repairs | None) -> Finding:
    """Put a finding together; without `repairs`, nobody asks for more than its place."""
    rule, decisive = judged.rule, judged.decisive
    judge = next((judge for judge, outcome in judged.outcomes if outcome is decisive), judged.outcomes[0][0])
    # Of a rule about several arguments, as that about ranks is, those that keep their part of it are no part of what is wrong.
    at_fault = rule.relation.at_fault(decisive.values) if judged.verdict is Verdict.VIOLATED else ()
    finding = Finding(
        code=rule.code,
        name=rule.name,
        verdict=judged.verdict,
        path=site.source.path,
        span=_at_fault(site, judge, rule, at_fault),
        call=site.span,
        callee=judge.callee.name,
        message=rule.message,
        relation=rule.relation.text,
        values={},
    )
    if repairs is None:
        return finding
    advice = judge.callee.contract.advice(rule, judge.callee.contract.complete(decisive.known), judge.chips)
    fix = None if site.unreached else repairs.propose(site.node, rule, judged.verdict, judged.outcomes, advice)
    if fix is not None and not _may_edit(site.source, fix):
        fix = ProposedFix(Applicability.DISPLAY, advice) if advice else None
    return replace(
        finding,
        values={
            name: Value(value, origin)
            for name, (value, origin) in judge.shown(decisive.values).items()
            if not at_fault or name in at_fault or name not in rule.names
        },
        reason=_worded(decisive.reason, site.source),
        advice=advice,
        counterexample=decisive.counterexample,
        contexts=_contexts(judged, judge.arrival.case),
        fix=fix,
    )


def _may_edit(source: Source, fix: ProposedFix) -> bool:
    """Say whether a fix is for us to make: what is IPython's is for its user to change, and a stub is no program."""
    return not any(source.holds_magic(edit.start, edit.end) or source.path.endswith(".pyi") for edit in fix.edits)


def _worded(reason: Reason | None, source: Source) -> str:
    """Return a reason with its line as the user counts them."""
    if reason is not None and reason.path == source.path and (cell := source.cell_at(reason.line)) is not None:
        reason = replace(reason, path=f"{reason.path}:cell {cell.number}", line=reason.line - cell.first + 1)
    return str(reason or "")


def _at_fault(site: Site, judge: Judge, rule: Rule, names: Sequence[str]) -> Span:
    """Return the place to point at: the one argument at fault, or else the one the rule is about, if the call writes it down."""
    owners = {judge.callee.contract.owners.get(name) for name in names}
    argument = next(iter(owners)) if len(owners) == 1 else rule.argument
    node = judge.nodes.get(argument or rule.argument)
    return site.span if node is None or id(node) not in site.parts else site.source.span(node)


def _contexts(judged: Judged, case: Mapping[str, Any]) -> Contexts | None:
    if len(judged.outcomes) < 2:
        return None
    violating = sum(outcome.verdict is Verdict.VIOLATED for _, outcome in judged.outcomes)
    return Contexts(violating, len(judged.outcomes), {name: plain(value) for name, value in case.items()})
