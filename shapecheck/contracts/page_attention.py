"""The contract of ejkernel's `page_attention` on TPU: a copy of JAX's kernel behind another front.

Each explanation says what ejkernel 0.0.40 to 0.0.80 do (`ejkernel/kernels/_pallas/tpu/page_attention/_interface.py`). Up to
0.0.31 it demanded a block, and took no cache of the other layout: there it was stricter than what is stated here. The names are
those of `paged_attention`: `k_pages` is its `key_cache`, `lengths` its `context_lens`, `page_indices` its `block_tables`.
"""

from __future__ import annotations

from dataclasses import replace

from shapecheck.arguments import Parameter
from shapecheck.contracts.derived import amended, unless
from shapecheck.contracts.multi_queries_paged_attention import PLAIN_PAGES
from shapecheck.contracts.on_tpu import TPU_RULES
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.contracts.samples import PAGE
from shapecheck.relation import Relation
from shapecheck.rule import no_advice
from shapecheck.symptom import Symptom

_SWAPPED = "num_q_heads % total_num_pages == 0 and (num_q_heads % num_kv_heads != 0 or num_kv_heads > total_num_pages)"
_NO_BLOCK = "pages_per_compute_block is None"

_RULES = {rule.code: rule for rule in PAGED_ATTENTION.rules}

PAGE_ATTENTION = replace(
    PAGED_ATTENTION,
    name="page_attention",
    parameters=tuple(
        Parameter(each.name, None) if each.name == "pages_per_compute_block" else each for each in PAGED_ATTENTION.parameters
    ),
    rules=amended(
        PAGED_ATTENTION.rules,
        {
            "SC101": {
                "relation": Relation("num_q_heads % num_kv_heads == 0 or num_q_heads % total_num_pages == 0"),
                "explanation": (
                    "A cache whose second axis divides the query heads, and the first does not, is taken to be "
                    "`[total_num_pages, num_kv_heads, ...]` and transposed. Where neither does, a ValueError is raised, 'Number "
                    "of Q heads must be divisible by number of KV heads'."
                ),
            },
            "SC103": {
                "symptoms": (
                    Symptom("key_cache and value_cache must have the same shape. Got {k_pages_shape} and {v_pages_shape}"),
                )
            },
            "SC105": {"symptoms": (Symptom("`context_lens` and `query` must have the same batch size"),)},
            "SC106": {"symptoms": (Symptom("`block_tables` and `query` must have the same batch size"),)},
            "SC107": {"symptoms": (Symptom("The dtype of `context_lens` must be int32."),)},
            "SC108": {
                "relation": Relation("page_indices_dtype == 'int32'"),
                "message": "page_indices must be int32",
                "explanation": "The annotation, `Int[Array, ...]`, refuses unsigned ids; int16 and int8 die in lowering.",
            },
            "SC201": {
                "relation": Relation(f"megacore_mode != 'kv_head' or (total_num_pages if {_SWAPPED} else num_kv_heads) % 2 == 0"),
            },
            "SC402": {
                "relation": Relation(f"page_indices_max < (num_kv_heads if {_SWAPPED} else total_num_pages)"),
                "explanation": "Negative ids are replaced by 0. The others are not checked: the kernel reads outside the pool.",
                "advice": no_advice,
            },
        },
        without=("SC102", "SC110", "SC112", "SC407", *(rule.code for rule in TPU_RULES)),
        also=(
            unless(
                _NO_BLOCK,
                _RULES["SC102"],
                explanation=(
                    "Upstream raises a ValueError, 'pages_per_compute_block must be divisible by pages per sequence'. Without a "
                    "block it takes the first of 8, 4, 2 and 1 that divides the pages."
                ),
            ),
            unless(_NO_BLOCK, _RULES["SC110"]),
            PLAIN_PAGES,
        ),
    ),
    sample=PAGE,
    sources="`ejkernel/kernels/_pallas/tpu/page_attention/_interface.py` of ejkernel 0.0.40 to 0.0.80",
)
