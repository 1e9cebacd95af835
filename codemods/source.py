"""One source file: its bytes, its syntax tree, and the positions of its nodes."""

from __future__ import annotations

import ast
import codecs
import re
import sys
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

_NEWLINE = re.compile(rb"\r\n|\r|\n")  # not str.splitlines: it also splits at form feeds and U+2028


class SourceError(Exception):
    """A file that cannot be decoded or parsed; `line` counts from 1, in the cell of a notebook whose number is `cell`."""

    def __init__(self, message: str, line: int = 1, cell: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.cell = cell


class Cell(NamedTuple):
    """A code cell of a notebook: its number among all cells, from 1, and its lines in the source that they make up."""

    number: int
    first: int
    last: int


@dataclass(frozen=True)
class Span:
    """A piece of a file: byte offsets into its UTF-8 text, and its ends as lines and code points, from 1."""

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    cell: Cell | None = None

    @property
    def shown(self) -> Span:
        """The same with lines as the user counts them: in a notebook, within the cell."""
        before = self.cell.first - 1 if self.cell else 0
        return replace(self, line=self.line - before, end_line=self.end_line - before)


class Source:
    """A parsed Python file; `encoding` is that of `data`, where it is not for the file to say.

    Offsets of `ast` count bytes of UTF-8, so everything here works on `text`: the file decoded by its own encoding,
    without a byte order mark, and encoded as UTF-8. `restore` goes back, byte for byte.
    """

    def __init__(self, path: str, data: bytes, encoding: str | None = None) -> None:
        self.path = path
        self.data = data
        self._mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        self.encoding = encoding or encoding_of(data)
        self.text = _decode(data.removeprefix(self._mark), self.encoding)

    def restore(self, text: bytes) -> bytes:
        """Return the file's bytes for a changed `text`.

        Raises:
            SourceError: the file's encoding has no bytes for a new character.
        """
        try:
            return self._mark + text.decode().encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SourceError(f"cannot be written as {self.encoding}: {error.reason}") from None

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; parsing it again costs as much as everything else, so it is kept.

        Raises:
            SourceError: the file is no valid Python for the running interpreter.
        """
        return parse(self.code.decode(), self.path)

    @cached_property
    def code(self) -> bytes:
        """The text as the parser is to see it: of the same length."""
        return self.text

    def holds_magic(self, start: int, end: int) -> bool:
        """Say whether the lines of a piece of text hold something that is IPython's."""
        lines = slice(self.text.rfind(b"\n", 0, start) + 1, (self.text + b"\n").find(b"\n", end))
        return self.text[lines] != self.code[lines]

    def passed_over(self) -> Iterable[int]:
        """Return the lines of a notebook that are no Python, and of which one might think otherwise."""
        return ()

    def cell_at(self, line: int) -> Cell | None:
        """Return the cell of a notebook that a line is in."""
        return None

    def in_file(self, span: Span) -> Span:
        """Return a span with the lines and columns of the file itself, which are not those of the code in a notebook."""
        return span

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def line(self, number: int) -> str:
        """Return a line without its newline."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip(b"\r\n").decode()

    def newline(self, number: int) -> str:
        """Return how a line ends; if the file ends there, how its first line does."""
        found = _NEWLINE.search(self.text, self.line_starts[number - 1]) or _NEWLINE.search(self.text)
        return found[0].decode() if found else "\n"

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> Span:
        start_line, end_line = node.lineno, node.end_lineno or node.lineno
        start = self.line_starts[start_line - 1] + node.col_offset
        end = self.line_starts[end_line - 1] + (node.end_col_offset or 0)
        return self._span(start, end, start_line, end_line)

    def between(self, start: int, end: int) -> Span:
        """Return a piece of the text by its offsets."""
        return self._span(start, end, bisect_right(self.line_starts, start), bisect_right(self.line_starts, end))

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """Return the source of a node."""
        span = self.span(node)
        return self.text[span.start : span.end].decode()

    def _span(self, start: int, end: int, start_line: int, end_line: int) -> Span:
        columns = self._column(start_line, start), self._column(end_line, end)
        return Span(start, end, start_line, columns[0], end_line, columns[1], self.cell_at(start_line))

    def _column(self, line: int, offset: int) -> int:
        return len(self.text[self.line_starts[line - 1] : offset].decode()) + 1


def parse(code: str, path: str = "") -> ast.Module:
    """Return the syntax tree of a file.

    Raises:
        SourceError: it is no valid Python for the running interpreter.
    """
    if (nul := code.find("\0")) >= 0:  # the parser would not say where
        raise SourceError("cannot be parsed: a NUL byte is no Python", lines_before(code[:nul].encode()) + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a SyntaxWarning of the scanned code is not ours to print
            return ast.parse(code, path)
    except SyntaxError as error:
        version = "{}.{}".format(*sys.version_info)
        raise SourceError(f"cannot be parsed: {error.msg} (as Python {version})", error.lineno or 1) from None
    except (RecursionError, MemoryError):
        raise SourceError("cannot be parsed: nested too deeply") from None


def lines_before(data: bytes) -> int:
    """Return how many lines end in a piece of text."""
    return len(_NEWLINE.findall(data))


def encoding_of(data: bytes) -> str:
    """Return the encoding that a file declares (PEP 263), in one of its first two lines, or by a byte order mark."""
    ends = [0, *(found.end() for found in islice(_NEWLINE.finditer(data), 2)), len(data)]
    lines = (data[start:end] for start, end in pairwise(ends))  # `io` knows no line that ends in a lone CR
    try:
        encoding, _ = tokenize.detect_encoding(lines.__next__)
    except SyntaxError as error:  # an unknown one, or one that the mark contradicts
        raise SourceError(f"cannot be decoded: {error}") from None
    return encoding.removesuffix("-sig")


def _decode(data: bytes, encoding: str) -> bytes:
    """Return the contents of a file as UTF-8."""
    try:
        text = data.decode(encoding)
    except LookupError as error:  # no encoding of text
        raise SourceError(f"cannot be decoded: {error}") from None
    except UnicodeDecodeError as error:
        line = lines_before(data[: error.start]) + 1
        raise SourceError(f"cannot be decoded as {error.encoding}: {error.reason}", line) from None
    except UnicodeError as error:  # the codec itself refuses
        raise SourceError(f"cannot be decoded: {error}") from None
    if text.encode(encoding) != data:
        raise SourceError(f"does not survive a round trip through {encoding}")
    return text.encode()
