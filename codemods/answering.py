"""The command `explain`: what a code means, and what an error text, a traceback or a log tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codemods.explain import Explanation, explain, explanation_of

# Reading a text takes all contracts and callees, which the explanation of a code does not.
if TYPE_CHECKING:
    from codemods.diagnose import Diagnosis, Remark, Unplaced

STANDARD_INPUT = "-"
_UNKNOWN_TEXT, _UNKNOWN_CODE = 1, 2


@dataclass(frozen=True)
class Answer:
    """What there is to say of one argument: of a code, or of a text; or the problem with it, and the exit status for that."""

    explanation: Explanation | None = None
    found: Sequence[Diagnosis] = ()
    unplaced: Sequence[Unplaced] = ()
    remarks: Sequence[Remark] = ()
    problem: str = ""
    status: int = 0


def answered(words: Sequence[str], standard_input: Callable[[], bytes]) -> Iterator[Answer]:
    """Yield the answer to each argument: what holds a space, or nothing, is a text, and `-` stands for standard input."""
    for word in words:
        if word == STANDARD_INPUT:
            from codemods.diagnose import decoded

            yield _of_text(decoded(standard_input()))
        elif not word or any(map(str.isspace, word)):
            yield _of_text(word)
        else:
            yield _of_code(word)


def as_text(answers: Sequence[Answer]) -> str:
    """Return what is explained; the problems are not part of it."""
    return "\n".join(filter(None, map(_text, answers)))


def as_json(answers: Sequence[Answer]) -> str:
    """Return one object; its keys are stable, and all are always there."""
    document = {
        "version": 1,
        "rules": [each.explanation._asdict() for each in answers if each.explanation],
        "diagnoses": [diagnosis for each in answers for diagnosis in _documents(each)],
        "remarks": [remark._asdict() for each in answers for remark in each.remarks],
        "unplaced": [unplaced._asdict() for each in answers for unplaced in each.unplaced],
        "problems": [each.problem for each in answers if each.problem],
    }
    return json.dumps(document, indent=2) + "\n"


def _of_code(word: str) -> Answer:
    try:
        return Answer(explanation_of(word))
    except KeyError as error:
        return Answer(problem=error.args[0], status=_UNKNOWN_CODE)


def _of_text(text: str) -> Answer:
    if not text.strip():
        return Answer(problem="there is no text to explain", status=_UNKNOWN_TEXT)
    from codemods.diagnose import diagnose, remarked
    from codemods.report.diagnoses import nothing_found

    found, unplaced = diagnose(text)
    if found:
        return Answer(found=found)
    if remarks := remarked(text):
        return Answer(remarks=remarks)
    return Answer(unplaced=unplaced, problem=nothing_found(unplaced), status=_UNKNOWN_TEXT)


def _text(answer: Answer) -> str:
    if answer.explanation is not None:
        return explain(answer.explanation.code)
    if not answer.found and not answer.remarks:
        return ""
    from codemods.report.diagnoses import as_text, of_remarks

    return as_text(answer.found) if answer.found else of_remarks(answer.remarks)


def _documents(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.found:
        from codemods.report.diagnoses import document

        yield from map(document, answer.found)
