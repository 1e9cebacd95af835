"""What the TPU compiler demands of `ragged_paged_attention`: rules that say nothing of a call that runs elsewhere.

They were read off what libtpu 0.0.42 with JAX 0.10.2 and libtpu 0.0.50 with JAX 0.12.0 said of some 200 calls, for v4 to v7x, on
a machine without a TPU: `tests/compiler/ragged_truth.jsonl.gz`. How much vector memory a call takes is known roughly.
"""

from __future__ import annotations

from collections.abc import Mapping

from shapecheck.chip import FIRST_GENERATION, LANES
from shapecheck.contracts.memory import spaces, used, within
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule
from shapecheck.symptom import BLOCK_SHAPE, HBM_FULL, NO_BROADCAST, SMEM_FULL, VMEM_FULL, Seen, Symptom

HEADS: Mapping[str, str] = {
    "packing": "32 // kv_pages_bits",
    "q_packing": "32 // q_bits",
    "group": "num_q_heads // (num_combined_kv_heads // 2)",
    # Upstream takes a tile of combined heads at a time, where that makes whole tiles of query heads too; else all of them.
    "few_kv_heads": "8 * packing if num_combined_kv_heads % (8 * packing) == 0 else num_combined_kv_heads",
    "few_q_heads": "few_kv_heads // 2 * group",
    "q_rows": "few_q_heads // q_packing",
    "in_parts": "few_q_heads % q_packing == 0 and (q_rows in (1, 2, 4) or q_rows % 8 == 0)",
    "kv_heads": "few_kv_heads if in_parts else num_combined_kv_heads",
    "q_heads": "few_q_heads if in_parts else num_q_heads",
}
SMEM: Mapping[str, str] = {
    "metadata_bytes": "(max_num_seqs + 127) // 128 * 512 + (max_num_seqs + 128) // 128 * 512",
    "table_bytes": "(page_indices_max_num_seqs + 7) // 8 * 8 * ((pages_per_seq + 127) // 128) * 512",
    "least_smem_bytes": "metadata_bytes + table_bytes + 1024",
    "most_smem_bytes": "metadata_bytes + table_bytes + 5120",
}
VMEM: Mapping[str, str] = {
    **HEADS,
    "tokens": "page_size * num_kv_pages_per_block",
    "rows": "(num_queries_per_block * group + 7) // 8 * 8",
    # Two blocks of pages; of each query the running maximum and sum, 128 lanes wide, the result, and windows of q and of it.
    "buffer_bytes": "2 * tokens * kv_heads * head_dim * kv_pages_bits // 8",
    # Windows are not counted where they are least: a compiler may do without.
    "least_query_bytes": "num_queries_per_block * (kv_heads * group * 512 + q_heads * head_dim * 4)",
    "most_query_bytes": "kv_heads * rows * 512 + num_queries_per_block * ((q_heads + 7) // 8 * 8) * head_dim * (4 + q_bits // 2)",
    # For each KV head: the scores, keys and values as float32, and the queries.
    "head_bytes": "rows * ((tokens + 127) // 128) * 512 + ((tokens + 7) // 8 * 16 + rows) * head_dim * 4",
    "least_vmem_bytes": "buffer_bytes + least_query_bytes",
    "most_vmem_bytes": "buffer_bytes + most_query_bytes + kv_heads * head_bytes + 1048576",
    "limit_bytes": "vmem_bytes if vmem_limit_bytes is None else vmem_limit_bytes",
}
HBM: Mapping[str, str] = {
    "least_hbm_bytes": "total_num_pages * page_size * num_combined_kv_heads * head_dim * kv_pages_bits // 8",
    # q, the result and copies of them, the table, and 256 MiB for the program.
    "most_hbm_bytes": (
        "least_hbm_bytes + 16 * max_num_batched_tokens * num_q_heads * head_dim + 1024 * max_num_seqs * (pages_per_seq + 128)"
        " + 268435456"
    ),
}
RAGGED_SPACES = spaces(smem=SMEM, vmem=VMEM, hbm=HBM)
_COMMON = "('float32', 'bfloat16', 'int8', 'float8_e4m3fn', 'float8_e5m2')"
_SMEM_NEEDED, _SMEM_ENOUGH = within("smem", SMEM)
_HBM_NEEDED, _HBM_ENOUGH = within("hbm", HBM)

