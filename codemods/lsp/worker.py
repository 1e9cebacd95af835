"""The process that answers the questions of the server, one after the other; run as `python -m codemods.lsp.worker`.

The server ends it when nobody waits for the answer any more: what executes a program abstractly cannot be interrupted otherwise.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from codemods.findings import FileError
from codemods.lsp.diagnostics import of_error
from codemods.lsp.session import Answer, Check, Checked, Edited, Question, answer

LENGTH = 8  # bytes, before each message


def packed(message: object) -> bytes:
    """Return a message as it is sent."""
    data = pickle.dumps(message)
    return len(data).to_bytes(LENGTH) + data


def main() -> None:
    """Answer questions until there are no more."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anything prints is no answer
    while (question := _read(questions)) is not None:
        answers.write(packed(_answer(question)))
        answers.flush()


def failure(question: Question, why: str) -> Answer:
    """Word that a question has found no answer."""
    if isinstance(question, Check):
        return Checked([of_error(FileError(question.ask.path, 1, f"internal error, please report it: {why}"))])
    return Edited({}, f"internal error, please report it: {why}")


def _answer(question: Question) -> Answer:
    try:
        return answer(question)
    except Exception as error:  # a defect of ours: the next question may be answered all the same
        return failure(question, repr(error))


def _read(stream: BinaryIO) -> Question | None:
    length = stream.read(LENGTH)
    return pickle.loads(stream.read(int.from_bytes(length))) if len(length) == LENGTH else None


if __name__ == "__main__":
    main()
