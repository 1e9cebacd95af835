"""The contract of `paged_attention`: JAX's Pallas TPU kernel, torch_xla's wrapper of it, and `kernel.paged_attention`.

Each explanation says what upstream does today: `jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py`
of JAX 0.10 to 0.12, and, past its own checks, the lowering and the compiler (libtpu 0.0.42 and 0.0.50).
"""

from __future__ import annotations

from dataclasses import replace

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.contract import Contract
from shapecheck.contracts.derived import amended, unless
from shapecheck.contracts.mesh import MESH_PARAMETERS, MESH_RULES, SPLIT, page_ids
from shapecheck.contracts.on_tpu import TPU_RULES
from shapecheck.contracts.remedies import (
    BLOCK_FIX,
    CAP_FIX,
    HEADS_FIX,
    MODE_FIX,
    kv_heads,
    most_tokens,
    padding,
    shape_of,
    shapes_of,
)
from shapecheck.contracts.samples import ON_A_MESH, ONE_QUANTIZED, PAGED, narrow
from shapecheck.contracts.tail import TAIL_RULE, TAILS
from shapecheck.relation import Relation
from shapecheck.rule import Cast, Example, Rule
from shapecheck.symptom import Seen, Symptom

DEFAULT_MASK_VALUE = -0.7 * 3.4028234663852886e38  # JAX's: 0.7 of float32's lowest

STRONG_MASK_VALUE = -17  # exp(-17) < 2**-24, half of what float32 can tell 1 from

_ARRAYS = (
    ArrayArgument("q", ("batch_size", "num_q_heads", "head_dim")),
    ArrayArgument("k_pages", ("num_kv_heads", "total_num_pages", "page_size", "head_dim"), quantizable=True),
    ArrayArgument("v_pages", ("num_kv_heads", "total_num_pages", "page_size", "head_dim"), quantizable=True),
    ArrayArgument("lengths", ("batch_size",)),
    ArrayArgument("page_indices", ("batch_size", "pages_per_sequence")),
)

