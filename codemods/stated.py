"""The options that state a call to the compiler, and what reads them and others of its command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
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


class Option(NamedTuple):
    """An option that states one name of the contract.

    Attributes:
        name: the name.
        read: what reads its value.
        help: its help.
        default: the value where neither the option nor a source states it; None: it has none, or follows from others.
    """

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any = None


GEOMETRY = {
    "--batch": Option("batch_size", _size, "rows of q", 8),
    "--q-heads": Option("num_q_heads", _size, "query heads", 32),
    "--kv-heads": Option("num_kv_heads", _size, "KV heads", 8),
    "--head-dim": Option("head_dim", _size, "elements of a head", 128),
    "--page-size": Option("page_size", _size, "tokens of a page", 16),
    "--pages-per-sequence": Option("pages_per_sequence", _size, "columns of page_indices", 64),
    "--total-pages": Option("total_num_pages", _size, "pages of the cache [batch times pages per sequence]"),
    "--block": Option("pages_per_compute_block", _size, "pages of a compute block [the largest that is legal, up to 8]"),
    "--megacore": Option("megacore_mode", _mode, "kv_head, batch or none [none]"),
    "--soft-cap": Option("attn_logits_soft_cap", float, "cap of the logits [none]"),
    "--q-dtype": Option("q_dtype", _dtype, "dtype of q", "bfloat16"),
    "--pages-dtype": Option("pages_dtype", _dtype, "dtype of the pages [bfloat16, int8 with --scales-dtype]"),
    "--scales-dtype": Option("scales_dtype", _scales, "dtype of the scales of quantized pages [none: plain pages]"),
}
"""The options that state a call."""


def add_call(parser: argparse.ArgumentParser) -> None:
    """Add the options that state a call, or name one; those that are not given leave no trace."""
    group = parser.add_argument_group("call", "of JAX's paged_attention; what is left out is as in brackets, or as --call has it")
    for flag, (name, read, words, default) in GEOMETRY.items():
        words += "" if default is None else f" [{default}]"
        group.add_argument(flag, dest=name, type=read, metavar=_METAVARS[read], default=argparse.SUPPRESS, help=words)
    group.add_argument(
        "--no-inline-seq-dim", dest="inline_seq_dim", action="store_false", default=argparse.SUPPRESS, help="a grid over blocks"
    )
    group.add_argument("--call", type=_place, metavar="FILE:LINE", help="take the sizes from this call, as `check` knows them")
    group.add_argument(
        "--mesh",
        type=_mesh,
        metavar="data=M,model=N",
        help="split the batch M ways and the heads N ways, over M * N devices, by shard_map; one of the two will do",
    )


def add_compiler(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to ask."""
    group = parser.add_argument_group("compiler")
    group.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for each call; default: 120")
    group.add_argument("--jobs", type=positive, metavar="N", help="compile so many at a time; default: one for two cores")
    group.add_argument("--no-cache", action="store_true", help="ask anew, and keep nothing")
