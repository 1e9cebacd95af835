"""What the TPU compiler says of the call sites of a run, as findings beside those of the contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from codemods.codes import DISPUTED, OWN_CODES, REFUSED
from codemods.config import ConfigError
from codemods.findings import CallSite, Finding, Value
from codemods.report.counts import number
from shapecheck.chip import Chip
from shapecheck.compiler import Answer, Question
from shapecheck.outcome import UNKNOWN
from shapecheck.rule import Verdict

Ask = Callable[[Sequence[Question]], Sequence[Answer]]
"""What `shapecheck.compiler.ask` does."""


@dataclass
class Compiler:
    """Asks about every call whose sizes are all known, for each chip, and counts.

    Attributes:
        ask: what puts the questions.
        answers: all that it was told, by the question.
        unknown: the number of call sites of which something is not known.
        seconds: how long it took.
    """

    ask: Ask
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    unknown: int = 0
    seconds: float = 0.0

    def judge(self, call_sites: Iterable[CallSite], chips: Sequence[Chip]) -> tuple[list[CallSite], list[Finding]]:
        """Return the call sites, their verdicts with what the compiler says, and the findings that this makes.

        Raises:
            ConfigError: no chip is named, or there is no compiler.
        """
        if not chips:
            raise ConfigError("--compile needs to know the chip: give --chip v5p, or chips in [tool.shapecheck]")
        asked: list[tuple[CallSite, list[Question], list[bool]]] = []
        for site in call_sites:
            known = [(each, chip) for each in site.geometries if not each.unknown for chip in chips]
            questions = [Question(each.kernel, chip, each.values) for each, chip in known]
            asked.append((site, questions, [each.certain for each, _ in known]))
            self.unknown += any(each.unknown for each in site.geometries)
        distinct = {question.key: question for _, questions, _ in asked for question in questions}
        started = time.monotonic()
        self.answers |= zip(distinct, self.ask(list(distinct.values())), strict=True)
        self.seconds += time.monotonic() - started
        judged: list[CallSite] = []
        findings: list[Finding] = []
        for site, questions, certain in asked:
            own = [self.answers[question.key] for question in questions]
            found = list(_findings(site, own, certain))
            verdicts = dict(site.verdicts)
            if own and all(answer.compiles for answer in own) and not any(each.unknown for each in site.geometries):
                verdicts[REFUSED] = Verdict.PROVEN
            for finding in found:
                verdicts[finding.code] = Verdict.worst([finding.verdict, verdicts.get(finding.code, Verdict.PROVEN)])
            judged.append(replace(site, verdicts=verdicts))
            findings += found
        return judged, findings

    @property
    def closing_line(self) -> str:
        """Return e.g. `compiler: 12 questions, 11 ok, 1 refused; 8 from earlier runs; 3 call sites of unknown sizes; 0.9 s`."""
        outcomes = [answer.compiles for answer in self.answers.values()]
        parts = [number(len(outcomes), "question"), f"{outcomes.count(True)} ok", f"{outcomes.count(False)} refused"]
        parts += [f"{outcomes.count(None)} not answered"] if None in outcomes else []
        cached = sum(answer.cached for answer in self.answers.values())
        notes = [f"{cached} from earlier runs"] if cached else []
        notes += [f"{number(self.unknown, 'call site')} of unknown sizes"] if self.unknown else []
        return "; ".join([f"compiler: {', '.join(parts)}", *notes, f"{self.seconds:.1f} s"])


def _findings(site: CallSite, answers: Sequence[Answer], certain: Sequence[bool]) -> Iterator[Finding]:
    """Yield a finding for each way to fail, with the first answer of it: one that the source spells out, if there is one."""
    groups: dict[tuple[str, str], list[tuple[Answer, bool]]] = {}
    for answer, spelled_out in zip(answers, certain, strict=True):
        if code := _code(answer):
            groups.setdefault((code, answer.failure or ""), []).append((answer, spelled_out))
    for (code, _), group in groups.items():
        group.sort(key=lambda each: not each[1])
        answer, spelled_out = group[0]
        chips = ", ".join(dict.fromkeys(each.question.chip.name for each, _ in group))
        rule = None if code in OWN_CODES else answer.rule
        reason = "" if spelled_out else "it depends on a condition that is not known"
        geometry = answer.question.geometry
        shown = rule.relation.names if rule else _unusual(answer.question)
        yield Finding(
            code=code,
            name=rule.name if rule else OWN_CODES[code].name,
            verdict=Verdict.VIOLATED if spelled_out and answer.compiles is not None else Verdict.UNPROVEN,
            path=site.path,
            span=site.span,
            call=site.span,
            callee=site.callee,
            message=_message(answer, chips),
            relation="",
            values={name: Value(geometry[name], "") for name in shown if name in geometry},
            reason=answer.message if answer.compiles is None else reason,
        )


def _unusual(question: Question) -> Iterator[str]:
    """Yield the names that tell what was asked, but for what is as it always is."""
    kernel = question.kernel
    yield from (name for name in kernel.names if kernel.usual.get(name, UNKNOWN) != question.geometry.get(name))


def _code(answer: Answer) -> str:
    """Return the code to report an answer under; empty where there is nothing to say, or the contract has said it."""
    if answer.compiles:
        return DISPUTED if answer.disputed else ""
    if answer.foreseen:
        return ""
    return answer.rule.code if answer.rule else REFUSED


def _message(answer: Answer, chips: str) -> str:
    if answer.compiles is None:
        return f"the TPU compiler does not say whether the call compiles for {chips}"
    if answer.compiles:
        codes = ", ".join(rule.code for rule in answer.disputed)
        return f"the call compiles for {chips}, although {codes} should not hold there; please report it"
    return f"the TPU compiler refuses the call for {chips}: {answer.words}: {answer.brief}"
