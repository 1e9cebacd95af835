"""The contract of `ragged_paged_attention`: JAX's Pallas TPU kernel, torch_xla's copy of it, and `kernel.ragged_paged_attention`.

Each explanation says what upstream does today: `jax/experimental/pallas/ops/tpu/ragged_paged_attention/kernel.py`, which is the
same in JAX 0.10.2 and 0.12.0. Its `static_validate_inputs` is run when the kernel is traced; `dynamic_validate_inputs` checks
the elements of the metadata, and nothing calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import LANES
from shapecheck.contract import Contract
from shapecheck.contracts.derived import amended
from shapecheck.contracts.paged_attention import DEFAULT_MASK_VALUE, PAGED_ATTENTION, STRONG_MASK_VALUE
from shapecheck.contracts.ragged_on_tpu import RAGGED_TPU_RULES
from shapecheck.contracts.ragged_values import RAGGED_MEASURES, RAGGED_VALUE_RULES
from shapecheck.contracts.remedies import CAP_FIX, shape_of, shapes_of
from shapecheck.contracts.samples import RAGGED, narrow
from shapecheck.outcome import Values
from shapecheck.plan import divisors
from shapecheck.relation import Relation
from shapecheck.rule import Cast, Example, Fix, Resize, Rule
from shapecheck.symptom import Seen, Symptom

_ARRAYS = (
    ArrayArgument("q", ("max_num_batched_tokens", "num_q_heads", "head_dim")),
    ArrayArgument("kv_pages", ("total_num_pages", "page_size", "num_combined_kv_heads", "head_dim")),
    ArrayArgument("kv_lens", ("max_num_seqs",)),
    ArrayArgument("page_indices", ("max_num_seqs", "pages_per_seq")),
    ArrayArgument("cu_q_lens", ("num_offsets",)),
    ArrayArgument("num_seqs", ("num_counts",)),
)
_OF_JAX = {rule.code: rule for rule in PAGED_ATTENTION.rules}


def _clamped(parameter: str, most: str | None) -> Fix:
    """A block within its bounds, where a number stands that is not."""

    def nearest(values: Values) -> Iterator[int]:
        block, limit = values.get(parameter), values.get(most) if most else None
        if isinstance(block, int | float) and (most is None or isinstance(limit, int)):
            yield max(1, min(int(block), limit) if isinstance(limit, int) else int(block))

    return Fix(parameter, "blocks", nearest, at_least=1)


_INT32 = (
    Symptom(
        "The dtype of `kv_lens`, `page_indices`, and `cu_q_lens` must be int32. Got kv_lens.dtype=dtype('{kv_lens_dtype}'),"
        " page_indices.dtype=dtype('{page_indices_dtype}'), cu_q_lens.dtype=dtype('{cu_q_lens_dtype}')."
    ),
)
_BLOCK_RANGE = (Symptom("num_kv_pages_per_block={num_kv_pages_per_block} must be in range (0, {pages_per_seq}]."),)
_PAGE_BLOCK = _clamped("num_kv_pages_per_block", "pages_per_seq")
_QUERY_BLOCK = _clamped("num_queries_per_block", None)


def _combined_heads(values: Values) -> list[int]:
    """The combined heads that the query heads can be grouped over, those nearest to the present ones first."""
    heads: Any = values.get("num_q_heads")
    present: Any = values.get("num_combined_kv_heads")
    if not (isinstance(heads, int) and isinstance(present, int) and heads >= 1):
        return []
    return sorted((2 * each for each in divisors(heads)), key=lambda combined: abs(combined - present))


def _heads_advice(values: Values) -> str | None:
    legal = sorted(_combined_heads(values))
    return f"legal num_combined_kv_heads: {', '.join(map(str, legal))}" if legal else None


def _as_int32(array: str) -> Callable[[Values], str]:
    return lambda values: f"{array}.astype(jnp.int32)"


def _offsets(values: Values) -> str | None:
    rows: Any = values.get("page_indices_max_num_seqs")
    return f"cu_q_lens of shape ({rows + 1},)" if isinstance(rows, int) else None


RULES = (
    replace(
        _OF_JAX["SC101"],
        relation=Relation("num_combined_kv_heads % 2 == 1 or num_q_heads % (num_combined_kv_heads // 2) == 0"),
        explanation=(
            "Half of the combined heads are keys, the other half values. Upstream raises a ValueError, 'num_q_heads=6 must be "
            "divisible by num_kv_heads=4'. Inside `shard_map` both are sizes of one shard."
        ),
        argument="kv_pages",
        fix=Resize("num_combined_kv_heads", _combined_heads),
        advice=_heads_advice,
        symptoms=(
            Symptom(
                "num_q_heads={num_q_heads} must be divisible by num_kv_heads={heads}",
                values={"num_combined_kv_heads": Relation("2 * heads")},
            ),
        ),
        example=Example(
            {"(64, 32, 128)": "(64, 30, 128)"}, {"(64, 32, 128)": "(64, 30, 128)", "(64, 32, 8, 128)": "(64, 32, 4, 128)"}
        ),
    ),
    replace(
        _OF_JAX["SC104"],
        relation=Relation("q_head_dim == kv_pages_head_dim"),
        explanation="Upstream raises a ValueError: 'Q head_dim 128 must be the same as that of K/V 256'.",
        argument="kv_pages",
        advice=shape_of("kv_pages", "total_num_pages", "page_size", "num_combined_kv_heads", "head_dim"),
        symptoms=(Symptom("Q head_dim {q_head_dim} must be the same as that of K/V {kv_pages_head_dim}."),),
        example=Example({"8, 128)": "8, 256)"}),
    ),
    replace(
        _OF_JAX["SC105"],
        relation=Relation("kv_lens_max_num_seqs == page_indices_max_num_seqs"),
        message="kv_lens must have one entry for each row of page_indices",
        explanation="Upstream raises a ValueError: 'Expected kv_lens.shape=(3,) to be (4,)'.",
        argument="kv_lens",
        advice=shape_of("kv_lens", "page_indices_max_num_seqs"),
        symptoms=(Symptom("Expected kv_lens.shape={kv_lens_shape} to be ({page_indices_max_num_seqs},)"),),
    ),
    replace(
        _OF_JAX["SC107"],
        relation=Relation("kv_lens_dtype == 'int32'"),
        message="kv_lens must be int32",
        explanation=(
            "Upstream raises a ValueError: 'The dtype of `kv_lens`, `page_indices`, and `cu_q_lens` must be int32.' 64-bit "
            "arrays of numpy are fine while `jax_enable_x64` is off: jit narrows them before the check."
        ),
        argument="kv_lens",
        fix=Cast("kv_lens", "int32"),
        advice=_as_int32("kv_lens"),
        symptoms=_INT32,
        example=narrow("kv_lens", "300"),
    ),
    replace(
        _OF_JAX["SC108"],
        relation=Relation("page_indices_dtype == 'int32'"),
        message="page_indices must be int32",
        explanation="Upstream raises a ValueError for any other dtype, uint32 included.",
        symptoms=_INT32,
    ),
    replace(
        _OF_JAX["SC109"],
        relation=Relation(
            "q_rank == 3 and kv_pages_rank == 4 and kv_lens_rank == 1 and page_indices_rank == 2 and cu_q_lens_rank == 1"
            " and num_seqs_rank == 1"
        ),
        message="q has 3 axes, kv_pages 4, page_indices 2, and kv_lens, cu_q_lens and num_seqs 1 each",
        explanation=(
            "q is `[max_num_batched_tokens, num_q_heads, head_dim]`, the queries of all sequences one after the other; kv_pages "
            "is `[total_num_pages, page_size, 2 * num_kv_heads, head_dim]`, with the keys at even places of its third axis and "
            "the values at odd ones. Upstream fails to unpack the shape, or raises a ValueError that shows it."
        ),
        advice=shapes_of(_ARRAYS, num_counts="1,"),
        symptoms=(
            Symptom("too many values to unpack (expected 3)", Seen.RAISED, argument="q"),
            Symptom("values to unpack (expected 3, got {q_rank})", Seen.RAISED, argument="q"),
            Symptom("too many values to unpack (expected 4)", Seen.RAISED, argument="kv_pages"),
            Symptom("values to unpack (expected 4, got {kv_pages_rank})", Seen.RAISED, argument="kv_pages"),
            Symptom("too many values to unpack (expected 2)", Seen.RAISED, argument="page_indices"),
            Symptom("values to unpack (expected 2, got {page_indices_rank})", Seen.RAISED, argument="page_indices"),
        ),
    ),
    replace(
        _OF_JAX["SC110"],
        relation=Relation(
            "num_kv_pages_per_block is None or (num_kv_pages_per_block_type == 'int' and num_kv_pages_per_block >= 1)"
        ),
        message="the page block must be an integer of at least 1, or None",
        explanation=(
            "Upstream raises a ValueError: 'num_kv_pages_per_block=0 must be in range (0, 16]', and a TypeError for a float. "
            "None stands for a block from a table of tuned ones."
        ),
        argument="num_kv_pages_per_block",
        fix=_PAGE_BLOCK,
        symptoms=_BLOCK_RANGE,
        example=Example({"pages_per_block=8": "pages_per_block=0"}, {"pages_per_block=8": "pages_per_block=1"}),
    ),
    replace(
        _OF_JAX["SC111"],
        relation=Relation(
            "min(num_q_heads, num_combined_kv_heads, head_dim, total_num_pages, page_size, page_indices_max_num_seqs,"
            " pages_per_seq) >= 1"
        ),
        message="no axis but that of the tokens may be 0",
        explanation="Upstream checks nothing: an empty axis ends in a ZeroDivisionError, or in a block that has no elements.",
        symptoms=(),
        example=Example({"(64, 32, 128)": "(64, 0, 128)"}),
    ),
    replace(
        _OF_JAX["SC113"],
        relation=Relation("soft_cap is None or 0 < abs(soft_cap) <= 3.4028234663852886e38"),
        explanation=(
            "Logits become `cap * tanh(logits / cap)`. Upstream raises a ValueError for 0.0, 'soft_cap=0.0 must not be 0.0.'; "
            "NaN and infinity give NaN."
        ),
        argument="soft_cap",
        fix=replace(CAP_FIX, parameter="soft_cap"),
        symptoms=(Symptom("soft_cap={soft_cap} must not be 0.0."),),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, soft_cap=0.0"}, {"pages_per_block=8": "pages_per_block=8, soft_cap=None"}
        ),
    ),
    replace(
        _OF_JAX["SC114"],
        relation=Relation("mask_value is None or mask_value < 0"),
        enough=Relation("mask_value is None or -3.4028234663852886e38 <= mask_value < 0"),
        explanation=(
            "It is added to the logits of the tokens that a query must not see. Upstream takes any: from 0 up, queries see the "
            "tokens behind them, and those before the window. One that is near 0 is a hint, SC507. Minus infinity is unproven: "
            "where all tokens of a page block are hidden from a query, the kernel subtracts it from itself, which gives NaN."
        ),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, mask_value=0.0"},
            {"pages_per_block=8": "pages_per_block=8, mask_value=-1e30"},
        ),
    ),
    replace(
        _OF_JAX["SC507"],
        relation=Relation(f"mask_value is None or not {STRONG_MASK_VALUE} < mask_value < 0"),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, mask_value=-1.0"},
            {"pages_per_block=8": "pages_per_block=8, mask_value=-1e30"},
        ),
    ),
    replace(
        _OF_JAX["SC115"],
        relation=Relation("q_dtype in ('float32', 'bfloat16')"),
        message="q must be float32 or bfloat16",
        explanation=(
            "The kernel folds the heads of q by its dtype: any other one, float16 too, is an AssertionError without a word."
        ),
        symptoms=(Symptom("assert vec.dtype == jnp.bfloat16 or vec.dtype == jnp.float32 AssertionError", Seen.RAISED),),
    ),
    Rule(
        "SC121",
        "combined-heads-odd",
        Relation("num_combined_kv_heads % 2 == 0"),
        message="kv_pages must have an even number of combined heads",
        explanation=(
            "Each KV head has its keys at an even place of the third axis and its values at the odd place behind it. Upstream "
            "has an assertion without a word. Keys that are followed by all values have the right shape and the wrong meaning: "
            "`jnp.stack([k, v], axis=3).reshape(pages, page_size, 2 * heads, head_dim)` makes the right one."
        ),
        argument="kv_pages",
        symptoms=(Symptom("assert num_combined_kv_heads % 2 == 0 AssertionError", Seen.RAISED),),
        example=Example({"8, 128)": "7, 128)"}),
    ),
    Rule(
        "SC122",
        "combined-heads-tiling",
        Relation(
            "num_combined_kv_heads % 2 == 1 or (num_combined_kv_heads % packing == 0 and"
            " (num_combined_kv_heads // packing in (1, 2, 4) or num_combined_kv_heads // packing % 8 == 0))",
            {"packing": "32 // kv_pages_bits"},
        ),
        message="the combined heads must fill 1, 2, 4 or a multiple of 8 rows of 32 bits",
        explanation=(
            "A row packs 1 head of float32, 2 of bfloat16, 4 of 8 bits. Upstream raises a ValueError: 'Not implemented: "
            "num_combined_kv_heads=6 can not be XLA fully tiled.' Repeat the KV heads, or pad them together with the query "
            "heads. Over several devices those of one count: 12 combined heads of bfloat16 over 2 devices are 6."
        ),
        argument="kv_pages",
        symptoms=(Symptom("Not implemented: num_combined_kv_heads={num_combined_kv_heads} can not be XLA fully tiled."),),
        example=Example({"(64, 32, 128)": "(64, 24, 128)", "8, 128)": "6, 128)"}, {"(64, 32, 128)": "(64, 24, 128)"}),
    ),
    Rule(
        "SC123",
        "offsets-shape",
        Relation("num_offsets == page_indices_max_num_seqs + 1"),
        message="cu_q_lens must have one entry more than page_indices has rows",
        explanation="Entry i is where the queries of sequence i begin. Upstream raises a ValueError that shows both shapes.",
        argument="cu_q_lens",
        advice=_offsets,
        symptoms=(
            Symptom(
                "Expected cu_q_lens.shape={cu_q_lens_shape} to be ({offsets},)",
                values={"page_indices_max_num_seqs": Relation("offsets - 1")},
            ),
        ),
        example=Example({"48, 64]": "64]"}),
    ),
    Rule(
        "SC124",
        "offsets-dtype",
        Relation("cu_q_lens_dtype == 'int32'"),
        message="cu_q_lens must be int32",
        explanation="Upstream raises the ValueError of SC107. `jnp.cumsum` of int32 stays int32, that of torch becomes int64.",
        argument="cu_q_lens",
        fix=Cast("cu_q_lens", "int32"),
        advice=_as_int32("cu_q_lens"),
        symptoms=_INT32,
        example=narrow("cu_q_lens", "64]"),
    ),
    Rule(
        "SC125",
        "num-seqs-shape",
        Relation("num_counts == 1"),
        message="num_seqs must have one element: shape (1,)",
        explanation=(
            "It is the number of sequences that are valid, which may change from call to call without a new compilation. "
            "Upstream raises a ValueError, 'num_seqs.shape=() must be (1,)'; for an int, an AttributeError."
        ),
        argument="num_seqs",
        advice=lambda values: "jnp.array([n], jnp.int32)",
        symptoms=(Symptom("num_seqs.shape={num_seqs_shape} must be (1,)"),),
        example=Example({"[4]": "[4, 0]"}),
    ),
    Rule(
        "SC126",
        "num-seqs-dtype",
        Relation("num_seqs_dtype in ('int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8')"),
        enough=Relation("num_seqs_dtype in ('int32', 'uint32')"),
        message="num_seqs must be int32 (uint32 compiles as well)",
        explanation=(
            "Upstream does not check it: float32 dies in lowering as an internal verification error. Narrower integers compile; "
            "what is read of them is not known, so that they are unproven."
        ),
        argument="num_seqs",
        fix=Cast("num_seqs", "int32"),
        advice=_as_int32("num_seqs"),
        symptoms=(
            Symptom(
                "'arith.index_cast' op operand #0 must be signless-non-zero-bitwidth-integer-like or memref of signless-integer,"
                " but got '{num_seqs_dtype}'",
                Seen.NAMED,
            ),
        ),
        example=narrow("num_seqs", "[4]", "float32"),
    ),
    Rule(
        "SC127",
        "block-beyond-pages",
        Relation("num_kv_pages_per_block is None or num_kv_pages_per_block <= pages_per_seq"),
        message="the page block may not be larger than the pages of a sequence",
        explanation=(
            "Upstream raises a ValueError: 'num_kv_pages_per_block=32 must be in range (0, 16].' The block need not divide the "
            "pages: what is past the last page is copied in vain."
        ),
        argument="num_kv_pages_per_block",
        fix=_PAGE_BLOCK,
        symptoms=_BLOCK_RANGE,
        example=Example({"pages_per_block=8": "pages_per_block=32"}, {"pages_per_block=8": "pages_per_block=24"}),
    ),
    Rule(
        "SC128",
        "sliding-window",
        Relation("sliding_window is None or sliding_window > 0"),
        message="the sliding window must be positive; None means no window",
        explanation="Upstream raises a ValueError: 'sliding_window=0 must be positive'.",
        argument="sliding_window",
        advice=lambda values: "at least 1, or None",
        symptoms=(Symptom("sliding_window={sliding_window} must be positive."),),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, sliding_window=0"},
            {"pages_per_block=8": "pages_per_block=8, sliding_window=None"},
        ),
    ),
    Rule(
        "SC129",
        "scale-type",
        Relation("k_scale_type in ('NoneType', 'float', 'float64') and v_scale_type in ('NoneType', 'float', 'float64')"),
        message="k_scale and v_scale must be floats of Python, or None",
        explanation="Upstream has an assertion without a word: 1 is refused, and so are arrays and `jnp.float32(1.0)`.",
        argument="k_scale",
        advice=lambda values: "float(k_scale), float(v_scale)",
        symptoms=(
            Symptom("assert isinstance(k_scale, float) or k_scale is None AssertionError", Seen.RAISED, argument="k_scale"),
            Symptom("assert isinstance(v_scale, float) or v_scale is None AssertionError", Seen.RAISED, argument="v_scale"),
        ),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, k_scale=1, v_scale=1"},
            {"pages_per_block=8": "pages_per_block=8, k_scale=1.0, v_scale=1.0"},
        ),
    ),
    Rule(
        "SC130",
        "one-scale",
        Relation("(k_scale is None) == (v_scale is None) or kv_pages_dtype == q_dtype"),
        message="give both of k_scale and v_scale or neither, unless the pages have q's dtype",
        explanation=(
            "What is scaled takes q's dtype, what is not keeps that of the pages, and the kernel asserts without a word that "
            "both are of one dtype. 1.0 stands for no scale."
        ),
        argument="v_scale",
        advice=lambda values: "1.0 for the one that is missing",
        symptoms=(Symptom("assert k.dtype == v.dtype AssertionError", Seen.RAISED),),
        example=Example(
            {"8, 128), jnp.bfloat16": "8, 128), jnp.int8", "pages_per_block=8": "pages_per_block=8, k_scale=0.5"},
            {"8, 128), jnp.bfloat16": "8, 128), jnp.int8", "pages_per_block=8": "pages_per_block=8, k_scale=0.5, v_scale=1.0"},
        ),
    ),
    Rule(
        "SC131",
        "query-block",
        Relation("num_queries_per_block is None or (num_queries_per_block_type == 'int' and num_queries_per_block >= 1)"),
        message="the query block must be an integer of at least 1, or None",
        explanation="Upstream raises a ValueError: 'num_queries_per_block=0 must be positive.' It may exceed the tokens.",
        argument="num_queries_per_block",
        fix=_QUERY_BLOCK,
        symptoms=(Symptom("num_queries_per_block={num_queries_per_block} must be positive."),),
        example=Example({"queries_per_block=32": "queries_per_block=0"}, {"queries_per_block=32": "queries_per_block=1"}),
    ),
    Rule(
        "SC132",
        "vmem-limit",
        Relation("vmem_limit_bytes is None or vmem_limit_bytes > 0"),
        message="the limit of vector memory must be positive; None means the compiler's",
        explanation="Upstream raises a ValueError: 'vmem_limit_bytes=0 must be positive'.",
        argument="vmem_limit_bytes",
        symptoms=(Symptom("vmem_limit_bytes={vmem_limit_bytes} must be positive."),),
        example=Example(
            {"pages_per_block=8": "pages_per_block=8, vmem_limit_bytes=0"},
            {"pages_per_block=8": "pages_per_block=8, vmem_limit_bytes=None"},
        ),
    ),
    Rule(
        "SC301",
        "head-dim-lanes",
        Relation(f"head_dim % {LANES} == 0 or head_dim != kv_pages_head_dim"),
        message=f"head_dim must be a multiple of {LANES}",
        explanation=(
            f"The kernel spreads the running maximum, {LANES} lanes wide, over a row of the result: an AssertionError without a "
            "word, when it is traced. Pad q and the pages with zeros, and scale by the logical head_dim."
        ),
        argument="q",
        symptoms=(Symptom("assert shape[1] % arr.shape[1] == 0 AssertionError", Seen.RAISED),),
        example=Example({"128)": "64)"}),
    ),
    Rule(
        "SC506",
        "half-tuned",
        Relation("(num_kv_pages_per_block is None) == (num_queries_per_block is None)"),
        message="a block that is given alone is not used",
        explanation="Where one of the two blocks is None, upstream takes both from its table of tuned ones.",
        argument="num_kv_pages_per_block",
        example=Example({", num_queries_per_block=32": ""}),
    ),
)

RAGGED_PAGED_ATTENTION = Contract(
    name="ragged_paged_attention",
    arrays=_ARRAYS,
    parameters=(
        Parameter("sm_scale", default=1.0),
        Parameter("sliding_window", default=None),
        Parameter("soft_cap", default=None),
        Parameter("mask_value", default=DEFAULT_MASK_VALUE),
        Parameter("k_scale", default=None),
        Parameter("v_scale", default=None),
        Parameter("num_kv_pages_per_block", default=None),
        Parameter("num_queries_per_block", default=None),
        Parameter("vmem_limit_bytes", default=None),
    ),
    rules=amended(RULES, {}, also=(*RAGGED_VALUE_RULES, *RAGGED_TPU_RULES)),
    others=RAGGED_MEASURES,
    sample=RAGGED,
    sources="`jax/experimental/pallas/ops/tpu/ragged_paged_attention/kernel.py` of JAX 0.10 to 0.12",
)

PORTABLE_RAGGED_PAGED_ATTENTION = replace(
    RAGGED_PAGED_ATTENTION,
    parameters=(
        *RAGGED_PAGED_ATTENTION.parameters,
        Parameter("implementation", default="auto"),
        Parameter("check_values", default=False),
    ),
    rules=amended(
        RAGGED_PAGED_ATTENTION.rules,
        {
            "SC115": {name: getattr(_OF_JAX["SC115"], name) for name in ("relation", "message", "explanation")},
            "SC122": {"on_tpu": True},
            "SC301": {"on_tpu": True},
        },
        without=("SC129", "SC130"),
    ),
    elsewhere=Relation("implementation == 'xla'"),
    values_parameter="check_values",
)
"""The contract of `kernel.ragged_paged_attention`: it makes q and the scales what JAX's kernel takes."""

TORCH_XLA_RAGGED_PAGED_ATTENTION = replace(
    RAGGED_PAGED_ATTENTION,
    rules=amended(
        RAGGED_PAGED_ATTENTION.rules, {}, without=("SC129", "SC130", "SC406", "SC409", *(rule.code for rule in RAGGED_TPU_RULES))
    ),
)
"""The contract of torch_xla's copy: its op makes floats of ints, and it scales products, so that one scale is enough."""
