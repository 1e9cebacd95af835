from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import codemods.analyse
from codemods import cli, witness
from codemods.cache import folder

from .fake_analysis import BAD, IMPORT

PACKAGES = ("codemods", "shapecheck")
CASES = sorted(Path(__file__).with_name("cases").glob("*.py"))[::8]

CONSTANT = "BLOCK = 16\n"
TAKES_CONSTANT = f"""\
{IMPORT}\
import jax.numpy as jnp
from sizes import BLOCK

def decode(pages=24):
    q, kv = jnp.zeros((8, 32, 128)), jnp.zeros((8, 192, 16, 128))
    table = jnp.zeros((8, pages), jnp.int32)
    return paged_attention(q, kv, kv, jnp.zeros((8,), jnp.int32), table, pages_per_compute_block=BLOCK)

decode()
"""


class Runner:
    """Runs the command line, and counts the analyses.

    Attributes:
        analyses: how many there have been.
        out: what the last run printed.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self.analyses = 0
        self.out = ""
        analyse = codemods.analyse.analyse

        def counted(*arguments: Any, **options: Any) -> Any:
            self.analyses += 1
            return analyse(*arguments, **options)

        monkeypatch.setattr(codemods.analyse, "analyse", counted)

    def __call__(self, *arguments: str) -> int:
        status = cli.main([*arguments])
        self.out = self._capsys.readouterr().out
        return status

    def analysed(self, *arguments: str) -> bool:
        """Run, and say whether that took an analysis; whether or not, the report is what it is without a cache."""
        before = self.analyses
        status, out = self(*arguments), self.out
        took = self.analyses > before
        assert (self(*arguments, "--no-cache"), self.out) == (status, out)
        return took


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(capsys, monkeypatch)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("codemods.cache.folder", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = tmp_path / "project"
    tree.mkdir()
    monkeypatch.chdir(tree)
    (tree / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tree / "a.py").write_text(TAKES_CONSTANT)
    (tree / "sizes.py").write_text(CONSTANT)
    return tree


@pytest.fixture(params=["fresh", "settled"])
def age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were changed a moment ago, whose contents are compared, and files whose stamps are."""
    if request.param == "settled":
        monkeypatch.setattr(witness, "_SETTLED", 0)


def kept() -> list[Path]:
    return [*Path(folder()).iterdir()] if os.path.isdir(folder()) else []


def write(path: str, text: str) -> Callable[[Path], object]:
    def change(tree: Path) -> None:
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text)

    return change


