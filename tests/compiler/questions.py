"""Questions to the compiler, and what stands in for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shapecheck.compiler import Answer, Mesh, Question, ask

from . import fake_worker

SMALL = {
    "batch_size": 8,
    "num_q_heads": 32,
    "num_kv_heads": 8,
    "head_dim": 128,
    "page_size": 16,
    "pages_per_sequence": 16,
    "total_num_pages": 128,
    "pages_per_compute_block": 8,
    "q_dtype": "bfloat16",
    "pages_dtype": "bfloat16",
}


def question(chip: str = "v5p", mesh: Mesh | None = None, **changes: Any) -> Question:
    return Question.of(chip, mesh=mesh, **{**SMALL, **changes})


FAKE = (sys.executable, "-S", fake_worker.__file__)


def put(*batches: int, **options: Any) -> Sequence[Answer]:
    """Put questions to the stand-in."""
    return ask([question(batch_size=batch) for batch in batches], command=FAKE, **options)
