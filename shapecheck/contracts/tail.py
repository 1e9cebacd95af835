"""What stands behind the last token of a row, in the compute block that holds it: the kernel multiplies that by 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapecheck.measure import Arrays, Measure
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule

_FINITE = "<= 3.4028234663852886e38"

TAIL_RULE = Rule(
    "SC407",
    "tail-not-finite",
    Relation(f"abs(k_pages_tail) {_FINITE} and abs(v_pages_tail) {_FINITE}"),
    message="what follows the last token of a row, in the same compute block, must be finite",
    explanation=(
        "The kernel reads whole compute blocks. Behind a row's length it adds `mask_value` to the logits, and multiplies values "
        "by 0: a NaN in the keys or the values there makes the whole row NaN. So does an infinity in the values, and many a one "
        "in the keys. That is the rest of the last page, and the pages behind it up to the end of the block, padding included; "
        "later blocks are not read. Interpreted it is the same. XLA's implementation in `kernel` reads nothing there. Keep "
        "unused slots finite, e.g. 0."
    ),
    argument="k_pages",
    silent=True,
    example=Example({"v_pages, lengths": "v_pages.at[0, 0, 31].set(jnp.nan), lengths"}),
)


def tail_of(pages: str) -> Measure:
    """Return the element there that is farthest from 0, of the keys or of the values; NaN is farther than anything."""

    def find(xp: Any, arrays: Arrays, values: Mapping[str, Any]) -> tuple[Any, ...]:
        pool, lengths, table = _floats(arrays[pages]), arrays["lengths"], arrays["page_indices"]
        page_size, width = pool.shape[2], table.shape[1]
        block = page_size * values["pages_per_compute_block"]
        ends = xp.clip(lengths, 0, width * page_size)
        tokens = (ends // block * block)[:, None] + xp.arange(block)
        is_tail = (tokens >= ends[:, None]) & (ends % block != 0)[:, None]
        columns = xp.minimum(tokens // page_size, width - 1)
        ids = xp.clip(xp.take_along_axis(table, columns, 1), 0, pool.shape[1] - 1)
        slots = tokens % page_size
        elements = xp.where(is_tail[None, :, :, None], pool[:, ids, slots].astype("float32"), 0)
        head, row, token, index = xp.unravel_index(xp.argmax(xp.abs(elements)), elements.shape)
        number = elements[head, row, token, index]
        return number, head, ids[row, token], slots[row, token], index, row, ends[row]

    name = f"{pages}_tail"
    origin = f"the tail of {pages}"
    return Measure(name, origin, (pages, "lengths", "page_indices"), find, _place, needs=("pages_per_compute_block",))


def _floats(pages: Any) -> Any:
    """Return what of the pages may be NaN: of quantized ones the scales."""
    return getattr(pages, "scales", pages)


def _place(expression: str, pages: Any, head: int, page: int, slot: int, index: int, row: int, length: int) -> str:
    scales = ".scales" if hasattr(pages, "scales") else ""
    return f"{expression}{scales}[{head}, {page}, {slot}, {index}], behind the {length} tokens of row {row}"


TAILS = (tail_of("k_pages"), tail_of("v_pages"))
