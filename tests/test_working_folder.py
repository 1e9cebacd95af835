"""What is told of a file does not depend on where the command runs, nor on how the file is named."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from codemods.cli import main

KERNEL = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention"
FILES = {
    "pyproject.toml": "",
    "src/app/__init__.py": "",
    "src/app/sizes.py": "PAGES = 24\nBLOCK = 16\n",
    "src/app/deep/__init__.py": "from ..sizes import BLOCK\n",
    "src/app/deep/arrays.py": """\
import jax.numpy as jnp
from app.sizes import PAGES
q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((4, 64, 16, 128))
lengths, table = jnp.zeros((4,), jnp.int32), jnp.zeros((4, PAGES), jnp.int32)
""",
    "src/app/deep/decode.py": f"""\
{KERNEL}
from . import BLOCK
from .arrays import *
from app.contracts import narrow
from ..sizes import PAGES as pages

paged_attention(q, kv, kv, lengths, table, pages_per_compute_block=BLOCK)
paged_attention(q, kv, kv, lengths, table, pages_per_compute_block=pages // 8)
def called(block):
    return paged_attention(q, kv, kv, lengths, table, pages_per_compute_block=block)
narrow(q)
""",
    "src/app/deep/mine.py": "from app.contracts import narrow\nfrom .arrays import q\nnarrow(q)\n",
    "src/app/contracts.py": """\
from jaxtyping import Array, Float
from shapecheck import contract

@contract("width % 3 == 0")
def narrow(x: Float[Array, "batch heads width"]):
    return x
""",
    "src/app/main.py": "from app.deep.decode import called\ncalled(7)\n",
    "tests/conftest.py": """\
import pytest
from jax.experimental.pallas import tpu as pltpu

@pytest.fixture(autouse=True)
def interpreted():
    with pltpu.force_tpu_interpret_mode():
        yield
@pytest.fixture
def block():
    return 5
""",
    "tests/unit/test_attention.py": f"""\
import jax.numpy as jnp
{KERNEL}
from app.deep.arrays import lengths, table

def test_small_heads(block):
    q, kv = jnp.zeros((4, 8, 64)), jnp.zeros((4, 64, 16, 64))
    paged_attention(q, kv, kv, lengths, table, pages_per_compute_block=block)
""",
}
FOLDERS = (".", "src", "src/app", "src/app/deep", "tests", "tests/unit", "..", "../elsewhere/link")
DECODE, TEST = "src/app/deep/decode.py", "tests/unit/test_attention.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(root / "src" / "app" / "deep")
    return root


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[object, ...]]:
    main(["check", "--output-format", "json", *arguments])
    report = json.loads(capsys.readouterr().out)
    assert not report["errors"]
    sites = [(Path(each["path"]).name, each["line"], each["contract"], each["verdicts"]) for each in report["call_sites"]]
    fixes = [each["fix"] and each["fix"]["applicability"] for each in report["findings"]]
    findings = [
        (Path(each["path"]).name, each["line"], each["code"], (each["values"], fix))
        for each, fix in zip(report["findings"], fixes, strict=True)
    ]
    return [*sorted(sites, key=str), *sorted(findings, key=str)]


def of(report: list[tuple[object, ...]], line: int, code: str) -> object:
    """Return the verdict of a rule at the call on a line."""
    (verdicts,) = [each[3] for each in report if each[1] == line and isinstance(each[3], dict) and code in each[3]]
    return verdicts[code]


def test_what_there_is_to_tell(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(root)
    decode = told(capsys, DECODE)
    assert [of(decode, 7, "SC102"), of(decode, 8, "SC102")] == ["violated", "proven"]
    assert of(decode, 10, "SC102") == "violated", "the caller is found"
    assert of(decode, 11, "SC001") == "violated"
    test = told(capsys, TEST)
    assert of(test, 7, "SC102") == "violated", "the fixture of conftest.py is found"
    assert not [each for each in test if each[2] == "SC301"], "the interpreter of conftest.py is seen"


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", [DECODE, TEST, "src/app/deep", "src", "."])
def test_paths(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, folder: str) -> None:
    monkeypatch.chdir(root)
    expected = told(capsys, name)
    monkeypatch.chdir(folder)
    for path in (os.path.relpath(root / name), root / name, os.path.join(os.path.relpath(root / "src"), "..", name)):
        assert told(capsys, str(path)) == expected, path


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", [DECODE, TEST])
def test_standard_input(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, folder: str
) -> None:
    monkeypatch.chdir(root)
    expected = told(capsys, name)
    monkeypatch.chdir(folder)
    for path in (os.path.relpath(root / name), root / name):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((root / name).read_bytes())))
        assert told(capsys, "-", "--stdin-filename", str(path)) == expected, path


def test_a_symbolic_link(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A file belongs to the project in which it lies."""
    monkeypatch.chdir(root)
    expected = told(capsys, DECODE)
    Path("link.py").symlink_to(DECODE)
    Path("../elsewhere/decode.py").symlink_to(root / DECODE)
    for path in ("../elsewhere/link/decode.py", "link.py", "../elsewhere/decode.py"):
        assert [each[1:] for each in told(capsys, path)] == [each[1:] for each in expected], path
