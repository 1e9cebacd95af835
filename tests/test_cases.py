"""The marked sources under `tests/cases`, and the pairs of sources before and after `fix`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codemods.cli import main

from .marked import complaints, source_of

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_verdicts_are_those_of_the_markers(path: Path) -> None:
    assert complaints(source_of(path), CASES) == []


@pytest.mark.parametrize("fixed", sorted(CASES.glob("fix/*.fixed*.py")), ids=lambda path: path.stem)
def test_a_fix_writes_what_is_expected_and_then_nothing_more(fixed: Path, tmp_path: Path) -> None:
    name, _, kind = fixed.stem.partition(".")
    path = tmp_path / f"{name}.py"
    shutil.copyfile(fixed.with_name(path.name), path)
    options = ["--unsafe-fixes"] if kind == "fixed-unsafe" else []
    main(["fix", *options, str(path)])
    assert path.read_text() == fixed.read_text()
    before = path.stat().st_mtime_ns
    main(["fix", *options, str(path)])
    assert path.stat().st_mtime_ns == before
