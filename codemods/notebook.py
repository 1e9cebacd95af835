"""Jupyter notebooks: their code cells as one Python file, in which an edit changes nothing but its bytes of the JSON."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from codemods.files import NOTEBOOK
from codemods.source import Cell, Source, SourceError, Span, parse
from codemods.words import Words

_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)  # what stands for one character
_PYTHON_CELLS = frozenset(("capture", "debug", "ipytest", "prun", "python", "python3", "time", "timeit"))  # as ruff has it
_MAGIC = re.compile(r"[ \t]*(?:[%!?]|[\w.()\[\]'\"]+[ \t]*\?{1,2}[ \t]*$)")
_ASSIGNED = re.compile(r"[ \t]*[\w.,()\[\]'\" \t]+=[ \t]*(?=[%!]\S)")
_TIMED = re.compile(r"([ \t]*)%time(it)?(?:[ \t]+-(?:[nrp][ \t]*\d+|[tcqo]+))*[ \t]+(?=\S)")
_EXPANDED = re.compile(r"[{$]")  # IPython puts values in the place of names
_UNKNOWN = "\N{LATIN LETTER WYNN}"  # a name that nothing binds, for a value that only IPython knows


def source_of(path: str, data: bytes) -> Source:
    """Return a Python file, or the code of a notebook.

    Raises:
        SourceError: it cannot be decoded, or is no notebook.
    """
    return Notebook(path, data) if path.endswith(NOTEBOOK) else Source(path, data)


class _Literal(NamedTuple):
    """A JSON string: its value, and the extent of what stands between its quotes."""

    value: str
    start: int
    end: int


class _Code(NamedTuple):
    """The source of one code cell: one JSON string, or a list of them, of which `gap` keeps two apart."""

    number: int
    literals: Sequence[_Literal]
    gap: str | None

    @property
    def text(self) -> str:
        return "".join(literal.value for literal in self.literals)


class Notebook(Source):
    """A notebook (nbformat 4) as one Python file.

    Its `text` is that of the code cells, with a line of comment between two. In `code`, comments and names take the place of
    what is IPython's and no Python, byte for byte, so that offsets are the same in both.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.encoding = "utf-8"
        self._mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            self._json = data.removeprefix(self._mark).decode()
            self._cells = list(_code_cells(self._json))
            contents = [cell.text for cell in self._cells]
            self._boundary = "\n# ----\n"
            while any(self._boundary.strip() in content for content in contents):
                self._boundary = self._boundary.replace(" ", " -", 1)
            self.text = self._boundary.join(contents).encode()
        except (UnicodeDecodeError, UnicodeEncodeError) as error:  # in the file, or a lone surrogate in a string of it
            raise SourceError(f"cannot be decoded as utf-8: {error.reason}") from None

    def restore(self, text: bytes) -> bytes:
        """Return the notebook for a changed `text`: only what differs within a cell is written anew.

        Raises:
            SourceError: the number of cells would change.
        """
        contents = text.decode().split(self._boundary) if self._cells or text else []
        if len(contents) != len(self._cells):
            raise SourceError("would have another number of cells")
        pieces: list[str] = []
        position = 0
        for cell, content in zip(self._cells, contents, strict=True):
            if content != cell.text:
                start, end, replacement = _edit(self._json, cell, content)
                pieces += [self._json[position:start], replacement]
                position = end
        return self._mark + "".join([*pieces, self._json[position:]]).encode()

    def cell_at(self, line: int) -> Cell | None:
        """Return the cell that a line is in; the line between two counts to the first."""
        index = bisect_right([cell.first for cell in self._places], line) - 1
        return self._places[index] if index >= 0 else None

    def in_file(self, span: Span) -> Span:
        (line, column), (end_line, end_column) = (
            self._in_json(*place) for place in ((span.line, span.column), (span.end_line, span.end_column))
        )
        return replace(span, line=line, column=column, end_line=end_line, end_column=end_column, cell=None)

    def _in_json(self, line: int, column: int) -> tuple[int, int]:
        """Return where a place of the text is in the file."""
        index = bisect_right([cell.first for cell in self._places], line) - 1
        before = self.text[self.line_starts[self._places[index].first - 1] : self.line_starts[line - 1]].decode()
        position = _places(self._json, self._cells[index])[len(before) + column - 1]
        return self._json.count("\n", 0, position) + 1, position - self._json.rfind("\n", 0, position)

    def passed_over(self) -> Iterator[int]:
        """Yield the lines that are IPython's and name a kernel, so that somebody may think that they are checked."""
        words = Words()
        for number, (line, code) in enumerate(zip(self.text.split(b"\n"), self.code.split(b"\n"), strict=True), 1):
            if line != code and words.occur_in(line) and not words.occur_in(code):
                yield number

    @cached_property
    def _places(self) -> list[Cell]:
        places: list[Cell] = []
        start = 0
        for cell in self._cells:
            end = start + len(cell.text.encode())
            first, last = (bisect_right(self.line_starts, offset) for offset in (start, end))
            places.append(Cell(cell.number, first, last))
            start = end + len(self._boundary)
        return places

    @cached_property
    def code(self) -> bytes:
        """The text as Python.

        Raises:
            SourceError: a cell is no Python by itself.
        """
        return self._boundary.join(
            _python(cell.text, place) for cell, place in zip(self._cells, self._places, strict=True)
        ).encode()


