"""Public files, each with a call that breaks a rule put somewhere into it: `fix` changes the one number, or nothing at all."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from codemods.analyse import analyse
from codemods.check import Run, check
from codemods.config import Configuration
from codemods.files import discover
from codemods.fix import Change, fix
from codemods.ignores import add_ignores
from codemods.source import Source, SourceError
from codemods.words import Words
from codemods.write import write

from .seeds import Seeded, seeded

SAMPLE = 20  # files
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


def fixed(seed: Seeded) -> str:
    """Put a file in place and fix it: "done", "left", or what is wrong with the result."""
    file = Path("a.py")
    file.write_bytes(seed.data)
    os.utime(file, ns=(1, 1))
    run, changes = repair()
    result = file.read_bytes()
    if not changes:
        if result != seed.data or os.stat(file).st_mtime_ns != 1:
            return "touched without a fix"
        return "left" if run.report.call_sites or run.report.errors else "the call is not seen"
    names, argument = (b"sown_block", b"Sown.block"), b"pages_per_compute_block="
    at_call = [seed.data.replace(argument + name, argument + block) for name in names for block in LEGAL]
    if seed.block_of(result) not in LEGAL and result not in at_call:  # where another thing may read the name: see eval(...)
        return "more was changed than the number"
    if repair()[1] or file.read_bytes() != result:
        return "there was more to do"
    return "done"


def ignored(seed: Seeded) -> str:
    """Put a file in place and add comments to it: "done", "left", or what is wrong with the result."""
    file = Path("a.py")
    file.write_bytes(seed.data)
    found = discover(["."], Configuration(), Words())
    run, changes = add_ignores(found, analyse, lambda candidate, data: write(candidate.path, data, candidate.stamp))
    result = file.read_bytes()
    if not changes and (run.report.errors or not run.failed):
        return "left" if result == seed.data else "touched without a finding"
    if run.report.errors or run.failed:
        return "a finding is not ignored"
    before = seed.data.splitlines(keepends=True)
    new = [line for line in result.splitlines(keepends=True) if line not in set(before)]
    if len(new) != 1 or b"# shapecheck: ignore[" not in new[0] or result.count(b"\n") - seed.data.count(b"\n") > 1:
        return "more was changed than a comment"
    again = discover(["."], Configuration(lambda each: each._replace(select=("SC",), ignore=("SC5",))), Words())
    return "it is not clean" if check(again, analyse).report.findings else "done"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()  # imports start from here


def swept(paths: list[Path], outcome: Callable[[Seeded], str]) -> dict[str, list[Path]]:
    outcomes: dict[str, list[Path]] = {}
    for path in paths:
        if (seed := sown(path)) is not None:
            outcomes.setdefault(outcome(seed), []).append(path)
    return outcomes


def sample() -> list[Path]:
    small = [path for path in public_files() if 0 < path.stat().st_size <= LARGEST]
    return Random(1).sample(small, min(SAMPLE, len(small)))


@pytest.mark.thorough
@pytest.mark.parametrize("outcome", [fixed, ignored])
def test_a_sample_of_public_files(outcome: Callable[[Seeded], str]) -> None:
    outcomes = swept(sample(), outcome)
    assert set(outcomes) <= {"done", "left"}, outcomes
    assert len(outcomes["done"]) > SAMPLE // 3  # code is mostly put where an execution that the source spells out gets to it


@pytest.mark.sweep
@pytest.mark.parametrize("outcome", [fixed, ignored])
def test_every_public_file(outcome: Callable[[Seeded], str]) -> None:
    outcomes = swept(public_files(), outcome)
    print({kind: len(paths) for kind, paths in outcomes.items()})
    assert set(outcomes) <= {"done", "left"}, outcomes
    assert len(outcomes["done"]) > len(outcomes["left"])
