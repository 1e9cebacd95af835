"""What breaks tools that rewrite Python, in one run of `fix` over all of it: each file is repaired, or reported, or none of ours.

The first table has the columns of the comparison of seven such tools; each of them damages some of these files.
"""

from __future__ import annotations

import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

HEAD = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, idx = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)
"""
CALL = "paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)"
LINES = HEAD + f"x = {CALL}\n"

REPAIRED, REPORTED, LEFT = "repaired", "reported", "left"
TOLD = "left, and its finding is told"
EITHER = f"{REPAIRED}, or {TOLD}"  # it depends on how much the repairs know


class Case(NamedTuple):
    """A file, and what becomes of it: REPAIRED if its one 4 of a block is now a 3, and nothing else is changed."""

    data: bytes
    outcome: str = REPAIRED
    name: str = "a.py"


def case(code: str, outcome: str = REPAIRED) -> Case:
    return Case((HEAD + code).encode(), outcome)


MATRIX = {
    "LF": Case(LINES.encode()),
    "CRLF": Case(LINES.replace("\n", "\r\n").encode()),
    "mixed": Case((HEAD.replace("\n", "\r\n") + f"x = {CALL}\ny = 1\rz = 2\r\n").encode()),
    "no final newline": Case(LINES.rstrip().encode()),
    "backslash": case(f"x = 1 + \\\n  2, \\\n  {CALL}\n"),
    "CR": Case(LINES.replace("\n", "\r").encode()),
    "form feed": case(f"\x0c\nx = 1\n\x0cy = {CALL}\n\x0c\n"),
    "BOM": Case(b"\xef\xbb\xbf" + LINES.encode()),
    "latin-1": Case(f"# coding: latin-1\n{LINES}y = 'é'\n".encode("latin-1")),
    "syntax error": case(f"x = {CALL}\nx = (\n", REPORTED),
    "NUL": case(f"x = {CALL}\n\0\n", REPORTED),
    "not UTF-8": Case(LINES.encode() + b"'\xe9'\n", REPORTED),
    "ignored by git": Case(LINES.encode(), LEFT, "ignored.py"),
    "virtual environment": Case(LINES.encode(), LEFT, ".venv/a.py"),
    "tests": Case(LINES.encode(), REPAIRED, "tests/a.py"),
    "stub": Case(LINES.encode(), LEFT, "a.pyi"),
    "legal": Case(LINES.replace("=4)", "=3)").encode(), LEFT),
    "without the word": Case(b"x = (\n\0\xff", LEFT),
}

SINCE_312 = REPAIRED if sys.version_info >= (3, 12) else REPORTED
SINCE_314 = REPAIRED if sys.version_info >= (3, 14) else REPORTED

CODE = {
    "empty": Case(b"", LEFT),
    "tabs": case(f"if 1:\n\tx = {CALL}\n"),
    "wide characters": case(f"x = 'é名\U0001f600', {CALL}, 'é'\n"),
    "coding cookie on the second line": Case(
        f"#!/usr/bin/python\n# vim: fileencoding=shift_jis\nあ = 1\n{LINES}".encode("shift_jis")
    ),
    "UTF-16": Case(LINES.encode("utf-16"), LEFT),
    "a cookie that lies": Case(f"# coding: ascii\n{LINES}# é\n".encode(), REPORTED),
    "more than 10 MB": Case(LINES.encode() + b"#" * 10_000_000, REPORTED),
    "a line of 1 MB": case(f"y = '{'é' * 500_000}', {CALL}\n"),
    "f-string": case(f"x = f'{{{CALL}}} {{1}}'\n"),
    "nested f-strings": case(f"x = f'{{f'{{{CALL}}}'}}'\n", SINCE_312),
    "self-documenting f-string": case(f"x = f'{{{CALL}=}}'\n", TOLD),
    "type parameters": case(f"def f[T](x: T) -> T: ...\ntype A = int\nx = {CALL}\n", SINCE_312),
    "newest syntax": case(f"try: x = {CALL}\nexcept A, B: pass\ny = t'{{x}}'\n", SINCE_314),
    "a match that captures the name": case(f"match q:\n    case paged_attention: {CALL}\n", LEFT),
    "a match around": case(f"match 1:\n    case 1 if True: x = {CALL}\n"),
    "walrus": case(f"x = {CALL.replace('=4', '=(block := 4)')}\n"),
    "walrus around": case(f"if (x := {CALL}) is None: pass\n"),
    "callee in parentheses": case(f"x = (paged_attention)({CALL.partition('(')[2]}\n"),
    "number in parentheses": case(f"x = {CALL.replace('=4', '=((4))')}\n"),
    "star arguments": case("x = paged_attention(*(q, kv), *[kv, lens], idx, pages_per_compute_block=4)\n"),
    "generator argument": case(f"x = max(y for y in {CALL})\nz = sum({CALL.replace('4', '3')} for _ in idx)\n"),
    "trailing commas and comments": case(
        "x = paged_attention(q, kv, kv,  # one\n\n  lens, idx,\n  pages_per_compute_block = 4 , # two\n  # three\n)  # four\n"
    ),
    "keyword in other characters, which mean the same": case(f"x = {CALL.replace('pages', 'ｐages')}\n"),  # noqa: RUF001
    "keyword in a dict": case("x = paged_attention(q, kv, kv, lens, idx, **{'pages_per_compute_block': 4})\n", EITHER),
    "decorator": case(f"@(lambda f: {CALL})\ndef f(): pass\n"),
    "argument of a decorator": case(f"@print({CALL})\nclass A(print): pass\n"),
    "default argument": case(f"def f(a, b={CALL}): return b\n"),
    "lambda": case(f"f = lambda: {CALL}\nf()\n"),
    "semicolons": case(f"x = 1; y = {CALL}; z = 3\n"),
    "after the docstring and __future__": Case(f"'''Doc.'''\nfrom __future__ import annotations\n{LINES}".encode()),
    "string prefixes": case(f"x = rb'\\x' b'' , {CALL} , R'\\ '\n"),
    "2000 operators": case(f"x = {'1 + ' * 2000}1, {CALL}\n", REPORTED),
    "2000 operators in the call": case(f"x = {CALL.replace('=4', '=4' + ' * 1' * 2000)}\n", REPORTED),
    "2000 parentheses": case(f"x = {'(' * 2000}{CALL}{')' * 2000}\n", REPORTED),
    "2000 calls": case(f"x = {'f(' * 2000}{CALL}{')' * 2000}\n", REPORTED),
    "2000 methods": case(f"x = {CALL}{'.b()' * 2000}\n", REPORTED),
    "2000 branches": case("if 0: x = 1\n" + "elif 0: x = 1\n" * 2000 + f"x = {CALL}\n", REPORTED),
    "2000 strings": case("x = " + "'a' " * 2000 + f", {CALL}\n"),
    "90 parentheses": case(f"x = {'(' * 90}{CALL}{')' * 90}\n"),
    "60 lists": case(f"x = {'[' * 60}{CALL}{']' * 60}\n"),
}
CASES = {**MATRIX, **CODE}


def fix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codemods", "fix", "--output-format", "concise", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def place(name: str) -> str:
    return f"{name.replace(' ', '_')}/{CASES[name].name}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Fix all of them at once."""
    folder = tmp_path_factory.mktemp("damage")
    for name, (data, *_) in CASES.items():
        path = folder / place(name)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        os.utime(path, ns=(1, 1))
    (folder / ".gitignore").write_text("ignored.py\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder, fix(folder)


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_repaired_or_reported(name: str, run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = run
    data, expected, _ = CASES[name]
    path = folder / place(name)
    reported = [line for line in done.stdout.splitlines() if line.startswith(f"{place(name)}:")]
    if expected == REPAIRED or (expected == EITHER and path.read_bytes() != data):
        block = next(each for each in (b"=(block := 4", b"block': 4", b"= 4 ,", b"=((4", b"=4") if each in data)
        assert path.read_bytes() == data.replace(block, block.replace(b"4", b"3"), 1), reported
    else:
        assert path.read_bytes() == data
        assert os.stat(path).st_mtime_ns == 1
        if expected in (TOLD, EITHER):
            assert any(" SC102 " in line for line in reported), reported
        else:
            assert any(" SC901 " in line for line in reported) == (expected == REPORTED), reported


def test_the_run_says_that_it_failed(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = run
    assert done.returncode == 2
    assert done.stderr == ""


def test_a_second_run_changes_nothing(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = run
    before = {path: (path.read_bytes(), os.stat(path).st_mtime_ns) for path in folder.rglob("*.py")}
    fix(folder)
    assert {path: (path.read_bytes(), os.stat(path).st_mtime_ns) for path in folder.rglob("*.py")} == before


REPAIRED_LINES = LINES.replace("=4)", "=3)")


class TestFiles:
    """The rest of the matrix: what a file is besides its bytes."""

    def test_a_link_stays_one(self, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "root").mkdir()
        (tmp_path / "outside/a.py").write_text(LINES)
        (tmp_path / "root/link.py").symlink_to("../outside/a.py")
        (tmp_path / "root/loop.py").symlink_to("loop.py")
        (tmp_path / "root/self").symlink_to(".")
        assert fix(tmp_path / "root").returncode == 0
        assert os.readlink(tmp_path / "root/link.py") == "../outside/a.py"
        assert (tmp_path / "outside/a.py").read_text() == REPAIRED_LINES
        looped = fix(tmp_path / "root", "loop.py")
        assert (looped.returncode, "SC901 file-error: cannot be read: Too many levels" in looped.stdout) == (2, True)

    def test_hard_links_stay_together_and_the_mode_stays(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(LINES)
        (tmp_path / "a.py").chmod(0o755)
        os.link(tmp_path / "a.py", tmp_path / "b.py")
        assert fix(tmp_path).returncode == 0
        assert (tmp_path / "b.py").read_text() == REPAIRED_LINES
        assert os.path.samefile(tmp_path / "a.py", tmp_path / "b.py")
        assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o755


KILLED = """
import os, signal, sys
from codemods.files import Stamp
from codemods.write import write

left = int(sys.argv[1])

def trace(frame, event, _):
    global left
    if not frame.f_code.co_filename.endswith(("codemods/write.py", "tempfile.py", "subprocess.py")):
        return None
    left -= event == "line"
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return trace

stamp = Stamp.of(os.stat("a.py"))
sys.settrace(trace)
write("a.py", b"new" * 100_000, stamp)
sys.settrace(None)
"""


@pytest.mark.parametrize("links", [1, 2])
def test_a_kill_at_any_line_leaves_the_old_file_or_the_new(links: int, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    old, new = b"older" * 100_000, b"new" * 100_000
    seen: set[bytes] = set()
    for line in itertools.chain(range(0, 30, 3), (int(30 * 1.5**power) for power in itertools.count())):
        path.write_bytes(old)
        if links == 2 and not (tmp_path / "b.py").exists():
            os.link(path, tmp_path / "b.py")
        killed = subprocess.run([sys.executable, "-c", KILLED, str(line)], cwd=tmp_path, capture_output=True, check=False)
        assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
        time.sleep(0.2 if links == 2 else 0)  # a process that overwrites it may still be at it
        data = path.read_bytes()
        assert data in (old, new)
        seen.add(data)
        if killed.returncode == 0:
            break
    assert seen == {old, new}
    assert killed.returncode == 0
    assert set(os.listdir(tmp_path)) <= {"a.py", "b.py"}  # what was left behind is gone with the next write
