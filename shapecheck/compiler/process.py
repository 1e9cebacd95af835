"""The process that holds libtpu, seen from outside: whatever happens to it, the caller gets an answer in time."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("worker.py")))
_START = 120.0  # seconds; importing JAX takes 1 to 10 of them
_TAIL = 2000  # bytes of what a process wrote before it died


class CompilerUnavailable(Exception):
    """The compiler cannot be asked at all; the message says why, and what to do."""


class ProcessDied(Exception):
    """The process ended while it compiled; the message says how."""


class Process:
    """One such process; it may answer many questions, one at a time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        if sys.platform == "win32":
            raise CompilerUnavailable("libtpu needs Linux")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._read = b""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # an interrupt is for us, who end it; and what it starts ends with it
        )

    def wait(self) -> None:
        """Wait until it is ready.

        Raises:
            CompilerUnavailable: JAX or libtpu is not installed, or does not start.
        """
        try:
            hello = self._reply(_START)
        except (ProcessDied, TimeoutError) as error:
            raise CompilerUnavailable(f"libtpu does not start: {error}") from None
        if "ready" not in hello:
            raise CompilerUnavailable(_why(hello))

    def ask(self, request: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        """Return the reply to a request; after an exception the process is of no more use.

        Args:
            request: as `worker.py` reads it, but for the time limit.
            timeout: seconds to wait.

        Raises:
            TimeoutError: no reply within that time.
            ProcessDied: it crashed.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is dead, which the reply will tell
            self._process.stdin.write(json.dumps({**request, "timeout": timeout}).encode() + b"\n")
            self._process.stdin.flush()
        return self._reply(timeout)

    def kill(self) -> None:
        """End it, and all that it has started, from whatever thread."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and leave nothing open."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _reply(self, timeout: float) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"no answer within {timeout:g} s")
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    raise ProcessDied(self._death())
                self._read += data
        line, _, self._read = self._read.partition(b"\n")
        reply: Mapping[str, Any] = json.loads(line)
        return reply

    def _death(self) -> str:
        """Say how the process ended, with the last that it wrote."""
        status = self._process.wait()
        how = f"it was ended by {signal.Signals(-status).name}" if status < 0 else f"it ended with status {status}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _TAIL))
        wrote = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return f"{how}: {wrote[-1]}" if wrote else how


def _why(hello: Mapping[str, Any]) -> str:
    if absent := hello.get("absent"):
        return f"not installed: {', '.join(absent)}; pip install 'shapecheck-pallas[tpu]' (it needs Linux, but no TPU)"
    text = str(hello.get("error", hello))
    if "lockfile" in text or "already in use" in text:
        return f"another process holds libtpu: {text}"
    return f"libtpu does not start: {text}"