RULES = (
    Rule(
        "SC101",
        "heads-not-grouped",
        Relation("num_q_heads % num_kv_heads == 0"),
        message="the KV heads must divide the query heads",
        explanation=(
            "Grouped-query attention gives each KV head the same number of query heads. Upstream raises a ValueError, "
            "'Number of Q heads must be divisible by number of KV heads'. Inside `shard_map` both are sizes of one shard."
        ),
        argument="k_pages",
        fix=HEADS_FIX,
        advice=kv_heads,
        symptoms=(Symptom("Number of Q heads must be divisible by number of KV heads. Got {num_q_heads} and {num_kv_heads}."),),
        example=Example({"(4, 64, 32, 128)": "(5, 64, 32, 128)"}),
    ),
    Rule(
        "SC102",
        "block-not-dividing",
        Relation("pages_per_sequence % pages_per_compute_block == 0"),
        message="the compute block must divide the pages of a sequence",
        explanation=(
            "The kernel walks each row of `page_indices` in whole compute blocks. Upstream raises a ValueError that states "
            "the relation backwards: 'pages_per_compute_block must be divisible by pages per sequence'. "
            "A clamp such as `min(16, page_indices.shape[1])` does not help: 17 pages still fail."
        ),
        argument="pages_per_compute_block",
        fix=BLOCK_FIX,
        advice=padding,
        symptoms=(
            Symptom(
                "pages_per_compute_block must be divisible by pages per sequence."
                " Got {pages_per_compute_block} and {pages_per_sequence}."
            ),
        ),
        example=Example({"block=12": "block=16"}),
    ),
    Rule(
        "SC103",
        "pages-mismatch",
        Relation(
            "k_pages_num_kv_heads == v_pages_num_kv_heads and k_pages_total_num_pages == v_pages_total_num_pages"
            " and k_pages_page_size == v_pages_page_size and k_pages_head_dim == v_pages_head_dim"
        ),
        message="k_pages and v_pages must have the same shape",
        explanation="One page id names a page of both. Upstream raises a ValueError. Their dtypes may differ: that compiles.",
        argument="v_pages",
        advice=shape_of("v_pages", "num_kv_heads", "total_num_pages", "page_size", "k_pages_head_dim"),
        symptoms=(Symptom("k_pages and v_pages must have the same shape. Got {k_pages_shape} and {v_pages_shape}"),),
        example=Example({"v_pages, lengths": "v_pages[:, 1:], lengths"}),
    ),
    Rule(
        "SC104",
        "head-dim-mismatch",
        Relation("q_head_dim == k_pages_head_dim"),
        message="q and the pages must have the same head_dim",
        explanation=(
            "Upstream raises a ValueError. Where the cache is padded to a multiple of 128, pad q as well, and scale it by the "
            "logical head_dim."
        ),
        argument="k_pages",
        advice=shape_of("k_pages", "num_kv_heads", "total_num_pages", "page_size", "head_dim"),
        symptoms=(Symptom("head_dim of Q must be the same as that of K/V. Got {q_head_dim} and {k_pages_head_dim}."),),
        example=Example({"64, 32, 128)": "64, 32, 256)"}),
    ),
    Rule(
        "SC105",
        "lengths-shape",
        Relation("lengths_batch_size == batch_size"),
        message="lengths must have one entry for each row of q",
        explanation="Upstream raises a ValueError without the numbers.",
        argument="lengths",
        advice=shape_of("lengths", "batch_size"),
        symptoms=(Symptom("`lengths` and `q` must have the same batch size"),),
        example=Example({"jnp.full((4,), 300": "jnp.full((3,), 300"}),
    ),
    Rule(
        "SC106",
        "page-indices-shape",
        Relation("page_indices_batch_size == batch_size"),
        message="page_indices must have one row for each row of q",
        explanation="Upstream raises a ValueError without the numbers.",
        argument="page_indices",
        advice=shape_of("page_indices", "batch_size", "pages_per_sequence"),
        symptoms=(Symptom("`page_indices` and `q` must have the same batch size"),),
        example=Example({"(4, 24)": "(3, 24)"}),
    ),
    Rule(
        "SC107",
        "lengths-dtype",
        Relation("lengths_dtype == 'int32'"),
        message="lengths must be int32",
        explanation=(
            "The kernel prefetches lengths as int32 scalars; upstream raises a ValueError. 64-bit arrays of numpy are fine while "
            "`jax_enable_x64` is off: jit narrows them before the check."
        ),
        argument="lengths",
        fix=Cast("lengths", "int32"),
        advice=lambda values: "lengths.astype(jnp.int32)",
        symptoms=(Symptom("The dtype of `lengths` must be int32. Got {lengths_dtype}"),),
        example=narrow("lengths", "300"),
    ),
    Rule(
        "SC108",
        "page-indices-dtype",
        Relation("page_indices_dtype in ('int32', 'uint32')"),
        message="page_indices must be int32 (uint32 compiles as well)",
        explanation=(
            "Upstream checks nothing: int16 dies in lowering as an internal verification error, float32 as an indexing error."
        ),
        argument="page_indices",
        fix=Cast("page_indices", "int32"),
        advice=lambda values: "page_indices.astype(jnp.int32)",
        symptoms=(
            Symptom(
                "'tpu.memref_slice' op operand #1 must be variadic of 32-bit signless integer, but got '{page_indices_dtype}'",
                Seen.NAMED,
            ),
        ),
        example=narrow("page_indices", "24)"),
    ),
    Rule(
        "SC109",
        "rank",
        Relation("q_rank == 3 and k_pages_rank == 4 and v_pages_rank == 4 and lengths_rank == 1 and page_indices_rank == 2"),
        message="q has 3 axes, each of the pages 4, lengths 1 and page_indices 2",
        explanation=(
            "q is `[batch_size, num_q_heads, head_dim]`, pages are `[num_kv_heads, total_num_pages, page_size, head_dim]`. "
            "Upstream fails to unpack the shape: 'not enough values to unpack' or 'too many values to unpack'."
        ),
        argument="q",
        advice=shapes_of(_ARRAYS),
        symptoms=(
            Symptom("too many values to unpack (expected 3)", Seen.RAISED, argument="q"),
            Symptom("values to unpack (expected 3, got {q_rank})", Seen.RAISED, argument="q"),
            Symptom("too many values to unpack (expected 4)", Seen.RAISED, argument="k_pages"),
            Symptom("values to unpack (expected 4, got {k_pages_rank})", Seen.RAISED, argument="k_pages"),
            Symptom("too many values to unpack (expected 2)", Seen.RAISED, argument="page_indices"),
            Symptom("values to unpack (expected 2, got {page_indices_rank})", Seen.RAISED, argument="page_indices"),
        ),
        example=Example({"q, k": "q[0], k"}),
    ),
    Rule(
        "SC110",
        "block-not-positive",
        Relation("pages_per_compute_block_type == 'int' and pages_per_compute_block >= 1"),
        message="the compute block must be an integer of at least 1",
        explanation=(
            "`block_tokens // page_size` is 0 where a page is larger than the block: upstream raises ZeroDivisionError for 0, "
            "'zero-size array to reduction' for a negative block, a TypeError for a float. It is a static argument: of "
            "an array, and of what a jit around the call traces, jit says 'Non-hashable static arguments are not supported'."
        ),
        argument="pages_per_compute_block",
        fix=replace(BLOCK_FIX, at_least=1),
        symptoms=(
            Symptom(
                "if pages_per_sequence % pages_per_compute_block != 0: ZeroDivisionError",
                Seen.RAISED,
                {"pages_per_compute_block": 0},
            ),
            Symptom("if pages_per_sequence % pages_per_compute_block != 0: TypeError", Seen.RAISED),
            Symptom("Non-hashable static arguments are not supported", Seen.CALLED),
            Symptom("Out of bound slice: start=0, dim=-{size}.", Seen.NAMED, {"pages_per_compute_block": Relation("0 - size")}),
            Symptom(
                "Shapes must be 1D sequences of concrete values of integer type,"
                " got (2, {pages_per_compute_block}, {page_size}, {k_pages_head_dim})",
                Seen.NAMED,
            ),
            Symptom("zero-size array to reduction operation max which has no identity", Seen.NAMED),
        ),
        example=Example({"block=12": "block=0"}, {"block=12": "block=1"}),
    ),
    Rule(
        "SC111",
        "empty-axis",
        Relation("min(num_q_heads, num_kv_heads, head_dim, total_num_pages, page_size, pages_per_sequence) >= 1"),
        message="no axis but batch_size may be 0",
        explanation=(
            "Upstream checks nothing: an empty axis ends in a ZeroDivisionError, in an empty grid, or in uninitialised output."
        ),
        argument="page_indices",
        silent=True,
        symptoms=(
            Symptom("if num_q_heads % num_kv_heads != 0: ZeroDivisionError", Seen.RAISED, {"num_kv_heads": 0}),
            Symptom("Out of bound slice: start=0, dim=0.", Seen.NAMED),
            Symptom("vector types must have positive constant sizes but got 0,", Seen.NAMED),
            Symptom("zero-size array to reduction operation max which has no identity", Seen.NAMED),
        ),
        example=Example({"q, k": "q[..., :0, :], k"}),
    ),
    Rule(
        "SC112",
        "half-quantized",
        Relation(
            "(k_pages_scales_dtype is None) == (v_pages_scales_dtype is None) and (k_pages_scales_dtype is None"
            " or (k_pages_dtype == 'int8' and k_pages_scales_shape in ("
            "(k_pages_num_kv_heads, k_pages_total_num_pages, k_pages_page_size, 1),"
            " (k_pages_num_kv_heads, k_pages_total_num_pages, k_pages_page_size, k_pages_head_dim))))"
            " and (v_pages_scales_dtype is None or (v_pages_dtype == 'int8' and v_pages_scales_shape in ("
            "(v_pages_num_kv_heads, v_pages_total_num_pages, v_pages_page_size, 1),"
            " (v_pages_num_kv_heads, v_pages_total_num_pages, v_pages_page_size, v_pages_head_dim))))"
        ),
        message="quantize both pages or neither, to int8, with one scale for each token (or each element)",
        explanation=(
            "With one side quantized, upstream fails in a pytree comparison that names neither. Scales of another shape, such "
            "as one for each page, are broadcast in interpret mode and read out of place on a TPU. "
            "`quantization_utils.quantize_to_int8` makes a legal pair."
        ),
        argument="v_pages",
        advice=lambda values: "both of k_pages and v_pages from quantization_utils.quantize_to_int8, or neither",
        silent=True,
        symptoms=(
            Symptom("Pytree for `in_specs` and `inputs` do not match.", Seen.NAMED),
            Symptom("'tpu.enqueue_dma' op DMA source and target shape mismatch.", Seen.NAMED),
        ),
        example=ONE_QUANTIZED,
    ),
    Rule(
        "SC113",
        "soft-cap",
        Relation("attn_logits_soft_cap is None or 0 < abs(attn_logits_soft_cap) <= 3.4028234663852886e38"),
        message="the soft cap must be finite and not 0; None means no cap",
        explanation=(
            "Logits become `cap * tanh(logits / cap)`. Upstream takes 0.0, which does not mean off, and divides by it: "
            "silently wrong numbers. NaN and infinity give NaN."
        ),
        argument="attn_logits_soft_cap",
        fix=CAP_FIX,
        advice=lambda values: "any finite number but 0",
        silent=True,
        example=Example({"block=12": "block=12, attn_logits_soft_cap=0.0"}, {"block=12": "block=12, attn_logits_soft_cap=None"}),
    ),
    Rule(
        "SC114",
        "mask-value",
        Relation("mask_value < 0"),
        message="the mask value must be negative",
        explanation=(
            "It is added to the logits past a row's length. Upstream takes any: from 0 up, padding takes part in the softmax. "
            "One that is near 0 is a hint, SC507."
        ),
        argument="mask_value",
        advice=lambda values: "leave it out: the default is -0.7 * float(jnp.finfo(jnp.float32).max)",
        silent=True,
        example=Example({"block=12": "block=12, mask_value=0.0"}, {"block=12": "block=12, mask_value=-1e30"}),
    ),
    Rule(
        "SC115",
        "query-dtype",
        Relation(
            "q_dtype in ('float32', 'bfloat16', 'float16', 'float64', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3b11fnuz',"
            " 'float8_e4m3fnuz', 'float8_e5m2fnuz', 'float8_e3m4', 'float8_e4m3', 'float8_e8m0fnu', 'float4_e2m1fn')"
        ),
        message="q must be floating",
        explanation="The result has q's dtype: with an integer q upstream compiles, and truncates the result to integers.",
        argument="q",
        advice=lambda values: "q.astype(jnp.bfloat16)",
        silent=True,
        example=Example({"q, k": "q.astype(jnp.int32), k"}),
    ),
    Rule(
        "SC201",
        "megacore-kv-heads",
        Relation("megacore_mode != 'kv_head' or num_kv_heads % 2 == 0"),
        message="megacore mode 'kv_head' needs an even number of KV heads",
        explanation=(
            "Each of the two cores takes half of the KV heads of one device. Upstream raises a ValueError without the number."
        ),
        argument="megacore_mode",
        fix=MODE_FIX,
        per_device=True,
        symptoms=(
            Symptom("number of KV heads must be even when megacore_mode is 'kv_head'", values={"megacore_mode": "kv_head"}),
        ),
        example=Example(
            {"(4, 64": "(1, 64", "block=12": 'block=12, megacore_mode="kv_head"'},
            {"(4, 64": "(1, 64", "block=12": 'block=12, megacore_mode="batch"'},
        ),
    ),
    Rule(
        "SC202",
        "megacore-batch",
        Relation("megacore_mode != 'batch' or batch_size % 2 == 0"),
        message="megacore mode 'batch' needs an even batch",
        explanation="Each of the two cores takes every other row. Upstream raises a ValueError without the number.",
        argument="megacore_mode",
        fix=MODE_FIX,
        per_device=True,
        symptoms=(Symptom("batch size must be even when megacore_mode is 'batch'", values={"megacore_mode": "batch"}),),
        example=Example(
            {
                "q, k": "q[:3], k",
                "lengths, page_indices": "lengths[:3], page_indices[:3]",
                "block=12": 'block=12, megacore_mode="batch"',
            },
            {
                "q, k": "q[:3], k",
                "lengths, page_indices": "lengths[:3], page_indices[:3]",
                "block=12": 'block=12, megacore_mode="kv_head"',
            },
        ),
    ),
    Rule(
        "SC203",
        "megacore-mode",
        Relation("megacore_mode is None or megacore_mode in ('kv_head', 'batch')"),
        message="the megacore mode must be 'kv_head', 'batch' or None",
        explanation="Upstream raises a ValueError that does not show what it got.",
        argument="megacore_mode",
        fix=MODE_FIX,
        symptoms=(Symptom("megacore_mode must be one of ['kv_head', 'batch', None]"),),
        example=Example({"block=12": 'block=12, megacore_mode="kv_heads"'}, {"block=12": 'block=12, megacore_mode="kv_head"'}),
    ),
    Rule(
        "SC204",
        "megacore-chip",
        Relation("megacore_mode is None or cores_per_device == 2"),
        message="a megacore mode needs a device with two cores (v4 and v5p)",
        explanation="Upstream documents the danger and checks nothing: on a one-core device the kernel compiles, then hangs.",
        argument="megacore_mode",
        fix=MODE_FIX,
        silent=True,
        example=Example(
            {"block=12": 'block=12, megacore_mode="kv_head"'}, {"block=12": "block=12, megacore_mode=None"}, chip="v5e"
        ),
    ),
    Rule(
        "SC401",
        "length-overrun",
        Relation("0 <= lengths_min and lengths_max <= pages_per_sequence * page_size"),
        message="no length may be negative, or go beyond the pages of a sequence",
        explanation=(
            "Upstream checks nothing: a longer row reads on into the page ids of the next row, and the last row past the end of "
            "the table; a negative length gives a row of zeros."
        ),
        argument="lengths",
        advice=most_tokens("pages_per_sequence"),
        silent=True,
        example=Example({"300": "800"}),
    ),
    Rule(
        "SC402",
        "page-id-range",
        Relation("0 <= page_indices_min and page_indices_max < total_num_pages"),
        message="every page id must be that of a page, also where it is only padding",
        explanation=(
            "Upstream checks nothing. The kernel copies every page of a compute block, those past a row's length too, so a "
            "padding of -1 or of `total_num_pages` reads outside the pool. Pad with the id of any page, e.g. 0."
        ),
        argument="page_indices",
        advice=page_ids,
        silent=True,
        example=Example({"zeros((4, 24)": "full((4, 24), 64"}),
    ),
    Rule(
        "SC507",
        "weak-mask",
        Relation(f"not {STRONG_MASK_VALUE} < mask_value < 0"),
        message=f"a mask value between {STRONG_MASK_VALUE} and 0 hides too little",
        explanation=(
            "A hidden token whose logit is as large as that of a token has the weight `exp(mask_value)` of it: above -17, "
            "float32 can tell that from nothing (`2**-24` is `exp(-16.6)`), and hidden tokens take part in the softmax. Logits "
            "may differ by more than 17: take the default, 0.7 of the lowest float32, or `-1e30`."
        ),
        argument="mask_value",
        silent=True,
        example=Example({"block=12": "block=12, mask_value=-1.0"}, {"block=12": "block=12, mask_value=-1e30"}),
    ),
)