def _code_cells(text: str) -> Iterator[_Code]:
    """Yield the code cells of a notebook in Python, with the places of their strings."""
    import json

    try:
        json.loads(text)  # the walk below takes it that all is well
        document, _ = _walk(text, 0)
    except json.JSONDecodeError as error:
        raise SourceError(f"is no notebook: {error.msg}", error.lineno) from None
    except RecursionError:
        raise SourceError("is no notebook: nested too deeply") from None
    match document:
        case {"cells": (list(), _) as cells}:
            pass
        case _:
            raise SourceError("is no notebook of nbformat 4: it has no list of cells")
    if _language(document) not in ("", "python"):
        return
    for number, cell in enumerate(cells[0], 1):
        match cell:
            case {"cell_type": _Literal("code"), "source": _Literal() as literal}:
                yield _Code(number, [literal], None)
            case {"cell_type": _Literal("code"), "source": ([_Literal(), *_] as literals, start)} if all(
                isinstance(each, _Literal) for each in literals
            ):
                first, *others = literals
                gap = text[first.end + 1 : others[0].start - 1] if others else f",{text[start : first.start - 1]}"
                yield _Code(number, literals, gap)
            case _:
                pass


def _language(document: Any) -> str:
    match document:
        case {"metadata": {"kernelspec": {"language": _Literal(name)}} | {"language_info": {"name": _Literal(name)}}}:
            return name.lower()
        case _:
            return ""


def _walk(text: str, position: int) -> tuple[Any, int]:
    """Return the value that begins at a position of valid JSON, and where it ends.

    A string is a `_Literal`, a list comes with the place behind its bracket; other leaves are of no interest.
    """
    from json import JSONDecoder

    position = _skip(text, position)
    opening = text[position]
    if opening not in "[{":
        value, end = JSONDecoder().raw_decode(text, position)
        return _Literal(value, position + 1, end - 1) if opening == '"' else None, end
    items: list[Any] = []
    names: list[str] = []
    start = position = position + 1
    while (position := _skip(text, position)) and text[position] not in "]}":
        position += text[position] == ","
        if opening == "{":
            name, position = _walk(text, position)
            names.append(name.value)
            position = _skip(text, position) + 1  # the colon
        item, position = _walk(text, position)
        items.append(item)
    return (dict(zip(names, items, strict=True)) if opening == "{" else (items, start)), position + 1


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _edit(text: str, cell: _Code, content: str) -> tuple[int, int, str]:
    """Return which part of the JSON to replace, and by what, so that a cell has another content."""
    import json

    old = cell.text
    common = _shared(old, content)
    rest = _shared(old[common:][::-1], content[common:][::-1])
    places = _places(text, cell)
    written = [json.dumps(line, ensure_ascii=False)[1:-1] for line in _lines(content[common : len(content) - rest], cell)]
    return places[common], places[len(old) - rest], f'"{cell.gap}"'.join(written)


