"""What `ragged_paged_attention` demands of the elements of its metadata: rules that speak of a call where these are known.

Only the first `num_seqs` rows are read: what may be padding breaks no rule, and proves none.
"""

from __future__ import annotations

from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule

_PADDED = "num_seqs_min < page_indices_max_num_seqs"  # rows of the metadata may be only padding
_FITS = "kv_lens_max <= pages_per_seq * page_size"
_IDS = "0 <= page_indices_min and page_indices_max < total_num_pages"
_OFFSETS = "0 <= cu_q_lens_min and cu_q_lens_max <= max_num_batched_tokens"
_QUERIES = "cu_q_lens_max - cu_q_lens_min"

RAGGED_VALUE_RULES = (
    Rule(
        "SC401",
        "length-overrun",
        Relation(f"{_PADDED} or (0 <= kv_lens_min and {_FITS})"),
        enough=Relation(f"0 <= kv_lens_min and {_FITS}"),
        message="no length may be negative, or go beyond the pages of a sequence",
        explanation=(
            "The kernel copies no page past the last column, and attends to what it copied before as if it were the rest: "
            "silently wrong numbers. `dynamic_validate_inputs` refuses it: 'pages_per_seq=4 must be greater or equal to "
            "min_pages_per_seq=...'. Entries from num_seqs on are not read: where there may be some, the rule is unproven."
        ),
        argument="kv_lens",
        silent=True,
        example=Example({"300": "800"}),
    ),
    Rule(
        "SC402",
        "page-id-range",
        Relation(f"{_PADDED} or kv_lens_min <= (pages_per_seq - 1) * page_size or ({_IDS})"),
        enough=Relation(_IDS),
        message="every page id must be that of a page",
        explanation=(
            "Nothing checks it. Past the last page of a sequence the kernel copies the first one again, so that what stands "
            "there is not read; of a sequence without tokens, the first id is. Where some may be padding, it is unproven."
        ),
        argument="page_indices",
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
        example=Example({"[4]": "[5]"}),
    ),
    Rule(
        "SC404",
        "offsets-range",
        Relation(f"{_PADDED} or ({_OFFSETS})"),
        enough=Relation(_OFFSETS),
        message="the offsets of the queries must be within q",
        explanation=(
            "`dynamic_validate_inputs` refuses it: 'Total q tokens 65 must be less or equal to max_num_batched_tokens=64.' "
            "Entries behind that of num_seqs are not read: where there may be some, the rule is unproven."
        ),
        argument="cu_q_lens",
        silent=True,
        example=Example({"48, 64]": "48, 80]"}),
    ),
    Rule(
        "SC405",
        "queries-beyond-keys",
        Relation(f"{_PADDED} or {_QUERIES} <= page_indices_max_num_seqs * kv_lens_max"),
        enough=Relation(f"{_QUERIES} <= kv_lens_min"),
        message="no sequence may have more queries than keys",
        explanation=(
            "The queries of a sequence are its last tokens, whose keys are in the pages already: one that is before the first "
            "key sees nothing, and gets a mean of values. `dynamic_validate_inputs` refuses it: 'q_len=9 must be less or equal "
            "to kv_len=8 at sequence 0.' Only the least and the greatest elements are compared: in between it is unproven."
        ),
        argument="cu_q_lens",
        silent=True,
        example=Example({"300": "8"}),
    ),
    Rule(
        "SC406",
        "empty-sequence",
        Relation(f"{_PADDED} or kv_lens_min >= 1 or {_QUERIES} <= 0"),
        enough=Relation("kv_lens_min >= 1"),
        message="on a TPU, no sequence may be without tokens",
        explanation=(
            "Nothing checks it. The kernel begins to copy the first pages of a sequence while it deals with the one before, and "
            "waits for them where it has tokens to deal with: without any, the next sequence attends to that copy as if it were "
            "its own pages, and after the last nothing waits for it. Leave out what is empty. `implementation='xla'` takes it."
        ),
        argument="kv_lens",
        on_tpu=True,
        silent=True,
        example=Example({"full((4,), 300": "array([0, 300, 300, 300]"}),
    ),
)