RAGGED_TPU_RULES = (
    Rule(
        "SC302",
        "pages-float16",
        Relation("kv_pages_dtype != 'float16'"),
        message="on a TPU, the pages may not be float16",
        explanation="Mosaic fails: 'Invalid vector register cast'. bfloat16 compiles.",
        argument="kv_pages",
        on_tpu=True,
        symptoms=(Symptom("Invalid vector register cast", Seen.NAMED, {"kv_pages_dtype": "float16"}),),
        example=Example({"8, 128), jnp.bfloat16": "8, 128), jnp.float16"}),
    ),
    Rule(
        "SC304",
        "one-token-block",
        Relation(
            "page_size != 1 or num_kv_pages_per_block != 1 or group == 1 or kv_pages_bits == 32"
            " or (k_scale is not None and q_bits == 32)",
            HEADS,
        ),
        enough=Relation("page_size != 1 or num_kv_pages_per_block != 1"),
        message="on a TPU, a page block must hold more than one token",
        explanation=(
            "Lowering ends in an 'internal verification error' of a vector.broadcast. It does not for pages of float32 with one "
            "query head for each KV head; where only one of the two is so, or scales make float32 of the pages, it is unproven."
        ),
        argument="num_kv_pages_per_block",
        on_tpu=True,
        symptoms=NO_BROADCAST,
        example=Example(
            {"(64, 32, 8, 128)": "(64, 1, 8, 128)", "300": "20", "pages_per_block=8": "pages_per_block=1"},
            {"(64, 32, 8, 128)": "(64, 1, 8, 128)", "300": "20", "pages_per_block=8": "pages_per_block=2"},
        ),
    ),
    Rule(
        "SC305",
        "page-table-smem",
        _SMEM_NEEDED,
        enough=_SMEM_ENOUGH,
        message="the page table and the other metadata must fit into the scalar memory of one core",
        explanation=(
            "The table takes whole tiles of 8 rows and 128 pages, 4 KiB each: 2,009 sequences of one page are too many for 1 "
            "MiB, and so are 249 of 1,000 pages. The compiler says 'Ran out of memory in memory space smem', or 'Allocation "
            "(size=...) would exceed memory'. What it keeps for itself is known to 4 KiB: in between the rule is unproven."
        ),
        argument="page_indices",
        advice=used(RAGGED_SPACES["smem"][0], Relation("smem_bytes")),
        on_tpu=True,
        symptoms=SMEM_FULL,
        example=Example({"(4, 24)": "(4, 200_000)"}, chip="v5e"),
    ),
    Rule(
        "SC306",
        "block-vmem",
        Relation("least_vmem_bytes <= limit_bytes", VMEM),
        enough=Relation("most_vmem_bytes <= min(limit_bytes, vmem_bytes)", VMEM),
        message="two blocks of pages, and what is kept of a block of queries, must fit into vector memory",
        explanation=(
            "A kernel may take 16 MiB of vector memory on v4 and v5, 32 MiB on v6e and v7x, unless `vmem_limit_bytes` says "
            "otherwise. The compiler says 'Ran out of memory in memory space vmem'. What it takes beyond the buffers is known "
            "roughly, and beyond its default limit not at all: in between the rule is unproven, and without both blocks too. "
            "Take smaller blocks, of queries first where there are many heads."
        ),
        argument="num_kv_pages_per_block",
        advice=used(RAGGED_SPACES["vmem"][0], Relation("limit_bytes", VMEM)),
        on_tpu=True,
        symptoms=VMEM_FULL,
        example=Example({"queries_per_block=32": "queries_per_block=4096"}, chip="v5e"),
    ),
    Rule(
        "SC308",
        "chip-generation",
        Relation(
            f"chip_generation >= {FIRST_GENERATION} or (num_kv_pages_per_block is not None and num_queries_per_block is not None)"
        ),
        enough=Relation(f"chip_generation >= {FIRST_GENERATION}"),
        message="the kernel is for v4 and later",
        explanation=(
            "Without both blocks upstream raises a NotImplementedError: 'TPU version must be 4 or higher.' With them, "
            "it is unproven."
        ),
        argument="q",
        on_tpu=True,
        symptoms=(Symptom("TPU version must be 4 or higher.", Seen.NAMED),),
        example=Example(
            {"\n    num_kv_pages_per_block=8, num_queries_per_block=32,": ""},
            {"\n    num_kv_pages_per_block=8, num_queries_per_block=32,": ""},
            chip="v3",
            moved_to="v4",
        ),
    ),
    Rule(
        "SC309",
        "pages-hbm",
        _HBM_NEEDED,
        enough=_HBM_ENOUGH,
        message="the pages must fit into the memory of one device",
        explanation=(
            "Only what this call takes is counted: the model is not. A v4 that is not in megacore mode has half of the memory."
        ),
        argument="kv_pages",
        advice=used(RAGGED_SPACES["hbm"][0], Relation("hbm_bytes")),
        on_tpu=True,
        symptoms=HBM_FULL,
        example=Example({"(64, 32, 8, 128)": "(300_000, 32, 8, 128)"}, chip="v5e"),
    ),
    Rule(
        "SC310",
        "pages-dtype",
        Relation(
            "(kv_pages_dtype not in ('uint8', 'uint16', 'uint4') or k_scale is not None)"
            " and (kv_pages_dtype != 'int16' or k_scale is not None or chip_generation < 7)"
            " and (kv_pages_dtype not in ('float8_e4m3fn', 'float8_e5m2') or k_scale is not None or chip_generation > 4)"
        ),
        enough=Relation(f"kv_pages_dtype in {_COMMON}"),
        message="on a TPU, pages must be of a dtype that the compiler can multiply",
        explanation=(
            "Without scales, unsigned pages are a NotImplementedError of the lowering, and int16 fails on v7x: 'Integer inputs "
            "with bitwidth 16 are not supported as matmul/accumulator inputs'; a v4 cannot multiply floats of 8 bits: "
            "'Unsupported matmul RHS type on target'. float32, bfloat16 and int8 compile on all chips, and float8_e4m3fn and "
            "float8_e5m2 with scales, for which 1.0 will do; of other dtypes it is not known."
        ),
        argument="kv_pages",
        on_tpu=True,
        symptoms=(
            Symptom("Unsigned integer dtype {kv_pages_dtype} is not supported for dot_general", Seen.NAMED),
            Symptom("Integer inputs with bitwidth 16 are not supported as matmul/accumulator inputs", Seen.NAMED),
            Symptom("Unsupported matmul RHS type on target", Seen.NAMED),
        ),
        example=Example({"8, 128), jnp.bfloat16": "8, 128), jnp.uint8"}, chip="v5e"),
    ),
    Rule(
        "SC312",
        "head-dim-strided",
        Relation(f"head_dim % {LANES} != 0 or head_dim == {LANES} or num_combined_kv_heads == packing", HEADS),
        message=f"on a TPU, head_dim must be {LANES}, unless the combined heads fill one row of 32 bits",
        explanation=(
            "The keys of one head are read with a stride, and Mosaic has that for 128 lanes only: 'Not Implemented: The last dim "
            "size is not 128 in original base memref'."
        ),
        argument="kv_pages",
        on_tpu=True,
        symptoms=(Symptom("The last dim size is not 128 in original base memref", Seen.NAMED),),
        example=Example({"128), jnp": "256), jnp"}),
    ),
    Rule(
        "SC313",
        "query-heads-tile",
        Relation("not in_parts or few_kv_heads == num_combined_kv_heads or q_heads % 8 == 0", HEADS),
        message="on a TPU, the query heads of a tile of KV heads must be a multiple of 8, or all of them",
        explanation=(
            "Pages of float32 with more than 8 combined heads are dealt with 8 at a time; with one query head for each KV head "
            "that makes 4 query heads. Lowering raises a ValueError: 'the last two dimensions of your block shape are divisible "
            "by 8 and 128 respectively'."
        ),
        argument="q",
        on_tpu=True,
        symptoms=(Symptom(f"{BLOCK_SHAPE}({{...}}), array shape ({{max_num_batched_tokens}}, {{num_q_heads}}, {{head_dim}})"),),
        example=Example(
            {"(64, 32, 128)": "(64, 8, 128)", "(64, 32, 8, 128), jnp.bfloat16": "(64, 32, 16, 128), jnp.float32"},
            {"(64, 32, 128)": "(64, 16, 128)", "(64, 32, 8, 128), jnp.bfloat16": "(64, 32, 16, 128), jnp.float32"},
        ),
    ),
)
