"""Completion, in the shells that there are: what a Tab gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codemods import cli
from codemods.completion import SHELLS

_BASH = """\
source "$1"
COMP_WORDS=(shapecheck "${@:2}") COMP_CWORD=$(($# - 1))
_shtab_shapecheck shapecheck "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
_FISH = 'source $argv[1]; complete -C "shapecheck $argv[2..]"'
_ZSH = """\
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; LISTMAX=1000; fpath=(${1:h} \\$fpath); autoload -Uz compinit; compinit -D -u; print DO''NE"
zpty -r shell output '*DONE*'
zpty -w -n shell "shapecheck ${*:3}"$'\\t\\t'
zpty -r shell output "*$2*"
print -r -- "$output"
zpty -d shell
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        command = [sys.executable, "-m", "codemods", "--completion", shell]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (folder / "_shapecheck" if shell == "zsh" else folder / shell).write_text(text)
    return folder


def said(shell: str, program: str, *arguments: str | Path) -> list[str]:
    if not (path := shutil.which(shell)):
        pytest.skip(f"there is no {shell}")
    quiet = ["-f"] if shell == "zsh" else ["--no-config"] if shell == "fish" else ["--norc"]
    command = [path, *quiet, "-c", program, *([] if shell == "fish" else [shell]), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parent).stdout.split("\n")


CASES = {
    "che": ["check"],
    "check --select SC20": [f"SC20{number}" for number in range(1, 9)],
    "fix --ignore SC5": ["SC5", "SC505", "SC506"],
    "explain block-not": ["block-not-dividing", "block-not-positive"],
    "explain SC102 SC40": [f"SC40{number}" for number in range(1, 8)],
    "check --chip v5": ["v5e", "v5p"],
    "plan --chip v5": ["v5e", "v5p"],
    "check --output-format s": ["sarif"],
    "fix --un": ["--unproven", "--unsafe-fixes"],
    "check test_compl": ["test_completion.py"],
    "check --baseline test_compl": ["test_completion.py"],
}


@pytest.mark.parametrize("line", CASES)
def test_bash(scripts: Path, line: str) -> None:
    assert sorted({*said("bash", _BASH, scripts / "bash", *line.split())} - {""}) == CASES[line]


@pytest.mark.parametrize("line", CASES)
def test_fish(scripts: Path, line: str) -> None:
    offered = {line.split("\t")[0] for line in said("fish", _FISH, scripts / "fish", *line.split())}
    assert sorted(offered - {""}) == CASES[line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("check --select SC20", "SC208"),
        ("explain block-not-d", "dividing"),
        ("plan --chip v5", "v5p"),
        ("fix --un", "--unsafe-fixes"),
    ],
)
def test_zsh(scripts: Path, line: str, offered: str) -> None:
    assert offered in "".join(said("zsh", _ZSH, scripts / "_shapecheck", offered, *line.split())[-3:])


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["--completion", "ksh"])
    assert "--completion: no 'ksh' among bash, zsh, fish" in capsys.readouterr().err


def test_without_shtab_it_is_told_what_to_install(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["--completion", "bash"])
    assert "--completion needs shtab: pip install 'shapecheck-pallas[completion]'" in capsys.readouterr().err
