from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest

from codemods import analyse as real
from codemods.check import Analyse, Run, check
from codemods.config import Configuration, Settings
from codemods.files import discover
from codemods.fix import Change
from codemods.ignores import add_ignores
from codemods.words import Words
from codemods.write import write

from .fake_analysis import BAD, GOOD, IMPORT, UNPROVEN, analyse

CALL = "paged_attention(pages=6, block=4)"
BOTH = "paged_attention(pages=6, block=4, mode='kv_head')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(using: Analyse = analyse, settings: Settings | None = None, *, writing: bool = True) -> tuple[Run, list[Change]]:
    found = discover(["."], Configuration(lambda each: settings or each), Words())
    return add_ignores(found, using, (lambda file, data: write(file.path, data, file.stamp)) if writing else None)


FILES: dict[str, tuple[str, str]] = {
    "behind the call": (f"x = {CALL}\n", f"x = {CALL}  # shapecheck: ignore[SC102]\n"),
    "several codes": (f"x = {BOTH}\n", f"x = {BOTH}  # shapecheck: ignore[SC102, SC201]\n"),
    "on the lines of the arguments": (
        "paged_attention(\n    pages=6,\n    block=4,\n    mode='kv_head',\n)\n",
        "paged_attention(\n    pages=6,\n    block=4,  # shapecheck: ignore[SC102]\n"
        "    mode='kv_head',  # shapecheck: ignore[SC201]\n)\n",
    ),
    "after a comment": (f"{CALL}  # type: ignore\n", f"{CALL}  # type: ignore  # shapecheck: ignore[SC102]\n"),
    "into one of ours": (
        f"{BOTH}  # shapecheck: ignore[SC201]  why\n",
        f"{BOTH}  # shapecheck: ignore[SC201, SC102]  why\n",
    ),
    "into an empty one of ours": (f"{CALL}  # shapecheck: ignore[]\n", f"{CALL}  # shapecheck: ignore[SC102]\n"),
    "another noqa": (f"{CALL}  # noqa: E501\n", f"{CALL}  # noqa: E501  # shapecheck: ignore[SC102]\n"),
    "two calls on a line": (
        f"[{CALL},\n {CALL}, {CALL}]\n",
        f"[{CALL},  # shapecheck: ignore[SC102]\n {CALL}, {CALL}]  # shapecheck: ignore[SC102]\n",
    ),
    "CRLF": (f"x = [\r\n  {CALL},\r\n]\r\n", f"x = [\r\n  {CALL},  # shapecheck: ignore[SC102]\r\n]\r\n"),
    "CR": (f"x = 1\r{CALL}\r", f"x = 1\r{CALL}  # shapecheck: ignore[SC102]\r"),
    "mixed": (f"x = 1\n{CALL}\r\ny = 1\r", f"x = 1\n{CALL}  # shapecheck: ignore[SC102]\r\ny = 1\r"),
    "no final newline": (f"x = {CALL}", f"x = {CALL}  # shapecheck: ignore[SC102]"),
    "trailing blanks": (f"{CALL} \t \n", f"{CALL} \t   # shapecheck: ignore[SC102]\n"),
    "BOM": (f"\ufeff{CALL}\n", f"\ufeff{CALL}  # shapecheck: ignore[SC102]\n"),
    "backslash": (
        "if x:\n\ty = 1, \\\n\t\tpaged_attention(pages=6, \\\n\t\tblock=4) + \\\n\t\t1\n",
        "if x:\n\t# shapecheck: ignore[SC102]\n\ty = 1, \\\n\t\tpaged_attention(pages=6, \\\n\t\tblock=4) + \\\n\t\t1\n",
    ),
    "backslash and CRLF": (
        f"x = 1\r\ny = {CALL} + \\\r\n 1",
        f"x = 1\r\n# shapecheck: ignore[SC102]\r\ny = {CALL} + \\\r\n 1",
    ),
    "a string that goes on": (
        f"if x:\n    y = {CALL}, '''\n  # no comment\n'''\n",
        f"if x:\n    # shapecheck: ignore[SC102]\n    y = {CALL}, '''\n  # no comment\n'''\n",
    ),
    "behind a string": (f"y = '''\n''', {CALL}\n", f"y = '''\n''', {CALL}  # shapecheck: ignore[SC102]\n"),
    "a string among the arguments": (
        "paged_attention(pages=6, block=4, name='''\n''')\n",
        "paged_attention(pages=6, block=4, name='''\n''')  # shapecheck: ignore[SC102]\n",
    ),
    "the end of a call whose argument cannot be commented": (
        "paged_attention(pages=6, block= \\\n4, name='''\n''',\n)\n",
        "paged_attention(pages=6, block= \\\n4, name='''\n''',\n)  # shapecheck: ignore[SC102]\n",
    ),
    "a decorator": (f"@{CALL}\ndef f(): pass\n", f"@{CALL}  # shapecheck: ignore[SC102]\ndef f(): pass\n"),
    "a header": (f"if x: {CALL}; y = 1\n", f"if x: {CALL}; y = 1  # shapecheck: ignore[SC102]\n"),
    "the first line of a script": (
        f"#!/usr/bin/env python\n# coding: utf-8\nx = {CALL}, \\\n1\n",
        f"#!/usr/bin/env python\n# coding: utf-8\n# shapecheck: ignore[SC102]\nx = {CALL}, \\\n1\n",
    ),
    "an f-string": (f"x = f'{{{CALL}}}'\n", f"x = f'{{{CALL}}}'  # shapecheck: ignore[SC102]\n"),
    "wide characters": (f"x = 'é名', {CALL}\n", f"x = 'é名', {CALL}  # shapecheck: ignore[SC102]\n"),
}


