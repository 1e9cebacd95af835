"""Asks libtpu whether one call of JAX's kernel compiles: a child process that is killed where it takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TOPOLOGIES = {"v4": "v4:2x2x1", "v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v6e": "v6e:2x2", "tpu7x": "tpu7x:2x2x1"}
_SETTINGS = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "JAX_PLATFORMS": "cpu",
    "TPU_MIN_LOG_LEVEL": "4",
    "TPU_STDERR_LOG_LEVEL": "4",
}


class Answer(NamedTuple):
    """What the compiler says: empty where it compiles; None where it took too long, or died of it."""

    error: str | None
    seconds: float


class Compiler:
    """One child process that compiles; a new one takes its place where it had to be killed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, geometry: Mapping[str, Any], timeout: float) -> Answer:
        """Compile the call of a geometry, named as `shapecheck.judge` does, for its `chip`."""
        started = time.monotonic()
        child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(geometry) + "\n")
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], timeout)
            line = child.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.stop()
        return Answer(json.loads(line) if line else None, time.monotonic() - started)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", str(Path(__file__).with_name("compiling.py"))]
        environment = {**os.environ, **_SETTINGS}
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        return self._child

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


def skip_without_libtpu() -> None:
    pytest.importorskip("libtpu", reason="asks the TPU compiler, which libtpu has")
