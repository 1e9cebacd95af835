"""What the TPU compiler says of the calls that a run of tests has made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapecheck.calls_seen import Call
from shapecheck.chip import Chip
from shapecheck.compiler import KERNELS, Cache, CompilerUnavailable, Question, ask, cache_folder


@dataclass(frozen=True)
class Opinion:
    """One line of the report; a bad one fails the run."""

    line: str
    is_bad: bool = False


def opinions(calls: Iterable[Call], chips: Sequence[Chip]) -> list[Opinion]:
    """Ask about each call, on each chip; of a kernel that libtpu is not asked about, say so."""
    said: list[Opinion] = []
    asked: list[tuple[Call, Question]] = []
    for call in calls:
        if (kernel := KERNELS.get(call.callee)) is None:
            said.append(Opinion(f"  not asked    {call}: only calls of {' and '.join(KERNELS)} are compiled"))
            continue
        geometry = call.geometry
        if call.of_front_door:
            if not kernel.front_door.uses_tpu(geometry):
                said.append(Opinion(f"  not asked    {call}: it does not run on a TPU"))
                continue
            if kernel.front_door.is_split(geometry):
                said.append(Opinion(f"  not asked    {call}: what each device gets of it is a call of its own"))
                continue
            geometry = kernel.handed_on(geometry)
        try:
            asked += [(call, Question(kernel, chip, geometry)) for chip in chips]
        except ValueError as error:
            said.append(Opinion(f"  not asked    {call}: {error}"))
    try:
        answers = ask([question for _, question in asked], cache=Cache(cache_folder()))
    except CompilerUnavailable as error:
        return [*said, Opinion(f"--shapecheck-compile: there is no compiler to ask: {error}", is_bad=True)]
    compiled = 0
    for (call, question), answer in zip(asked, answers, strict=True):
        if answer.compiles:
            compiled += 1
        else:
            words = answer.words if answer.compiles is False else f"no answer, {answer.words}"
            said.append(Opinion(f"  {question.chip.name}: {words}: {call}\n      {answer.brief}", is_bad=True))
    return [Opinion(f"libtpu compiles {compiled} of {len(asked)} calls for {', '.join(chip.name for chip in chips)}"), *said]
