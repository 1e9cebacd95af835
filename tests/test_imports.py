from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shapecheck

HEAVY = ("jax", "jaxtyping", "beartype", "numpy", "libcst")
SOURCES = sorted(Path(shapecheck.__file__).parent.rglob("*.py"))


def modules_after(statement: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import shapecheck",
        "from shapecheck import contract, judge",
        "from shapecheck import judge; judge('paged_attention', chip='v5e', batch_size=8)",
        "from shapecheck import contract; contract('n % 2 == 0')",
        "import shapecheck.compiler; shapecheck.compiler.ask([])",
        "from shapecheck.demands import stated_contract; import shapecheck.observe",
        "import shapecheck.pytest_plugin",
    ],
)
def test_judging_by_name_imports_nothing_heavy(statement: str) -> None:
    assert modules_after(statement) == set()


def test_a_contract_is_enforced_where_jax_is_not_installed() -> None:
    code = """
import sys
sys.modules["jax"] = None
import numpy
from jaxtyping import Float
from shapecheck import ContractError, contract

@contract("n % 2 == 0", "block is None or block_type == 'int'")
def even(x: Float[numpy.ndarray, "n"], block=None):
    pass

even(numpy.zeros(4), numpy.int64(3))
try:
    even(numpy.zeros(3))
except ContractError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "n = 3   (x.shape[0])" in run.stdout


def top_level_imports(source: Path) -> set[str]:
    """The first part of every module that a file imports when it is itself imported."""
    names: set[str] = set()
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_no_module_of_shapecheck_imports_jax_or_its_dependants_at_its_top(source: Path) -> None:
    assert not top_level_imports(source) & {"jax", "jaxlib", "kernel", "codemods", "libcst"}


def test_the_error_is_public_though_it_is_imported_late() -> None:
    assert shapecheck.ContractError.__module__ == "shapecheck.error"
    assert set(shapecheck.__all__) <= {*dir(shapecheck), "ContractError"}


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'shapecheck' has no attribute 'Contrct'"):
        _ = shapecheck.Contrct


def test_modules_of_the_scanned_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("copy", "libcst", "json", "difflib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')")
    source = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\npaged_attention(1)\n"
    (tmp_path / "a.py").write_text(source)
    for options in (["check", "--output-format", "json"], ["fix", "--diff"]):
        command = [sys.executable, "-m", "codemods", *options, "."]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        assert "executed" not in done.stderr + done.stdout
