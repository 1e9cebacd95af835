"""What the compiler said: that it compiles, or what failed, with the rule that describes it."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from shapecheck.compiler.question import Question
from shapecheck.contracts.memory import bounds
from shapecheck.rule import Rule, Verdict

_BRIEF = 160  # characters


class Failure(enum.StrEnum):
    """Where a call failed. The last three are no answer: what the compiler would say is not known."""

    UPSTREAM = "upstream_value_error"
    BLOCK_SHAPE = "pallas_block_shape"
    CAST = "unsupported_cast"
    VERIFICATION = "compiler_VerificationError"
    MOSAIC = "compiler_MosaicError"
    SMEM = "oom_smem"
    VMEM = "oom_vmem"
    HBM = "oom_hbm"
    OTHER = "compiler_error"
    TIMEOUT = "timeout"
    CRASH = "crash"


class _Class(NamedTuple):
    """What a failure is called, and the prefixes of the codes of the rules that describe such a one.

    Where there is none, those that begin with `else_by` do. `decides` is the code of the rule that describes every such failure,
    so that it does so too where it was not foreseen.
    """

    words: str
    described_by: tuple[str, ...] = ("SC3",)
    else_by: str = ""
    decides: str = ""


_CLASSES = {
    Failure.UPSTREAM: _Class("JAX refuses the arguments", ("SC1", "SC2"), else_by="SC3"),
    Failure.BLOCK_SHAPE: _Class("Pallas cannot lower the kernel: a block has a shape that the TPU does not have"),
    Failure.CAST: _Class("Pallas cannot lower the kernel: a cast that the TPU does not have"),
    Failure.VERIFICATION: _Class("Pallas makes a kernel that is not valid", ("SC1", "SC3")),
    Failure.MOSAIC: _Class("the kernel compiler, Mosaic, fails"),
    Failure.SMEM: _Class("the call needs more scalar memory (SMEM) than there is", ("SC305",), decides="SC305"),
    Failure.VMEM: _Class("the call needs more vector memory (VMEM) than there is", ("SC306",), decides="SC306"),
    Failure.HBM: _Class("the call needs more memory (HBM) than there is"),
    Failure.OTHER: _Class("the compiler fails", ("SC1", "SC3")),
    Failure.TIMEOUT: _Class("the compiler takes too long"),
    Failure.CRASH: _Class("the compiler crashes"),
}

_MARKS = (  # the first that the message has decides
    ("last two dimensions of your block shape", Failure.BLOCK_SHAPE),
    ("Unsupported cast", Failure.CAST),
    ("internal verification error", Failure.VERIFICATION),
    ("Mosaic failed to compile", Failure.MOSAIC),
)
_SPACES = (("smem", Failure.SMEM), ("vmem", Failure.VMEM), ("hbm", Failure.HBM))
_SIZE = r"(\d{1,15}(?:\.\d{1,15})?[KMGT]?)"
_USES = (  # how libtpu says what is used, of what limit, and how far beyond it that is
    re.compile(rf"size={_SIZE}\) would exceed memory \(size={_SIZE}\)"),
    re.compile(rf"size {_SIZE} and limit {_SIZE} exceeded scoped \w+ limit by {_SIZE}"),
    re.compile(rf"Used {_SIZE} of {_SIZE} \w+\. Exceeded \w+ capacity by {_SIZE}"),
    re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Answer:
    """What the compiler said to a question.

    Attributes:
        question: the question.
        failure: None: it compiles.
        message: what the compiler, or JAX, wrote about the failure; or why there is no answer.
        seconds: how long it took to compile, or to fail.
        memory: the bytes that it needs on one device, by `"hbm"` and `"vmem"`, where it compiles.
        used: of a memory that does not suffice, the bytes that would be needed, where the compiler says it,
        limit: and the bytes that there are.
        cached: whether it was asked before, on an earlier run.
    """

    question: Question
    failure: Failure | None = None
    message: str = ""
    seconds: float = 0.0
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    used: int | None = None
    limit: int | None = None
    cached: bool = False

    @classmethod
    def read(cls, question: Question, reply: Mapping[str, Any], *, cached: bool = False) -> Answer:
        """Read a reply of the worker.

        Raises:
            KeyError: the reply lacks something.
        """
        if reply["ok"]:
            return cls(question, seconds=reply["seconds"], memory=reply["memory"], cached=cached)
        message: str = reply["message"]
        failure = _failure(reply["stage"], message)
        used, limit = memory_use(message) if failure in (Failure.SMEM, Failure.VMEM, Failure.HBM) else (None, None)
        text = message if failure not in (Failure.UPSTREAM, Failure.OTHER) else f"{reply['type']}: {message}"
        return cls(question, failure, text, reply["seconds"], used=used, limit=limit, cached=cached)

    @property
    def compiles(self) -> bool | None:
        """Whether the compiler takes the call; None where it gave no answer."""
        return None if self.failure in (Failure.TIMEOUT, Failure.CRASH) else self.failure is None

    @property
    def words(self) -> str:
        """What failed, in a few words of ours; empty where it compiles."""
        if self.failure is None:
            return ""
        sizes = f", {mebibytes(self.used)} of {mebibytes(self.limit)}" if self.used and self.limit else ""
        return _CLASSES[self.failure].words + sizes

    @property
    def brief(self) -> str:
        """The beginning of what the compiler wrote, on one line."""
        text = " ".join(self.message.split())
        return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}..."

    @cached_property
    def foreseen(self) -> tuple[Rule, ...]:
        """The rules that the contract says are violated, and that describe what failed."""
        if self.failure is None:
            return ()
        failed = _CLASSES[self.failure]
        described = [rule for rule in self._violated if rule.code.startswith(failed.described_by)]
        return tuple(described or (rule for rule in self._violated if failed.else_by and rule.code.startswith(failed.else_by)))

    @property
    def rule(self) -> Rule | None:
        """The rule that describes what failed, whether or not the contract foresaw it; None where none does."""
        decides = _CLASSES[self.failure].decides if self.failure else ""
        described = [*self.foreseen, *(rule for rule in self.question.contract.rules if rule.code == decides)]
        return described[0] if described else None

    @cached_property
    def disputed(self) -> tuple[Rule, ...]:
        """The rules that the contract says are violated although it compiles: a defect of ours."""
        return tuple(rule for rule in self._violated if self.compiles and not rule.silent)

    @cached_property
    def silent(self) -> tuple[Rule, ...]:
        """The rules that are violated and do not keep it from compiling: it will hang, or go wrong, when it runs."""
        return tuple(rule for rule in self._violated if self.compiles and rule.silent and not rule.is_hint)

    @cached_property
    def hints(self) -> tuple[Rule, ...]:
        """What else there is to say of a call that compiles."""
        return tuple(rule for rule in self._violated if self.compiles and rule.is_hint)

    @cached_property
    def predicted(self) -> Mapping[str, tuple[int, int]]:
        """What the contract says that one device needs of each memory, at least and at most; libtpu says it of two only."""
        return bounds(self.question.geometry, self.question.kernel.spaces)

    @cached_property
    def _violated(self) -> tuple[Rule, ...]:
        geometry = self.question.geometry
        rules = self.question.contract.applicable(geometry)
        return tuple(rule for rule in rules if rule.judge(geometry) is Verdict.VIOLATED)


def mebibytes(size: int) -> str:
    """Return a number of bytes in MiB, with as many digits as tell it from a limit."""
    return f"{size / (1 << 20):,.3f}".rstrip("0").rstrip(".") + " MiB"


def _failure(stage: str, message: str) -> Failure:
    if "RESOURCE_EXHAUSTED" in message:
        head = message[:1000].lower()
        places = [(head.find(name), failure) for name, failure in _SPACES if name in head]
        return min(places)[1] if places else Failure.OTHER
    if found := next((failure for mark, failure in _MARKS if mark in message), None):
        return found
    return Failure.UPSTREAM if stage == "trace" else Failure.OTHER


def memory_use(message: str) -> tuple[int | None, int | None]:
    """Return the bytes used and the bytes there are, as exactly as the message tells them."""
    for pattern in _USES:
        if match := pattern.search(message):
            used, limit, *beyond = map(_bytes, match.groups())
            return (limit + beyond[0] if beyond else used), limit  # `1.00M of 1.00M` is rounded, the limit is a round number
    return None, None


def _bytes(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    return round(float(text.rstrip("KMGT")) * unit)
