"""What the TPU compiler demands of `paged_attention`: rules that say nothing of a call that runs elsewhere.

Each explanation says what the compiler does today: libtpu 0.0.42 with JAX 0.10.2 and 0.0.50 with JAX 0.12.0, asked for v4 to v7x
on a machine without a TPU; `tests/compiler/` holds them against what 0.0.52 said of 3,369 calls.
"""

from __future__ import annotations

from typing import Any

from shapecheck.chip import FIRST_GENERATION, LANES
from shapecheck.contracts.memory import (
    HBM_ENOUGH,
    HBM_NEEDED,
    SMEM_ENOUGH,
    SMEM_NEEDED,
    VMEM_ENOUGH,
    VMEM_NEEDED,
    hbm_advice,
    smem_advice,
    vmem_advice,
)
from shapecheck.outcome import Values
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule
from shapecheck.symptom import BLOCK_SHAPE, HBM_FULL, NO_BROADCAST, SMEM_FULL, VMEM_FULL, Seen, Symptom

# What Mosaic can make bfloat16 of, on every chip. A v7x also takes float4_e2m1fn; of the integers, those of 2 bits fail on v4.
_PAGES = (
    "('float32', 'bfloat16', 'float16', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3b11fnuz', 'int4', 'int8', 'int16', 'int32',"
    " 'uint4', 'uint8', 'uint16', 'uint32')"
)
_WIDENED = "('float8_e4m3fn', 'float8_e5m2', 'float8_e4m3b11fnuz', 'float8_e4m3fnuz', 'float8_e5m2fnuz')"


def _padded_head_dim(values: Values) -> str | None:
    head_dim: Any = values.get("head_dim")
    if not isinstance(head_dim, int):
        return None
    return f"pad q and the pages to a head_dim of {-(-head_dim // LANES) * LANES}"


