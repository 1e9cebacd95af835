"""A call that hangs: there is no error to read, only a description, or the stacks of the processes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from codemods.diagnose.diagnosis import Diagnosis, geometry
from codemods.diagnose.pasted import Pasted, snippet
from shapecheck.chip import chip_of
from shapecheck.contracts import CONTRACTS
from shapecheck.rule import Verdict

CODE = "SC204"
"""The rule of the only call that is known to hang."""

_MODE = re.compile(r"\bmegacore(?:[_ ]mode)?\b[\s\"'=:`]{1,6}(kv_head|batch)\b", re.IGNORECASE)
_HANGS = re.compile(
    r"\b(?:hangs?|hanging|hung|stuck|deadlock\w*|freezes|deadline[_ ]exceeded|never (?:returns|finishes|ends)|timed out"
    r"|does(?: not|n't) (?:return|finish|end))\b",
    re.IGNORECASE,
)
_KERNEL = re.compile(r"(?<![\w.])(?<!ragged )(?<!queries )paged[_ -]attention\b", re.IGNORECASE)
_WAITS = re.compile(r"^\s*block_until_ready \(")  # in stacks as py-spy shows them
_CHIP = re.compile(r"\b(?:TPU ?)?(v5[ep]|v6e|v7x|tpu7x|v[234]|v5 ?lite(?:pod)?|v6 ?lite)(?=\b|-\d)", re.IGNORECASE)
_NEAR = 40  # lines between what says that it hangs and the mode


def diagnosed(pasted: Pasted) -> Iterator[Diagnosis]:
    """Yield the rule about chips without two cores where a text tells of a hang, and of a mode or the kernel near to it."""
    if "megacore" in pasted.squeezed.lower():
        yield from _of_mode(pasted)
        return
    for number, line in enumerate(pasted.lines):
        if _KERNEL.search(line) and _HANGS.search(line):
            yield from _diagnosis(pasted, number, number, {})
            return


def _of_mode(pasted: Pasted) -> Iterator[Diagnosis]:
    lines = pasted.lines
    modes = [(number, found[1].lower()) for number, line in enumerate(lines) if (found := _MODE.search(line))]
    hangs = [number for number, line in enumerate(lines) if modes and (_HANGS.search(line) or _WAITS.match(line))]
    nearest = [bisect_left(hangs, at - _NEAR) for at, _ in modes]
    pairs = ((at, hangs[index], mode) for (at, mode), index in zip(modes, nearest, strict=True) if index < len(hangs))
    told = next(((at, hang, mode) for at, hang, mode in pairs if hang <= at + _NEAR), None)
    if told is None:
        return
    at, hang, mode = told
    yield from _diagnosis(pasted, min(at, hang), max(at, hang), {"megacore_mode": mode})


def _diagnosis(pasted: Pasted, first: int, last: int, said: Mapping[str, Any]) -> Iterator[Diagnosis]:
    lines, read = pasted.lines, dict(said)
    contract = next(each for each in CONTRACTS.values() if any(rule.code == CODE for rule in each.rules))
    rule = next(rule for rule in contract.rules if rule.code == CODE)
    chips = {name for line in lines[max(0, first - _NEAR) : last + _NEAR] for name in map(_chip, _CHIP.findall(line))}
    if len(chips) == 1:
        read["cores_per_device"] = chip_of(chips.pop()).cores_per_device
    if rule.judge(geometry(contract, read)) is Verdict.PROVEN:  # it hangs for another reason
        return
    text = snippet(lines[first] if first == last else f"{lines[first]} ... {lines[last]}")
    place = pasted.own_frame(first)
    yield Diagnosis(rule, contract, first + 1, text, read, certain=False, place=place, argument=rule.argument)


def _chip(word: str) -> str:
    """Return the chip that a word means; `TPU v5 lite` is one, and so is the beginning of `v5litepod-16`."""
    spelled = word.lower().replace(" ", "")
    spelled = {"v5lite": "v5e", "v5litepod": "v5e", "v6lite": "v6e"}.get(spelled, spelled)
    return chip_of(spelled).name
