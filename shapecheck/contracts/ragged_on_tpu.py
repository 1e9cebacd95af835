"""What the TPU compiler demands of `ragged_paged_attention`: rules that say nothing of a call that runs elsewhere."""

from __future__ import annotations

from shapecheck.relation import Relation
from shapecheck.rule import Rule

RAGGED_TPU_RULES = (
    Rule(
        "SC304",
        "one-token-block",
        Relation("page_size != 1 or num_kv_pages_per_block != 1"),
        message="on a TPU, a page block must hold more than one token",
        explanation="Lowering ends in an 'internal verification error' of a vector.broadcast.",
        argument="num_kv_pages_per_block",
        on_tpu=True,
    ),
)
