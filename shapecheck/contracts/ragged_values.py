"""What `ragged_paged_attention` demands of the elements of its metadata.

Only the first `num_seqs` rows are read: the numbers that rules speak of are those of what is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapecheck.contracts.mesh import page_ids
from shapecheck.contracts.ragged_on_tpu import HEADS
from shapecheck.contracts.remedies import most_tokens
from shapecheck.measure import Arrays, Numbers
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule
from shapecheck.symptom import Seen, Symptom


def _in_use(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return row < arrays["num_seqs"][0]


def _bounds_one(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return row <= arrays["num_seqs"][0]


def _is_last(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return row + 1 == arrays["num_seqs"][0]


def _is_first(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return row == 0


def _is_copied(arrays: Arrays, values: Mapping[str, Any], row: Any, column: Any) -> Any:
    """Of each sequence the first id is read, whatever its length; past its last page the first one again."""
    holds_tokens = column * values["kv_pages_page_size"] < arrays["kv_lens"][row]
    return _in_use(arrays, values, row) & (holds_tokens | (column == 0))


def _length(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return arrays["kv_lens"][row]


def _offset(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return arrays["cu_q_lens"][row]


def _page_id(arrays: Arrays, values: Mapping[str, Any], row: Any, column: Any) -> Any:
    return arrays["page_indices"][row, column]


def _queries(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return arrays["cu_q_lens"][row + 1] - arrays["cu_q_lens"][row]


def _queries_beyond_keys(arrays: Arrays, values: Mapping[str, Any], row: Any) -> Any:
    return _queries(arrays, values, row) - arrays["kv_lens"][row]


def _difference(expression: str, array: Any, row: int) -> str:
    return f"{expression}[{row + 1}] - {expression}[{row}]"


_LENGTHS = Numbers(("kv_lens", "num_seqs"), _length, _in_use)
_IDS = Numbers(("page_indices", "kv_lens", "num_seqs"), _page_id, _is_copied, needs=("kv_pages_page_size",))
_OFFSETS = Numbers(("cu_q_lens", "num_seqs"), _offset, _bounds_one)
_QUERIES = Numbers(("kv_lens", "cu_q_lens", "num_seqs"), _queries, _in_use)
_LAST = Numbers(("kv_lens", "cu_q_lens", "num_seqs"), _queries, _is_last)
_BEYOND = Numbers(("kv_lens", "cu_q_lens", "num_seqs"), _queries_beyond_keys, _in_use)

RAGGED_MEASURES = (
    _LENGTHS.extreme("min", "kv_lens_min", "kv_lens[:num_seqs].min()", otherwise=1),
    _LENGTHS.extreme("max", "kv_lens_max", "kv_lens[:num_seqs].max()", otherwise=1),
    _IDS.extreme("min", "page_indices_min", "page_indices[:num_seqs].min()"),
    _IDS.extreme("max", "page_indices_max", "page_indices[:num_seqs].max()"),
    _OFFSETS.extreme("min", "cu_q_lens_min", "cu_q_lens[:num_seqs + 1].min()"),
    _OFFSETS.extreme("max", "cu_q_lens_max", "cu_q_lens[:num_seqs + 1].max()"),
    Numbers(("cu_q_lens",), _offset, _is_first).extreme("min", "cu_q_lens_first", "cu_q_lens[0]"),
    _QUERIES.extreme(
        "min", "least_q_len", "jnp.diff(cu_q_lens[:num_seqs + 1]).min()", of="cu_q_lens", place=_difference, otherwise=1
    ),
    _LAST.extreme(
        "min", "last_q_len", "cu_q_lens[num_seqs] - cu_q_lens[num_seqs - 1]", of="cu_q_lens", place=_difference, otherwise=1
    ),
    # Those of the sequence that has the most queries beyond its keys.
    _BEYOND.extreme("max", "q_len", "cu_q_lens[i + 1] - cu_q_lens[i]", of="cu_q_lens", shown=_queries, place=_difference),
    _BEYOND.extreme("max", "kv_len", "kv_lens[i]", shown=_length),
)

_BLOCK_IS_FULL = (
    "num_kv_pages_per_block is not None and num_queries_per_block is not None and cu_q_lens_max % num_queries_per_block == 0"
)

RAGGED_VALUE_RULES = (
    Rule(
        "SC401",
        "length-overrun",
        Relation("0 <= kv_lens_min and kv_lens_max <= pages_per_seq * page_size"),
        message="no length may be negative, or go beyond the pages of a sequence",
        explanation=(
            "The kernel copies no page past the last column, and attends to what it copied before as if it were the rest: "
            "silently wrong numbers. `dynamic_validate_inputs` refuses it: 'pages_per_seq=4 must be greater or equal to "
            "min_pages_per_seq=...'. Entries from num_seqs on are not read, and may be anything."
        ),
        argument="kv_lens",
        advice=most_tokens("pages_per_seq"),
        silent=True,
        symptoms=(Symptom("must be greater or equal to min_pages_per_seq=", Seen.NAMED),),
        example=Example({"300": "800"}),
    ),
    Rule(
        "SC402",
        "page-id-range",
        Relation("0 <= page_indices_min and page_indices_max < total_num_pages"),
        message="every page id must be that of a page",
        explanation=(
            "Nothing checks it. Past the last page of a sequence the kernel copies the first one again, so that what stands "
            "there is not read, and may be anything; of a sequence without tokens, the first id is read."
        ),
        argument="page_indices",
        advice=page_ids,
        silent=True,
        example=Example({"300": "760", "zeros((4, 24)": "full((4, 24), 64"}, {"300": "760"}),
    ),
    Rule(
        "SC403",
        "num-seqs-range",
        Relation("0 <= num_seqs_min and num_seqs_max <= page_indices_max_num_seqs"),
        message="num_seqs must be from 0 to the rows of page_indices",
        explanation="`dynamic_validate_inputs` refuses more: 'num_seqs[0]=5 must be less or equal to max_num_seqs=4'.",
        argument="num_seqs",
        silent=True,
        symptoms=(Symptom("num_seqs[0]={...} must be less or equal to max_num_seqs={page_indices_max_num_seqs}"),),
        example=Example({"[4]": "[5]"}),
    ),
    Rule(
        "SC404",
        "offsets-range",
        Relation("0 <= cu_q_lens_min and cu_q_lens_max <= max_num_batched_tokens"),
        message="the offsets of the queries must be within q",
        explanation=(
            "`dynamic_validate_inputs` refuses it: 'Total q tokens 65 must be less or equal to max_num_batched_tokens=64.' "
            "Entries behind that of num_seqs are not read, and may be anything."
        ),
        argument="cu_q_lens",
        silent=True,
        symptoms=(Symptom("Total q tokens {...} must be less or equal to max_num_batched_tokens={max_num_batched_tokens}."),),
        example=Example({"48, 64]": "48, 80]"}),
    ),
    Rule(
        "SC405",
        "queries-beyond-keys",
        Relation("q_len <= kv_len"),
        message="no sequence may have more queries than keys",
        explanation=(
            "The queries of a sequence are its last tokens, whose keys are in the pages already: one that is before the first "
            "key sees nothing, and gets a mean of values. `dynamic_validate_inputs` refuses it with these two numbers: 'q_len=9 "
            "must be less or equal to kv_len=8 at sequence 0'."
        ),
        argument="cu_q_lens",
        silent=True,
        symptoms=(Symptom("must be less or equal to kv_len={...} at sequence", Seen.NAMED),),
        example=Example({"300": "8"}),
    ),
    Rule(
        "SC406",
        "empty-sequence",
        Relation("kv_lens_min >= 1 or cu_q_lens_max <= cu_q_lens_min"),
        enough=Relation("kv_lens_min >= 1 and num_seqs_min >= 1"),
        message="on a TPU, no sequence may be without tokens",
        explanation=(
            "Nothing checks it. The kernel begins to copy the first pages of a sequence while it deals with the one before, and "
            "waits for them where it has tokens to deal with: without any, the next sequence attends to that copy as if it were "
            "its own pages, and after the last nothing waits for it. Leave out what is empty. `implementation='xla'` takes it."
        ),
        argument="kv_lens",
        on_tpu=True,
        silent=True,
        example=Example({"full((4,), 300": "array([0, 300, 300, 300]", "[0, 16": "[0, 0"}),
    ),
    Rule(
        "SC408",
        "offsets-order",
        Relation("cu_q_lens_first == 0 and least_q_len >= 0"),
        message="cu_q_lens must begin with 0, and never decrease",
        explanation=(
            "It is the cumulative sum of the queries of each sequence, with a 0 before: entry i is where those of sequence i "
            "begin. Nothing checks it. Rows of q before the first offset belong to no sequence, so that their result is "
            "undefined; a sequence that ends before it begins has no queries, and those of the next one begin among another's. "
            "The usual cause is that the numbers of queries were given themselves: `jnp.cumsum` makes offsets of them. Entries "
            "behind that of num_seqs are not read, and may be anything."
        ),
        argument="cu_q_lens",
        silent=True,
        example=Example({"[0, 16": "[1, 16"}),
    ),
    Rule(
        "SC409",
        "last-sequence-idle",
        Relation(f"last_q_len != 0 or kv_heads == num_combined_kv_heads or not ({_BLOCK_IS_FULL})", HEADS),
        enough=Relation(
            "num_seqs_min >= 1 and (last_q_len != 0 or num_kv_pages_per_block is not None and num_queries_per_block is not None"
            " and cu_q_lens_max % num_queries_per_block != 0)"
        ),
        message="on a TPU, the last sequence must have queries",
        explanation=(
            "Nothing checks it. Where the queries of all sequences fill whole blocks of queries, the kernel is done before it "
            "comes to a sequence behind them that has none. It has begun to copy the pages of that one, nothing waits for these, "
            "and the next tile of heads begins with that sequence instead of the first one: its results are not written. Where "
            "all heads are one tile, or the block is not known, it is unproven. Sequences without queries may stand anywhere "
            "else. `implementation='xla'` takes it."
        ),
        argument="cu_q_lens",
        on_tpu=True,
        silent=True,
        example=Example(
            {"(64, 32, 8, 128)": "(64, 32, 32, 128)", "48, 64]": "64, 64]"}, {"(64, 32, 8, 128)": "(64, 32, 32, 128)"}
        ),
    ),
)
