"""The sizes of a call, from the operands that the compiler shows of it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from shapecheck.contract import Contract
from shapecheck.dtypes import SHORT_NAMES

_LISTED = re.compile(r"operand_layout_constraints=\{((?:[a-z]\w*\[(?:\d{1,15},?)*\](?:\{[^{}]*\})?(?:, )?)+)\}")
_OPERAND = re.compile(r"([a-z]\w*)\[([\d,]*)\]")


class _Operand(NamedTuple):
    dtype: str
    shape: tuple[int, ...]


def operands(contract: Contract, message: str) -> dict[str, Any]:
    """Return the names of the contract that the operands in a message of the compiler tell; none where it shows none of its call.

    Pallas hands the kernel what it prefetches first; of q it may have made float32, with an axis of 1.
    """
    reader = {"paged_attention": _paged, "ragged_paged_attention": _ragged}.get(contract.name)
    listed = _LISTED.search(message)
    if reader is None or listed is None:
        return {}
    return reader([_operand(*each) for each in _OPERAND.findall(listed[1])])


def _operand(dtype: str, sizes: str) -> _Operand:
    return _Operand(SHORT_NAMES.get(dtype, dtype), tuple(int(size) for size in sizes.split(",") if size))


def _paged(listed: list[_Operand]) -> dict[str, Any]:
    match listed:
        case [(_, (batch,)), (_, (entries,)), (_, (1,)), (_, (1,)), (q_dtype, (rows, heads, *ones, head_dim)), *pages] if (
            batch and rows == batch and entries % batch == 0 and ones in ([], [1])
        ):
            values: dict[str, Any] = {
                "batch_size": batch,
                "pages_per_sequence": entries // batch,
                "num_q_heads": heads,
                "head_dim": head_dim,
                **({} if ones else {"q_dtype": q_dtype}),
            }
        case _:
            return {}
    match pages:
        case [(k_dtype, (kv_heads, total, size, dim)), (v_dtype, shape)] if dim == head_dim and shape == pages[0].shape:
            scales: tuple[str | None, str | None] = (None, None)
        case [(k_dtype, (kv_heads, total, size, dim)), (k_scales, _), (v_dtype, shape), (v_scales, _)] if (
            dim == head_dim and shape == pages[0].shape
        ):
            scales = (k_scales, v_scales)
        case _:
            return {}
    return {
        **values,
        "num_kv_heads": kv_heads,
        "total_num_pages": total,
        "page_size": size,
        "k_pages_dtype": k_dtype,
        "v_pages_dtype": v_dtype,
        "k_pages_scales_dtype": scales[0],
        "v_pages_scales_dtype": scales[1],
    }


def _ragged(listed: list[_Operand]) -> dict[str, Any]:
    match listed:
        case [
            (_, (sequences,)),
            (_, (rows, pages)),
            (_, (offsets,)),
            (_, (2,)),
            (_, (1,)),
            (q_dtype, (tokens, heads, head_dim)),
            (kv_dtype, (total, size, combined, dim)),
        ] if rows == sequences == offsets - 1 and dim == head_dim:
            return {
                "max_num_seqs": sequences,
                "pages_per_seq": pages,
                "max_num_batched_tokens": tokens,
                "num_q_heads": heads,
                "head_dim": head_dim,
                "q_dtype": q_dtype,
                "total_num_pages": total,
                "page_size": size,
                "num_combined_kv_heads": combined,
                "kv_pages_dtype": kv_dtype,
            }
        case _:
            return {}
