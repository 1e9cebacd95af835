"""The options that state a call to the compiler, and what reads them and others of its command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def _size(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no size: it must be a whole number")
    return int(text)


def positive(text: str) -> int:
    if (size := _size(text)) == 0:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return size


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def _dtype(text: str) -> str:
    if text not in DTYPES:
        from shapecheck.dtypes import SHORT_NAMES  # not needed where all is well

        word = text.rpartition(".")[2]  # of `jnp.bfloat16`
        word = SHORT_NAMES.get(word.lower(), word)
        meant = f" (did you mean {word!r}?)" if word in DTYPES else ""
        raise argparse.ArgumentTypeError(f"{text!r} is no dtype{meant}; known: {', '.join(DTYPES)}")
    return text


def _scales(text: str) -> str | None:
    return None if text.lower() == "none" else _dtype(text)


def _mode(text: str) -> str | None:
    return None if text.lower() == "none" else text


def _place(text: str) -> tuple[str, int]:
    path, colon, line = text.rpartition(":")
    if not colon or not path or not line.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no place such as src/serve.py:120")
    return path, int(line)


def _mesh(text: str) -> dict[str, int]:
    mesh: dict[str, int] = {}
    for part in text.split(","):
        axis, _, size = part.strip().partition("=")
        if axis not in MESH or axis in mesh or not size.isascii() or not size.isdigit() or int(size) == 0:
            axes = " and ".join(MESH)
            raise argparse.ArgumentTypeError(f"{text!r} is no mesh such as model=4 or data=2,model=4: its axes are {axes}")
        mesh[axis] = int(size)
    return mesh


MESH = ("data", "model")
DTYPES = (
    *("bfloat16", "float32", "float16", "int8", "int4", "uint8", "uint4", "int32"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
_METAVARS = {_size: "N", float: "X", _dtype: "DTYPE", _scales: "DTYPE", _mode: "MODE"}


class Name(NamedTuple):
    """What an option states of one kernel.

    Attributes:
        name: the name of its contract.
        default: the value where neither the option nor a source states it, or what makes it of the others; None: as in a call.
        times: how many of the contract's units one of the option's is.
    """

    name: str
    default: Any | Callable[[Mapping[str, Any]], Any] = None
    times: int = 1


class Option(NamedTuple):
    """An option that states one name of a contract.

    Attributes:
        names: what it states of each kernel that has it.
        read: what reads its value; None: it takes none, and states False.
        help: its help.
    """

    names: Mapping[str, Name]
    read: Callable[[str], Any] | None
    help: str


def _paged(name: str, default: Any = None) -> dict[str, Name]:
    return {"paged_attention": Name(name, default)}


def _ragged(name: str, default: Any = None, times: int = 1) -> dict[str, Name]:
    return {"ragged_paged_attention": Name(name, default, times)}


def _both(name: str, default: Any = None) -> dict[str, Name]:
    return _paged(name, default) | _ragged(name, default)


def _block(geometry: Mapping[str, Any]) -> int:
    from shapecheck.plan import largest_divisor  # which most runs do not need

    pages = geometry["pages_per_sequence"]
    return largest_divisor(pages, at_most=8) if pages else 1


_PAGES = _paged("total_num_pages", lambda each: each["batch_size"] * each["pages_per_sequence"]) | _ragged(
    "total_num_pages", lambda each: each["max_num_seqs"] * each["pages_per_seq"]
)
_PAGES_DTYPE = _paged("pages_dtype", lambda each: "int8" if each.get("scales_dtype") else "bfloat16") | _ragged(
    "kv_pages_dtype", "bfloat16"
)
_BLOCK = _paged("pages_per_compute_block", _block) | _ragged("num_kv_pages_per_block")

GEOMETRY = {
    "--batch": Option(_paged("batch_size", 8) | _ragged("max_num_seqs", 8), _size, "sequences: rows of page_indices"),
    "--q-heads": Option(_both("num_q_heads", 32), _size, "query heads"),
    "--kv-heads": Option(_paged("num_kv_heads", 8) | _ragged("num_combined_kv_heads", 16, times=2), _size, "KV heads"),
    "--head-dim": Option(_both("head_dim", 128), _size, "elements of a head"),
    "--page-size": Option(_both("page_size", 16), _size, "tokens of a page"),
    "--pages-per-sequence": Option(
        _paged("pages_per_sequence", 64) | _ragged("pages_per_seq", 64), _size, "columns of page_indices"
    ),
    "--total-pages": Option(_PAGES, _size, "pages of the cache [batch times pages per sequence]"),
    "--block": Option(_BLOCK, _size, "pages of a block [the largest that is legal, up to 8; a ragged kernel chooses itself]"),
    "--soft-cap": Option(_paged("attn_logits_soft_cap") | _ragged("soft_cap"), float, "cap of the logits [none]"),
    "--q-dtype": Option(_both("q_dtype", "bfloat16"), _dtype, "dtype of q"),
    "--pages-dtype": Option(_PAGES_DTYPE, _dtype, "dtype of the pages [bfloat16, int8 with --scales-dtype]"),
    "--scales-dtype": Option(_paged("scales_dtype"), _scales, "dtype of the scales of quantized pages [none: plain pages]"),
    "--megacore": Option(_paged("megacore_mode"), _mode, "kv_head, batch or none [none]"),
    "--no-inline-seq-dim": Option(_paged("inline_seq_dim"), None, "a grid over blocks"),
    "--tokens": Option(_ragged("max_num_batched_tokens", 256), _size, "queries of all sequences: rows of q"),
    "--query-block": Option(_ragged("num_queries_per_block"), _size, "queries of a block; with --block [chosen by the kernel]"),
    "--sliding-window": Option(_ragged("sliding_window"), _size, "tokens that a query sees [all]"),
    "--k-scale": Option(_ragged("k_scale"), float, "factor of the keys [none]"),
    "--v-scale": Option(_ragged("v_scale"), float, "factor of the values [none]"),
    "--vmem-limit": Option(_ragged("vmem_limit_bytes"), _size, "bytes of vector memory [the compiler's]"),
}
"""The options that state a call."""

CALLEES = tuple(dict.fromkeys(callee for option in GEOMETRY.values() for callee in option.names))


def options_of(callee: str) -> dict[str, Name]:
    """Return by flag what the options that a kernel has state of it."""
    return {flag: option.names[callee] for flag, option in GEOMETRY.items() if callee in option.names}


def kept(flag: str) -> str:
    """Return the name under which the value of an option is kept."""
    return flag.removeprefix("--").replace("-", "_")


def add_call(parser: argparse.ArgumentParser) -> None:
    """Add the options that state a call, or name one; those that are not given leave no trace."""
    group = parser.add_argument_group("call", "of a kernel of JAX; what is left out is as in brackets, or as --call has it")
    group.add_argument("--callee", choices=CALLEES, help=f"the kernel [{CALLEES[0]}]")
    group.add_argument("--call", type=_place, metavar="FILE:LINE", help="take the sizes from this call, as `check` knows them")
    group.add_argument(
        "--mesh",
        type=_mesh,
        metavar="data=M,model=N",
        help="split the batch M ways and the heads N ways, over M * N devices, by shard_map; one of the two will do",
    )
    groups = {CALLEES: group, **{(callee,): parser.add_argument_group(f"call of {callee} only") for callee in CALLEES}}
    for flag, (names, read, words) in GEOMETRY.items():
        default = next(iter(names.values()))
        stated = default.default is not None and not callable(default.default)
        words += f" [{default.default}]" if stated else ""
        takes: dict[str, Any] = {"type": read, "metavar": _METAVARS[read]} if read else {"action": "store_false"}
        groups[tuple(names)].add_argument(flag, dest=kept(flag), **takes, default=argparse.SUPPRESS, help=words)


def add_compiler(parser: argparse.ArgumentParser, *, caches: bool = True) -> None:
    """Add the options that say how to ask; without `caches`, all but the one about those."""
    group = parser.add_argument_group("compiler")
    group.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for each call; default: 120")
    group.add_argument("--jobs", type=positive, metavar="N", help="compile so many at a time; default: one for two cores")
    if caches:
        group.add_argument("--no-cache", action="store_true", help="ask anew, and keep nothing")
