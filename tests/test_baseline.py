"""Baselines: what they accept stays so when lines move, what is new is reported, and what is gone is told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codemods import cli
from codemods.report import FORMATS

from . import fake_analysis
from .fake_analysis import BAD, GOOD, IMPORT, UNPROVEN
from .test_cli import Runner
from .test_readme import ROOT

CALL = BAD.removeprefix(IMPORT)
OTHER = CALL.replace("pages=6", "pages=10")
KNOWN = "known.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_analysis", lambda: fake_analysis.analyse)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def adopt(run: Runner, text: str, *options: str) -> None:
    Path("a.py").write_text(text)
    assert run("check", *options, "--write-baseline", KNOWN) == 0, run.out + run.err


def lines(run: Runner, *options: str) -> list[int]:
    """Return the lines of what is reported."""
    run("check", "--baseline", KNOWN, "--output-format", "json", *options)
    return [finding["line"] for finding in json.loads(run.out)["findings"]]


def accepted() -> dict[str, list[tuple[str, int]]]:
    findings = json.loads(Path(KNOWN).read_text())["findings"]
    return {path: [(entry["code"], entry["count"]) for entry in entries] for path, entries in findings.items()}


def test_what_is_accepted_is_counted_and_no_longer_reported(run: Runner) -> None:
    adopt(run, BAD)
    assert run.out == "1 call site: 0 proven, 1 violated, 0 unproven; 1 file; 1 finding in the baseline\n"
    assert run("check", "--baseline", KNOWN) == 0
    assert run.out == "1 call site: 0 proven, 1 violated, 0 unproven; 1 file; 1 finding in the baseline\n"
    assert run("check") == 1


@pytest.mark.parametrize(
    "after",
    [
        "# a comment\n\n" + BAD,
        BAD.replace("(", "(\n    ").replace(", ", ",\n    ").replace("4)", "4,\n)"),
        IMPORT + "def f():\n    " + CALL,
        GOOD + "\n" * 20 + CALL,
    ],
    ids=["moved", "another layout", "in a function", "behind another"],
)
def test_it_stays_accepted_wherever_it_is(run: Runner, after: str) -> None:
    adopt(run, BAD)
    Path("a.py").write_text(after)
    assert run("check", "--baseline", KNOWN) == 0, run.out


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        (BAD, OTHER.join([IMPORT, CALL]), [2]),
        (BAD, BAD + OTHER, [3]),
        (BAD, BAD + CALL, [3]),  # of equals, so many are accepted as there were
        (BAD + CALL, BAD + CALL, []),
        (BAD + CALL, BAD + CALL + CALL, [4]),
        (BAD, BAD.replace("block=4", "block=5"), [2]),  # a call that is edited is looked at anew
    ],
)
def test_what_is_new_is_reported(run: Runner, before: str, after: str, reported: list[int]) -> None:
    adopt(run, before)
    Path("a.py").write_text(after)
    assert lines(run) == reported


def test_the_same_in_another_file_is_new(run: Runner) -> None:
    adopt(run, BAD)
    Path("b.py").write_text(BAD)
    assert run("check", "--baseline", KNOWN, "--output-format", "concise") == 1
    assert run.out.startswith("b.py:2:")


def test_what_could_not_be_told_is_new_once_it_is_violated(run: Runner) -> None:
    adopt(run, UNPROVEN, "--strict")
    assert run("check", "--strict", "--baseline", KNOWN) == 0
    document = json.loads(Path(KNOWN).read_text())
    (entry,) = document["findings"]["a.py"]
    assert entry["verdict"] == "unproven"
    entry["verdict"] = "violated"
    Path(KNOWN).write_text(json.dumps(document))
    assert run("check", "--strict", "--baseline", KNOWN) == 1


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_leaves_out_what_is_accepted(run: Runner, output_format: str) -> None:
    adopt(run, BAD)
    Path("a.py").write_text(BAD + OTHER)
    assert run("check", "--output-format", output_format) == 1
    assert "pages = 10" in run.out
    assert "pages = 6" in run.out
    assert run("check", "--output-format", output_format, "--baseline", KNOWN) == 1
    assert "pages = 10" in run.out
    assert "pages = 6" not in run.out


def test_a_program_is_told_how_many_are_accepted(run: Runner) -> None:
    adopt(run, BAD + CALL, "--output-format", "json")
    assert json.loads(run.out)["summary"]["baselined"] == 2


class TestGone:
    """What the baseline has, and the source no longer."""

    NOTE = (
        "known.json:1: 1 finding of the baseline is no longer found: `shapecheck check --write-baseline known.json` removes it\n"
    )

    def test_is_told_and_costs_nothing(self, run: Runner) -> None:
        adopt(run, BAD)
        Path("a.py").write_text(GOOD)
        assert run("check", "--baseline", KNOWN) == 0
        assert run.out.startswith(self.NOTE)
        assert accepted() == {"a.py": [("SC102", 1)]}

    @pytest.mark.parametrize("text", [GOOD, "x = 1\n", None], ids=["repaired", "no call left", "no file left"])
    def test_is_forgotten_with_the_next_writing(self, run: Runner, text: str | None) -> None:
        adopt(run, BAD)
        Path("a.py").write_text(text) if text else Path("a.py").unlink()
        Path("b.py").write_text("x = 1\n")
        run("check", "--baseline", KNOWN)
        assert run.out.startswith(self.NOTE)
        assert run("check", "--write-baseline", KNOWN) == 0
        assert accepted() == {}
        run("check", "--baseline", KNOWN)
        assert "baseline" not in run.out

    def test_does_not_come_back_unseen(self, run: Runner) -> None:
        adopt(run, BAD)
        adopt(run, GOOD)
        Path("a.py").write_text(BAD)
        assert lines(run) == [2]

    @pytest.mark.parametrize(
        "options", [["b.py"], ["--select", "SC2"], ["--ignore", "SC1"]], ids=["another file", "other codes", "not this code"]
    )
    def test_is_not_said_of_what_was_not_looked_for(self, run: Runner, options: list[str]) -> None:
        adopt(run, BAD)
        Path("b.py").write_text(GOOD)
        assert run("check", "--baseline", KNOWN, *options) == 0
        assert "no longer" not in run.out
        assert run("check", "--write-baseline", KNOWN, *options) == 0
        assert accepted() == {"a.py": [("SC102", 1)]}

    def test_is_not_said_of_what_is_unproven_where_nobody_asks(self, run: Runner) -> None:
        adopt(run, UNPROVEN, "--unproven")
        assert run("check", "--baseline", KNOWN) == 0
        assert "no longer" not in run.out

    def test_is_not_said_of_a_file_that_cannot_be_parsed(self, run: Runner) -> None:
        adopt(run, BAD)
        Path("a.py").write_text(BAD + "x = (\n")
        assert run("check", "--write-baseline", KNOWN) == 2
        assert accepted() == {"a.py": [("SC102", 1)]}


class TestWhere:
    """Which file, and from where its paths count."""

    def test_the_settings_may_name_it(self, run: Runner) -> None:
        Path("pyproject.toml").write_text(f'[tool.shapecheck]\nbaseline = "{KNOWN}"\n')
        adopt(run, BAD)
        assert run("check") == 0
        assert run("check", "--no-baseline") == 1

    def test_it_counts_from_its_own_folder(self, run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("pyproject.toml").write_text(f'[tool.shapecheck]\nbaseline = "{KNOWN}"\n')
        Path("sub").mkdir()
        Path("sub/b.py").write_text(BAD)
        adopt(run, GOOD)
        assert accepted() == {"sub/b.py": [("SC102", 1)]}
        monkeypatch.chdir(folder / "sub")
        assert run("check") == 0
        monkeypatch.chdir(folder.parent)
        assert run("check", str(folder)) == 0, run.out

    def test_each_project_of_a_run_has_its_own(self, run: Runner) -> None:
        for name, text in (("one", BAD), ("other", BAD + OTHER)):
            Path(name).mkdir()
            Path(name, "pyproject.toml").write_text(f'[tool.shapecheck]\nbaseline = "{KNOWN}"\n')
            Path(name, "a.py").write_text(text)
            assert run("check", "--write-baseline", f"{name}/{KNOWN}", name) == 0
        Path("one/a.py").write_text(BAD + OTHER)
        assert run("check", "--output-format", "concise") == 1
        assert [line[:10] for line in run.out.splitlines() if ": SC" in line] == ["one/a.py:3"]

    def test_it_is_the_same_whoever_writes_it(self, run: Runner) -> None:
        Path("b.py").write_text(BAD)
        adopt(run, BAD)
        first = Path(KNOWN).read_bytes()
        assert run("check", "--write-baseline", KNOWN, "b.py", "a.py") == 0
        assert Path(KNOWN).read_bytes() == first

    def test_standard_input_has_the_name_it_is_given(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        from .test_cli import type_in

        adopt(run, BAD)
        type_in(monkeypatch, BAD.encode())
        assert run("check", "--baseline", KNOWN, "--stdin-filename", "a.py") == 0
        type_in(monkeypatch, BAD.encode())
        assert run("check", "--baseline", KNOWN, "--stdin-filename", "b.py") == 1


def test_fix_repairs_what_is_accepted_too(run: Runner) -> None:
    adopt(run, BAD + CALL.replace("block=4", "block=3, mode='kv_head'"))
    assert run("fix", "--baseline", KNOWN, "--output-format", "concise") == 0
    assert Path("a.py").read_text().count("block=3") == 2
    assert run.out.endswith("1 finding in the baseline; 1 fixed\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"known.json: there is no such file; `shapecheck check --write-baseline FILE` makes one"),
        ("{", "known.json: is no baseline: .*line 1"),
        ("<<<<<<< HEAD\n{}", "known.json: is no baseline: .*line 1"),
        ("[]", "known.json: is no baseline of version 1"),
        ('{"version": 2, "findings": {}}', "is no baseline of version 1: ValueError: version 2"),
        ('{"version": 1, "findings": {"a.py": [{"code": "SC102"}]}}', "is no baseline of version 1: KeyError: 'verdict'"),
    ],
)
def test_what_is_no_baseline_is_refused(run: Runner, text: str | None, message: str) -> None:
    Path("a.py").write_text(BAD)
    if text is not None:
        Path(KNOWN).write_text(text)
    assert run("check", "--baseline", KNOWN) == 2
    assert re.search(message, run.err), run.err
    if text is not None:
        assert run("check", "--write-baseline", KNOWN) == 2
        assert Path(KNOWN).read_text() == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--baseline", "a.json", "--write-baseline", "b.json"], "--write-baseline names the baseline itself"),
        (["--add-ignores", "--write-baseline", "b.json"], "--write-baseline is not for --add-ignores"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Runner, options: list[str], message: str) -> None:
    assert run("check", *options) == 2
    assert message in run.err


def test_a_folder_that_is_not_there_is_told(run: Runner) -> None:
    Path("a.py").write_text(BAD)
    assert run("check", "--write-baseline", "no/known.json") == 2
    assert "known.json: cannot be written: No such file or directory" in run.err


def test_a_code_base_adopts_the_check(folder: Path) -> None:
    shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("__pycache__"))

    def check(*options: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "codemods", "check", "--output-format", "concise", *options, "examples"]
        done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
        return done.returncode, done.stdout

    status, before = check()
    assert (status, before.count(": SC")) == (1, 4)
    assert check("--write-baseline", KNOWN)[0] == 0
    bench = folder / "examples/serving/bench.py"
    text = bench.read_text()
    bench.write_text(f"# moved\n\n\n{text}\n\ndef bench_more():\n    arguments = inputs(LLAMA_8B, 256)\n"
                     "    return timed(lambda: paged_attention(*arguments, pages_per_compute_block=24))\n")  # fmt: skip
    status, after = check("--baseline", KNOWN)
    assert status == 1
    (new,) = [line for line in after.splitlines() if ": SC" in line]
    assert "SC102" in new
    assert "pages_per_compute_block = 24" in new
    assert "4 findings in the baseline" in after


def test_lines_move_in_many_files(folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from codemods.analyse import analyse

    monkeypatch.setattr(cli, "_analysis", lambda: analyse)
    names = ("handed_on", "fields", "scaled", "seed_block", "seed_heads", "ragged", "torch_xla")
    for name in names:
        shutil.copy(ROOT / "tests" / "cases" / f"{name}.py", f"{name}.py")
    assert run("check", "--write-baseline", KNOWN) == 0
    assert {Path(path).stem for path in accepted()} == set(names)
    for name in names:
        Path(f"{name}.py").write_text("# one\n\n# two\n" + Path(f"{name}.py").read_text())
    assert run("check", "--baseline", KNOWN, "--output-format", "concise") == 0, run.out
    assert "no longer" not in run.out
