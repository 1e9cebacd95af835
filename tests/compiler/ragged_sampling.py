"""Geometries of `ragged_paged_attention` to ask the compiler about; `sampling` has those of the other kernel."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from shapecheck import Verdict, judge
from shapecheck.chip import chip_of
from tests.compiler.sampling import CHIPS, Geometry

CALLEE = "ragged_paged_attention"
_DTYPES = ("bfloat16", "bfloat16", "bfloat16", "float32", "int8", "float8_e4m3fn", "float8_e5m2", "float16", "int4", "uint8")
_BYTES = {"bfloat16": 2, "float32": 4, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1}
_SIZES = (
    "num_queries_per_block",
    "num_kv_pages_per_block",
    "page_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "pages_per_seq",
    "total_num_pages",
)


def anywhere(random: Random, chip: str = "") -> Geometry:
    """Draw a geometry such as people write, a few of them crooked, for this chip or any."""
    combined = random.choice([2, 2, 4, 4, 8, 8, 16, 32])
    block = random.choice([1, 2, 3, 4, 8, 16])
    scale = random.choice([None, None, 0.5])
    return {
        "callee": CALLEE,
        "chip": chip or random.choice(CHIPS),
        "max_num_batched_tokens": random.choice([8, 64, 100, 512]),
        "num_q_heads": combined // 2 * random.choice([1, 2, 3, 4, 5, 7, 8, 16]) + random.choice([0, 0, 0, 0, 0, 0, 1]),
        "head_dim": random.choice([128, 128, 128, 128, 128, 128, 256, 64]),
        "total_num_pages": random.choice([16, 256]),
        "page_size": random.choice([1, 2, 4, 8, 16, 16, 32, 64]),
        "num_combined_kv_heads": combined,
        "max_num_seqs": random.choice([1, 4, 8, 64]),
        "pages_per_seq": block * random.choice([1, 2, 8]),
        "q_dtype": random.choice(["bfloat16", "bfloat16", "float32"]),
        "kv_pages_dtype": random.choice(_DTYPES),
        "sliding_window": random.choice([None, None, 128]),
        "soft_cap": random.choice([None, None, 30.0]),
        "k_scale": scale,
        "v_scale": scale,
        "num_kv_pages_per_block": block,
        "num_queries_per_block": random.choice([1, 2, 4, 8, 16, 32]),
        "vmem_limit_bytes": None,
    }


def fill_smem(random: Random, geometry: Geometry) -> Geometry:
    """Return the geometry with a page table that nearly fills scalar memory."""
    pages = random.choice([1, 100, 128, 129, 1000])
    rows = int((chip_of(geometry["chip"]).smem_bytes - 4096) // ((pages + 127) // 128 * 512 + 8) * random.uniform(0.97, 1.01))
    block = min(pages, geometry["num_kv_pages_per_block"])
    return geometry | {"max_num_seqs": rows, "pages_per_seq": pages, "num_kv_pages_per_block": block}


def at_the_edge(random: Random) -> Geometry:
    """Draw a geometry whose page table, or whose blocks, nearly fill the memory that they go to."""
    geometry = anywhere(random)
    if random.random() < 0.2:
        return fill_smem(random, geometry)
    dtype, group = random.choice(list(_BYTES)), random.choice([1, 2, 3, 4, 5, 7, 8, 16])
    combined, page_size = geometry["num_combined_kv_heads"], random.choice([16, 32, 64, 128, 256])
    geometry |= {
        "head_dim": 128,
        "kv_pages_dtype": dtype,
        "num_q_heads": combined // 2 * group,
        "page_size": page_size,
        "max_num_batched_tokens": 512,
        "vmem_limit_bytes": random.choice([None, None, None, 8 << 20, 24 << 20, 100 << 20]),
    }
    limit = geometry["vmem_limit_bytes"] or chip_of(geometry["chip"]).vmem_bytes
    queries = random.choice([1, 8, 16, 32, 64, 128, 256])
    kept = queries * group * combined // 2 * 128 * (8 + 4 + 4)  # the running maximum and sum, the result, windows
    token = 2 * min(combined, 32 // _BYTES[dtype]) * 128 * _BYTES[dtype]
    block = int(max(limit * random.uniform(0.2, 1.05) - kept, token) // (token * page_size)) or 1
    block = min(block, 4096 // page_size)  # what is unrolled further takes minutes
    return geometry | {"num_queries_per_block": queries, "num_kv_pages_per_block": block, "pages_per_seq": block}


def cheap(random: Random, chip: str) -> Geometry:
    """Draw a geometry about which upstream's own checks do not spare the compiler the question; an eighth fills scalar memory."""
    while True:
        geometry = anywhere(random, chip)
        if random.random() < 0.125:
            geometry = fill_smem(random, geometry)
        if is_legal_upstream(geometry) and _work(geometry) <= 1 << 16:
            return geometry


def _work(geometry: Geometry) -> int:
    """Return how many scores are unrolled, or nearly so."""
    tokens = max(128, geometry["page_size"] * geometry["num_kv_pages_per_block"])
    return tokens * max(8, geometry["num_queries_per_block"]) * geometry["num_q_heads"]


def smaller(geometry: Geometry) -> Iterator[Geometry]:
    """Yield geometries that are simpler in one respect."""
    for name in ("soft_cap", "sliding_window", "vmem_limit_bytes"):
        if geometry[name] is not None:
            yield geometry | {name: None}
    if geometry["k_scale"] is not None:
        yield geometry | {"k_scale": None, "v_scale": None}
    heads, combined = geometry["num_q_heads"], geometry["num_combined_kv_heads"]
    if combined > 2 and heads % combined == 0:
        yield geometry | {"num_q_heads": heads // 2, "num_combined_kv_heads": combined // 2}
    for name in _SIZES:
        if geometry[name] > 1:
            yield geometry | {name: geometry[name] // 2}
            yield geometry | {name: geometry[name] - 1}


def is_legal_upstream(geometry: Geometry) -> bool:
    """Say whether the compiler would be asked at all: upstream's own checks are cheap, and tested elsewhere."""
    stated = {name: value for name, value in geometry.items() if name != "callee"}
    return all(verdict is not Verdict.VIOLATED for code, verdict in judge(CALLEE, **stated).items() if code < "SC204")
