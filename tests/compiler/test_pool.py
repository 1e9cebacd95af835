from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from shapecheck.compiler import (
    CompilerUnavailable,
    Failure,
    ask,
)
from shapecheck.compiler.process import COMMAND

from . import fake_worker
from .questions import put, question


def test_one_process_answers_many_questions_in_their_order(log: Path) -> None:
    seen: list[tuple[int, int]] = []
    answers = put(5, 6, 5, 7, watch=lambda done, of: seen.append((done, of)))
    assert [answer.memory["hbm"] for answer in answers] == [5, 6, 5, 7]
    assert log.read_text().splitlines()[1:] == ["asked 5", "asked 6", "asked 7"]
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_crash_costs_its_own_answer(log: Path) -> None:
    before, crashed, gone, after = put(5, fake_worker.ABORT, fake_worker.EXIT, 6)
    assert (before.compiles, crashed.compiles, gone.compiles, after.compiles) == (True, None, None, True)
    assert crashed.failure is Failure.CRASH
    assert "SIGABRT: Fatal: the compiler is upset" in crashed.message
    assert "status 3" in gone.message
    assert log.read_text().count("start") == 3


def test_a_hang_is_ended(log: Path) -> None:
    started = time.monotonic()
    hung, after = put(fake_worker.HANG, 6, timeout=1.0)
    assert (hung.failure, hung.compiles, after.compiles) == (Failure.TIMEOUT, None, True)
    assert hung.message == "no answer within 1 s"
    for pid in re.findall(r"start (\d+)", log.read_text()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert time.monotonic() - started < 60


def test_several_processes_work_at_a_time(log: Path) -> None:
    answers = put(*range(10, 22), processes=3)
    assert [answer.memory["hbm"] for answer in answers] == list(range(10, 22))
    assert 1 <= log.read_text().count("start") <= 3


def test_an_interrupt_ends_them(log: Path) -> None:
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        put(5, fake_worker.HANG, watch=interrupt)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    ("hello", "message"),
    [
        ('{"absent": ["jax", "libtpu"]}', r"not installed: jax, libtpu; pip install 'shapecheck-pallas\[tpu\]'"),
        (
            '{"error": "ABORTED: Internal error when accessing libtpu multi-process lockfile."}',
            "another process holds libtpu",
        ),
        ('{"error": "NotFound: libtpu.so"}', "libtpu does not start: NotFound: libtpu.so"),
        ("die", "libtpu does not start: it ended with status 7: Check failed: no such thing"),
    ],
)
def test_no_compiler(hello: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HELLO", hello)
    with pytest.raises(CompilerUnavailable, match=message):
        put(5)


def test_without_jax_the_worker_says_so() -> None:
    bare = (sys.executable, "-I", "-S", COMMAND[-1])
    with pytest.raises(CompilerUnavailable, match="not installed: jax, libtpu"):
        ask([question()], command=bare)


def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("jax", "libtpu", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')")
    with pytest.raises(CompilerUnavailable, match="not installed: jax, libtpu"):
        ask([question()], command=(*COMMAND[:-1], "-S", COMMAND[-1]))


def test_nothing_to_ask_starts_nothing(log: Path) -> None:
    assert put() == []
    assert log.read_text() == ""
