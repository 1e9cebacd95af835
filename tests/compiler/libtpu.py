"""Asks libtpu whether one call of JAX's kernel compiles: in a child process, which is killed where it takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SETTINGS = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "JAX_PLATFORMS": "cpu",
}


class Compiler:
    """One child process that compiles; a new one takes its place where it had to be killed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, geometry: Mapping[str, Any], *, seconds: float) -> str | None:
        """Return the compiler's error, empty where the call compiles; None where it takes longer, or the compiler dies of it."""
        child = self._child = self._child or _start()
        assert child.stdin is not None
        assert child.stdout is not None
        line = ""
        try:
            child.stdin.write(json.dumps(geometry) + "\n")
            child.stdin.flush()
            if select.select([child.stdout], [], [], seconds)[0]:
                line = child.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            self._stop()
            return None
        return json.loads(line)

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, "-P", str(Path(__file__).with_name("compiling.py"))]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **_SETTINGS},
    )
