"""Many questions, to as many processes as are worth their start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from shapecheck.compiler.answer import Answer, Failure
from shapecheck.compiler.cache import Cache
from shapecheck.compiler.process import COMMAND, CompilerUnavailable, Process, ProcessDied
from shapecheck.compiler.question import Question

TIMEOUT = 120.0
"""Seconds for one call: most take less than one, and a block of 1,638 pages took 102."""

_CALLS, _CORES = 8, 2  # that make one more process worth its start: with fewer, the others are done before it is of use


def ask(
    questions: Sequence[Question],
    *,
    timeout: float = TIMEOUT,
    processes: int | None = None,
    cache: Cache | None = None,
    watch: Callable[[int, int], None] = lambda done, of: None,
    command: Sequence[str] = COMMAND,
) -> list[Answer]:
    """Ask libtpu whether calls compile, each for its chip; no TPU is needed, and none is touched.

    A call that takes too long, or crashes the compiler, costs no more than its own answer.

    Args:
        questions: the calls; what occurs twice is asked once.
        timeout: seconds for each.
        processes: how many compile at a time; None: as many as are worth it.
        cache: answers of earlier runs, and the place for those of this one; None: all are asked.
        watch: is told how many are answered, and how many there are, when it begins and whenever one is.
        command: what is started to hold libtpu.

    Returns:
        The answers, in the order of the questions.

    Raises:
        CompilerUnavailable: there is no compiler to ask.
    """
    distinct = {question.key: question for question in questions}
    answers = {key: answer for key, question in distinct.items() if cache and (answer := cache.get(question))}
    waiting = [question for key, question in distinct.items() if key not in answers]
    if waiting:
        watch(len(answers), len(distinct))
        count = processes or max(1, min((os.cpu_count() or 1) // _CORES, len(waiting) // _CALLS))
        for question, result in _Lanes(waiting, timeout, command).results(count):
            if isinstance(result, Answer):
                answers[question.key] = result
            else:
                answers[question.key] = Answer.read(question, result)
                if cache:
                    cache.put(question, result)
            watch(len(answers), len(distinct))
    return [answers[question.key] for question in questions]


class _Lanes:
    """Threads that take the next question each, and put it to a process of their own."""

    def __init__(self, waiting: Sequence[Question], timeout: float, command: Sequence[str]) -> None:
        self._waiting: SimpleQueue[Question] = SimpleQueue()
        self._results: SimpleQueue[tuple[Question, Mapping[str, Any] | Answer] | BaseException] = SimpleQueue()
        self._running: set[Process] = set()
        self._stopped = False
        self._lock = Lock()  # of these two
        self._timeout, self._command = timeout, command
        for question in waiting:
            self._waiting.put(question)

    def results(self, count: int) -> Iterator[tuple[Question, Mapping[str, Any] | Answer]]:
        """Yield each question with the reply to it, or with the answer that there is none."""
        left = self._waiting.qsize()
        threads = [Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(left):
                result = self._results.get()
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:  # also after an interrupt
            with self._lock:
                self._stopped = True
                for process in self._running:
                    process.kill()
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        process: Process | None = None
        try:
            while question := self._next():
                process = process or self._start()
                try:
                    self._results.put((question, process.ask(question.request, self._timeout)))
                except (TimeoutError, ProcessDied) as error:
                    failure = Failure.TIMEOUT if isinstance(error, TimeoutError) else Failure.CRASH
                    self._results.put((question, Answer(question, failure, str(error))))
                    self._end(process)
                    process = None
        except BaseException as error:
            self._results.put(error)
        finally:
            if process is not None:
                self._end(process)

    def _next(self) -> Question | None:
        with suppress(Empty):
            return self._waiting.get_nowait()
        return None

    def _start(self) -> Process:
        with self._lock:
            if self._stopped:
                raise CompilerUnavailable("it is not wanted any more")
            process = Process(self._command)
            self._running.add(process)
        try:
            process.wait()
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: Process) -> None:
        with self._lock:
            self._running.discard(process)
        process.close()
