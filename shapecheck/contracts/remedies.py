"""What makes calls of paged attention legal: the values that fixes offer, best first, and the words of advice."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shapecheck.arguments import ArrayArgument
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.plan import divisors
from shapecheck.rule import Computed, Fix, Resize

_MODES = ("kv_head", "batch", None)


def _is_count(*values: Any) -> bool:
    return all(isinstance(value, int) and value >= 1 for value in values)


def _blocks(values: Values) -> Iterator[int]:
    """The divisors of the page count: those not above the present block from the largest down, then the others."""
    pages: Any = values.get("pages_per_sequence")
    block: Any = values.get("pages_per_compute_block")
    if _is_count(pages):
        block = max(1, int(block)) if isinstance(block, int | float) and math.isfinite(block) else pages
        legal = divisors(pages)
        yield from (divisor for divisor in reversed(legal) if divisor <= block)
        yield from (divisor for divisor in legal if divisor > block)


def _modes(values: Values) -> Iterator[str | None]:
    """The mode that was meant, then the other one, then none at all, which is always legal."""
    present = values.get("megacore_mode", UNKNOWN)
    meant = _meant(present)
    yield from meant
    yield from (mode for mode in ("batch", "kv_head") if mode not in (present, *meant))
    if None not in meant:
        yield None


def _meant(mode: Any) -> list[str | None]:
    """The modes that are spelled much like a word that is none."""
    if not isinstance(mode, str) or mode in _MODES:
        return []
    words = {"kv_head": "kv_head", "kv_heads": "kv_head", "kv": "kv_head", "batch": "batch", "none": None, "": None}
    near = [words[word] for word in difflib.get_close_matches(mode.lower().replace("-", "_"), words, cutoff=0.7)]
    return list(dict.fromkeys(near))


def _is_meant(present: Any, mode: Any) -> bool:
    """Say whether `mode` is what to write for the present one: any legal one for a mode, the one that was meant for a typo."""
    return present in _MODES or mode in _meant(present)


def _head_counts(values: Values) -> list[int]:
    """The divisors of the query heads, those nearest to the present KV heads first."""
    query: Any = values.get("num_q_heads")
    present: Any = values.get("num_kv_heads")
    return sorted(divisors(query), key=lambda heads: abs(heads - present)) if _is_count(query, present) else []


def _caps(values: Values) -> Iterator[None]:
    """No cap at all."""
    yield None


BLOCK_FIX = Fix(
    "pages_per_compute_block",
    "blocks",
    _blocks,
    computed=Computed(
        "largest_divisor",
        ("pages_per_sequence",),
        limit="at_most",
        note="a prime page count gives 1: pad page_indices then (kernel.pad_page_indices)",
    ),
)
MODE_FIX = Fix(
    "megacore_mode",
    "modes",
    _modes,
    evident=_is_meant,
    computed=Computed("megacore_mode_for", ("num_kv_heads", "batch_size"), imports_jax=True),
)
HEADS_FIX = Resize("num_kv_heads", _head_counts)
CAP_FIX = Fix("attn_logits_soft_cap", "caps", _caps, lambda present, value: present == 0 or present in (math.inf, -math.inf))


def padding(values: Values) -> str | None:
    """Advice that gives the page count that the present block divides."""
    pages: Any = values.get("pages_per_sequence")
    block: Any = values.get("pages_per_compute_block")
    if not _is_count(pages, block):
        return None
    return f"pad page_indices to {-(-pages // block) * block} pages (kernel.pad_page_indices)"


def kv_heads(values: Values) -> str | None:
    """Advice that lists the divisors of the query heads."""
    query: Any = values.get("num_q_heads")
    return f"legal num_kv_heads: {', '.join(map(str, divisors(query)))}" if _is_count(query) else None


def shape_of(argument: str, *axes: str) -> Any:
    """Advice that gives the shape `argument` must have, with the sizes that are known."""

    def advice(values: Values) -> str:
        sizes = [size if _is_count(size := values.get(axis)) else axis for axis in axes]
        return f"{argument} of shape ({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"

    return advice


def shapes_of(arrays: Sequence[ArrayArgument], **sizes: str) -> Callable[[Values], str | None]:
    """Advice that gives the shape of each argument that has another rank; `sizes` are the axes of which there is one size."""

    def advice(values: Values) -> str | None:
        wrong = [array for array in arrays if values.get(f"{array.name}_rank", UNKNOWN) not in (UNKNOWN, len(array.axes))]
        return (
            ", ".join(f"{array.name} of shape ({', '.join(sizes.get(axis, axis) for axis in array.axes)})" for array in wrong)
            or None
        )

    return advice


def most_tokens(columns: str) -> Callable[[Values], str | None]:
    """Advice that gives the lengths that a page table with so many columns has room for."""

    def advice(values: Values) -> str | None:
        pages, page_size = values.get(columns), values.get("page_size")
        if not isinstance(pages, int) or not isinstance(page_size, int):
            return None
        return f"at least 0, at most {pages * page_size} = {columns} * page_size ({pages} * {page_size})"

    return advice
