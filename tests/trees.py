"""Programs of several files, and their real executions: run as `python -m tests.trees`, in a process of its own.

It reads the folders that stdin names, one a line, and writes what their executions recorded to stdout, pickled: by folder, a
`Ran`. Each execution is a process of its own: `main.py` and each `run_*.py` as a script, `main.py` as a module of which the
functions `f...` are called, and pytest where there are tests.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pickle
import runpy
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .programs import stubs

VALUES = (0, 1, 2, 3)
"""What functions are called with."""


TreeRecord = tuple[str, int, dict[str, Any]]
"""One call of the kernel: the file, by its path in the tree, the line and the geometry."""


class TreeRan(NamedTuple):
    """What the executions of a tree recorded, and whether one of them raised."""

    records: list[TreeRecord]
    raised: bool


def _call_functions() -> None:
    module = importlib.import_module("main")
    functions = [held for name, held in sorted(vars(module).items()) if name[0] == "f" and name[1:].isdigit()]
    for function in functions:
        count = len(inspect.signature(function).parameters)
        for value in VALUES if count else VALUES[:1]:
            function(*[value] * count)


def _test() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        failed = pytest.main(["-q", "-p", "no:cacheprovider"])
    if failed:
        raise AssertionError(said.getvalue())


def _executions(folder: Path) -> list[Callable[[], object]]:
    runs: list[Callable[[], object]] = [
        lambda script=script: runpy.run_path(script.name, run_name="__main__") for script in sorted(folder.glob("run_*.py"))
    ]
    if (folder / "main.py").exists():
        runs += [lambda: runpy.run_path("main.py", run_name="__main__"), _call_functions]
    if list(folder.glob("**/test_*.py")):
        runs.append(_test)
    return runs


def _execute(folder: Path, run: Callable[[], object]) -> TreeRan:
    """Execute something in a process of its own."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        records: list[tuple[str, int, dict[str, Any]]] = []

        def record(frame: types.FrameType, values: dict[str, Any]) -> None:
            path = os.path.relpath(os.path.realpath(frame.f_code.co_filename), os.path.realpath(folder))
            records.append((path, frame.f_lineno, values))

        raised = False
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        with stubs(record):
            try:
                run()
            except BaseException as error:
                print(folder.name, repr(error), file=sys.stderr)
                raised = True
        with os.fdopen(writing, "wb") as file:
            pickle.dump((records, raised), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        ran = TreeRan(*pickle.load(file))
    os.waitpid(child, 0)
    return ran


def run(folder: Path) -> TreeRan:
    """Execute a tree in all ways."""
    rans = [_execute(folder, each) for each in _executions(folder)]
    return TreeRan([record for ran in rans for record in ran.records], any(ran.raised for ran in rans))


def parse(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return the trees of a text, by name: each has its files, by path."""
    trees: dict[str, dict[str, str]] = {}
    for block in text.split("\n## ")[1:]:
        name, _, body = block.partition("\n")
        files = [part.partition("\n") for part in f"\n{body}".split("\n=== ")[1:]]
        trees[name] = {path: source.rstrip("\n") + "\n" for path, _, source in files}
    return trees


if __name__ == "__main__":
    results = {line.strip(): tuple(run(Path(line.strip()))) for line in sys.stdin}
    sys.stdout.buffer.write(pickle.dumps(results))
