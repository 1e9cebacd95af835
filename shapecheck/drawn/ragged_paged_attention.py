"""Calls of `ragged_paged_attention`."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shapecheck.drawn.drawing import Drawing, Geometry, drawn, larger, one_more_than_a_multiple, other_head_dim
from shapecheck.outcome import Values

_LEAST_HEADS = {"float32": 2, "bfloat16": 2, "int8": 4}  # combined ones, which fill a row of 32 bits


@st.composite
def _legal(draw: st.DrawFn, most: int) -> Geometry:
    dtype = draw(st.sampled_from(list(_LEAST_HEADS)))
    combined = draw(st.sampled_from([heads for heads in (2, 4, 8, 16) if _LEAST_HEADS[dtype] <= heads <= max(4, 2 * most)]))
    rows = draw(st.integers(1, most))
    pages = draw(st.integers(1, 2 * most))
    blocks = draw(st.none() | st.tuples(st.integers(1, pages), st.sampled_from([1, 4, 8, 16])))
    scales = draw(st.sampled_from([None, 0.5])) if dtype != "int8" else 0.5
    return {
        "max_num_batched_tokens": draw(st.integers(rows, 8 * most)),
        "num_q_heads": combined // 2 * draw(st.integers(1, most)),
        "head_dim": draw(st.sampled_from([128, 256])),
        "total_num_pages": draw(st.integers(1, 4 * most)),
        "page_size": draw(st.sampled_from([4, 8, 16, 32])),
        "num_combined_kv_heads": combined,
        "max_num_seqs": rows,
        "pages_per_seq": pages,
        "num_offsets": rows + 1,
        "num_counts": 1,
        "sliding_window": draw(st.sampled_from([None, 1, 16])),
        "soft_cap": draw(st.sampled_from([None, 1.0, 30.0])),
        "k_scale": scales,
        "v_scale": scales,
        "num_kv_pages_per_block": blocks and blocks[0],
        "num_queries_per_block": blocks and blocks[1],
        "q_dtype": draw(st.sampled_from(["float32", "bfloat16"])),
        "kv_pages_dtype": dtype,
        **dict.fromkeys(("kv_lens_dtype", "page_indices_dtype", "cu_q_lens_dtype", "num_seqs_dtype"), "int32"),
    }


def _odd_heads(draw: st.DrawFn, legal: Geometry) -> Geometry:
    return {"num_combined_kv_heads": legal["num_combined_kv_heads"] + 1}


def _heads_beside_tiles(draw: st.DrawFn, legal: Geometry) -> Geometry:
    kv_heads = draw(st.sampled_from([3, 5, 6, 7]))
    return {"num_combined_kv_heads": 2 * kv_heads, "num_q_heads": kv_heads * draw(st.integers(1, 4))}


def _one_scale(draw: st.DrawFn, legal: Geometry) -> Geometry | None:
    return {"k_scale": 0.5, "v_scale": None} if legal["q_dtype"] != legal["kv_pages_dtype"] else None


def _elements(rng: np.random.Generator, values: Values) -> dict[str, Any]:
    """As many sequences as there are rows, or fewer, each of one query at least; ids of pages.

    What stands behind them is what no sequence may have, as the kernel does not read it.
    """
    tokens: int = values["max_num_batched_tokens"]
    room = max(0, values["pages_per_seq"] * values["page_size"])
    count = min(int(rng.integers(1, max(1, values["max_num_seqs"]) + 1)), tokens) if room else 0
    ends = sorted(1 + rng.random(tokens).argsort()[:count])
    q_lens = [min(end - start, room) for start, end in pairwise([0, *ends])]
    return {
        "kv_lens": _beginning_with(rng.integers(q_lens, room + 1), values["kv_lens_shape"]),
        "page_indices": rng.integers(0, max(1, values["total_num_pages"]), values["page_indices_shape"]),
        "cu_q_lens": _beginning_with([0, *accumulate(q_lens)], values["cu_q_lens_shape"]),
        "num_seqs": np.full(values["num_seqs_shape"], count),
    }


def _beginning_with(numbers: Any, shape: tuple[int, ...]) -> Any:
    row = np.full(shape, -1)
    row[: len(numbers)] = numbers[: len(row)]
    return row


RAGGED_PAGED_ATTENTION = Drawing(
    legal=_legal,
    breaks={
        "SC101": lambda draw, legal: one_more_than_a_multiple(draw, legal, legal["num_combined_kv_heads"] // 2),
        "SC104": other_head_dim,
        "SC105": larger("kv_lens_max_num_seqs", "max_num_seqs"),
        "SC107": drawn("kv_lens_dtype", "int16", "uint32", "int8"),
        "SC108": drawn("page_indices_dtype", "int16", "uint32"),
        "SC110": drawn("num_kv_pages_per_block", 0, -1),
        "SC111": drawn("total_num_pages", 0),
        "SC113": drawn("soft_cap", 0.0, float("inf"), float("nan")),
        "SC114": drawn("mask_value", 0.0, 1.0),
        "SC115": drawn("q_dtype", "int32", "int8"),
        "SC121": _odd_heads,
        "SC122": _heads_beside_tiles,
        "SC123": larger("num_offsets", "num_offsets"),
        "SC124": drawn("cu_q_lens_dtype", "int16", "uint32"),
        "SC125": drawn("num_counts", 0, 2),
        "SC126": drawn("num_seqs_dtype", "float32"),
        "SC127": larger("num_kv_pages_per_block", "pages_per_seq"),
        "SC128": drawn("sliding_window", 0, -1),
        "SC129": lambda draw, legal: {"k_scale": 1, "v_scale": 1},
        "SC130": _one_scale,
        "SC131": drawn("num_queries_per_block", 0, -1),
        "SC132": drawn("vmem_limit_bytes", 0, -1),
        "SC301": drawn("head_dim", 64, 80, 192),
        "SC302": drawn("kv_pages_dtype", "float16"),
        "SC312": drawn("head_dim", 256),
    },
    elements=_elements,
)
