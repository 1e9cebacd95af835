"""Calls in other files give the functions of a file their values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.cli import main

ATTENTION = """\
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as jax_paged_attention

def decode(q, k, v, lengths, table, block=4):
    return jax_paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)
"""

CALLER = """\
import jax.numpy as jnp
from pkg.attention import decode

def run(pages={pages}):
    q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
    decode(q, kv, kv, jnp.zeros((2,), jnp.int32), jnp.zeros((2, {pages}), jnp.int32))
"""


def tree(root: Path, **files: str) -> None:
    (root / "pyproject.toml").touch()
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path = path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()


def verdict(capsys: pytest.CaptureFixture[str], *paths: str) -> dict[str, str]:
    main(["check", "--output-format", "json", *paths])
    (site,) = json.loads(capsys.readouterr().out)["call_sites"]
    return site["verdicts"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_caller_that_breaks_a_rule_is_found_also_where_only_the_callee_is_checked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(root, pkg__attention=ATTENTION, app__serve=CALLER.format(pages=6))
    assert verdict(capsys, "pkg")["SC102"] == "violated"


def test_callers_that_keep_a_rule_prove_nothing_of_others(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(root, pkg__attention=ATTENTION, app__serve=CALLER.format(pages=8))
    assert verdict(capsys, "pkg")["SC102"] == "unproven"


def test_a_file_that_has_the_name_but_not_the_module_is_no_caller(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(root, pkg__attention=ATTENTION, app__serve=CALLER.format(pages=6).replace("pkg.attention", "codecs"))
    assert verdict(capsys, "pkg")["SC102"] == "unproven"


def test_a_broken_caller_is_nobodys_business(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(root, pkg__attention=ATTENTION, app__serve=CALLER.format(pages=6) + "def (")
    assert main(["check", "pkg"]) == 0


def test_a_contract_is_checked_where_the_function_is_called(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stated = (
        "from jaxtyping import Array, Float\nfrom shapecheck import contract\n"
        '@contract("heads % block == 0")\ndef attend(q: Float[Array, "batch heads dim"], *, block: int = 4): ...\n'
    )
    called = "import jax.numpy as jnp\nfrom own import attend\nattend(jnp.zeros((2, 6, 128)))\n"
    tree(root, own=stated, use=called)
    (root / "__init__.py").unlink()
    assert verdict(capsys, ".") == {"SC001": "violated", "SC116": "proven"}


def test_settings_beside_the_file_that_cannot_be_used_cost_it_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(root, pkg__attention=ATTENTION, app__serve=CALLER.format(pages=6), other__x="")
    (root / "other/pyproject.toml").write_text("[tool.shapecheck]\nselct = 3\n")
    assert verdict(capsys, "pkg/attention.py")["SC102"] == "violated"
    assert main(["check", "pkg/attention.py"]) == 1


def test_the_working_folder_may_be_a_package(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(root, pkg__attention=ATTENTION, app=CALLER.format(pages=6))
    assert verdict(capsys, "pkg/attention.py")["SC102"] in ("violated", "unproven")


def test_what_another_file_may_replace_is_not_proven_by_what_is_called_before(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = (
        "\nimport jax.numpy as jnp\nq, kv, n = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128)), jnp.zeros((2,), jnp.int32)\n"
    )
    calls += "decode(q, kv, kv, n, jnp.zeros((2, 8), jnp.int32))\n"
    replaced = "from pkg import attention\nattention.jax_paged_attention = print\n"
    tree(root, pkg__attention=ATTENTION + calls, patch=replaced)
    assert verdict(capsys, "pkg/attention.py")["SC102"] == "unproven"
