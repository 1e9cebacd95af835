"""The contract of `extended_paged_attention`, which preceded torch_xla's `multi_queries_paged_attention`.

It was never released: the branch `xiowei/extend_paged_attention` of pytorch/xla has it, of October 2024. Its kernel there,
`extended_paged_attention_kernel0.py`, is JAX's with one more axis of q and one more of the grid, and has JAX's checks.
"""

from __future__ import annotations

from dataclasses import replace

from shapecheck.arguments import ArrayArgument
from shapecheck.contracts.derived import amended
from shapecheck.contracts.on_tpu import TPU_RULES
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.contracts.samples import EXTENDED
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule

EXTENDED_PAGED_ATTENTION = replace(
    PAGED_ATTENTION,
    name="extended_paged_attention",
    arrays=(ArrayArgument("q", ("batch_size", "query_len", "num_q_heads", "head_dim")), *PAGED_ATTENTION.arrays[1:]),
    parameters=tuple(each for each in PAGED_ATTENTION.parameters if each.name != "inline_seq_dim"),
    rules=amended(
        PAGED_ATTENTION.rules,
        {
            "SC101": {
                "example": Example(
                    {"(4, 8, 32, 128)": "(4, 1, 32, 128)", "(4, 64, 32, 128)": "(5, 64, 32, 128)"},
                    {"(4, 8, 32, 128)": "(4, 1, 32, 128)"},
                )
            },
            "SC109": {
                "relation": Relation(
                    "q_rank == 4 and k_pages_rank == 4 and v_pages_rank == 4 and lengths_rank == 1 and page_indices_rank == 2"
                ),
                "message": "q and each of the pages have 4 axes, lengths 1 and page_indices 2",
            },
        },
        without=(rule.code for rule in TPU_RULES),
        also=(
            Rule(
                "SC135",
                "query-groups",
                Relation("query_len == 1 or num_q_heads // num_kv_heads % 8 == 0"),
                message="several queries need a multiple of 8 query heads for each KV head",
                explanation=(
                    "Without it, upstream reshapes q as if there were one query: 'cannot reshape array of shape (2, 32, 8, 128) "
                    "(size 65536) into shape (2, 8, 1, 128)'."
                ),
                argument="q",
                example=Example({"(4, 64, 32, 128)": "(8, 64, 32, 128)"}),
            ),
        ),
    ),
    sample=EXTENDED,
    sources="the branch `xiowei/extend_paged_attention` of pytorch/xla, of October 2024",
)
