"""The contract of torch_xla's paged attention of several queries a sequence, `multi_queries_paged_attention`.

Each explanation says what upstream does: `torch_xla/experimental/pallas_kernels/multi_queries_paged_attention_kernel.py` of
torch_xla 2.6 to 2.9, run with JAX 0.7.1 and libtpu 0.0.24; 2.9 pins that JAX. Where it says nothing else, what is said of
`paged_attention` is true of this kernel too. Later JAX does not have all that the kernel uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.contract import Contract
from shapecheck.contracts.derived import amended
from shapecheck.contracts.on_tpu import TPU_RULES
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.contracts.remedies import BLOCK_FIX, shapes_of
from shapecheck.contracts.samples import MULTI_QUERIES, ONE_QUANTIZED
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.plan import divisors
from shapecheck.relation import Relation
from shapecheck.rule import Example, Fix, Rule
from shapecheck.symptom import BLOCK_SHAPE, Seen, Symptom

_DEFAULT_QUERY_BLOCK = 4  # upstream's: legal for 4 queries only, by SC307


def _query_blocks(values: Values) -> Iterator[int]:
    """The divisors of the query count: those not above the present block from the largest down, then the others."""
    queries: Any = values.get("query_len")
    block: Any = values.get("num_queries_per_compute_block", UNKNOWN)
    if isinstance(queries, int) and queries >= 1:
        legal = divisors(queries)
        at_most = block if isinstance(block, int) else queries
        yield from (divisor for divisor in reversed(legal) if divisor <= at_most)
        yield from (divisor for divisor in legal if divisor > at_most)


def _one_for_each_row(values: Values) -> str | None:
    size: Any = values.get("batch_size")
    return f"lengths and effective_q_lens of shape ({size},)" if isinstance(size, int) else None


_ARRAYS = (
    ArrayArgument("q", ("batch_size", "query_len", "num_q_heads", "head_dim")),
    *PAGED_ATTENTION.arrays[1:],
    ArrayArgument("effective_q_lens", ("batch_size",)),
)
_QUERY_FIX = Fix("num_queries_per_compute_block", "query blocks", _query_blocks)

_FOUR_PAGES = {"pages_per_compute_block=12": "pages_per_compute_block=4"}  # of 32 tokens: 128

PLAIN_PAGES = Rule(
    "SC133",
    "quantized-pages",
    Relation("k_pages_scales_dtype is None and v_pages_scales_dtype is None"),
    message="the pages must be plain arrays: this kernel takes no quantized ones",
    explanation=(
        "torch_xla's multi-query kernel takes a `QuantizedTensor` in its signature, and has no place for the scales: 'Pytree for "
        "`in_specs` and `inputs` do not match'. ejkernel's annotations refuse it."
    ),
    argument="k_pages",
    symptoms=(Symptom("Pytree for `in_specs` and `inputs` do not match.", Seen.NAMED),),
    example=ONE_QUANTIZED,
)

_OWN = (
    Rule(
        "SC131",
        "query-block",
        Relation("num_queries_per_compute_block_type == 'int' and 1 <= num_queries_per_compute_block <= query_len"),
        message="the query block must be an integer from 1 to the number of queries",
        explanation=(
            "Upstream raises a ValueError for a larger one, '... should be smaller or equal to query_len=...', a "
            "ZeroDivisionError for 0, and an AssertionError without a word for a negative one. It need not divide the "
            "queries: the last block is filled up, and what is too much of it is dropped."
        ),
        argument="num_queries_per_compute_block",
        fix=_QUERY_FIX,
        symptoms=(
            Symptom(
                "num_queries_per_compute_block={num_queries_per_compute_block} should be smaller or equal to"
                " query_len={query_len}"
            ),
        ),
        example=Example({"queries_per_compute_block=8": "queries_per_compute_block=16"}),
    ),
    PLAIN_PAGES,
    Rule(
        "SC134",
        "block-lanes",
        Relation("page_size * pages_per_compute_block % 128 == 0"),
        message="the compute block must hold a multiple of 128 tokens",
        explanation=(
            "The kernel spreads the running maximum, 128 lanes wide, over the logits of a block. Upstream raises a "
            "NotImplementedError when it is traced: 'kv_seq_len_per_kv_compute_blk=64 should be a multiple of 128'."
        ),
        argument="pages_per_compute_block",
        fix=replace(BLOCK_FIX, computed=None),
        symptoms=(Symptom("kv_seq_len_per_kv_compute_blk={...} should be a multiple of 128"),),
        example=Example({"pages_per_compute_block=12": "pages_per_compute_block=6"}, _FOUR_PAGES),
    ),
    Rule(
        "SC301",
        "head-dim-lanes",
        Relation("head_dim % 128 == 0"),
        message="head_dim must be a multiple of 128",
        explanation=(
            "A page is copied in whole rows of 128 lanes. For a larger head_dim that is no multiple, the multi-query kernel "
            "raises a NotImplementedError when it is traced; for a smaller one the compiler fails: 'Slice shape along dimension "
            "3 must be aligned to tiling (128), but is 64' (libtpu 0.0.24)."
        ),
        argument="q",
        symptoms=(
            Symptom("head_dim={head_dim} should be a multiple of 128 if larger"),
            Symptom("Slice shape along dimension 3 must be aligned to tiling (128), but is {head_dim}", Seen.NAMED),
        ),
        example=Example({"128)": "64)"}),
    ),
    Rule(
        "SC307",
        "query-block-sublanes",
        Relation("num_queries_per_compute_block % 8 == 0 or num_queries_per_compute_block == query_len"),
        message="the query block must be a multiple of 8, or all queries",
        explanation=(
            "Lowering for a TPU raises a ValueError, 'the last two dimensions of your block shape are divisible by 8 and 128 "
            "respectively, or be equal to the respective dimensions of the overall array'. The default of 4 is legal for 4 "
            "queries only."
        ),
        argument="num_queries_per_compute_block",
        fix=_QUERY_FIX,
        symptoms=(Symptom(f"{BLOCK_SHAPE}("),),
        example=Example({"queries_per_compute_block=8": "queries_per_compute_block=4"}),
    ),
)

MULTI_QUERIES_PAGED_ATTENTION = Contract(
    name="multi_queries_paged_attention",
    arrays=_ARRAYS,
    parameters=(
        *(each for each in PAGED_ATTENTION.parameters if each.name not in ("megacore_mode", "inline_seq_dim")),
        Parameter("num_queries_per_compute_block", default=_DEFAULT_QUERY_BLOCK),
    ),
    rules=amended(
        PAGED_ATTENTION.rules,
        {
            "SC102": {
                "explanation": (
                    "Upstream raises a ValueError that states the relation backwards: 'num_kv_pages_per_compute_block must be "
                    "divisible by pages per sequence'; for a block that is larger, 'should be smaller or equal to "
                    "pages_per_sequence=...'."
                ),
                "symptoms": (
                    Symptom(
                        "num_kv_pages_per_compute_block must be divisible by pages per sequence."
                        " Got pages_per_sequence={pages_per_sequence} and"
                        " num_kv_pages_per_compute_block={pages_per_compute_block}."
                    ),
                    Symptom(
                        "num_kv_pages_per_compute_block={pages_per_compute_block} should be smaller or equal to"
                        " pages_per_sequence={pages_per_sequence}"
                    ),
                ),
            },
            "SC105": {
                "relation": Relation("lengths_batch_size == batch_size and effective_q_lens_batch_size == batch_size"),
                "message": "lengths and effective_q_lens must have one entry for each row of q",
                "explanation": (
                    "Upstream raises a ValueError without the numbers: '`lengths` and `q` must have the same batch size', or "
                    "'`lengths` and `effective_q_lens` must have the same size: batch_size'. The dtype of effective_q_lens is "
                    "documented as int32; others compile."
                ),
                "advice": _one_for_each_row,
                "symptoms": (
                    Symptom("`lengths` and `q` must have the same batch size"),
                    Symptom("`lengths` and `effective_q_lens` must have the same size: batch_size"),
                ),
            },
            "SC109": {
                "relation": Relation(
                    "q_rank == 4 and k_pages_rank == 4 and v_pages_rank == 4 and lengths_rank == 1 and page_indices_rank == 2"
                    " and effective_q_lens_rank == 1"
                ),
                "message": "q and each of the pages have 4 axes, lengths and effective_q_lens 1 and page_indices 2",
                "explanation": (
                    "q is `[batch_size, query_len, num_q_heads, head_dim]`. torch_xla's wrapper asserts 'q should have 4 "
                    "dimensions.'; the kernel fails to unpack the shapes, or finds those of the lengths to differ."
                ),
                "advice": shapes_of(_ARRAYS),
                "symptoms": (
                    Symptom("AssertionError: q should have 4 dimensions.", argument="q"),
                    Symptom("values to unpack (expected 4", Seen.RAISED),
                    Symptom("values to unpack (expected 2", Seen.RAISED, argument="page_indices"),
                ),
            },
            "SC110": {
                "explanation": (
                    "`block_tokens // page_size` is 0 where a page is larger than the block: upstream raises ZeroDivisionError "
                    "for 0, an AssertionError without a word for a negative block."
                ),
                "symptoms": (
                    Symptom(
                        "if pages_per_sequence % num_kv_pages_per_compute_block != 0: ZeroDivisionError",
                        Seen.RAISED,
                        {"pages_per_compute_block": 0},
                    ),
                ),
                "example": Example({"pages_per_compute_block=12": "pages_per_compute_block=0"}, _FOUR_PAGES),
            },
            "SC401": {
                "explanation": (
                    "Upstream checks nothing. Of a longer row the last block, which stores the result, is never reached; a "
                    "negative length runs no block at all: the row's output is undefined."
                )
            },
        },
        without=("SC112", "SC201", "SC202", "SC203", "SC204", "SC407", *(rule.code for rule in TPU_RULES)),
        also=_OWN,
    ),
    aliases=PAGED_ATTENTION.aliases,
    sample=MULTI_QUERIES,
    sources=(
        "`torch_xla/experimental/pallas_kernels/multi_queries_paged_attention_kernel.py` of torch_xla 2.6 to 2.9, run with"
        " JAX 0.7.1 and libtpu 0.0.24"
    ),
)
