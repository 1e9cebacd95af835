"""How much memory of a TPU one call of `paged_attention` takes, in the language of relations, and what would fit.

Bounds on what the compiler takes were read off what libtpu 0.0.42 and 0.0.50 say of calls that compile, and of those that do not;
no verdict of theirs on the 3,369 recorded calls of 0.0.52 is wrong. The kernel unrolls a whole block: beside its buffers and
windows it keeps the scores, one register of 4 KiB for 8 query heads and 128 tokens, of which the registers of a core hold some;
and copies of pages that a chip cannot use as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from shapecheck.outcome import UNKNOWN, Values
from shapecheck.plan import divisors
from shapecheck.relation import Relation

SMEM: Mapping[str, str] = {
    "lengths_bytes": "(batch_size + 127) // 128 * 512",
    "table_bytes": "(batch_size * pages_per_sequence + 127) // 128 * 512",
    # Two more scalars, 512 bytes each, and the spill slots of scalar registers.
    "least_smem_bytes": "lengths_bytes + table_bytes + 2560",
    "most_smem_bytes": "lengths_bytes + table_bytes + 5120",
}

_PAGES: Mapping[str, str] = {
    # A page in rows of whole tiles: of 8, or of 4, 2 or 1. A row has at least 32 bits a lane.
    "page_rows": "(page_size + 7) // 8 * 8 if page_size > 4 else 4 if page_size > 2 else page_size",
    "k_page_bits": "max(page_rows * k_pages_bits, 32) * head_dim",
    "v_page_bits": "max(page_rows * v_pages_bits, 32) * head_dim",
    # Upstream broadcasts scales to head_dim before it calls the kernel.
    "scales_page_bits": "page_rows * (k_pages_scales_bits + v_pages_scales_bits) * head_dim",
}

VMEM: Mapping[str, str] = {
    **_PAGES,
    "group": "num_q_heads // num_kv_heads",
    "block_tokens": "page_size * pages_per_compute_block",
    # Two of each: one is filled while the other is used.
    "buffer_bytes": "pages_per_compute_block * (k_page_bits + v_page_bits + scales_page_bits) // 4",
    # Two of each: of q, the result, the running maximum and the running sum.
    "window_bytes": "group * (16 * head_dim + 2048)",
    "score_bytes": "(group + 7) // 8 * 32 * block_tokens",
    # A v4 keeps 8-bit pages as bfloat16, and of bfloat16 scales at least the half of that. Where head_dim is above 128, the two
    # of v5 keep some of the values, but for bfloat16.
    "v4_pages_copy_bytes": "2 * head_dim * block_tokens * ((1 if k_pages_bits < 16 else 0) + (1 if v_pages_bits < 16 else 0))",
    "v4_copy_bytes": "v4_pages_copy_bytes * 3 // 2 if k_pages_scales_bits == v_pages_scales_bits == 16 else v4_pages_copy_bytes",
    "v5_copy_bytes": "0 if head_dim <= 128 or k_pages_bits == v_pages_bits == 16 else 512 * block_tokens",
    "copy_bytes": "v4_copy_bytes if chip_generation == 4 else v5_copy_bytes if chip_generation == 5 else 0",
    # What stays in registers is not in memory: there are 32 of 4 KiB on v4, 64 since.
    "least_register_bytes": "131072 if chip_generation == 4 else 262144",
    "least_vmem_bytes": "buffer_bytes + 1024 + max(0, score_bytes + copy_bytes - least_register_bytes)",
    # What comes on top is known less well for many query heads, for narrow elements, and where pages do not fill tiles.
    "group_slack": (
        "0 if group <= 8 else window_bytes + 131072 if group <= 16 and head_dim == 128"
        " else 2 * window_bytes + score_bytes + 524288"
    ),
    # On a v4 there may be two copies, of scales or of other floats of 8 bits; of these no version makes two.
    "v4_copies_once": (
        "k_pages_dtype in ('int8', 'uint8', 'float8_e4m3fn') and v_pages_dtype in ('int8', 'uint8', 'float8_e4m3fn')"
        " and k_pages_scales_bits == v_pages_scales_bits == 0"
    ),
    "v4_copy_slack": "512 * head_dim + (v4_copy_bytes // 32 if v4_copies_once else v4_pages_copy_bytes)",
    "copy_slack": "v4_copy_slack if chip_generation == 4 else copy_bytes // 2 if k_pages_scales_bits > 0 else 0",
    # A block of few tokens is not worked through in parts: the compiler may keep more of it.
    "block_slack": "4 * head_dim * block_tokens if block_tokens < 2048 and head_dim > 128 else 0",
    # libtpu 0.0.52 keeps more of a head_dim above 128 on a v7x than those before it.
    "v7_slack": "128 * block_tokens if chip_generation >= 7 and head_dim > 128 else 0",
    "page_slack": (
        "(48 * head_dim * block_tokens + 524288) if page_size < 8 or min(k_pages_bits, v_pages_bits) < 8"
        " else (16 * head_dim * block_tokens + 524288) if page_size % 8 != 0 else 0"
    ),
    "most_vmem_bytes": (
        "buffer_bytes + 2 * window_bytes + 32768 + score_bytes + copy_bytes"
        " + group_slack + copy_slack + block_slack + v7_slack + page_slack"
    ),
}

HBM: Mapping[str, str] = {
    **_PAGES,
    "elements": "num_kv_heads * total_num_pages * page_size * head_dim",
    "least_hbm_bytes": "elements * (k_pages_bits + v_pages_bits + k_pages_scales_bits + v_pages_scales_bits) // 8",
    # The scales that are given, q and its copies, the table, and 256 MiB for the program.
    "other_hbm_bytes": (
        "num_kv_heads * total_num_pages * page_size * (k_pages_scales_bits + v_pages_scales_bits) // 8"
        " + 16 * batch_size * (num_q_heads * head_dim + pages_per_sequence) + 268435456"
    ),
    "most_hbm_bytes": "num_kv_heads * total_num_pages * (k_page_bits + v_page_bits + scales_page_bits) // 8 + other_hbm_bytes",
}

CACHE: Mapping[str, str] = {
    **HBM,
    # What stays between the calls, of one layer: scales as they are given, of which only a call makes more.
    "tokens": "num_kv_heads * total_num_pages * page_size",
    "layer_bytes": ("(elements * (k_pages_bits + v_pages_bits) + tokens * (k_pages_scales_bits + v_pages_scales_bits)) // 8"),
    "cache_bytes": "num_layers * layer_bytes",
    # The call of one layer, while all the others wait.
    "least_model_bytes": "cache_bytes + elements * (k_pages_scales_bits + v_pages_scales_bits) // 8",
}
"""What a model keeps in the memory of one device, by `num_layers`: no call knows of them."""


_THERE = {
    "smem": ("smem_bytes", "smem_bytes"),
    "vmem": ("vmem_bytes", "vmem_bytes"),
    # The compiler of 0.0.42 keeps up to 16 MiB less of it for itself than later ones, on which the table of chips rests. Of a v4,
    # a device may be one core, with half of the memory.
    "hbm": ("hbm_bytes + 16777216", "(hbm_bytes // 2 if chip_generation == 4 else hbm_bytes)"),
}


def within(space: str, defined: Mapping[str, str]) -> tuple[Relation, Relation]:
    """Return what must hold for a call to fit into a memory, and what is enough for it, by the formulas of its bounds."""
    most, certain = _THERE[space]
    return Relation(f"least_{space}_bytes <= {most}", defined), Relation(f"most_{space}_bytes <= {certain}", defined)


SMEM_NEEDED, SMEM_ENOUGH = within("smem", SMEM)
VMEM_NEEDED, VMEM_ENOUGH = within("vmem", VMEM)
HBM_NEEDED, HBM_ENOUGH = within("hbm", HBM)
CACHE_NEEDED = Relation("least_model_bytes <= hbm_bytes", CACHE)
LAYER_BYTES, CACHE_BYTES = (Relation(name, CACHE) for name in ("layer_bytes", "cache_bytes"))


Spaces: TypeAlias = Mapping[str, tuple[Relation, Relation]]
"""By memory, the bytes that a call takes of it, at least and at most."""


def spaces(**formulas: Mapping[str, str]) -> Spaces:
    """Return the bounds that the formulas of each memory define."""
    return {
        space: (Relation(f"least_{space}_bytes", defined), Relation(f"most_{space}_bytes", defined))
        for space, defined in formulas.items()
    }


SPACES = spaces(smem=SMEM, vmem=VMEM, hbm=HBM)


def bounds(values: Values, of: Spaces = SPACES) -> dict[str, tuple[int, int]]:
    """Return the bytes that a call takes of each memory, at least and at most; of one that cannot be told, nothing."""
    found = {space: (least.value(values), most.value(values)) for space, (least, most) in of.items()}
    return {space: pair for space, pair in found.items() if UNKNOWN not in pair}


def smem_advice(values: Values) -> str | None:
    """Say what the page table takes, and for how many sequences it would fit."""
    batch: Any = values.get("batch_size")
    rows = _largest("batch_size", range(1, batch), SMEM_ENOUGH, values) if isinstance(batch, int) else None
    return _advice("smem", values, "largest batch_size", rows)


def vmem_advice(values: Values) -> str | None:
    """Say what the block takes, and which one would fit."""
    pages: Any = values.get("pages_per_sequence")
    blocks = divisors(pages) if isinstance(pages, int) and pages >= 1 else ()
    block = _largest("pages_per_compute_block", blocks, VMEM_ENOUGH, values)
    return _advice("vmem", values, "largest legal block", block)


def hbm_advice(values: Values) -> str | None:
    """Say what the pages take."""
    return _advice("hbm", values)


def _largest(name: str, sizes: Iterable[int], enough: Relation, values: Values) -> int | None:
    return max((size for size in sizes if enough.evaluate({**values, name: size}) is True), default=None)


def used(taken: Relation, there: Relation) -> Callable[[Values], str | None]:
    """Advice that says how much of a memory is taken."""

    def advice(values: Values) -> str | None:
        bytes_taken, of = taken.value(values), there.value(values)
        return None if UNKNOWN in (bytes_taken, of) else f"at least {bytes_taken:,} of {of:,} bytes are taken"

    return advice


def _advice(space: str, values: Values, what: str = "", best: int | None = None) -> str | None:
    said = used(SPACES[space][0], Relation(f"{space}_bytes"))(values)
    return "; ".join([*filter(None, [said]), *([f"{what}: {best}"] if best else [])]) or None
