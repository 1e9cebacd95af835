from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shapecheck.compiler import (
    Cache,
    ask,
    cache_folder,
)

from . import fake_worker
from .questions import FAKE, put, question


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def files(tmp_path: Path) -> Any:
    return lambda: [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_answer_is_asked_for_once(cache: Cache, log: Path, files: Any) -> None:
    fresh, again = put(5, cache=cache) + put(5, cache=cache)
    assert (fresh.cached, again.cached) == (False, True)
    assert again.memory == fresh.memory
    assert log.read_text().count("start") == 1
    assert [path.suffix for path in files()] == [".json"]


def test_no_answer_is_not_kept(cache: Cache, log: Path, files: Any) -> None:
    put(fake_worker.ABORT, cache=cache)
    assert files() == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": 1}', b"\xff", b'{"key": "", "reply": {}}'])
def test_a_damaged_file_is_replaced(damage: bytes, cache: Cache, log: Path, files: Any) -> None:
    put(5, cache=cache)
    [path] = files()
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert [answer.cached for answer in put(5, cache=cache)] == [False]
    assert path.read_bytes() == whole


def test_a_reply_that_lacks_something_is_ignored(cache: Cache, log: Path, files: Any) -> None:
    put(5, cache=cache)
    [path] = files()
    path.write_text(path.read_text().replace('"ok": true', '"ok": false'))
    assert [answer.cached for answer in put(5, cache=cache)] == [False]


@pytest.mark.parametrize("change", ["chip", "batch", "versions", "flags"])
def test_another_question_is_asked(change: str, cache: Cache, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(5, cache=cache)
    if change == "versions":
        monkeypatch.setattr("shapecheck.compiler.cache._versions", lambda: {"libtpu": "9"})
    if change == "flags":
        monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=1024")
    asked = question("v5e" if change == "chip" else "v5p", batch_size=6 if change == "batch" else 5)
    assert [answer.cached for answer in ask([asked], command=FAKE, cache=cache)] == [False]


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, log: Path) -> None:
    (tmp_path / "file").touch()
    assert [answer.compiles for answer in put(5, cache=Cache(tmp_path / "file" / "below"))] == [True]


def test_it_is_in_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "shapecheck" / "compile"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard says to ignore
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "shapecheck" / "compile"
