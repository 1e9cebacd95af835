from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemods import cli

from . import fake_analysis
from .fake_analysis import BAD, GOOD, IMPORT, UNPROVEN

PLAN = ["plan", "config.json", "--chip", "v5e", "--batch", "1", "--context", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cli, "_analysis", lambda: fake_analysis.analyse)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


class Runner:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        try:
            status = cli.main(list(arguments))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        self.out, self.err = self._capsys.readouterr()
        return status

    @property
    def codes(self) -> list[str]:
        return [finding["code"] for finding in json.loads(self.out)["findings"]]


def type_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def bytes_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, bytes, bytes]:
    """Run a command: its status, and what it writes, byte for byte."""
    streams = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", streams[0])
        patched.setattr("sys.stderr", streams[1])
        status = cli.main(list(arguments))
    out, err = (stream.buffer.getvalue() for stream in streams)  # type: ignore[attr-defined]
    return status, out, err


class TestStatus:
    @pytest.mark.parametrize(
        ("text", "options", "status"),
        [
            (GOOD, [], 0),
            ("x = (\n", [], 0),  # it names no kernel: none of our business
            (BAD, [], 1),
            (BAD, ["--exit-zero"], 0),
            (BAD, ["--ignore", "SC1"], 0),
            (BAD, ["--select", "SC201"], 0),
            (UNPROVEN, [], 0),
            (UNPROVEN, ["--unproven"], 0),
            (UNPROVEN, ["--strict"], 1),
            (UNPROVEN, ["--strict", "--exit-zero"], 0),
            (BAD + "x = (\n", [], 2),
            (BAD + "x = (\n", ["--exit-zero"], 2),
        ],
    )
    def test_check(self, run: Runner, text: str, options: list[str], status: int) -> None:
        Path("a.py").write_text(text)
        assert run("check", *options) == status
        assert run("check", "--output-format", "json", *options, "a.py") == status

    @pytest.mark.parametrize(
        ("text", "options", "status"),
        [
            (GOOD, [], 0),
            (BAD, [], 0),
            (BAD, ["--diff"], 1),
            (BAD, ["--diff", "--exit-zero"], 0),
            (GOOD, ["--diff"], 0),
            (BAD.replace("block=4", "block=4, mode='kv_head'"), [], 1),
            (BAD.replace("block=4", "block=4, mode='kv_head'"), ["--unsafe-fixes"], 0),
            (BAD.replace("block=4", "mode='kv_head'"), ["--diff"], 1),
            (UNPROVEN, ["--strict"], 1),
            (UNPROVEN, ["--strict", "--unsafe-fixes"], 0),
            (BAD.replace("out = ", "f'{").replace(")", ")=}'"), [], 1),  # a repair that is refused
            (BAD + "x = (\n", [], 2),
        ],
    )
    def test_fix(self, run: Runner, text: str, options: list[str], status: int) -> None:
        Path("a.py").write_text(text)
        assert run("fix", *options) == status

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "the following arguments are required"),
            (["chek"], "invalid choice: 'chek'"),
            (["check", "--selct", "SC1"], "check: error: unrecognized arguments: --selct (did you mean --select?)"),
            (["check", "--unprovn", "."], "check: error: unrecognized arguments: --unprovn (did you mean --unproven?)"),
            (["check", "--select", "XX"], "'XX' is no code, nor the beginning of one, nor a rule's name; known: SC001, "),
            (["check", "--jobs", "2"], "check: error: --jobs is for --compile"),
            ([*PLAN, "--no-cache"], "plan: error: --no-cache is for --compile"),
            (["check", "--ignore", ""], "argument --ignore: '' is no code"),
            (["check", "--chip", "v9"], "argument --chip: unknown chip 'v9'; known: v2, "),
            (["check", "--output-format", "xml"], "invalid choice: 'xml'"),
            (["check", "--diff"], "check: error: unrecognized arguments: --diff\n"),
            (["check", "-", "a.py"], "standard input (-) cannot be mixed with other paths"),
            (["check", "--stdin-filename", "a.py", "b.py"], "--stdin-filename is for standard input (-)"),
            (["check", "--statistics", "--output-format", "json"], "--statistics has no json format"),
        ],
    )
    def test_wrong_usage(self, run: Runner, arguments: list[str], message: str) -> None:
        assert run(*arguments) == 2
        assert message in run.err
        assert run.out == ""

    @pytest.mark.parametrize("option", ["block-not-dividing", "Block-Not-Dividing", "sc102", "SC102", "SC10"])
    def test_a_rule_may_be_selected_by_its_name(self, run: Runner, option: str) -> None:
        Path("a.py").write_text(BAD)
        assert run("check", "--select", option) == 1
        assert run("check", "--ignore", option) == 0

    @pytest.mark.parametrize("arguments", [["check"], ["fix"], ["check", "/a.py"], ["check", "--baseline", "known.json"]])
    def test_a_working_folder_that_was_deleted(self, run: Runner, arguments: list[str]) -> None:
        Path("gone").mkdir()
        os.chdir("gone")
        Path("../gone").rmdir()
        assert run(*arguments) == 2
        assert run.err == "shapecheck: the working folder is not there any more\n"

    def test_a_path_that_does_not_exist_does_not_stop_the_others(self, run: Runner) -> None:
        Path("a.py").write_text(BAD)
        assert run("check", "gone.py", "a.py") == 2
        assert "gone.py:1:1: SC901 file-error: cannot be read: No such file or directory" in run.out
        assert "a.py:2:38: SC102" in run.out

    def test_a_wrong_setting(self, run: Runner) -> None:
        Path("a.py").write_text(BAD)
        Path("pyproject.toml").write_text("[tool.shapecheck]\nselct = []\n")
        assert run("check") == 2
        assert "pyproject.toml:2: [tool.shapecheck] has no key 'selct'" in run.err
        assert run.out == ""

    def test_settings_below_that_cannot_be_used_are_reported_once_and_the_files_are_checked(self, run: Runner) -> None:
        Path("sub").mkdir()
        Path("sub/pyproject.toml").write_text("[project]\n[tool.shapecheck]\nselct = []\n")
        Path("a.py").write_text(GOOD)
        Path("sub/b.py").write_text(BAD)
        assert run("check", "--output-format", "concise", ".", ".") == 2
        where, *_, error, _fixable, counts = run.out.splitlines()
        assert where.startswith("sub/b.py:2:38: SC102")
        assert error.startswith("sub/pyproject.toml:3:1: SC901 file-error: [tool.shapecheck] has no key 'selct'; it has: ")
        assert counts == "2 call sites: 1 proven, 1 violated, 0 unproven; 4 files; 1 error"
        assert run("check", "a.py") == 0

    def test_a_defect_of_ours(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("a.py").write_text(BAD)
        monkeypatch.setattr("codemods.check.check", lambda *_: 1 / 0)
        assert run("check") == 2
        assert "ZeroDivisionError" in run.err
        assert "internal error, please report it" in run.err

    def test_a_file_that_crashes_the_analysis_does_not_stop_the_others(
        self, run: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def analyse(sources, **others):  # type: ignore[no-untyped-def]
            if any(source.path == "b.py" for source in sources):
                raise RecursionError("too deep")
            return fake_analysis.analyse(sources, **others)

        monkeypatch.setattr(cli, "_analysis", lambda: analyse)
        for name in ("a.py", "b.py", "c.py"):
            Path(name).write_text(BAD)
        assert run("check", "--output-format", "concise") == 2
        assert [line.split(" ")[0] for line in run.out.splitlines()[:3]] == ["a.py:2:38:", "c.py:2:38:", "b.py:1:1:"]
        assert "internal error, please report it: RecursionError('too deep')" in run.out

    def test_an_interrupt(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        Path("a.py").write_text(BAD)
        monkeypatch.setattr("codemods.check.check", interrupt)
        assert run("check") == 130
        assert run.err == ""


class TestSelection:
    @pytest.fixture(autouse=True)
    def file(self) -> None:
        Path("a.py").write_text(BAD.replace("block=4", "block=4, mode='kv_head'") + UNPROVEN + "x = 1  # shapecheck: ignore\n")

    @pytest.mark.parametrize(
        ("options", "codes"),
        [
            ([], ["SC102", "SC201"]),
            (["--select", "SC2"], ["SC201"]),
            (["--select", "SC2,SC1"], ["SC102", "SC201"]),
            (["--select", "SC2", "--select", "SC1"], ["SC102", "SC201"]),
            (["--select", "SC", "--ignore", "SC1"], ["SC201", "SC902"]),
            (["--ignore", "SC201"], ["SC102"]),
            (["--unproven"], ["SC102", "SC201", "SC102"]),
            (["--strict"], ["SC102", "SC201", "SC102"]),
            (["--select", "SC902"], ["SC902"]),
        ],
    )
    def test_the_codes_that_are_asked_for(self, run: Runner, options: list[str], codes: list[str]) -> None:
        run("check", "--output-format", "json", *options)
        assert run.codes == codes

    @pytest.mark.parametrize(
        ("options", "line"),
        [
            ([], "2 call sites: 0 proven, 1 violated, 1 unproven; 1 file"),
            (["--select", "SC"], "2 call sites: 0 proven, 1 violated, 1 unproven; 1 file"),
            (["--select", "SC201"], "2 call sites by the selected rules alone: 1 proven, 1 violated, 0 unproven; 1 file"),
            (["--ignore", "SC1"], "2 call sites by the selected rules alone: 1 proven, 1 violated, 0 unproven; 1 file"),
            (
                ["--select", "SC902"],
                "2 call sites by the selected rules alone: 0 proven, 0 violated, 0 unproven, 2 not judged; 1 file",
            ),
        ],
    )
    def test_counts_are_of_the_codes_that_are_asked_for_and_say_so(self, run: Runner, options: list[str], line: str) -> None:
        run("check", *options)
        assert run.out.splitlines()[-1] == line
        run("check", "--statistics", *options)
        assert run.out.splitlines()[-1] == line

    def test_in_json_the_counts_are_those_of_the_verdicts_beside_them(self, run: Runner) -> None:
        run("check", "--output-format", "json", "--select", "SC201")
        document = json.loads(run.out)
        assert [site["verdicts"] for site in document["call_sites"]] == [{"SC201": "violated"}, {"SC201": "proven"}]
        assert {key: document["summary"][key] for key in ("call_sites", "proven", "violated", "unproven")} == {
            "call_sites": 2, "proven": 1, "violated": 1, "unproven": 0,
        }  # fmt: skip

    def test_a_comment_that_names_no_rule_is_told_beside_the_report(self, run: Runner) -> None:
        Path("a.py").write_text(BAD.replace("\nout", "\n# shapecheck: ignore[block-not-divided]\nout"))
        assert run("check", "--output-format", "json") == 1
        assert run.codes == ["SC102"]
        (note,) = json.loads(run.out)["notes"]
        assert (note["path"], note["line"]) == ("a.py", 2)
        assert note["message"].startswith("suppression comment: no rule 'block-not")

    def test_settings_of_the_project_apply(self, run: Runner) -> None:
        Path("pyproject.toml").write_text("[tool.shapecheck]\nignore = ['SC102']\nexclude = ['sub']\nunproven = true\n")
        Path("sub").mkdir()
        Path("sub/b.py").write_text(BAD)
        run("check", "--output-format", "json")
        assert run.codes == ["SC201"]

    def test_the_command_line_goes_on_top(self, run: Runner) -> None:
        Path("pyproject.toml").write_text("[tool.shapecheck]\nselect = ['SC201']\nignore = ['SC102']\n")
        run("check", "--output-format", "json", "--select", "SC102")
        assert run.codes == ["SC102"]
        run("check", "--output-format", "json", "--ignore", "SC201")
        assert run.codes == []

    def test_chips_reach_the_analysis(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[list[str]] = []

        def analyse(sources, **others):  # type: ignore[no-untyped-def]
            seen.append([chip.name for chip in others["chips"]])
            return fake_analysis.analyse(sources, **others)

        monkeypatch.setattr(cli, "_analysis", lambda: analyse)
        run("check")
        run("check", "--chip", "v5p", "--chip", "v4,v5e")
        Path("pyproject.toml").write_text("[tool.shapecheck]\nchips = ['v6e']\n")
        run("check")
        run("check", "--chip", "v5p")
        assert seen == [[], ["v5p", "v4", "v5e"], ["v6e"], ["v5p"]]

    def test_patterns_leave_files_out(self, run: Runner) -> None:
        assert run("check", "--exclude", "a.py") == 0
        assert run("check", "--exclude", "a.py", "a.py") == 1
        assert run("check", "--exclude", "./a.py,b.py", "--force-exclude", "a.py") == 0


@pytest.mark.parametrize("command", ["", "check", "fix", "compile", "explain", "plan"])
def test_the_help_of_each_command_has_examples_and_tells_the_exit_status(run: Runner, command: str) -> None:
    assert run(*command.split(), "--help") == 0
    assert "examples" in run.out
    assert "exit status:" in run.out
    assert max(map(len, run.out.splitlines())) <= 120


def test_the_help_of_check_shows_the_comments_that_keep_findings_back(run: Runner) -> None:
    run("check", "--help")
    for comment in ("# shapecheck: ignore[SC102, SC201]", "# shapecheck: skip-file", "# noqa: SC102"):
        assert comment in run.out


def test_what_a_comment_keeps_back_is_counted(run: Runner) -> None:
    Path("a.py").write_text(BAD.rstrip() + "  # shapecheck: ignore[SC102]\n" + UNPROVEN.rstrip() + "  # noqa\n")
    assert run("check") == 0
    assert run.out == "2 call sites: 0 proven, 1 violated, 1 unproven; 1 file; 1 finding suppressed\n"
    assert run("check", "--unproven") == 0
    assert run.out.endswith("; 1 file; 2 findings suppressed\n")
    assert run("check", "--ignore", "SC102") == 0
    assert "suppressed" not in run.out
    assert run("check", "--output-format", "json") == 0
    assert json.loads(run.out)["summary"]["suppressed"] == 1


class TestOutputFile:
    def test_the_report_is_there_and_not_on_standard_output(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        Path("a.py").write_text(BAD)
        assert run("check", "--output-format", "concise", "--output-file", "report.txt", ".") == 1
        assert (run.out, run.err) == ("", "")
        assert Path("report.txt").read_text().startswith("a.py:2:38: SC102 block-not-dividing: ")

    def test_a_report_of_before_is_replaced_where_there_is_nothing_to_report(self, run: Runner) -> None:
        Path("report.txt").write_text("of before")
        assert run("check", "--output-file", "report.txt", ".") == 0
        assert Path("report.txt").read_text() == "0 call sites: 0 proven, 0 violated, 0 unproven; 0 files\n"

    def test_fix_leaves_the_patch_where_it_was(self, run: Runner) -> None:
        Path("a.py").write_text(BAD)
        assert run("fix", "--diff", "--output-format", "json", "--output-file", "report.json", ".") == 1
        assert run.out.startswith("--- a/a.py\n")
        assert json.loads(Path("report.json").read_text())["findings"] == []

    def test_where_it_cannot_be_written(self, run: Runner) -> None:
        assert run("check", "--output-file", "no/report.txt", ".") == 2
        assert run.err.endswith("error: --output-file: there is no folder no\n")
        Path("folder").mkdir()
        assert run("check", "--output-file", "folder", ".") == 2
        assert run.err == "shapecheck: folder: cannot be written: Is a directory\n"


class TestStandardInput:
    def test_check(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        type_in(monkeypatch, BAD.encode())
        assert run("check", "-") == 1
        assert run.out.startswith("-:2:38: SC102")

    def test_a_file_name_gives_it_a_path_and_its_settings(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("sub").mkdir()
        Path("sub/pyproject.toml").write_text("[tool.shapecheck]\nignore = ['SC102']\n")
        type_in(monkeypatch, BAD.encode())
        assert run("check", "-", "--stdin-filename", "sub/a.py") == 0
        type_in(monkeypatch, BAD.encode())
        assert run("check", "--stdin-filename", "new/a.py") == 1
        assert run.out.startswith("new/a.py:2:38: SC102")

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_fix_prints_the_file_and_reports_beside_it(self, monkeypatch: pytest.MonkeyPatch, newline: str) -> None:
        type_in(monkeypatch, BAD.replace("\n", newline).encode())
        status, out, err = bytes_of(monkeypatch, "fix", "-")
        assert status == 0
        assert out == GOOD.replace("\n", newline).encode()
        assert err.endswith(b"1 call site: 1 proven, 0 violated, 0 unproven; 1 file; 1 fixed\n")

    @pytest.mark.parametrize(("data", "status"), [(b"", 0), (b"x = (", 0), (GOOD.encode(), 0), (BAD.encode() + b"x = (", 2)])
    def test_fix_prints_what_it_cannot_fix_as_it_is(self, monkeypatch: pytest.MonkeyPatch, data: bytes, status: int) -> None:
        type_in(monkeypatch, data)
        assert bytes_of(monkeypatch, "fix", "-")[:2] == (status, data)

    def test_a_stub_and_an_excluded_file_are_printed_as_they_are(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        type_in(monkeypatch, BAD.encode())
        assert run("fix", "-", "--stdin-filename", "a.pyi") == 1
        assert run.out == BAD
        type_in(monkeypatch, BAD.encode())
        assert run("fix", "-", "--stdin-filename", "venv/a.py", "--force-exclude") == 0
        assert run.out == BAD

    def test_fix_shows_the_patch(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        type_in(monkeypatch, BAD.encode())
        assert run("fix", "-", "--diff", "--stdin-filename", "a.py") == 1
        assert run.out.startswith("--- a/a.py\n+++ b/a.py\n")


class TestDiff:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.py", BAD.encode()),
            ("a.py", BAD.replace("\n", "\r\n").encode()),
            ("a.py", BAD.replace("\n", "\r").encode()),
            ("a.py", BAD.rstrip().encode()),
            ("a.py", b"\xef\xbb\xbf" + BAD.encode()),
            ("a.py", ("# coding: latin-1\nx = 'é\x0c'\n" + BAD).encode("latin-1")),
            ("a.py", (BAD + "\n" * 20 + BAD + "x = 1").encode()),
            ("sub/with space/a.py", BAD.encode()),
            ("é.py", BAD.encode()),
            ('a\nb\t"c\\d\x7f .py', BAD.encode()),
            (os.fsdecode(b"\xff.py"), BAD.encode()),
        ],
    )
    def test_git_applies_it(self, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> None:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        status, patch, _ = bytes_of(monkeypatch, "fix", "--diff")
        assert status == 1
        assert path.read_bytes() == data
        subprocess.run(["git", "apply"], input=patch, check=True, capture_output=True)
        assert path.read_bytes() == data.replace(b"block=4", b"block=3")

    def test_git_applies_it_in_a_folder_of_a_repository(self, monkeypatch: pytest.MonkeyPatch) -> None:
        subprocess.run(["git", "init", "-q"], check=True)
        contents = {
            "sub/a.py": BAD.encode(),
            "sub/deep/no newline.py": BAD.rstrip().encode(),
            "sub/deep/crlf.py": BAD.replace("\n", "\r\n").encode(),
            "sub/legal.py": BAD.replace("block=4", "block=3").encode(),
        }
        for name, data in contents.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        monkeypatch.chdir("sub")
        _, patch, _ = bytes_of(monkeypatch, "fix", "--diff")
        subprocess.run(["git", "apply", "--check"], input=patch, check=True, capture_output=True)
        subprocess.run(["git", "apply"], input=patch, check=True, capture_output=True)
        monkeypatch.chdir("..")
        for name, data in contents.items():
            assert Path(name).read_bytes() == data.replace(b"block=4", b"block=3")

    def test_the_report_goes_to_standard_error_in_any_format(self, run: Runner) -> None:
        Path("a.py").write_text(BAD)
        assert run("fix", "--diff", "--output-format", "json") == 1
        assert run.out.startswith("--- a/a.py\n+++ b/a.py\n")
        assert json.loads(run.err)["summary"]["fixed"] == 0
        assert Path("a.py").read_text() == BAD
        assert run("fix", "--output-format", "json") == 0
        assert json.loads(run.out)["summary"]["fixed"] == 1
        assert run.err == ""

    def test_it_says_what_would_be_fixed_and_what_remains(self, run: Runner) -> None:
        Path("a.py").write_text(BAD.replace("block=4", "block=4, mode='kv_head'"))
        assert run("fix", "--diff") == 1
        assert run.out.endswith("+out = paged_attention(pages=6, block=3, mode='kv_head')\n")
        assert "a.py:2:38: SC102 block-not-dividing: would be fixed: use 3\n" in run.err
        assert "SC201" in run.err
        assert "1 fixed" not in run.err


class TestShown:
    """What `fix` shows of its changes beside the report."""

    def test_a_diff_and_a_summary(self, run: Runner) -> None:
        Path("a.py").write_bytes(BAD.replace("\n", "\r\n").encode())
        assert run("fix") == 0
        assert run.out.splitlines() == [
            "--- a/a.py",
            "+++ b/a.py",
            "@@ -1,2 +1,2 @@",
            f" {IMPORT.strip()}",
            "-out = paged_attention(pages=6, block=4)",
            "+out = paged_attention(pages=6, block=3)",
            "a.py:2:38: SC102 block-not-dividing: fixed: use 3",
            "1 call site: 1 proven, 0 violated, 0 unproven; 1 file; 1 fixed",
        ]

    @pytest.mark.parametrize("options", [["--output-format", "concise"], ["--output-format", "json"]])
    def test_other_formats_have_none(self, run: Runner, options: list[str]) -> None:
        Path("a.py").write_text(BAD)
        run("fix", *options)
        assert "@@" not in run.out

    def test_no_file_commands_a_terminal(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        Path("a.py").write_text("# coding: latin-1\nx = '\x1b[31m é'\n" + BAD, encoding="latin-1")
        assert run("fix") == 0
        assert " x = '\N{REPLACEMENT CHARACTER}[31m é'\n" in run.out
        assert "\x1b[31m-out = paged_attention(pages=6, block=4)\x1b[0m\n" in run.out

    def test_a_patch_for_git_is_never_colored(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("a.py").write_text(BAD)
        monkeypatch.setenv("FORCE_COLOR", "1")
        run("fix", "--diff")
        assert "\x1b" not in run.out
        assert "+out = paged_attention(pages=6, block=3)\n" in run.out


class TestIgnores:
    @pytest.mark.parametrize("command", ["check", "fix"])
    def test_comments_are_added_once(self, run: Runner, command: str) -> None:
        Path("a.py").write_text(BAD)
        assert run(command, "--add-ignores") == 0
        assert run.out.endswith("comments added to 1 file\n")
        assert Path("a.py").read_text() == BAD.rstrip() + "  # shapecheck: ignore[SC102]\n"
        assert run("check", "--select", "SC") == 0
        assert run(command, "--add-ignores") == 0
        assert run.out.endswith("comments added to 0 files\n")

    def test_a_patch_shows_them(self, run: Runner) -> None:
        Path("a.py").write_text(BAD)
        assert run("fix", "--add-ignores", "--diff") == 1
        assert run.out.endswith("+out = paged_attention(pages=6, block=4)  # shapecheck: ignore[SC102]\n")
        assert Path("a.py").read_text() == BAD

    def test_standard_input(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        type_in(monkeypatch, BAD.encode())
        assert run("check", "--add-ignores", "-") == 0
        assert run.out == BAD.rstrip() + "  # shapecheck: ignore[SC102]\n"

    def test_a_file_that_cannot_be_parsed(self, run: Runner) -> None:
        Path("a.py").write_text(BAD + "x = (\n")
        assert run("check", "--add-ignores") == 2


class TestExplain:
    def test_one_code(self, run: Runner) -> None:
        assert run("explain", "SC102") == 0
        assert run.out.startswith("SC102 block-not-dividing\n")
        assert "paged_attention: pages_per_sequence % pages_per_compute_block == 0" in run.out
        assert "`shapecheck fix` gives `pages_per_compute_block`" in run.out
        by_code = run.out
        assert run("explain", "block-not-dividing") == 0
        assert run.out == by_code

    def test_every_code(self, run: Runner) -> None:
        assert run("explain") == 0
        lines = run.out.splitlines()
        assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
        assert "SC204  megacore-chip" in run.out
        assert "SC901  file-error" in run.out
        for line in lines:
            assert run("explain", line.split()[0]) == 0
            assert all(len(each) <= 120 for each in run.out.splitlines() if not each.startswith("    "))

    def test_one_that_needs_a_chip(self, run: Runner) -> None:
        run("explain", "SC204")
        assert "--chip v5p" in run.out

    def test_an_unknown_code(self, run: Runner) -> None:
        assert run("explain", "SC12") == 2
        assert "no rule 'SC12'; codes that begin with it: SC121" in run.err
        assert run("explain", "block-not-divding") == 2
        assert "nearest: block-not-dividing" in run.err

    def test_the_beginning_of_codes(self, run: Runner) -> None:
        assert run("explain", "sc20") == 2
        assert "no rule 'sc20'; codes that begin with it: SC201, SC202, " in run.err

    ERROR = "ValueError: pages_per_compute_block must be divisible by pages per sequence. Got 16 and 24."

    def test_the_text_of_an_error(self, run: Runner) -> None:
        assert run("explain", self.ERROR) == 0
        assert run.out.startswith("SC102 block-not-dividing (paged_attention)\n  line 1: ValueError: pages_per_compute_block")
        for said in (
            "What must hold: the compute block must divide the pages of a sequence",
            "pages_per_sequence = 24   (page_indices.shape[1])",
            "Help: legal blocks: 1, 2, 3, 4, 6, 8, 12, 24; or pad page_indices to 32 pages",
            "Fix: `shapecheck fix` gives",
            "More: shapecheck explain SC102",
        ):
            assert said in run.out
        assert "Your code" not in run.out

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
    def test_a_traceback_on_standard_input(self, run: Runner, monkeypatch: pytest.MonkeyPatch, newline: bytes) -> None:
        Path("serve.py").write_text("")
        lines = [
            "Traceback (most recent call last):",
            '  File "serve.py", line 7, in decode',
            "    paged_attention(q, k, v, lengths, table, pages_per_compute_block=16)",
            '  File "/v/jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py", line 456, in f',
            "    raise ValueError(",
            self.ERROR,
        ]
        type_in(monkeypatch, newline.join(line.encode() for line in lines))
        assert run("explain", "-") == 0
        assert "Your code: serve.py:7, in decode\n  See the call: shapecheck check serve.py\n" in run.out
        Path("serve.py").unlink()
        type_in(monkeypatch, newline.join(line.encode() for line in lines))
        run("explain", "-")
        assert "Your code: serve.py:7" in run.out
        assert "See the call" not in run.out

    @pytest.mark.parametrize("data", [b"", b" \n\n"])
    def test_no_text(self, run: Runner, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
        type_in(monkeypatch, data)
        assert run("explain", "-") == 1
        assert (run.out, run.err) == ("", "shapecheck: there is no text to explain\n")
        assert run("explain", "") == 1

    @pytest.mark.parametrize("data", [b"all is well here\n", bytes(range(256)) * 10])
    def test_an_unknown_text(self, run: Runner, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
        type_in(monkeypatch, data)
        assert run("explain", "-") == 1
        assert run.out == ""
        assert "nothing in this text is known to be about one of the kernels" in run.err

    def test_a_text_that_comes_near(self, run: Runner) -> None:
        assert run("explain", "ValueError: not enough values to unpack (expected 3, got 2)") == 1
        assert "line 1: ValueError: not enough values to unpack" in run.err or "line 1: values to unpack" in run.err
        assert "give the whole traceback" in run.err

    def test_codes_and_texts(self, run: Runner) -> None:
        assert run("explain", "SC101", self.ERROR) == 0
        assert run.out.startswith("SC101 heads-not-grouped\n")
        assert "\n\nSC102 block-not-dividing (paged_attention)\n" in run.out
        assert run("explain", "nothing at all", "SC101") == 1
        assert run("explain", "nothing at all", "SC12") == 2

    def test_what_is_shown_cannot_move_the_terminal(self, run: Runner) -> None:
        assert run("explain", f"\x07\x1b]0;title\x07\x08{self.ERROR}\x00 \u202e") == 0
        assert not {"\x07", "\x08", "\x1b", "\x00", "\u202e"} & set(run.out)

    def test_json(self, run: Runner) -> None:
        assert run("explain", "--output-format", "json", "SC101", self.ERROR, "nothing at all", "SC12") == 2
        document = json.loads(run.out)
        assert list(document) == ["version", "rules", "diagnoses", "remarks", "unplaced", "problems"]
        assert [rule["code"] for rule in document["rules"]] == ["SC101"]
        (diagnosis,) = document["diagnoses"]
        assert diagnosis["code"] == "SC102"
        assert diagnosis["values"]["pages_per_sequence"] == {"value": 24, "origin": "page_indices.shape[1]"}
        assert diagnosis["place"] is None
        assert diagnosis["certain"] is True
        assert len(document["problems"]) == 2
        assert run("explain", "--output-format", "json") == 0
        assert len(json.loads(run.out)["rules"]) > 50


class TestHelp:
    def test_version(self, run: Runner) -> None:
        assert run("--version") == 0
        assert run.out.startswith("shapecheck 0.")

    @pytest.mark.parametrize("command", [[], ["check"], ["fix"], ["explain"]])
    def test_help(self, run: Runner, command: list[str]) -> None:
        assert run(*command, "--help") == 0
        assert "exit status:" in run.out if not command else "examples:" in run.out


class TestProcess:
    """What needs a process of its own; here the analysis is the real one."""

    def process(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "codemods", *arguments]
        return subprocess.run(command, capture_output=True, check=False, **options)  # type: ignore[call-overload]

    def test_a_module_and_a_script(self) -> None:
        Path("a.py").write_text(IMPORT + "paged_attention(q, k, v, lengths, pages, pages_per_compute_block=0)\n")
        assert b"a.py:2:66: SC110" in self.process("check").stdout
        script = Path(sys.executable).with_name("shapecheck")
        assert subprocess.run([script, "check"], capture_output=True, check=False).returncode == 1

    def test_a_name_that_no_encoding_has(self) -> None:
        name = os.fsdecode(b"\xff\n\x1b[31m.py")
        Path(name).write_text(IMPORT + "'é'; paged_attention(q, k, v, lengths, pages, pages_per_compute_block=0)\n")
        for output_format in ("text", "json", "github", "sarif"):
            environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
            done = self.process("check", "--output-format", output_format, env=environment)
            assert (done.returncode, done.stderr) == (1, b"")
            assert b"\x1b" not in done.stdout

    def test_a_reader_that_goes_away_is_no_error(self) -> None:
        Path("a.py").write_text(IMPORT + "paged_attention(q, k, v, lengths, pages, pages_per_compute_block=0)\n" * 50)
        command = f"{sys.executable} -m codemods check --output-format json | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")

    @pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["--completion", "bash"], ["check", "--help"]])
    def test_nobody_has_to_read_what_is_asked_for(self, arguments: list[str]) -> None:
        reads, writes = os.pipe()
        os.close(reads)
        done = subprocess.run([sys.executable, "-m", "codemods", *arguments], stdout=writes, stderr=subprocess.PIPE, check=False)
        os.close(writes)
        assert (done.returncode, done.stderr) == (0, b"")

    def test_a_run_without_call_sites_imports_little(self) -> None:
        Path("a.py").write_text("x = 1\n")
        Path("pyproject.toml").write_text("[project]\n")
        code = "import sys; from codemods.cli import main; main(['check']); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        heavy = {
            "libcst",
            "jax",
            "numpy",
            "tomllib",
            "difflib",
            "tokenize",
            "json",
            "subprocess",
            "dataclasses",
            "ast",
            "tempfile",
        }
        assert not heavy & set(done.stdout.split())
        assert not any(name.startswith("shapecheck") for name in done.stdout.split())

    def test_a_check_does_not_import_libcst(self) -> None:
        Path("a.py").write_text(IMPORT + "paged_attention(q, k, v, lengths, pages, pages_per_compute_block=0)\n")
        code = "import sys; from codemods.cli import main; main(['check']); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        assert "SC110" in done.stdout
        assert not {"libcst", "jax", "numpy", "jaxtyping", "beartype", "kernel"} & set(done.stdout.split())


class TestTerminal:
    """On a terminal of its own; here the analysis is the real one."""

    def on_terminal(self, *arguments: str, columns: int = 0, piped: bool = False, patience: float = 0, **variables: str) -> str:
        """Return what is shown on a terminal of so many columns: without what goes to standard output, if that is `piped`."""
        import fcntl
        import pty
        import struct
        import termios

        main, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
        code = f"import codemods.report.progress as p; p._PATIENCE = {patience}; p._PAUSE = 0; import codemods.cli as c; c.main()"
        command = [sys.executable, "-c", code, *arguments]
        output = subprocess.PIPE if piped else end
        with subprocess.Popen(command, stdout=output, stderr=end, env={**environment, "TERM": "xterm", **variables}) as process:
            os.close(end)
            shown = b""
            while chunk := _read(main):
                shown += chunk
            self.piped = process.stdout.read().decode() if process.stdout else ""
        os.close(main)
        return shown.decode()

    def test_a_run_that_is_soon_over_shows_no_progress(self) -> None:
        Path("a.py").write_text(ILLEGAL)
        assert "checking" not in self.on_terminal("check", patience=60)

    def test_what_is_piped_is_plain_and_progress_is_shown_all_the_same(self) -> None:
        Path("a.py").write_text(ILLEGAL)
        shown = self.on_terminal("check", piped=True)
        assert "\r\x1b[Kchecking a.py" in shown
        assert "SC102" not in shown
        assert "SC102" in self.piped
        assert "\x1b" not in self.piped

    @pytest.mark.parametrize("piped", [False, True])
    def test_progress_is_one_line_however_narrow(self, piped: bool) -> None:
        name = f"{'long' * 20}.py"
        Path(name).write_text(ILLEGAL)
        shown = self.on_terminal("check", columns=40, piped=piped)
        assert f"\r\x1b[K{f'checking {name}'[:39]}\r" in shown

    @pytest.mark.parametrize("columns", [60, 90])
    @pytest.mark.parametrize("command", [["check"], ["fix", "--diff"]], ids=" ".join)
    def test_code_is_as_wide_as_the_terminal_that_it_is_shown_on(self, command: list[str], columns: int) -> None:
        Path("a.py").write_text(ILLEGAL.replace("(4, 8, 128)", "(4, 8, 64)").replace("idx, ", "idx, " + " " * 60))
        piped = command[0] == "fix"  # the patch: the report is on the terminal
        shown = self.on_terminal(*command, columns=columns, piped=piped, patience=60, NO_COLOR="1")
        assert max(len(line) for line in shown.splitlines() if line.startswith("6 | ")) == columns

    @pytest.mark.parametrize(
        ("variables", "colored"),
        [
            ({}, True),
            ({"NO_COLOR": "1"}, False),
            ({"NO_COLOR": ""}, True),
            ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
            ({"TERM": "dumb"}, False),
            ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ],
        ids=str,
    )
    def test_colors_are_as_the_environment_wants_them(self, variables: dict[str, str], colored: bool) -> None:
        Path("a.py").write_text(ILLEGAL)
        assert ("\x1b[1;31mSC102" in self.on_terminal("check", patience=60, **variables)) is colored

    def test_fix_shows_colors_and_progress(self) -> None:
        Path("a.py").write_text(ILLEGAL)
        shown = self.on_terminal("fix")
        assert "\x1b[31m-paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)\x1b[0m\r\n" in shown
        assert "\x1b[32m+paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3)\x1b[0m\r\n" in shown
        assert "\r\x1b[Kchecking a.py" in shown
        assert shown.index("\r\x1b[K\x1b[1m--- a/a.py") > shown.rindex("checking a.py")  # it is gone before the report

    def test_a_patch_is_colored_as_well(self) -> None:
        Path("a.py").write_text(ILLEGAL)
        assert "\x1b[31m-paged_attention(" in self.on_terminal("fix", "--diff")
        assert Path("a.py").read_text() == ILLEGAL

    def test_who_wants_no_escapes_gets_none(self) -> None:
        Path("a.py").write_text(ILLEGAL)
        shown = self.on_terminal("fix", NO_COLOR="1", TERM="dumb")
        assert "\x1b" not in shown
        assert "\r\n+paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3)\r\n" in shown


_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")
ILLEGAL = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, idx = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)
"""


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


def test_color_is_for_terminals(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(BAD)
    run("check")
    assert "\x1b" not in run.out
    monkeypatch.setenv("FORCE_COLOR", "1")
    run("check")
    assert "\x1b[1;31mSC102\x1b[0m" in run.out
    monkeypatch.setenv("NO_COLOR", "1")
    run("check")
    assert "\x1b" not in run.out