def same_size_and_time(tree: Path) -> None:
    """Change a file so that neither its size nor its time of modification tells."""
    before = (tree / "sizes.py").stat()
    (tree / "sizes.py").write_text(CONSTANT.replace("16", "12"))
    os.utime(tree / "sizes.py", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: Mapping[str, Callable[[Path], object]] = {
    "the file itself": write("a.py", TAKES_CONSTANT.replace("=24", "=32")),
    "a module that it imports": write("sizes.py", "BLOCK = 12\n"),
    "a module that it imports, with the same size and time": same_size_and_time,
    "a module that is gone": lambda tree: (tree / "sizes.py").unlink(),
    "a module that was renamed": lambda tree: (tree / "sizes.py").rename(tree / "other.py"),
    "a package that comes before the module": write("sizes/__init__.py", "BLOCK = 8\n"),
    "a file that sets what the module holds": write("main.py", "import sizes\nsizes.BLOCK = 8\nimport a\n"),
    "a file that calls the function": write("main.py", "from a import decode\ndecode(pages=17)\n"),
    "a conftest that patches": write("conftest.py", "import sizes\nsizes.BLOCK = 8\n"),
    "a conftest above the project": lambda tree: (tree.parent / "conftest.py").write_text("import sizes\nsizes.BLOCK = 8\n"),
    "settings": write("pyproject.toml", "[tool.shapecheck]\nignore = ['SC102']\n"),
    "another file to check": write("b.py", BAD),
    "a file that is no longer looked at": write("sub/pyvenv.cfg", ""),
}


@pytest.mark.usefixtures("age")
class TestValidity:
    def test_what_has_not_changed_is_not_analysed_again(self, run: Runner) -> None:
        assert run.analysed("check", "--unproven")
        assert "SC102" in run.out
        assert not run.analysed("check", "--unproven")

    @pytest.mark.parametrize("name", CHANGES)
    def test_what_has_changed_is(self, run: Runner, project: Path, name: str) -> None:
        (project / "sub").mkdir()
        (project / "sub" / "c.py").write_text(BAD)
        run.analysed("check", "--unproven", "--output-format", "json")
        before = run.out
        CHANGES[name](project)
        assert run.analysed("check", "--unproven", "--output-format", "json"), "it may change the report"
        assert run.out != before, "and it does, or this test says nothing"

    def test_a_fresh_checkout_has_not_changed(self, run: Runner, project: Path) -> None:
        run("check")
        shutil.move(project, project.parent / "old")
        shutil.copytree(project.parent / "old", project)
        os.chdir(project)
        assert not run.analysed("check"), "the contents are what counts"

    def test_a_touched_file_has_not_changed(self, run: Runner, project: Path) -> None:
        run("check")
        for file in project.iterdir():
            os.utime(file, (1, 1))
        assert not run.analysed("check")
        assert not run.analysed("check"), "and its new stamp is known"

    @pytest.mark.parametrize(
        "options", [["--output-format", "json"], ["--select", "SC1"], ["--chip", "v5e"], ["--strict"], ["--statistics"]]
    )
    def test_another_question_has_another_answer(self, run: Runner, options: list[str]) -> None:
        run("check")
        assert run.analysed("check", *options)
        assert not run.analysed("check", *options)

    def test_a_file_that_git_ignores_from_now_on(self, run: Runner, project: Path) -> None:
        subprocess.run(["git", "init", "-q"], check=True)
        (project / "main.py").write_text("from a import decode\ndecode(pages=17)\n")
        run("check", "a.py")
        assert not run.analysed("check", "a.py")
        (project / ".git" / "info" / "exclude").write_text("main.py\n")
        assert run.analysed("check", "a.py")

    def test_what_changes_during_the_run_is_looked_at_again(
        self, run: Runner, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        find_sites = codemods.analyse.find_sites

        def meanwhile(*arguments: Any, **options: Any) -> Any:
            (project / "sizes.py").write_text("BLOCK = 12\n")
            return find_sites(*arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(codemods.analyse, "find_sites", meanwhile)
            run("check")
        assert run.analysed("check")


class TestFix:
    def test_where_there_is_nothing_to_repair(self, run: Runner, project: Path) -> None:
        (project / "sizes.py").write_text("BLOCK = 12\n")
        assert run("fix") == 0
        before = run.analyses
        assert run("fix") == 0
        assert run.analyses == before

    def test_what_is_repaired_is_no_report_to_repeat(self, run: Runner) -> None:
        for _ in range(2):
            before = run.analyses
            assert run("fix", "--diff", "--unsafe-fixes") == 1
            assert "largest_divisor" in run.out
            assert run.analyses > before


def test_standard_input_and_what_cannot_be_parsed_are_not_kept(run: Runner, project: Path) -> None:
    (project / "b.py").write_text(f"{BAD}(")
    assert run("check") == 2
    assert kept() == []


class TestDamage:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: data[:-1],
            lambda data: data.replace(b"SC102", b"SC103"),
            lambda data: b"\0" * len(data),
        ],
    )
    def test_a_damaged_file_is_as_good_as_none(self, run: Runner, damage: Callable[[bytes], bytes]) -> None:
        run("check")
        [file] = kept()
        file.write_bytes(damage(file.read_bytes()))
        assert run.analysed("check")
        assert not run.analysed("check"), "it has been replaced"

    def test_a_folder_in_its_place(self, run: Runner) -> None:
        run("check")
        [file] = kept()
        file.unlink()
        file.mkdir()
        assert run.analysed("check")

    def test_a_folder_that_cannot_be_written(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert run("check") == 1
        assert run.analysed("check")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_a_read_only_folder(self, run: Runner) -> None:
        os.makedirs(folder())
        os.chmod(folder(), 0o500)
        assert run("check") == 1
        assert kept() == []

    def test_a_user_without_a_home(self, run: Runner, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr("os.path.expanduser", lambda path: path)
        before = {*project.iterdir()}
        assert run("check") == 1
        assert {*project.iterdir()} == before

    def test_a_full_disk(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("os.replace", full)
            assert run("check") == 1
        assert kept() == [], "nothing is left behind"


def test_it_does_not_grow_for_ever(run: Runner, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.cache._MOST_FILES", 3)
    for number in range(5):
        (project / "a.py").write_text(TAKES_CONSTANT + f"# {number}\n")
        run("check")
    assert len(kept()) == 3
    assert not run.analysed("check"), "the last one is there"


def test_two_runs_at_once(project: Path) -> None:
    command = [sys.executable, "-P", "-m", "codemods", "check", "--output-format", "json"]
    for _ in range(2):
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
        outputs = {run.communicate()[0] for run in runs}
        assert len(outputs) == 1
        assert len(kept()) == 1
        json.loads(outputs.pop())


def test_another_version_asks_anew(project: Path, tmp_path: Path) -> None:
    for package in PACKAGES:
        source = Path(sys.modules[package].__file__ or "").parent
        shutil.copytree(source, tmp_path / "program" / package, ignore=shutil.ignore_patterns("__pycache__"))

    def checked() -> str:
        command = [sys.executable, "-P", "-m", "codemods", "check", "--output-format", "concise"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "program")}
        return subprocess.run(command, capture_output=True, text=True, env=environment).stdout

    before = checked()
    assert checked() == before
    wording = tmp_path / "program" / "shapecheck" / "contracts" / "paged_attention.py"
    changed = wording.read_text().replace("the compute block must divide", "the block must divide")
    wording.write_text(changed)
    assert "the block must divide" in checked()
    assert "the block must divide" not in before


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The files and folders that are opened, whoever does it."""
    paths: list[str] = []
    watching = [True]

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str):
            paths.append(arguments[0])

    sys.addaudithook(audit)
    yield paths
    watching.clear()


def test_the_witness_sees_whatever_is_opened(run: Runner, project: Path, opened: list[str]) -> None:
    for case in CASES:
        shutil.copy(case, project)
    opened.clear()
    run("check", "--unproven", "--output-format", "json")
    [file] = kept()
    files, folders, kinds, *_ = json.loads(file.read_bytes().partition(b"\n")[2])[0]
    seen = {os.path.realpath(path) for path in (*files, *folders, *kinds)}
    within = {os.path.realpath(path) for path in opened if os.path.realpath(path).startswith(f"{project}{os.sep}")}
    unseen = within - seen - {os.path.realpath(path) for path in ("sub", "pyproject.toml")}
    assert not unseen, "what the report rests on is not told"
    assert len(seen) > len(CASES)


def test_nothing_else_asks_the_file_system() -> None:
    """What is not opened but only looked for leaves no trace: whoever looks must do so by `codemods.disk`."""
    asks = re.compile(
        r"\.is_file\(\)|\.is_dir\(\)|\.exists\(|\.iterdir\(|glob\(|os\.(stat|lstat|scandir|listdir|walk)\(|path\.is(file|dir)\("
    )
    analysis = ("analyse", "callers", "callees", "notebook", "suppress", "verdicts", "check", "source", "geometry", "unreached")
    package = Path(cli.__file__).parent
    modules = [*package.glob("evaluate/**/*.py"), *package.glob("repairs/*.py"), *(package / f"{name}.py" for name in analysis)]
    assert [module.name for module in modules if asks.search(module.read_text())] == []


def test_the_report_is_the_same_with_and_without(run: Runner, project: Path) -> None:
    for case in CASES:
        shutil.copy(case, project)
    for options in (["--unproven"], ["--output-format", "json"], ["--output-format", "sarif", "--strict"]):
        assert run.analysed("check", *options)
        assert not run.analysed("check", *options)
