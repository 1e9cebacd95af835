"""What the pages show of a terminal, where commands change files: they run in order, in a copy of the example."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGES = (ROOT / "docs" / "adopt.md", EXAMPLES / "README.md")

_COMMANDS = 'shapecheck() { "$PYTHON" -m codemods "$@"; }; python() { "$PYTHON" "$@"; }; '


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a copy of the example, which is a repository of its own."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "examples"
        shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__", ".*cache"))
        (copy / ".git").mkdir()
        yield copy


def run(command: str, folder: Path) -> str:
    """Return what a command prints, on both streams."""
    plain = {"NO_COLOR": "1", "COLUMNS": "100", "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", _COMMANDS + command],
        cwd=folder,
        env={**os.environ, **plain},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return re.sub(r"(?<= in )\d+\.\d\ds", "3.21s", done.stdout)  # the time is no property of the code


def outputs(bodies: list[str]) -> list[str]:
    """Return the blocks of a session with the output of their commands as it is now."""
    with scratch() as folder:
        return [
            "".join(f"{line}\n{run(line[2:], folder)}" for line in body.splitlines() if line.startswith("$ ")) for body in bodies
        ]
