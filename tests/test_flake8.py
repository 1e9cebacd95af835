"""The plugin of flake8, run by the real flake8, which finds it by its entry point."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .editor import IMPORT, ROOT, source

CASES = sorted((ROOT / "tests" / "cases").glob("*.py"))
ISOLATED = ("--isolated", "--select", "SC")


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'serving'\n")
    return tmp_path


def run(command: Sequence[str], folder: Path, data: bytes | None = None) -> tuple[int, list[str]]:
    """Run a command: its status, and the lines that it prints, sorted."""
    done = subprocess.run([sys.executable, *command], cwd=folder, input=data, capture_output=True)
    assert done.stderr == b""
    return done.returncode, sorted(done.stdout.decode().splitlines())


def flake8(folder: Path, *arguments: str, data: bytes | None = None) -> list[str]:
    status, lines = run(["-P", "-m", "flake8", *arguments], folder, data)
    assert status == bool(lines)
    return lines


def check(folder: Path, *arguments: str) -> list[str]:
    """Return the findings of `shapecheck check`, as flake8 would print them."""
    _, lines = run(["-P", "-m", "codemods", "check", "--output-format", "concise", *arguments], folder)
    return [line.removesuffix(" [*]") for line in lines if re.match(r"\S+:\d+:\d+: ", line)]


def codes(lines: Sequence[str]) -> list[str]:
    return [line.split()[1] for line in lines]


def test_flake8_finds_the_plugin_by_its_entry_point() -> None:
    (entry,) = importlib.metadata.entry_points(group="flake8.extension", name="SC")
    assert entry.value == "codemods.flake8_plugin:Plugin"


@pytest.mark.thorough
@pytest.mark.parametrize("cases", [CASES[::9], pytest.param(CASES, marks=pytest.mark.sweep)], ids=["some", "all"])
def test_it_agrees_with_check(cases: Sequence[Path]) -> None:
    names = [str(case.relative_to(ROOT)) for case in cases]
    found = flake8(ROOT, *ISOLATED, "--shapecheck-unproven", "-j", "2", *names)
    assert found == check(ROOT, "--unproven", *names)
    assert len(set(codes(found))) > 3


def test_what_other_files_say_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("BLOCK = 4\n")
    (tmp_path / "a.py").write_text(source("BLOCK", before="from config import BLOCK\n"))
    kernel = source("block").replace("out =", "def decode(block):\n    return")
    (tmp_path / "kernel_of_ours.py").write_text(kernel)
    (tmp_path / "main.py").write_text("from kernel_of_ours import decode\ndecode(4)\n")
    found = flake8(tmp_path, *ISOLATED, ".")
    assert [line.split(":")[0] for line in found] == ["./a.py", "./kernel_of_ours.py"]
    assert codes(found) == ["SC102", "SC102"]


@pytest.mark.parametrize(
    ("comment", "arguments", "expected"),
    [
        ("", (), ["SC102"]),
        ("  # noqa", (), []),
        ("  # noqa: SC102", (), []),
        ("  # noqa: SC101", (), ["SC102"]),
        ("  # noqa: SC102", ("--disable-noqa",), ["SC102"]),
        ("  # shapecheck: ignore[SC102]", (), []),
        ("  # shapecheck: ignore[SC102]", ("--disable-noqa",), []),
        ("  # shapecheck: ignore[SC101]", (), ["SC102"]),
        ("  # shapecheck: skip-file", (), []),
        ("", ("--extend-ignore", "SC1"), []),
        ("", ("--ignore", "SC2"), ["SC102"]),
        ("", ("--select", "SC2"), []),
        ("", ("--select", "SC102"), ["SC102"]),
        ("", ("--per-file-ignores", "a.py:SC102"), []),
        ("  # shapecheck: ignore[SC101]", ("--extend-select", "SC902"), ["SC102", "SC902"]),
    ],
)
def test_comments_and_codes_are_obeyed(tmp_path: Path, comment: str, arguments: Sequence[str], expected: list[str]) -> None:
    (tmp_path / "a.py").write_text(source("4", pages=602, after=comment))
    found = codes(flake8(tmp_path, "--isolated", "--max-line-length", "200", *arguments, "a.py"))
    assert [code for code in found if code.startswith("SC")] == expected


def test_hints_are_reported_where_they_are_selected(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(source("3").replace("(2, 16, 16, 128)", "(8, 16, 16, 128)"))
    on_a_chip = ("--isolated", "--shapecheck-chips", "7x", "a.py")
    assert flake8(tmp_path, "--select", "SC", *on_a_chip) == []
    assert codes(flake8(tmp_path, "--select", "SC5", *on_a_chip)) == ["SC505"]
    assert codes(flake8(tmp_path, "--select", "SC", "--extend-select", "SC505", *on_a_chip)) == ["SC505"]
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nselect = ['SC5']\n")
    assert codes(flake8(tmp_path, "--select", "SC", *on_a_chip)) == ["SC505"]


def test_columns_count_characters_and_encodings_are_those_of_the_file(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\r\n" + source("4", before='name = "é"\n').replace("out =", 'x = "é"; out =')
    (tmp_path / "a.py").write_bytes(text.encode("latin-1"))
    (tmp_path / "b.py").write_bytes(b"\xef\xbb\xbf" + source("4").replace("out =", 'x = "🙂"; out =').encode())
    found = flake8(tmp_path, *ISOLATED, "a.py", "b.py")
    assert codes(found) == ["SC102", "SC102"]
    assert found == check(tmp_path, "a.py", "b.py")
    column = len(text[: text.index("4)")].rpartition("\n")[2]) + 1
    assert found[0].startswith(f"a.py:9:{column}: SC102 block-not-dividing: ")


@pytest.mark.parametrize("name", ["a.py", None])
def test_standard_input_is_a_file_at_its_place(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "config.py").write_text("BLOCK = 4\n")
    data = source("BLOCK", before="from config import BLOCK\n").encode()
    display = ("--stdin-display-name", name) if name else ()
    (found,) = flake8(tmp_path, *ISOLATED, *display, "-", data=data)
    assert found.startswith(f"{name or 'stdin'}:8:84: SC102 ")


def test_options_stand_in_its_configuration_and_go_on_top_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(source("3").replace("block=3", "block=3, megacore_mode='kv_head'"))
    assert flake8(tmp_path, "--select", "SC", "a.py") == []
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nchips = ['v5e']\n")
    assert codes(flake8(tmp_path, "--select", "SC", "a.py")) == ["SC204"]
    assert flake8(tmp_path, "--select", "SC", "--shapecheck-chips", "v4,v5p", "a.py") == []
    (tmp_path / ".flake8").write_text("[flake8]\nselect = SC\nshapecheck-chips = v6e\nshapecheck-unproven = true\n")
    (tmp_path / "b.py").write_text(source("n").replace("out =", "def f(n):\n    return"))
    assert {"SC204", "SC102"} <= set(codes(flake8(tmp_path, ".")))
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nexclude = ['b.py']\nignore = ['SC2']\n")
    assert flake8(tmp_path, ".") == []


def test_what_a_baseline_accepts_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nbaseline = 'known.json'\n")
    (tmp_path / "a.py").write_text(source("4"))
    assert codes(flake8(tmp_path, *ISOLATED, "a.py")) == ["SC901"], "there is no such file yet"
    run(["-P", "-m", "codemods", "check", "--write-baseline", "known.json"], tmp_path)
    assert flake8(tmp_path, *ISOLATED, "a.py") == check(tmp_path, "a.py") == []
    (tmp_path / "a.py").write_text(source("4") + source("5").removeprefix(IMPORT))
    (found,) = flake8(tmp_path, *ISOLATED, "a.py")
    assert [found] == check(tmp_path, "a.py")


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(source("4"))
    status, lines = run(["-P", "-m", "flake8", "--isolated", "--shapecheck-chips", "v99", "a.py"], tmp_path)
    assert status == 1
    assert any("--shapecheck-chips: " in line and "v99" in line for line in lines)
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nchip = 'v5e'\n")
    (found,) = flake8(tmp_path, *ISOLATED, "a.py")
    assert re.match(r"a\.py:1:1: SC901 file-error: \S+pyproject\.toml:2: \[tool\.shapecheck\] has no key 'chip'", found)
    (tmp_path / "deep.py").write_text(source("4") + f"x = {'-' * 400}1\n")
    (tmp_path / "pyproject.toml").write_text("")
    assert codes(flake8(tmp_path, *ISOLATED, "deep.py")) == ["SC901"]


def test_a_file_that_names_no_kernel_costs_next_to_nothing() -> None:
    code = (
        "import ast, sys\nfrom codemods.flake8_plugin import Plugin\n"
        "assert not list(Plugin(ast.parse('x = 1'), 'a.py', ['x = 1\\n']).run())\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('codemods', 'shapecheck', 'libcst', 'jax'))))"
    )
    assert run(["-c", code], ROOT) == (0, ["codemods codemods.flake8_plugin codemods.words"])


def test_the_tree_is_that_of_flake8(monkeypatch: pytest.MonkeyPatch) -> None:
    from codemods.flake8_plugin import Plugin

    tree = ast.parse(source("4"))
    parsed: list[object] = []
    monkeypatch.setattr("codemods.source.parse", lambda *arguments: parsed.append(arguments))
    ((line, column, text, _),) = Plugin(tree, "a.py", source("4").splitlines(keepends=True)).run()
    assert (line, column, text[:5], parsed) == (7, 83, "SC102", [])
