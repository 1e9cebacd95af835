"""Work that takes time: in other processes, so that the editor never waits, and given up when a newer edit makes it pointless."""

from __future__ import annotations

import asyncio
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import cast

from codemods.lsp.documents import Document
from codemods.lsp.session import Answer, Check, Checked, Question
from codemods.lsp.worker import LENGTH, failure, packed

_DELAY = 0.2  # seconds without an edit before a check begins
_PATIENCE = 60  # seconds that a request waits for the check of its document
_COMMAND = (sys.executable, "-P", "-m", "codemods.lsp.worker")  # nothing is imported from the working folder


class Worker:
    """One process, which is started anew after it was ended."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Have the process ready for a question: it takes a moment to load."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=PIPE, stdout=PIPE)

    async def ask(self, question: Question) -> Answer:
        """Return the answer; whoever cancels this ends the process."""
        async with self._turn:
            await self.start()
            assert self._process is not None
            questions, answers = self._process.stdin, self._process.stdout
            assert questions is not None
            assert answers is not None
            try:
                questions.write(packed(question))
                await questions.drain()
                length = await answers.readexactly(LENGTH)
                return pickle.loads(await answers.readexactly(int.from_bytes(length)))
            except (asyncio.IncompleteReadError, OSError):
                self.stop()
                return failure(question, "the process that checks has ended")
            except asyncio.CancelledError:
                self.stop()
                raise

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
        self._process = None


class Checks:
    """The checks of all open documents: one after the other, the one that was edited last first.

    Args:
        question: words the question about a document as it is now.
        publish: is told what there is to show of a document.
    """

    def __init__(self, question: Callable[[Document], Check], publish: Callable[[Document, Checked], None]) -> None:
        self._question = question
        self._publish = publish
        self._worker = Worker()
        self._due: list[Document] = []
        self._task: asyncio.Task[None] | None = None
        self._answers: dict[str, tuple[int, Checked]] = {}
        self._news = asyncio.Event()

    def begin(self, documents: Iterable[Document]) -> None:
        """Check documents anew, in this order, and whatever else is still to be checked; what runs now is given up."""
        if self._task is not None:
            self._task.cancel()
        documents = list(documents)
        self._due = [*documents, *(each for each in self._due if each not in documents)]
        self._task = asyncio.get_running_loop().create_task(self._run())

    def forget(self, document: Document) -> None:
        """Tell nothing of a document any more."""
        self._due = [each for each in self._due if each is not document]
        self._answers.pop(document.uri, None)

    async def current(self, document: Document) -> Checked:
        """Return what there is to show of a document as it is now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while self._answers.get(document.uri, (0,))[0] != document.revision:
                    await self._news.wait()
        return self._answers.get(document.uri, (0, Checked()))[1]

    def stop(self) -> None:
        """Give everything up."""
        if self._task is not None:
            self._task.cancel()
        self._worker.stop()

    async def _run(self) -> None:
        await self._worker.start()
        await asyncio.sleep(_DELAY)
        while self._due:
            document = self._due[0]
            revision = document.revision
            checked = cast(Checked, await self._worker.ask(self._question(document)))
            self._due = [each for each in self._due if each is not document]
            self._answers[document.uri] = revision, checked
            self._publish(document, checked)
            self._news.set()
            self._news = asyncio.Event()