def _shared(first: str, second: str) -> int:
    """Return how many characters two texts begin with alike."""
    different = (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(different, min(len(first), len(second)))


def _lines(text: str, cell: _Code) -> list[str]:
    """Split what is put into a list of lines, as the others are, after each newline."""
    return [text] if cell.gap is None else re.split(r"(?<=\n)", text)


def _places(text: str, cell: _Code) -> list[int]:
    """Return where in the JSON each character of a cell stands, and the end of the last."""
    places: list[int] = []
    for literal in cell.literals:
        places += [found.start() for found in _ESCAPE.finditer(text, literal.start, literal.end)]
    return [*places, cell.literals[-1].end]


def _python(text: str, place: Cell) -> str:
    """Return the code of a cell with all that is IPython's masked."""
    if _error(text) is None:
        return text
    lines = re.split(r"(?<=\n)", text)
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        if _PYTHON_CELLS.isdisjoint(lines[first][2:].split()[:1]):
            return "".join(_masked(line) for line in lines)
        lines[first] = _masked(lines[first])
    continued = False
    for index, line in enumerate(lines):
        if not continued and (timed := _timed(line)) and not _is_open("".join(lines[:index])):
            lines[index] = timed
            continue
        assigned = _ASSIGNED.match(line)
        if continued or ((_MAGIC.match(line) or assigned) and not _is_open("".join(lines[:index]))):
            head = assigned[0] if assigned and not continued else ""
            instead = _UNKNOWN if head else "0" if line[:1] in " \t" and not continued else ""  # a block may consist of this line
            lines[index] = head + _masked(line[len(head) :], instead)
            continued = line.rstrip().endswith("\\")
    masked = "".join(lines)
    if (error := _error(masked)) is not None:
        raise SourceError(str(error), error.line, place.number)
    return masked


def _timed(line: str) -> str | None:
    """Return the line of a magic that runs its code, with the code as it is: `%timeit f(x)` as `0,     f(x)`.

    What `%time` runs may assign, for those who come after: `%time y = f(x)` is `0;    y = f(x)`.
    """
    found = _TIMED.match(line)
    if found is None or _EXPANDED.search(line):
        return None
    code = line[found.end() :]
    once = found[2] is None
    for separator, whole in ((",", f"({code}\n)"), (";", code)):  # an expression by itself, or statements
        if (separator == ";" and not once) or (separator == "," and ":=" in code):
            continue
        masked = found[1] + f"0{separator}".ljust(found.end() - found.end(1)) + code
        if _error(whole) is None and _error(masked.strip()) is None:
            return masked
    return None


def _masked(line: str, instead: str = "") -> str:
    """Return a comment of as many bytes, behind what stands in place of the code."""
    code = line.strip(" \t\r\n")
    if not code:
        return line
    start = line.index(code)
    size = len(code.encode()) - len(instead.encode())
    return line[:start] + instead + "#" * size + line[start + len(code) :]


def _error(code: str) -> SourceError | None:
    try:
        parse(code)
    except SourceError as error:
        return error
    return None


def _is_open(code: str) -> bool:
    """Say whether what follows is inside a string, a bracket or a statement that goes on."""
    if code.rstrip(" \t\r\n").endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(io.StringIO(code).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF in multi-line" in error.args[0] or "unterminated triple-quoted" in error.args[0]
    except SyntaxError:
        pass
    return False
