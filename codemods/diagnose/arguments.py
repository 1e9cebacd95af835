"""A call that does not fit the parameters of a kernel: it is Python that says so, in the caller's frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from inspect import Parameter

from codemods.callees import CALLEES, FITS, Callee
from codemods.diagnose.diagnosis import Diagnosis
from codemods.diagnose.kernels import is_of
from codemods.diagnose.pasted import Pasted, snippet

_SAYS = re.compile(
    r"\bTypeError: (?P<function>\w+)\(\) (?P<error>missing \d+ required|got an unexpected keyword argument"
    r"|got multiple values for argument|takes (?:from \d+ to )?\d+ positional arguments? but)(?P<rest>.*)"
)
_QUOTED = re.compile(r"'(\w+)'")


def diagnosed(pasted: Pasted) -> Iterator[Diagnosis]:
    """Yield the rule about the signature where Python says that a call of a kernel, or of what has its name, breaks it."""
    for number, line in enumerate(pasted.lines):
        if "TypeError: " not in line or (found := _SAYS.search(line)) is None:
            continue
        named = _QUOTED.findall(found["rest"])
        fitting = [each for each in _called(found["function"], pasted, number) if _may_be(each, found["error"], named)]
        if fitting:
            callee = fitting[0]
            rule = replace(FITS, advice=lambda _, callee=callee: f"its parameters are {_parameters(callee)}")
            # Kernels for other hardware have the same name: who lacks what only this one has is this one.
            certain = found["error"].startswith("missing") and set(named) <= callee.required
            yield Diagnosis(rule, callee.contract, number + 1, snippet(line), certain=certain, place=pasted.own_frame(number))


def _called(function: str, pasted: Pasted, number: int) -> list[Callee]:
    """Return the kernels of a name, those first that the frames of the traceback show."""
    callees = [each for path, each in CALLEES.items() if path.endswith(f".{function}")]
    frames = pasted.frames_in(pasted.section(number))
    return sorted(callees, key=lambda each: not any(is_of(each.contract, frame) for frame in frames))


def _may_be(callee: Callee, error: str, named: list[str]) -> bool:
    """Say whether the error can be about a kernel, by the names of parameters in it."""
    if error.startswith("got an unexpected"):
        return not set(named) & callee.by_keyword
    return set(named) <= set(callee.signature.parameters)


def _parameters(callee: Callee) -> str:
    """Return the signature in words: which parameters are optional is known, what their defaults are differs by version."""
    words: list[str] = []
    for each in callee.signature.parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(each.name if each.default is Parameter.empty else f"[{each.name}]")
    return f"({', '.join(words)}); in brackets those that may be left out"
