"""The contract against the TPU compiler that is installed, on geometries that nobody has seen before.

A failure prints the seed; `SHAPECHECK_SEED=123` draws the same geometries again. `pytest -m sweep tests/compiler` draws
thousands close to the limits, makes each that the contract is wrong about as small as it can, and writes it, one JSON object a
line, to `disagreements.jsonl` in the folder `SHAPECHECK_SWEEP` names, or else in the one that pytest makes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.compiler.libtpu import Compiler
from tests.compiler.sampling import Geometry, anywhere, at_the_edge, is_legal_upstream, shrunk
from tests.compiler.verdicts import disagreement, verdicts

pytest.importorskip("libtpu", reason="asks the TPU compiler, which is in libtpu")

BUDGET = 30  # seconds of the default run
SAMPLE = 200
SWEEP = 3000
PATIENCE = 20  # seconds for one answer; an unrolled block of many pages takes minutes

SEED = int(os.environ.get("SHAPECHECK_SEED") or (1 if os.environ.get("CI") else SystemRandom().randrange(10**6)))


def wrong(compiler: Compiler, geometry: Geometry, *, seconds: float = PATIENCE) -> str:
    """Return how the contract is wrong about a geometry; empty where it is not, and where the compiler gives no answer."""
    error = compiler.ask(geometry, seconds=seconds)
    return "" if error is None else disagreement(verdicts(geometry), compiles=error == "")


def test_the_compiler_agrees_with_the_contract() -> None:
    random = Random(SEED)
    until = time.monotonic() + BUDGET
    asked: Counter[str] = Counter()
    with Compiler() as compiler:
        while asked.total() < SAMPLE and time.monotonic() < until:
            geometry = anywhere(random)
            while not is_legal_upstream(geometry):
                geometry = anywhere(random)
            assert not (text := wrong(compiler, geometry)), f"SHAPECHECK_SEED={SEED}: {text}: {geometry}"
            asked[geometry["chip"]] += 1
    assert asked


@pytest.mark.parametrize("chip", ["v2", "v3"])
def test_the_kernel_does_not_compile_for_older_chips(chip: str) -> None:
    geometry = {
        "chip": chip,
        "batch_size": 2,
        "num_q_heads": 8,
        "num_kv_heads": 8,
        "head_dim": 128,
        "page_size": 16,
        "pages_per_sequence": 4,
        "total_num_pages": 16,
        "pages_per_compute_block": 2,
        "megacore_mode": None,
        "q_dtype": "float32",
        "pages_dtype": "float32",
        "scales_dtype": None,
    }
    with Compiler() as compiler:
        error = compiler.ask(geometry, seconds=60)
    assert error is not None
    assert "Unsupported matmul RHS type" in error
    assert not disagreement(verdicts(geometry), compiles=False)


@pytest.mark.sweep
def test_the_compiler_agrees_close_to_the_limits(tmp_path: Path) -> None:
    random = Random(SEED)
    path = Path(os.environ.get("SHAPECHECK_SWEEP") or tmp_path) / "disagreements.jsonl"
    found = 0
    with Compiler() as compiler, path.open("a") as file:
        for _ in range(SWEEP):
            geometry = (at_the_edge if random.random() < 0.8 else anywhere)(random)
            if text := wrong(compiler, geometry, seconds=120):
                least = shrunk(geometry, lambda each, text=text: wrong(compiler, each, seconds=120) == text)
                file.write(json.dumps({"seed": SEED, "wrong": text, **least}) + "\n")
                file.flush()
                found += 1
    assert not found, f"SHAPECHECK_SEED={SEED}: {found} disagreements, in {path}"
