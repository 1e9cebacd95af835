"""Calls of `paged_attention`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from shapecheck.drawn.drawing import Drawing, Geometry, drawn, larger, one_more_than_a_multiple, other_head_dim
from shapecheck.outcome import Values
from shapecheck.plan import divisors

_QUANTIZED = "float32"  # the dtype of the scales


@st.composite
def _legal(draw: st.DrawFn, most: int) -> Geometry:
    kv_heads = draw(st.integers(1, most))
    batch = draw(st.integers(1, most))
    pages = draw(st.integers(1, 2 * most))
    modes = [None, *(["kv_head"] if kv_heads % 2 == 0 else []), *(["batch"] if batch % 2 == 0 else [])]
    scales = draw(st.sampled_from([None, _QUANTIZED]))
    return {
        "batch_size": batch,
        "num_q_heads": kv_heads * draw(st.integers(1, most)),
        "num_kv_heads": kv_heads,
        "head_dim": draw(st.sampled_from([128, 256])),
        "total_num_pages": draw(st.integers(1, 4 * most)),
        "page_size": draw(st.sampled_from([4, 8, 16, 32])),
        "pages_per_sequence": pages,
        "pages_per_compute_block": draw(st.sampled_from(divisors(pages))),
        "megacore_mode": draw(st.sampled_from(modes)),
        "attn_logits_soft_cap": draw(st.sampled_from([None, 1.0, 30.0])),
        "q_dtype": draw(st.sampled_from(["float32", "bfloat16"])),
        "lengths_dtype": "int32",
        "page_indices_dtype": "int32",
        "pages_dtype": draw(st.sampled_from(["float32", "bfloat16"])) if scales is None else "int8",
        "scales_dtype": scales,
    }


def _block_beside(draw: st.DrawFn, legal: Geometry) -> Geometry | None:
    pages = legal["pages_per_sequence"]
    blocks = [block for block in range(1, 2 * pages + 2) if pages % block]
    return {"pages_per_compute_block": draw(st.sampled_from(blocks))}


def _elements(rng: np.random.Generator, values: Values) -> dict[str, Any]:
    """Lengths that the pages have room for, and ids of pages."""
    most = values["pages_per_sequence"] * values["page_size"]
    return {
        "lengths": rng.integers(0, max(0, most) + 1, values["lengths_shape"]),
        "page_indices": rng.integers(0, max(1, values["total_num_pages"]), values["page_indices_shape"]),
    }


PAGED_ATTENTION = Drawing(
    legal=_legal,
    breaks={
        "SC101": lambda draw, legal: one_more_than_a_multiple(draw, legal, legal["num_kv_heads"]),
        "SC102": _block_beside,
        "SC103": larger("v_pages_total_num_pages", "total_num_pages"),
        "SC104": other_head_dim,
        "SC105": larger("lengths_batch_size", "batch_size"),
        "SC106": larger("page_indices_batch_size", "batch_size"),
        "SC107": drawn("lengths_dtype", "int16", "uint32", "int8"),
        "SC108": drawn("page_indices_dtype", "int16", "uint8"),
        "SC110": drawn("pages_per_compute_block", 0, -1),
        "SC111": drawn("total_num_pages", 0),
        "SC113": drawn("attn_logits_soft_cap", 0.0, float("inf"), float("nan")),
        "SC114": drawn("mask_value", 0.0, 1.0),
        "SC115": drawn("q_dtype", "int32", "int8"),
        "SC201": lambda draw, legal: {"megacore_mode": "kv_head"} if legal["num_kv_heads"] % 2 else None,
        "SC202": lambda draw, legal: {"megacore_mode": "batch"} if legal["batch_size"] % 2 else None,
        "SC204": lambda draw, legal: {"megacore_mode": "batch"} if legal["batch_size"] % 2 == 0 else None,
        "SC301": drawn("head_dim", 64, 80, 192),
        "SC302": drawn("pages_dtype", "float16"),
    },
    elements=_elements,
)