@pytest.mark.parametrize(("before", "after"), FILES.values(), ids=FILES)
def test_a_comment_is_put_where_it_suppresses_and_breaks_nothing(before: str, after: str) -> None:
    Path("a.py").write_bytes(before.encode())
    result, [change] = run()
    assert Path("a.py").read_bytes().decode() == after
    assert change == Change("a.py", before.encode(), after.encode())
    assert (result.failed, result.report.findings, result.report.errors) == (False, [], [])
    assert run()[1] == []  # it is there already
    found = discover(["."], Configuration(lambda each: each._replace(select=("SC",))), Words())
    assert check(found, analyse).report.findings == []  # nor is any comment without a use


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 701")
def test_none_is_put_into_a_string() -> None:
    """Only since Python 3.12 there are comments between the braces; the program may run on an older one."""
    Path("a.py").write_text(f"x = f'''{{\n{CALL}\n}}'''\n")
    run()
    assert Path("a.py").read_text() == f"# shapecheck: ignore[SC102]\nx = f'''{{\n{CALL}\n}}'''\n"


def test_the_encoding_stays() -> None:
    Path("a.py").write_bytes(f"# coding: latin-1\nx = 'é', {CALL}\n".encode("latin-1"))
    run()
    assert Path("a.py").read_bytes() == f"# coding: latin-1\nx = 'é', {CALL}  # shapecheck: ignore[SC102]\n".encode("latin-1")


def test_what_needs_no_comment_is_not_touched() -> None:
    Path("a.py").write_text(GOOD)
    Path("b.py").write_text(UNPROVEN)
    Path("c.py").write_text(f"{CALL}  # noqa: SC102\n")
    Path("d.py").write_text("# shapecheck: skip-file\n" + BAD)
    for path in Path().iterdir():
        os.utime(path, ns=(1, 1))
    assert run()[1] == []
    assert {path.stat().st_mtime_ns for path in Path().iterdir()} == {1}


def test_what_is_reported_is_ignored() -> None:
    Path("a.py").write_text(UNPROVEN + IMPORT + f"{BOTH}\n")
    run(settings=Settings(strict=True, ignore=("SC201",)))
    text = Path("a.py").read_text()
    assert text.count("# shapecheck: ignore[SC102]\n") == text.count("# shapecheck") == 2


def test_without_a_writer_nothing_is_written() -> None:
    Path("a.py").write_text(BAD)
    result, changes = run(writing=False)
    assert len(changes) == 1
    assert not result.failed
    assert Path("a.py").read_text() == BAD


def test_a_file_that_cannot_be_written_keeps_its_findings_and_the_others_go_on() -> None:
    Path("a.py").write_text(BAD)
    Path("b.py").write_text(BAD)
    os.chmod("a.py", 0o444)
    result, changes = run()
    assert [change.path for change in changes] == ["b.py"]
    assert [finding.path for finding in result.report.findings] == ["a.py"]
    [error] = result.report.errors
    assert (error.path, error.message) == ("a.py", "no comments are added: it is read-only")


def test_a_file_that_is_no_python_is_reported_and_the_others_go_on() -> None:
    Path("a.py").write_text(BAD + "x = (\n")
    Path("b.py").write_text(BAD)
    result, changes = run()
    assert [change.path for change in changes] == ["b.py"]
    assert [error.path for error in result.report.errors] == ["a.py"]


def test_a_file_that_is_only_looked_at_for_a_contract_elsewhere() -> None:
    Path("pyproject.toml").touch()
    Path("mine.py").write_text(
        "import shapecheck\nfrom jaxtyping import Array, Float\n\n\n"
        "@shapecheck.contract('n % 2 == 0')\ndef attend(q: Float[Array, 'n']): ...\n"
    )
    text = "import jax.numpy as jnp\nfrom mine import attend\n\nattend(jnp.zeros(3))\n"
    Path("caller.py").write_text(text)
    result, changes = run(real.analyse)
    assert not result.report.errors
    assert [change.path for change in changes] == ["caller.py"]
    assert Path("caller.py").read_text() == text[:-1] + "  # shapecheck: ignore[SC001]\n"


def test_of_many_findings_only_their_lines_change_and_a_second_run_adds_nothing() -> None:
    text = "\n".join(f"def f{each}():\n    x = {each}\n    return {BOTH if each % 2 else CALL}\n" for each in range(60))
    for name in ("a.py", "b.py"):
        Path(name).write_text(text)
    result, changes = run()
    assert (result.report.findings, result.report.suppressed, len(changes)) == ([], 2 * 90, 2)
    after = Path("a.py").read_text()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
    pairs = list(zip(text.splitlines(), after.splitlines(), strict=True))
    assert {new.startswith(f"{old}  # shapecheck: ignore[SC") for old, new in pairs if "paged_attention" in old} == {True}
    assert all(old == new for old, new in pairs if "paged_attention" not in old)
    again, changes = run()
    assert (again.report.findings, changes) == ([], [])
    assert Path("a.py").read_text() == after
