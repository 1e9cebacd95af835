"""Geometries to ask the compiler about, and how one that is wrong is made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

from shapecheck import Verdict, judge, largest_divisor
from shapecheck.chip import chip_of

Geometry: TypeAlias = dict[str, Any]

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
_BYTES = {"bfloat16": 2, "float32": 4, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2}
_SIZES = (
    "batch_size",
    "num_kv_heads",
    "pages_per_sequence",
    "pages_per_compute_block",
    "page_size",
    "head_dim",
    "total_num_pages",
)


def anywhere(random: Random, chip: str = "") -> Geometry:
    """Draw a geometry such as people write, a few of them crooked, for this chip or any."""
    heads = random.choice([1, 2, 4, 8, 16])
    page_size = random.choice([1, 4, 8, 16, 32, 64, 128])
    block = random.choice([1, 1, 2, 3, 4, 8, 16, 32])
    pages_dtype = random.choice(list(_BYTES))
    return {
        "chip": chip or random.choice(CHIPS),
        "batch_size": random.choice([1, 2, 3, 8, 64]),
        "num_q_heads": heads * random.choice([1, 2, 4, 5, 7, 8, 16]) + random.choice([0, 0, 0, 0, 1]),
        "num_kv_heads": heads,
        "head_dim": random.choice([128, 128, 128, 128, 256, 256, 64, 192]),
        "page_size": page_size,
        "pages_per_sequence": block * random.choice([1, 2, 8, 64]) + random.choice([0, 0, 0, 0, 1]),
        "total_num_pages": random.choice([16, 256]),
        "pages_per_compute_block": block,
        "megacore_mode": random.choice([None, None, "kv_head", "batch"]),
        "q_dtype": random.choice(["bfloat16", "float32", "float16"]),
        "pages_dtype": pages_dtype,
        "scales_dtype": random.choice([None, "bfloat16", "float32"]) if pages_dtype == "int8" else None,
        "inline_seq_dim": random.random() < 0.8,
        "attn_logits_soft_cap": random.choice([None, 30.0]),
    }


def fill_smem(random: Random, geometry: Geometry) -> Geometry:
    """Return the geometry with a page table that nearly fills scalar memory."""
    batch = random.choice([1, 8, 64, 512])
    pages = int((chip_of(geometry["chip"]).smem_bytes // 4 - batch) * random.uniform(0.99, 1.005)) // batch
    return geometry | {"batch_size": batch, "pages_per_sequence": pages, "pages_per_compute_block": largest_divisor(pages, 4)}


def at_the_edge(random: Random) -> Geometry:
    """Draw a geometry whose page table, or whose compute block, nearly fills the memory that it goes to."""
    geometry = anywhere(random)
    chip = chip_of(geometry["chip"])
    dtype = random.choice(["bfloat16", "float32", "int8", "float8_e4m3fn"])
    scales = geometry["scales_dtype"] if dtype == "int8" else None
    heads = geometry["num_kv_heads"]
    geometry |= {
        "head_dim": random.choice([128, 128, 256, 512]),
        "pages_dtype": dtype,
        "scales_dtype": scales,
        "q_dtype": "bfloat16",
    }
    geometry |= {"num_q_heads": heads * random.choice([1, 4, 7, 8, 9, 16, 32]), "megacore_mode": None}
    if random.random() < 0.3:
        return fill_smem(random, geometry)
    token = 4 * geometry["head_dim"] * (_BYTES[dtype] + (_BYTES[scales] if scales else 0))
    page_size = random.choice([64, 128, 256, 512])
    copies = 2 if chip.generation == 4 and _BYTES[dtype] == 1 else 1
    block = max(1, int(chip.vmem_bytes // token / copies * random.uniform(0.9, 1.02)) // page_size)
    return geometry | {"page_size": page_size, "pages_per_sequence": block, "pages_per_compute_block": block}


def cheap(random: Random, chip: str) -> Geometry:
    """Draw a geometry about which upstream's own checks, which are tested elsewhere, do not spare the compiler the question.

    A quarter nearly fills scalar memory, which costs nothing; what nearly fills vector memory takes too long.
    """
    while True:
        geometry = anywhere(random, chip)
        if random.random() < 0.25:
            geometry = fill_smem(random, geometry)
        if is_legal_upstream(geometry):
            return geometry


def smaller(geometry: Geometry) -> Iterator[Geometry]:
    """Yield geometries that are simpler in one respect."""
    for name, value in {"attn_logits_soft_cap": None, "inline_seq_dim": True, "megacore_mode": None, "batch_size": 1}.items():
        if geometry[name] != value:
            yield geometry | {name: value}
    if (heads := geometry["num_kv_heads"]) > 1 and geometry["num_q_heads"] % heads == 0:
        yield geometry | {"num_kv_heads": 1, "num_q_heads": geometry["num_q_heads"] // heads}
    for name in _SIZES:
        if geometry[name] > 1:
            yield geometry | {name: geometry[name] // 2}
            yield geometry | {name: geometry[name] - 1}


def shrunk(
    geometry: Geometry, smaller: Callable[[Geometry], Iterator[Geometry]], wrong: Callable[[Geometry], bool], *, tries: int = 60
) -> Geometry:
    """Return a geometry that is still wrong, and none of the simpler ones that were tried is."""
    while tries > 0:
        for each in smaller(geometry):
            tries -= 1
            if wrong(each):
                geometry = each
                break
            if tries <= 0:
                break
        else:
            break
    return geometry


def is_legal_upstream(geometry: Geometry) -> bool:
    """Say whether the compiler would be asked at all: upstream's own checks are cheap, and tested elsewhere."""
    found = judge("paged_attention", **geometry)
    return all(verdict is not Verdict.VIOLATED for code, verdict in found.items() if code < "SC204")
