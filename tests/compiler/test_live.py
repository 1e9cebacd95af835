"""The contract against the TPU compiler that is installed, on geometries that nobody has seen before.

A failure prints the seed; `SHAPECHECK_SEED=123` draws the same geometries again. A call takes a tenth of a second of a core, but
for large blocks: the default run draws some for each chip without those, in one process a chip, and never reads the cache.
`pytest -m sweep tests/compiler` draws thousands close to the limits, makes each that the contract is wrong about as small as it
can, and writes it, one JSON object a line, to `disagreements.jsonl` in the folder `SHAPECHECK_SWEEP` names, or else in the one
that pytest makes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom

import pytest

from shapecheck import Verdict
from shapecheck.compiler import Answer, Question, ask
from tests.compiler import ragged_sampling, sampling
from tests.compiler.sampling import CHIPS, Geometry, shrunk
from tests.compiler.verdicts import disagreement, verdicts

pytest.importorskip("libtpu", reason="asks the TPU compiler, which is in libtpu")

KERNELS = {"paged_attention": (sampling, 20), "ragged_paged_attention": (ragged_sampling, 8)}  # for each chip in the default run
SWEEP = 3000
BATCH = 20
PATIENCE = 20  # seconds for one answer; an unrolled block of many pages takes minutes

SEED = int(os.environ.get("SHAPECHECK_SEED") or (1 if os.environ.get("CI") else SystemRandom().randrange(10**6)))


def asked(geometries: Sequence[Geometry], *, seconds: float = PATIENCE) -> list[Answer]:
    return ask([Question.of(each["chip"], **_call(each)) for each in geometries], timeout=seconds)


def _call(geometry: Geometry) -> Geometry:
    return {name: value for name, value in geometry.items() if name != "chip"}


def wrong(geometry: Geometry, answer: Answer) -> str:
    """Return how the contract is wrong about a geometry; empty where it is not, and where the compiler gives no answer."""
    return "" if answer.compiles is None else disagreement(verdicts(geometry), compiles=answer.compiles)


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("callee", KERNELS)
def test_the_compiler_agrees_with_the_contract(callee: str, chip: str, times: int) -> None:
    draw, least = KERNELS[callee]
    size = times * least
    random = Random(f"{SEED} {chip} {times}")
    geometries = [draw.cheap(random, chip) for _ in range(size)]
    said: Counter[bool | None] = Counter()
    for geometry, answer in zip(geometries, asked(geometries), strict=True):
        assert not (text := wrong(geometry, answer)), f"SHAPECHECK_SEED={SEED}: {text}: {geometry}"
        said[answer.compiles] += 1
    assert said[True], f"SHAPECHECK_SEED={SEED}: {said}"  # one that compiles nothing would agree with too much
    assert said[None] < size / 4, f"SHAPECHECK_SEED={SEED}: {said}"


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
    (answer,) = asked([geometry], seconds=60)
    assert answer.compiles is False
    assert "Unsupported matmul RHS type" in answer.message
    assert not wrong(geometry, answer)


@pytest.mark.sweep
@pytest.mark.parametrize("callee", KERNELS)
def test_the_compiler_agrees_close_to_the_limits(callee: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw, _ = KERNELS[callee]
    random = Random(f"{SEED} sweep")
    path = Path(os.environ.get("SHAPECHECK_SWEEP") or tmp_path) / "disagreements.jsonl"
    counts: Counter[str] = Counter()
    with path.open("a") as file:
        for _ in range(SWEEP // BATCH):
            geometries = [(draw.at_the_edge if random.random() < 0.8 else draw.anywhere)(random) for _ in range(BATCH)]
            for geometry, answer in zip(geometries, asked(geometries, seconds=120), strict=True):
                counts[_outcome(geometry, answer)] += 1
                if text := wrong(geometry, answer):
                    least = shrunk(
                        geometry, draw.smaller, lambda each, text=text: wrong(each, *asked([each], seconds=120)) == text
                    )
                    file.write(json.dumps({"seed": SEED, "wrong": text, **least}) + "\n")
                    file.flush()
    with capsys.disabled():
        print(f"\nSHAPECHECK_SEED={SEED}: {SWEEP} geometries of {callee}, {dict(counts)}")
    assert not counts["wrong"], f"SHAPECHECK_SEED={SEED}: {counts['wrong']} disagreements, in {path}"


def _outcome(geometry: Geometry, answer: Answer) -> str:
    if answer.compiles is None:
        return "no answer"
    if wrong(geometry, answer):
        return "wrong"
    return str(Verdict.worst(verdicts(geometry).values()))
