from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from codemods import cli, files, pool
from codemods.check import Run
from codemods.config import Configuration
from codemods.disk import read
from codemods.files import Found, Problem, discover
from codemods.findings import Finding
from codemods.fix import Change, _Repair, fix  # pyright: ignore[reportPrivateUsage]
from codemods.pool import Died, spread
from codemods.source import Source
from codemods.surroundings import Surroundings
from codemods.witness import Witness, watching
from codemods.words import Words
from codemods.write import write

from .fake_analysis import BAD, analyse

CASES = sorted(Path(__file__).with_name("cases").glob("*.py"))[::4]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is one process only"),
    pytest.mark.filterwarnings("ignore:.*fork"),  # of the process of the tests: see `two_processors`
]


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(pool, "_SHARE", 1)
    monkeypatch.setattr(pool, "_is_single", lambda: True)  # JAX's threads, and those of xdist, hold nothing that is needed


@pytest.fixture(autouse=True)
def no_process_is_left(two_processors: None) -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def one(_: object) -> int:
    return 1


class TestSpread:
    def test_results_are_in_the_order_of_the_items(self) -> None:
        assert spread(range(9), lambda item: item * item, lambda item: item) == [item * item for item in range(9)]

    def test_processes_share_the_work(self) -> None:
        processes = spread(range(9), lambda _: os.getpid(), one)
        assert len(set(processes)) == 2
        assert os.getpid() in processes

    @pytest.mark.parametrize("items", [[], [1]])
    def test_there_is_no_other_process_without_need(self, items: list[int]) -> None:
        assert spread(items, lambda _: os.getpid(), one) == [os.getpid() for _ in items]

    def test_there_is_no_other_process_beside_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(pool, "_SHARE", 1)
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        try:
            assert {*spread(range(9), lambda _: os.getpid(), one)} == {os.getpid()}
        finally:
            done.set()
            thread.join()

    def test_little_work_is_done_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool, "_SHARE", 1000)
        assert {*spread(range(9), lambda _: os.getpid(), lambda _: 200)} == {os.getpid()}

    def test_a_process_that_is_busy_leaves_the_others_to_the_other_one(self) -> None:
        def work(item: int) -> int:
            time.sleep(1 if item == 100 else 0)
            return os.getpid()

        processes = spread([1, 100, 2, 3], work, lambda item: item)
        assert [process == os.getpid() for process in processes] == [False, True, False, False]

    def test_each_item_is_done_once(self, tmp_path: Path) -> None:
        def work(item: int) -> int:
            (tmp_path / str(item)).touch(exist_ok=False)
            return item

        assert spread(range(500), work, one) == list(range(500))

    def test_large_results(self) -> None:
        assert spread(range(2), lambda item: bytes(3_000_000) + bytes([item]), one)[1][-1] == 1

    def test_a_process_that_dies(self) -> None:
        here = os.getpid()

        def work(item: int) -> int:
            if os.getpid() != here:
                os.kill(os.getpid(), signal.SIGKILL)
            return item

        with pytest.raises(Died, match="ended before it was done"):
            spread(range(4), work, one)

    def test_what_goes_wrong_in_another_process_is_told(self) -> None:
        here = os.getpid()

        def work(item: int) -> int:
            if os.getpid() != here:
                raise ValueError("a defect of ours")
            return item

        with pytest.raises(RuntimeError, match="ValueError: a defect of ours"):
            spread(range(4), work, one)

    def test_memory_that_is_not_enough_is_no_defect_of_ours(self) -> None:
        here = os.getpid()

        def work(item: int) -> int:
            if os.getpid() != here:
                raise MemoryError
            return item

        with pytest.raises(Died, match="is there enough memory"):
            spread(range(4), work, one)

    def test_where_there_can_be_no_other_process_all_is_done_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused() -> int:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr("os.fork", refused)
        before = os.listdir("/proc/self/fd")
        assert spread(range(9), lambda item: item * item, one) == [item * item for item in range(9)]
        assert os.listdir("/proc/self/fd") == before

    def test_where_nobody_knows_of_threads_there_is_no_other_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(_: str) -> list[str]:
            raise FileNotFoundError(2, "No such file or directory", "/proc/self/task")

        monkeypatch.undo()
        monkeypatch.setattr(pool, "_SHARE", 1)
        monkeypatch.setattr("os.listdir", missing)
        assert {*spread(range(9), lambda _: os.getpid(), one)} == {os.getpid()}

    def test_the_end_of_other_processes_may_be_ignored(self) -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            assert spread(range(9), lambda item: item * item, one) == [item * item for item in range(9)]
        finally:
            signal.signal(signal.SIGCHLD, before)

    def test_an_interrupt_ends_all(self) -> None:
        here, start = os.getpid(), time.monotonic()

        def work(item: int) -> int:
            if os.getpid() == here:
                raise KeyboardInterrupt
            time.sleep(60)
            return item

        with pytest.raises(KeyboardInterrupt):
            spread(range(4), work, one)
        assert time.monotonic() - start < 30

    def test_the_witness_learns_what_each_has_seen(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [str(tmp_path / name) for name in "abcd"]
        for path in paths:
            Path(path).write_text("before")
        with watching(witness := Witness()):
            spread(paths, read, one)
        assert witness.sees_the_same(lambda _: set())
        for path in paths:
            Path(path).write_text("after")
            assert not witness.sees_the_same(lambda _: set())
            Path(path).write_text("before")


class TestRuns:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_a_process_that_dies_costs_no_file(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in "abcd":
            (folder / f"{name}.py").write_text(BAD)
        here = os.getpid()

        def fatal(source: Source) -> None:
            if os.getpid() != here:
                os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(Source, "release", fatal)
        assert cli.main(["fix"]) == 2
        assert capsys.readouterr().err == (
            "shapecheck: a process that checked some of the files ended before it was done; is there enough memory?\n"
        )
        assert {path.read_text() for path in folder.iterdir()} == {BAD}

    @pytest.mark.parametrize("output_format", ["text", "json", "sarif"])
    def test_the_report_is_the_same_with_any_number(
        self, folder: Path, output_format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for case in CASES:
            shutil.copy(case, folder)
        command = ["check", "--no-cache", "--unproven", "--output-format", output_format]
        status, several = cli.main(command), capsys.readouterr()
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
        assert (cli.main(command), capsys.readouterr()) == (status, several)

    def test_many_files_are_found_as_few_are(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(20):
            (folder / f"a{number}.py").write_text(BAD)
            (folder / f"b{number}.py").write_text("pass\n")
        os.mkfifo("pipe.py")
        Path("folder.py").mkdir()
        Path("folder.py/inner.py").write_text(BAD)
        Path("link.py").symlink_to("a1.py")
        monkeypatch.setattr(files, "_SHARE", 1)
        monkeypatch.setattr(files, "_PART", 3)
        several = self.found()
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
        assert several == self.found()
        assert [candidate.path for candidate in several.candidates] == sorted(
            ["folder.py/inner.py", *(f"a{number}.py" for number in range(20))]
        )
        assert several.problems == (Problem("pipe.py", 1, "cannot be read: not a regular file"),)

    def found(self) -> Found:
        return discover([".", "pipe.py"], Configuration(), Words())

    def test_files_are_repaired_as_by_one_process(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some of the fixes are refused: by themselves, together with another, and by what comes of them."""
        for number, (comment, newline) in enumerate(product(("", "# coding: latin-1\n# \xe9\n"), ("\n", "\r\n", "\r"))):
            text = comment + BAD + "x = f'{paged_attention(pages=6, block=4)=}'\n" + "paged_attention(pages=9, block=4)\n" * 3
            data = text.replace("\n", newline).encode("latin-1" if comment else "utf-8")
            (folder / f"a{number}.py").write_bytes(data)
        cells = [{"cell_type": "code", "source": each.splitlines(keepends=True)} for each in (BAD, "%time 1\n", BAD)]
        (folder / "b.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
        (folder / "c.py").write_text("x = (\n" + BAD)
        (folder / "d.py").write_text(BAD)
        (folder / "d.py").chmod(0o444)
        several = self.repaired()
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
        run, changes = self.repaired()
        assert several == (run, changes)
        assert (run.report.fixed, len(changes)) == (6 * 4 + 2, 7)
        assert len([finding for finding in run.report.findings if finding.fix and "not fixed" in finding.fix.message]) == 6
        assert [error.path for error in run.report.errors] == ["c.py", "d.py"]

    def repaired(self) -> tuple[Run, list[Change]]:
        before = {path: path.read_bytes() for path in Path().iterdir()}
        found = discover(["."], Configuration(), Words())
        run, changes = fix(found, analyse, lambda candidate, data: write(candidate.path, data, candidate.stamp))
        assert {change.path: change.after for change in changes} == {
            str(path): path.read_bytes() for path, data in before.items() if path.read_bytes() != data
        }
        for path, data in before.items():
            if path.read_bytes() != data:
                path.write_bytes(data)
        return run._replace(sources={}), changes

    def test_a_process_that_dies_while_fixes_are_made_costs_no_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in "abcd":
            (folder / f"{name}.py").write_text(BAD)
        here, work = os.getpid(), _Repair._edited

        def fatal(repair: _Repair, findings: Sequence[Finding]) -> object:
            if os.getpid() != here:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(repair, findings)

        monkeypatch.setattr(_Repair, "_edited", fatal)
        with pytest.raises(Died):
            self.repaired()
        assert {path.read_text() for path in folder.iterdir()} == {BAD}


SLOW = """\
import os, sys, time
from pathlib import Path
from codemods import check, cli, pool

def slow(sources, analyse):
    Path(f"{os.getpid()}.started").touch()
    time.sleep(60)

check._analysed = slow
pool._SHARE = 1
os.sched_getaffinity = lambda _: {0, 1}
sys.exit(cli.main(["fix", "a.py", "b.py"]))
"""


def test_control_c_ends_every_process(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(BAD)
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for _ in range(1000):
        if len([*tmp_path.glob("*.started")]) == 2:
            break
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    assert run.communicate(timeout=30) == (b"", b"")
    assert run.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)
    assert (tmp_path / "a.py").read_text() == BAD


ORPHANED = """\
import os, time
from pathlib import Path
from codemods import pool

first = os.getpid()

def slow(item):
    if os.getpid() == first:
        time.sleep(60)
    Path(f"{item}.started").touch()
    time.sleep(0.1)

os.sched_getaffinity = lambda _: {0, 1}
pool.spread(range(20), slow, lambda item: 1, least=1)
"""


def test_the_others_end_with_the_first_process(tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-c", ORPHANED], cwd=tmp_path)
    while not [*tmp_path.glob("*.started")]:
        time.sleep(0.05)
    run.kill()
    run.wait()
    begun = len([*tmp_path.glob("*.started")])
    time.sleep(0.7)
    assert len([*tmp_path.glob("*.started")]) <= begun + 1


class TestGroups:
    @pytest.mark.parametrize(
        ("files", "groups"),
        [
            ({"a.py": "import jax", "b.py": "import numpy"}, ["a", "b"]),
            ({"a.py": "import b", "b.py": "", "c.py": ""}, ["ab", "c"]),
            ({"p/a.py": "from . import x", "p/__init__.py": "", "c.py": ""}, ["a_", "c"]),
            ({"a.py": "from tools.sizes import X", "c.py": ""}, ["a", "c"]),
            ({"a.py": "import_module('c')", "c.py": "", "d.py": ""}, ["ac", "d"]),
        ],
    )
    def test_files_that_may_execute_each_other_are_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], groups: Iterable[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "tools").mkdir()
        (tmp_path / "tools" / "sizes.py").write_text("X = 1")
        for path, text in files.items():
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_text(text)
        found = Surroundings([Source(path, text.encode()) for path, text in files.items()], Path()).groups()
        assert ["".join(Path(source.path).stem[0] for source in group) for group in found] == groups
