"""Public files, each with a call that breaks a rule put somewhere into it: `fix` changes the one number, or nothing at all."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from random import Random

import pytest

from codemods.analyse import analyse
from codemods.check import Run
from codemods.config import Configuration
from codemods.files import discover
from codemods.fix import Change, fix
from codemods.source import Source, SourceError
from codemods.words import Words
from codemods.write import write

from .seeds import Seeded, seeded

SAMPLE = 40  # files
LARGEST = 60_000  # bytes, in the sample
LEGAL = {b"12", b"24"}


def public_files() -> list[Path]:
    """Return the files of the standard library and of what is installed."""
    folders = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    return sorted({path for folder in folders for path in folder.rglob("*.py") if path.is_file()})


def sown(path: Path) -> Seeded | None:
    """Return a file with a call put into it; None where there is no place for one. The same every time."""
    try:
        source = Source("a.py", path.read_bytes())
        return seeded(source, Random("/".join(path.parts[-3:]))) if source.tree else None
    except SourceError:  # the standard library tests its parser on files that are no Python
        return None


def repair() -> tuple[Run, list[Change]]:
    found = discover(["."], Configuration(), Words())
    return fix(found, analyse, lambda candidate, data: write(candidate.path, data, candidate.stamp))


def outcome(seed: Seeded) -> str:
    """Put a file in place and fix it: "fixed", "left", or what is wrong with the result."""
    file = Path("a.py")
    file.write_bytes(seed.data)
    os.utime(file, ns=(1, 1))
    run, changes = repair()
    result = file.read_bytes()
    if not changes:
        if result != seed.data or os.stat(file).st_mtime_ns != 1:
            return "touched without a fix"
        return "left" if run.report.call_sites or run.report.errors else "the call is not seen"
    if seed.block_of(result) not in LEGAL:
        return "more was changed than the number"
    if repair()[1] or file.read_bytes() != result:
        return "there was more to do"
    return "fixed"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()  # imports start from here


def swept(paths: list[Path]) -> dict[str, list[Path]]:
    outcomes: dict[str, list[Path]] = {}
    for path in paths:
        if (seed := sown(path)) is not None:
            outcomes.setdefault(outcome(seed), []).append(path)
    return outcomes


def test_a_sample_of_public_files() -> None:
    small = [path for path in public_files() if 0 < path.stat().st_size <= LARGEST]
    outcomes = swept(Random(1).sample(small, min(SAMPLE, len(small))))
    assert set(outcomes) <= {"fixed", "left"}, outcomes
    assert len(outcomes["fixed"]) > SAMPLE // 3  # code is mostly put where an execution that the source spells out gets to it


@pytest.mark.sweep
def test_every_public_file() -> None:
    outcomes = swept(public_files())
    print({kind: len(paths) for kind, paths in outcomes.items()})
    assert set(outcomes) <= {"fixed", "left"}, outcomes
    assert len(outcomes["fixed"]) > len(outcomes["left"])
