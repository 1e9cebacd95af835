"""The command `explain`: what a code means, and what an error text, a traceback or a log tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codemods.diagnose import Diagnosis, Unplaced, decoded, diagnose
from codemods.explain import Explanation, explain, explain_all, explanation_of, explanations
from codemods.report import diagnoses as report

STANDARD_INPUT = "-"
_UNKNOWN_TEXT, _UNKNOWN_CODE = 1, 2


@dataclass(frozen=True)
class Answer:
    """What there is to say of one argument: of a code, or of a text; or the problem with it, and the exit status for that."""

    explanation: Explanation | None = None
    found: Sequence[Diagnosis] = ()
    unplaced: Sequence[Unplaced] = ()
    problem: str = ""
    status: int = 0


def answered(words: Sequence[str], standard_input: Callable[[], bytes]) -> list[Answer]:
    """Return the answer to each argument; without any, every code. What holds a space is a text, and `-` is standard input."""
    answers: list[Answer] = []
    for word in words:
        if word == STANDARD_INPUT:
            answers.append(_of_text(decoded(standard_input())))
        else:
            answers.append(_of_code(word) if word and not any(map(str.isspace, word)) else _of_text(word))
    return answers or [Answer(each) for each in explanations()]


def as_text(answers: Sequence[Answer]) -> str:
    """Return the explanations; of all codes, a line for each."""
    if len(answers) > 1 and len(answers) == len(explanations()):
        return explain_all()
    parts = [explain(each.explanation.code) if each.explanation else report.as_text(each.found) for each in answers]
    return "\n".join(part for part in parts if part)


def as_json(answers: Sequence[Answer]) -> str:
    """Return one object; its keys are stable, and all are always there."""
    document = {
        "version": 1,
        "rules": [each.explanation._asdict() for each in answers if each.explanation],
        "diagnoses": [report.document(found) for each in answers for found in each.found],
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
    found, unplaced = diagnose(text)
    if found:
        return Answer(found=found)
    return Answer(unplaced=unplaced, problem=report.nothing_found(unplaced), status=_UNKNOWN_TEXT)
