"""Calls that break a rule, put into files that other people wrote: what a fix may change there is known to the byte."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from codemods.source import Source, SourceError

_IMPORTS = """\
import jax.numpy as sown_jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as sown_kernel
sown = (sown_jnp.zeros((8, 32, 128)), *[sown_jnp.zeros((8, 192, 16, 128))] * 2, sown_jnp.zeros(8, "int32"))
sown_pages = sown_jnp.zeros((8, 24), "int32")
"""

BLOCK = "16"  # of 24 pages, which is wrong; it stands nowhere else in a call

CALLS = (
    "sown_kernel(*sown, sown_pages, pages_per_compute_block=16)",
    "sown_kernel(*sown, page_indices=sown_pages, pages_per_compute_block=16, megacore_mode=None, )",
    "sown_kernel(  # one\n    *sown,\n\n    sown_pages,\n    pages_per_compute_block=16,  # two\n    # three\n)",
    "sown_kernel ( *sown ,sown_pages,pages_per_compute_block  =  16 )",
    "( sown_kernel ) (*sown, sown_pages, pages_per_compute_block=(16))",
    "sown_kernel(*sown, \\\n    sown_pages, pages_per_compute_block = \\\n  16)",
    "sown_kernel(*sown, sown_pages, pages_per_compute_block=16).sum(axis=0)[::2] @ 'é あ \U0001f600'",
    "[0, {'é': sown_kernel(*sown, sown_pages, pages_per_compute_block=16)}]",
    "sown_out = sown_kernel(*sown, sown_pages, pages_per_compute_block=(sown_block := 16))",
    "sown_block = 16; sown_out = sown_kernel(*sown, sown_pages, pages_per_compute_block=sown_block)  # why",
    "sown_block, sown_other = 16, 1; sown_out = sown_kernel(*sown, sown_pages, pages_per_compute_block=sown_block)",
    "sown_other = sown_block = 16\nsown_out = sown_kernel(*sown, sown_pages, pages_per_compute_block=sown_block)",
    "sown_options = {'pages_per_compute_block': 16}\nsown_kernel(*sown, sown_pages, **{'megacore_mode': None, **sown_options})",
    "for sown_each, sown_block in enumerate([16]):\n\tsown_kernel(*sown, sown_pages, pages_per_compute_block=sown_block)",
    "class Sown:\n  block = 16\nsown_kernel(*sown, sown_pages, pages_per_compute_block=Sown.block)",
    "if True: sown_kernel(*sown, sown_pages, pages_per_compute_block=16)",
    "for sown_each in (1, 2):\n\tsown_kernel(*sown, sown_pages, pages_per_compute_block=16)",
    "def sown_function():\n  '''Doc.'''\n  return sown_kernel(*sown, sown_pages, pages_per_compute_block=16)",
    "sown_function = lambda q: sown_kernel(q, *sown[1:], sown_pages, pages_per_compute_block=16)\nsown_function(sown[0])",
    "'''\nsown''', sown_kernel(*sown, sown_pages, pages_per_compute_block=16), '''\n\tafter'''",
)


class Seeded(NamedTuple):
    """A file with a call that breaks a rule: all of it but for the number that is wrong."""

    before: bytes
    after: bytes

    @property
    def data(self) -> bytes:
        return self.filled(BLOCK)

    def filled(self, block: str) -> bytes:
        return self.before + block.encode() + self.after

    def block_of(self, data: bytes) -> bytes | None:
        """Return what stands in place of the number; None if anything else is not as it was."""
        if not (data.startswith(self.before) and data.endswith(self.after)):
            return None
        return data[len(self.before) : len(data) - len(self.after)]


def seeded(source: Source, random: Random) -> Seeded | None:
    """Put a call in front of a statement, as the file would have it: in its encoding, with its newlines and indentation.

    None: there is no place, or the encoding lacks a character.
    """
    places = list(_places(source))
    if not places:
        return None
    start, indent = random.choice(places)
    newline = next((each for each in ("\r\n", "\r") if each.encode() in source.text), "\n")
    lines = "".join(f"{indent}{line}{newline}" for line in (_IMPORTS + random.choice(CALLS)).split("\n"))
    before, _, after = lines.rpartition(BLOCK)
    try:
        head = source.restore(source.text[:start] + before.encode())
        tail = source.restore(source.text[:start] + after.encode() + source.text[start:])
        made = Seeded(head, tail[len(source.restore(source.text[:start])) :])
        return made if Source(source.path, made.data).tree else None
    except SourceError:  # the place was behind a backslash
        return None


def _places(source: Source) -> Iterator[tuple[int, str]]:
    """Yield where a statement begins a line, and the blanks that stand before it."""
    futures = [node.lineno for node in source.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt) and node.lineno > max(futures, default=0):
            line = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            code = source.line(line)
            indent = code[: len(code) - len(code.lstrip(" \t\f"))]
            start = source.line_starts[node.lineno - 1] + node.col_offset
            if line < node.lineno or not source.text[source.line_starts[line - 1] : start].strip(b" \t\f"):
                yield source.line_starts[line - 1], indent