PAGED_ATTENTION = Contract(
    name="paged_attention",
    arrays=_ARRAYS,
    parameters=(
        Parameter("mask_value", default=DEFAULT_MASK_VALUE),
        Parameter("attn_logits_soft_cap", default=None),
        Parameter("pages_per_compute_block"),
        Parameter("megacore_mode", default=None),
        Parameter("inline_seq_dim", default=True),
    ),
    rules=amended(RULES, {}, also=(*TPU_RULES, TAIL_RULE)),
    others=TAILS,
    aliases={
        "pages_dtype": ("k_pages_dtype", "v_pages_dtype"),
        "scales_dtype": ("k_pages_scales_dtype", "v_pages_scales_dtype"),
    },
    sample=PAGED,
    sources="`jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py` of JAX 0.10 to 0.12",
)

PORTABLE_PAGED_ATTENTION = replace(
    PAGED_ATTENTION,
    parameters=(
        *PAGED_ATTENTION.parameters,
        Parameter("implementation", default="auto"),
        *MESH_PARAMETERS,
        Parameter("check_values", default=False),
    ),
    rules=amended(
        PAGED_ATTENTION.rules,
        {
            "SC402": {
                "relation": Relation(
                    "0 <= page_indices_min and page_indices_max < total_num_pages"
                    " and (pages_axis is None or page_indices_max < total_num_pages // pages_axis_size)"
                ),
            },
        },
        without=(TAIL_RULE.code, "SC204"),
        also=(
            *MESH_RULES,
            unless("implementation == 'xla'", TAIL_RULE, per_device=True),
            unless("implementation in ('interpret', 'xla')", *(rule for rule in RULES if rule.code == "SC204")),
        ),
    ),
    elsewhere=Relation("implementation in ('interpret', 'xla')"),
    split=SPLIT,
    values_parameter="check_values",
    sample=ON_A_MESH,
    sources="`kernel.paged_attention`, which splits a call with `jax.shard_map`",
)
"""The contract of `kernel.paged_attention`, which runs JAX's kernel on a TPU only, and can do without."""