TPU_RULES = (
    Rule(
        "SC301",
        "head-dim-lanes",
        Relation(f"head_dim % {LANES} == 0 or head_dim != k_pages_head_dim"),
        message=f"on a TPU, head_dim must be a multiple of {LANES}",
        explanation=(
            "A page is copied in whole rows of 128 lanes. Lowering raises a ValueError: 'the last two dimensions of your block "
            "shape are divisible by 8 and 128 respectively, or be equal to the respective dimensions of the overall array'. Pad "
            "q and the pages with zeros, and scale q by the logical head_dim."
        ),
        argument="q",
        advice=_padded_head_dim,
        on_tpu=True,
        symptoms=(
            Symptom(f"{BLOCK_SHAPE}({{...}}Blocked(block_size={{head_dim}})), array shape ({{batch_size}}, {{num_q_heads}},"),
            Symptom(f"{BLOCK_SHAPE}({{...}}, {{head_dim}}), array shape ({{batch_size}}, {{num_q_heads}},"),
        ),
        example=Example({"128)": "64)"}),
    ),
    Rule(
        "SC302",
        "pages-float16",
        Relation(
            "k_pages_dtype != 'float16' and v_pages_dtype != 'float16'"
            " and k_pages_scales_dtype != 'float16' and v_pages_scales_dtype != 'float16'"
        ),
        message="on a TPU, neither pages nor scales may be float16",
        explanation=(
            "The kernel makes bfloat16 of pages and float32 of scales. Lowering raises a NotImplementedError, 'Unsupported cast: "
            "float16 -> bfloat16'; of float16 scales the compiler says 'Mosaic failed to compile TPU kernel'. The dtype on a TPU "
            "is bfloat16."
        ),
        argument="k_pages",
        advice=lambda values: "pages and scales in bfloat16, or scales in float32",
        on_tpu=True,
        symptoms=(
            Symptom("Unsupported cast: float16 -> bfloat16", Seen.NAMED),
            Symptom("Invalid vector type for load {...}xf16,", Seen.NAMED),
        ),
        example=Example({"64, 32, 128), jnp.bfloat16": "64, 32, 128), jnp.float16"}),
    ),
    Rule(
        "SC303",
        "query-float16",
        Relation("q_dtype != 'float16' or num_q_heads // num_kv_heads % 8 != 0"),
        message="on a TPU, q may not be float16 where each KV head has a multiple of 8 query heads",
        explanation=(
            "Any other number of query heads makes upstream cast q to float32 first. With a multiple of 8, it compiles in q's "
            "own dtype: 'Mosaic failed to compile TPU kernel'. The dtype on a TPU is bfloat16."
        ),
        argument="q",
        advice=lambda values: "q.astype(jnp.bfloat16)",
        on_tpu=True,
        symptoms=(Symptom("failed to legalize operation 'tpu.store'{...}xf16>", Seen.NAMED, {"q_dtype": "float16"}),),
        example=Example({"q, k": "q.astype(jnp.float16), k"}),
    ),
    Rule(
        "SC304",
        "one-token-block",
        Relation(
            "page_size * pages_per_compute_block != 1 or num_q_heads <= num_kv_heads"
            " or (k_pages_scales_dtype is not None and v_pages_scales_dtype is not None)"
        ),
        enough=Relation(
            "page_size * pages_per_compute_block != 1"
            " or (num_q_heads <= num_kv_heads and k_pages_scales_dtype is None and v_pages_scales_dtype is None)"
        ),
        message="on a TPU, a compute block of plain pages must hold more than one token, unless each query head has its KV head",
        explanation=(
            "The scores of one token have an axis of size 1, over which lowering stumbles: 'Pallas encountered an internal "
            "verification error ... vector.broadcast'. Pages of one token want `pages_per_compute_block` of at least 2. Of "
            "quantized pages libtpu 0.0.42 says 'Not implemented: Lane broadcast', and 0.0.50 compiles them: there the rule is "
            "unproven."
        ),
        argument="pages_per_compute_block",
        advice=lambda values: "pages_per_compute_block of 2 or more, or larger pages",
        on_tpu=True,
        symptoms=NO_BROADCAST,
        example=Example(
            {"64, 32, 128)": "64, 1, 128)", "300": "20", "block=12": "block=1"},
            {"64, 32, 128)": "64, 1, 128)", "300": "20", "block=12": "block=2"},
        ),
    ),
    Rule(
        "SC305",
        "page-table-smem",
        SMEM_NEEDED,
        enough=SMEM_ENOUGH,
        message="the page table and the lengths must fit into the scalar memory of one core",
        explanation=(
            "All of `page_indices` and `lengths` is prefetched into scalar memory: 1 MiB on v4 to v7x, 4 bytes an entry, in "
            "units of 512 bytes. The compiler says 'Ran out of memory in memory space smem', or 'Allocation (size=...) would "
            "exceed memory'. For itself it keeps 2560 bytes (libtpu 0.0.42, 0.0.50), or up to 5120 (0.0.52): between the two "
            "the rule is unproven. Split the batch, or take larger pages."
        ),
        argument="page_indices",
        advice=smem_advice,
        on_tpu=True,
        symptoms=SMEM_FULL,
        example=Example({"(4, 24)": "(4, 98304)"}, chip="v5e"),
    ),
    Rule(
        "SC306",
        "block-vmem",
        VMEM_NEEDED,
        enough=VMEM_ENOUGH,
        message="two compute blocks of keys and of values, and their scales, must fit into vector memory",
        explanation=(
            "A kernel may take 16 MiB of vector memory on v4 and v5, 32 MiB on v6e and v7x. Two blocks of keys and two of values "
            "are buffered, scales broadcast to head_dim; on top come the scores of a block and, on v4 for 8-bit pages and on v5 "
            "for a head_dim above 128, copies of pages. The compiler says 'Ran out of memory in memory space vmem ... Scoped "
            "allocation with size ... and limit ...'. What it adds is known between two bounds, between which the rule is "
            "unproven. Near the limit these are 2 to 5 % of the memory apart for plain pages and up to 16 query heads a KV head, "
            "some 10 % for more. On v4 it is a fifth for int8 pages with bfloat16 scales, and a third for those with float32 "
            "scales and for float8_e5m2. One copy for each page of a block is unrolled: a block of 1,600 pages took 100 seconds "
            "to compile."
        ),
        argument="pages_per_compute_block",
        advice=vmem_advice,
        on_tpu=True,
        symptoms=VMEM_FULL,
        example=Example({"(4, 24)": "(4, 1536)", "block=12": "block=768"}, {"(4, 24)": "(4, 1536)"}, chip="v5e"),
    ),
    Rule(
        "SC308",
        "chip-generation",
        Relation(f"chip_generation >= {FIRST_GENERATION}"),
        message="the kernel is for v4 and later",
        explanation=(
            "The matrix units of v2 and v3 take no bfloat16 operands: 'Unsupported matmul RHS type on target: "
            "vector<128x128xbf16>'."
        ),
        argument="q",
        on_tpu=True,
        symptoms=(Symptom("Unsupported matmul RHS type on target: vector<128x128xbf16>", Seen.NAMED),),
        example=Example({}, chip="v3", moved_to="v4"),
    ),
    Rule(
        "SC309",
        "pages-hbm",
        HBM_NEEDED,
        enough=HBM_ENOUGH,
        message="the pages, with their scales broadcast to head_dim, must fit into the memory of one device",
        explanation=(
            "Upstream broadcasts scales to head_dim before it calls the kernel: float32 scales of int8 pages take four times "
            "what the pages do. The compiler says 'Ran out of memory on HBM, the total memory required for HLO temporaries (...) "
            "exceeds available HBM'. Only what this call takes is counted: the model is not. A v4 that is not in megacore mode "
            "has half of the memory: between the two the rule is unproven."
        ),
        argument="k_pages",
        advice=hbm_advice,
        on_tpu=True,
        symptoms=HBM_FULL,
        example=Example({"(4, 64, 32, 128)": "(4, 300_000, 32, 128)"}, chip="v5e"),
    ),
    Rule(
        "SC310",
        "pages-dtype",
        Relation(
            f"(k_pages_dtype in {_PAGES} or (chip_generation >= 7 and k_pages_dtype == 'float4_e2m1fn'))"
            f" and (v_pages_dtype in {_PAGES} or (chip_generation >= 7 and v_pages_dtype == 'float4_e2m1fn'))"
        ),
        message="on a TPU, pages must be of a dtype that the compiler can make bfloat16 of",
        explanation=(
            "float8_e4m3, float8_e3m4 and float8_e5m2fnuz fail on every chip, float4_e2m1fn before v7x: 'Mosaic failed to "
            "compile TPU kernel'. float8_e4m3fn, float8_e5m2, int8 and int4 compile everywhere."
        ),
        argument="k_pages",
        on_tpu=True,
        symptoms=(Symptom("Invalid vector type for load {...}x{pages_dtype},", Seen.NAMED),),
        example=Example({"64, 32, 128), jnp.bfloat16": "64, 32, 128), jnp.float8_e4m3"}, chip="v5e"),
    ),
    Rule(
        "SC311",
        "query-float8",
        Relation(f"q_dtype not in {_WIDENED} or num_q_heads // num_kv_heads % 8 != 0"),
        message="q may not be of 8 bits where each KV head has a multiple of 8 query heads",
        explanation=(
            "Any other number of query heads makes upstream cast q to float32 first. With a multiple of 8 it does not, and JAX "
            "raises a TypePromotionError when the kernel is traced: 8-bit floats do not promote to float32."
        ),
        argument="q",
        advice=lambda values: "q.astype(jnp.bfloat16)",
        on_tpu=True,
        symptoms=(
            Symptom("Input dtypes ('float32', '{q_dtype}') have no available implicit dtype promotion path", Seen.NAMED),
            Symptom("Input dtypes ('{q_dtype}', 'float32') have no available implicit dtype promotion path", Seen.NAMED),
        ),
        example=Example({"q, k": "q.astype(jnp.float8_e4m3fn), k"}),
    ),
    Rule(
        "SC505",
        "skipped-upstream",
        Relation(
            "not (k_pages_scales_dtype is not None and chip_generation in (4, 6, 7))"
            " and not (k_pages_dtype == 'bfloat16' and num_kv_heads == 8 and chip_generation == 7)"
        ),
        message="JAX's own tests leave this chip out for such pages",
        explanation=(
            "JAX's `tests/pallas/tpu_paged_attention_kernel_test.py` skips quantized pages on v4, where large blocks run out of "
            "vector memory, and from v6e on ('Quantization is not supported on TPU v6'), and bfloat16 pages with 8 KV heads on "
            'v7x. They compile (libtpu 0.0.42 to 0.0.52); compare the results with `implementation="xla"` of '
            "`kernel.paged_attention` before you rely on them."
        ),
        argument="k_pages",
        on_tpu=True,
        silent=True,
        example=Example({"(4, 64, 32, 128)": "(8, 64, 32, 128)"}, chip="tpu7x"),
    ),
)
