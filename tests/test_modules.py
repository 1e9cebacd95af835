"""What modules of the tree do to each other when they are imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.cli import main

CALL = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, table = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 24), jnp.int32)
paged_attention(q, kv, kv, lens, table, pages_per_compute_block={})
"""


@pytest.mark.parametrize(
    ("imports", "block", "verdict", "modules"),
    [
        ("import cfg", "cfg.B", "proven", {}),
        ("from cfg import B", "B", "proven", {}),
        ("import cfg\ncfg.B = 16", "cfg.B", "violated", {}),
        ("import cfg\ndef f():\n    cfg.B = 16\nf()", "cfg.B", "violated", {}),
        ("from cfg import CFG\nimport big", "CFG['block']", "violated", {"big": "from cfg import CFG\nCFG['block'] = 16\n"}),
        ("import cfg\nimport big", "cfg.B", "violated", {"big": "import cfg\ncfg.B = 16\n"}),
        ("from cfg import B, bump\nbump()", "B", "proven", {}),
    ],
    ids=str,
)
def test_modules_change_each_other_in_the_order_of_their_imports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    imports: str,
    block: str,
    verdict: str,
    modules: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("cfg.py").write_text("B = 8\nCFG = {'block': 8}\ndef bump():\n    global B\n    B = 16\n")
    for name, text in modules.items():
        Path(f"{name}.py").write_text(text)
    Path("main.py").write_text(f"{imports}\n{CALL.format(block)}")
    main(["check", "--output-format", "json", "main.py"])
    (site,) = json.loads(capsys.readouterr().out)["call_sites"]
    assert site["verdicts"]["SC102"] == verdict


def test_a_module_that_is_too_long_to_follow_may_have_changed_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("cfg.py").write_text("B = 8\nCFG = {'block': 8}\n")
    Path("big.py").write_text("import cfg\n" + "x = 1\n" * 7_000 + "cfg.CFG['block'] = cfg.B = 16\n")
    for block in ("CFG['block']", "cfg.B"):
        Path("main.py").write_text(f"import cfg\nfrom cfg import CFG\nimport big\n{CALL.format(block)}")
        main(["check", "--output-format", "json", "main.py"])
        (site,) = json.loads(capsys.readouterr().out)["call_sites"]
        assert site["verdicts"]["SC102"] == "unproven"


def test_an_enum_of_which_the_members_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("kinds.py").write_text("import enum\nclass Kind(enum.Enum):\n    A = 4\n    B = 8\n")
    Path("big.py").write_text("import kinds\n" + "x = 1\n" * 7_000)
    imports = "from kinds import Kind\nimport big\nfor kind in Kind:\n    pass"
    Path("main.py").write_text(f"{imports}\n{CALL.format('Kind.A.value')}")
    assert main(["check", "--output-format", "json", "main.py"]) == 0
    (site,) = json.loads(capsys.readouterr().out)["call_sites"]
    assert site["verdicts"]["SC102"] == "unproven"


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("x = 1\n" * 7_000 + "B = 8\n", "`B` was not found in cfg.py: too much is imported to follow all of it (main.py:1)"),
        ("", "`B` was not found in cfg.py (main.py:1)"),
    ],
    ids=["a module that is too long to follow", "a module without the name"],
)
def test_what_was_not_looked_at_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inner: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("cfg.py").write_text("from inner import *\n")
    Path("inner.py").write_text(inner)
    Path("main.py").write_text("from cfg import B\n" + CALL.format("B"))
    main(["check", "--unproven", "--select", "SC102", "main.py"])
    assert f"because: {reason}\n" in capsys.readouterr().out


@pytest.mark.parametrize("guard", ["chex.assert_equal(24 % block, 0)", "chex.assert_is_divisible(24, block)"])
@pytest.mark.parametrize(
    ("where", "verdict"), [("main.py", "violated"), ("conftest.py", "violated"), ("setup_all.py", "violated"), (None, "proven")]
)
def test_assertions_of_chex_guard_nothing_where_a_file_turns_them_off(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    guard: str,
    where: str | None,
    verdict: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    texts = {"setup_all.py": "", "main.py": f"import chex\nimport setup_all\ndef check(block):\n    {guard}\n"}
    if where:
        texts[where] = "import chex\nchex.disable_asserts()\n" + texts.get(where, "")
    *arrays, call = CALL.format("block").splitlines()
    texts["main.py"] += "\n".join([*arrays, "def attend(block):", "    check(block)", f"    {call}", "attend(8)", "attend(16)"])
    for name, text in texts.items():
        Path(name).write_text(text)
    main(["check", "--output-format", "json", "main.py"])
    (site,) = json.loads(capsys.readouterr().out)["call_sites"]
    assert site["verdicts"]["SC102"] == verdict
