"""What a run has to say: findings, call sites and files that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codemods.source import Span
from shapecheck.rule import Applicability, Verdict

if TYPE_CHECKING:
    from codemods.known import Geometry


@dataclass(frozen=True)
class Edit:
    """A replacement of bytes `[start, end)` of a source's UTF-8 text; without a `path`, in the file that it is found for."""

    start: int
    end: int
    replacement: str
    path: str = ""


@dataclass(frozen=True)
class ProposedFix:
    """A repair of one finding: `edits` are applied together or not at all; `display` advice has none."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Value:
    """The value of one name of a relation, and the expression of the source that it comes from."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Contexts:
    """In how many of the executions that the source spells out a rule fails, with one of them by its names."""

    violating: int
    total: int
    example: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """One rule at one call site whose verdict is worth a look.

    `span` is the argument at fault where the call has it, else the call; `call` is the call expression. `reason` says
    why an unproven rule could not be told, with the line where knowledge ended.
    """

    code: str
    name: str
    verdict: Verdict
    path: str
    span: Span
    call: Span
    callee: str
    message: str
    relation: str
    values: Mapping[str, Value]
    reason: str = ""
    advice: str = ""
    counterexample: Mapping[str, Any] | None = None
    contexts: Contexts | None = None
    fix: ProposedFix | None = None


@dataclass(frozen=True)
class CallSite:
    """A call of a known callee, with the verdict of each rule by its code.

    Where they were asked for, `geometries` are the values with which it is reached, as a compiler needs them, and `values` are
    the different ones of each name.
    """

    path: str
    span: Span
    callee: str
    contract: str
    verdicts: Mapping[str, Verdict]
    geometries: Sequence[Geometry] = ()
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict[str, Sequence[Value]])


@dataclass(frozen=True)
class FileError:
    """A file that could not be read or parsed (SC901), or that a fix could not be written to; `cell` is that of a notebook."""

    path: str
    line: int
    message: str
    code: str = "SC901"
    cell: int | None = None


@dataclass(frozen=True)
class Note:
    """Something about a file that is worth a word, and no finding: what was adopted, or a suppression of what is no rule."""

    path: str
    line: int
    message: str


@dataclass
class Report:
    """All that one run found; `files` were looked at, `parsed` of them were worth parsing.

    Comments keep `suppressed` more findings back, baselines `baselined`; the verdicts of call sites are what they are without.
    `selected` says that the verdicts of some rules are left out, as the settings ask for: what is proven is so by the others.
    """

    findings: list[Finding] = field(default_factory=list[Finding])
    call_sites: list[CallSite] = field(default_factory=list[CallSite])
    errors: list[FileError] = field(default_factory=list[FileError])
    notes: list[Note] = field(default_factory=list[Note])
    files: int = 0
    parsed: int = 0
    suppressed: int = 0
    baselined: int = 0
    fixed: int = 0
    selected: bool = False
