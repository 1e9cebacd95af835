"""What a run loads: most runs of a hook have nothing to check, and should be over at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .fake_analysis import BAD

HEAVY = ("ast", "asyncio", "dataclasses", "hashlib", "jax", "json", "libcst", "multiprocessing", "pathlib", "pickle", "rich",
         "shapecheck", "subprocess", "tempfile", "tokenize", "tomllib")  # fmt: skip


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that a run has loaded, without those of an interpreter that does nothing."""
    code = f"""\
import sys
before = {{*sys.modules}}
from codemods.cli import main
main({[*arguments]!r})
print(*({{*sys.modules}} - before), file=sys.stderr)
"""
    return {*subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True).stderr.split()}


@pytest.mark.parametrize("command", [["check"], ["fix"], ["fix", "--diff"]])
def test_without_call_sites(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "a.py").write_text("import jax\nprint(jax.paged_attention_kernel)\n")
    assert loaded(tmp_path, *command).isdisjoint(HEAVY)


def test_a_report_from_an_earlier_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text(BAD)
    assert "ast" in loaded(project, "check")
    again = loaded(project, "check")
    assert "codemods.cache" in again
    assert again.isdisjoint({*HEAVY} - {"hashlib", "json", "subprocess", "tempfile"})


def test_check_loads_no_rewriting(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    assert loaded(tmp_path, "check", "--no-cache").isdisjoint({"libcst", "asyncio", "multiprocessing", "rich", "jax"})
