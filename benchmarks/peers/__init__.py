"""The static checkers that `benchmarks/static_peers.py` compares, one module each, and what they have in common."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = re.compile(r"\bSC\d+\b")
_MARK = re.compile(r"#:\s*(.+?)\s*$")


class Place(NamedTuple):
    """The first line of a call."""

    file: str
    line: int


class Question(NamedTuple):
    """A marked call: `kind` (`violated`, `proven`, `unproven`, `quiet`) is true of it for the rules `codes`."""

    place: Place
    kind: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What one tool says of a folder of sources.

    Attributes:
        errors: for each call at which it reports something, the codes of the rules it blames; none if it does not say.
        held: the rules that it has shown to hold, each with the call.
        seen: the calls that it has looked at, decided or not.
        elsewhere: how many errors that blame a rule it reports at other lines.
        seconds: the wall time.
    """

    errors: Mapping[Place, AbstractSet[str]]
    held: AbstractSet[tuple[Place, str]]
    seen: AbstractSet[Place]
    elsewhere: int
    seconds: float


def questions(file: str, text: str) -> Iterator[Question]:
    """Yield the questions that the markers of a source ask. `not-a-site` asks none: that call is of another function."""
    for number, line in enumerate(text.splitlines(), 1):
        if (mark := _MARK.search(line)) and mark.group(1) != "not-a-site":
            codes = tuple(CODE.findall(mark.group(1)))
            yield Question(Place(file, number), CODE.sub("", mark.group(1)).strip(), codes)


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files, by their names, into a new folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> tuple[Any, str, float]:
    """Run a tool that prints JSON in a folder; return that, what it wrote to stderr, and the wall seconds.

    Raises:
        SystemExit: it printed something else.
    """
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    try:
        return json.loads(done.stdout), done.stderr, seconds
    except ValueError:
        raise SystemExit(f"{command[0]} printed no report: {(done.stderr or done.stdout).strip()[-2000:]}") from None


def environment(folder: Path, packages: Sequence[str], bare: Sequence[str] = ()) -> Path:
    """Return a virtual environment that holds packages, made if there is none; `bare` ones come without what they require.

    Raises:
        SystemExit: it can not be made, or what is there is something else.
    """
    python = folder / "bin" / "python"
    if not folder.exists():
        if sys.version_info < (3, 13):
            raise SystemExit(f"{folder} has to be made with Python 3.13 or later, this is {sys.version.split()[0]}")
        print(f"making {folder}: {' '.join((*packages, *bare))}", file=sys.stderr)
        install = [python, "-m", "pip", "install", "-q"]
        commands = [[sys.executable, "-m", "venv", folder], [*install, *packages], [*install, "--no-deps", *bare]]
        for command in commands if bare else commands[:2]:
            if subprocess.run(command, check=False).returncode:
                raise SystemExit(f"{folder} could not be made; remove it before the next run")
    if not python.exists():
        raise SystemExit(f"{folder} is no virtual environment; remove it, or name another folder with --environments")
    wanted = dict(package.split("==") for package in (*packages, *bare))
    look = (
        "import importlib.metadata as m, json\n"
        "found = {d.name.lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        f"print(json.dumps({{name: found.get(name) for name in {[*wanted]!r}}}))"
    )
    found, _, _ = run([python, "-c", look], folder)
    if found != wanted:
        wrong = ", ".join(
            f"{name} {found[name] or 'is missing'}, not {wanted[name]}" for name in wanted if found[name] != wanted[name]
        )
        raise SystemExit(f"{folder} holds not what is compared: {wrong}; remove it, or name another folder with --environments")
    return folder
