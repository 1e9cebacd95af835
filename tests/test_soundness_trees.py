"""No verdict that an execution contradicts, of programs of several files: modules, packages, fixtures, patches."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.source import Source
from shapecheck.rule import Verdict

from .test_soundness import HARD_HEADER, judge, with_calls
from .trees import TreeRan, parse

ROOT = Path(__file__).parent.parent
TREES = parse(Path(__file__).with_name("hard_trees.txt").read_text())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, TreeRan]]:
    """Write all trees and execute them."""
    folders = {name: _write(tmp_path_factory.mktemp(name), files) for name, files in TREES.items()}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-W", "ignore", "-m", "tests.trees"]
    named = "".join(f"{folder}\n" for folder in folders.values())
    run = subprocess.run(command, cwd=ROOT, env=environment, input=named.encode(), capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
    print(run.stderr.decode())
    results = pickle.loads(run.stdout)
    return {name: (folder, TreeRan(*results[str(folder)])) for name, folder in folders.items()}


def _write(folder: Path, files: Mapping[str, str]) -> Path:
    (folder / "pyproject.toml").touch()
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        called = with_calls(source)
        (folder / path).write_text(HARD_HEADER + called if "PAGES" in called else called)
    return folder


@pytest.mark.parametrize("name", TREES)
def test_hard_trees(name: str, ran: dict[str, tuple[Path, TreeRan]]) -> None:
    folder, (records, raised) = ran[name]
    assert records, "it reaches no kernel call"
    checked = [file for file in sorted(folder.rglob("*.py")) if "paged_attention(" in file.read_text()]
    sites, _ = analyse([Source(str(file), file.read_bytes()) for file in checked], root=folder)
    assert sites
    wrong: list[str] = []
    for site in sites:
        path = os.path.relpath(site.path, folder)
        seen = [judge(values) for *where, values in records if where == [path, site.span.line]]
        for code, verdict in site.verdicts.items():
            broken = any(each.get(code) is Verdict.VIOLATED for each in seen)
            if broken if verdict is Verdict.PROVEN else verdict is Verdict.VIOLATED and not broken and bool(seen or not raised):
                wrong.append(f"{path}:{site.span.line}: {code} {verdict.value}, {len(seen)} runs")
    assert not wrong
