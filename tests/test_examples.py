"""The program in `examples/`: its mistakes are those that are meant, JAX agrees, and `fix` repairs what it can."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

MISTAKES = {
    "bench_trace": {"SC102"},
    "bench_multi_query": {"SC201"},
    "bench_padded_heads": {"SC101"},
    "bench_narrow_table": {"SC108"},
    "bench_models": set(),
    "warm_up": set(),
}
FIXABLE = {"bench_trace", "bench_multi_query"}


def checked(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-m", "codemods", "check", "--output-format", "json", *arguments, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


def by_function(folder: Path, verdict: str) -> dict[str, set[str]]:
    """Return the codes with this verdict of the call in each function."""
    codes: dict[str, set[str]] = {}
    for site in checked(folder)["call_sites"]:
        tree = ast.parse((EXAMPLES.parent / site["path"]).read_text())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        (name,) = [node.name for node in functions if node.lineno <= site["line"] <= (node.end_lineno or 0)]
        codes.setdefault(name, set()).update(code for code, each in site["verdicts"].items() if each == verdict)
    return codes


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def importable(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a copy of the program imported, which a test may repair before."""
    monkeypatch.syspath_prepend(str(copied))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "serving"]:
        del sys.modules[name]


def original(path: Path, copied: Path) -> Path:
    return EXAMPLES / path.relative_to(copied)


def lower(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower a function of the program for a TPU: no array is made, and the kernel's checks and its lowering run."""
    bench, decode = importlib.import_module("serving.bench"), importlib.import_module("serving.decode")
    monkeypatch.setattr(bench, "timed", lambda run: run())
    function = getattr(bench, name, None) or getattr(decode, name)
    jax.export.export(jax.jit(function), platforms=["tpu"])()


def test_the_checker_finds_the_mistakes_and_nothing_else() -> None:
    violated = by_function(EXAMPLES, "violated")
    assert violated == {**MISTAKES, "attend": set()}


def test_the_legal_calls_are_proven_legal() -> None:
    unproven = by_function(EXAMPLES, "unproven")
    assert [name for name, codes in unproven.items() if codes] == ["attend"]


def test_the_clamp_is_not_told_with_the_page_count_under_which_it_fails() -> None:
    findings = checked(EXAMPLES, "--unproven", "--select", "SC102")["findings"]
    (clamp,) = [finding for finding in findings if finding["verdict"] == "unproven"]
    assert 17 in clamp["counterexample"].values()


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(("name", "codes"), MISTAKES.items())
def test_jax_refuses_the_mistakes_and_takes_the_others(name: str, codes: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not codes:
        lower(name, monkeypatch)
        return
    with pytest.raises(Exception, match=r"must be|verification error"):
        lower(name, monkeypatch)


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(("tokens", "legal"), [(4096, True), (17 * 16, False)])
def test_the_clamp_is_legal_for_some_contexts_only(tokens: int, legal: bool) -> None:
    config, decode = importlib.import_module("serving.config"), importlib.import_module("serving.decode")
    model = config.ModelConfig(num_q_heads=32, num_kv_heads=8, head_dim=128, max_model_len=tokens)
    arrays = jax.ShapeDtypeStruct((4, 32, 128), jnp.bfloat16), jax.ShapeDtypeStruct((4,), jnp.int32)

    def step(*arrays: jax.Array) -> jax.Array:
        return decode.Decoder(model, batch_size=4).step(*arrays)

    if legal:
        assert jax.eval_shape(step, *arrays).shape == (4, 32, 128)
    else:
        with pytest.raises(ValueError, match="Got 16 and 17"):
            jax.eval_shape(step, *arrays)


@pytest.mark.usefixtures("importable")
def test_fix_makes_the_calls_legal_that_it_can_repair(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "codemods", "fix", str(copied)]
    assert subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent).returncode == 1  # two remain
    changed = [path.name for path in copied.rglob("*.py") if path.read_text() != original(path, copied).read_text()]
    assert changed == ["bench.py"]
    remaining = {name: set() if name in FIXABLE else codes for name, codes in MISTAKES.items()}
    assert by_function(copied, "violated") == {**remaining, "attend": set()}
    for name in FIXABLE:
        lower(name, monkeypatch)
