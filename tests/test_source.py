from __future__ import annotations

import ast

import pytest

from codemods.nodes import depth, holds, walk
from codemods.source import Source, SourceError

ROUND_TRIPS = {
    "a cookie behind a lone CR": b"#\r# coding: latin-1\rx = '\xe9'\r",
    "no cookie, on the third line": b"# one\r\r# coding: nope\rx = 1\r",
    "BOM and cookie": b"\xef\xbb\xbf# coding: utf-8\nx = '\xc3\xa9'\n",
    "empty": b"",
    "no final newline": b"x = 1",
    "CRLF": b"x = 1\r\ny = 2\r\n",
    "CR": b"x = 1\ry = 2\r",
    "mixed": b"x = 1\r\ny = 2\nz = 3\r",
    "BOM": b"\xef\xbb\xbfx = 1\n",
    "latin-1": b"# coding: latin-1\nx = '\xe9'\n",
    "shift_jis": "# coding: shift_jis\nx = 'あ'\n".encode("shift_jis"),
    "form feed": b"x = 1\n\x0c\ny = 2\n",
    "tabs": b"if 1:\n\tx = 1\n",
    "separators that end no line": "x = '\u2028\x0b\x1c\x85'\ny = 1\n".encode(),
}


@pytest.mark.parametrize("data", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_the_bytes_come_back(data: bytes) -> None:
    source = Source("a.py", data)
    assert isinstance(source.tree, ast.Module)
    assert source.restore(source.text) == data


@pytest.mark.parametrize("data", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_the_span_of_a_node_is_its_text(data: bytes) -> None:
    source = Source("a.py", data)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            span = source.span(node)
            assert source.text[span.start : span.end].decode() == source.segment(node)
            assert source.segment(node).startswith(("x =", "y =", "z ="))
            assert source.line(span.line)[span.column - 1 : span.column + 2] in ("x =", "y =", "z =")


def test_columns_count_code_points_and_offsets_count_bytes() -> None:
    source = Source("a.py", "é = 'あ'; f(1)\n".encode())
    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    span = source.span(call)
    assert (span.start, span.end, span.column, span.end_column) == (12, 16, 10, 14)


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"x = (\n", "cannot be parsed: '\\(' was never closed \\(as Python 3", 1),
        (b"x = 1\ny = $\n", "cannot be parsed: invalid syntax", 2),
        (b"x = 1\n\xff\n", "cannot be decoded as utf-8: invalid start byte", 2),
        (b"# coding: nope\n", "cannot be decoded: unknown encoding: nope", 1),
        (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", "cannot be decoded: encoding problem: utf-8", 1),
        (b"# coding: rot13\nx = 1\n", "cannot be decoded: 'rot13' is not a text encoding", 1),
        (b"# coding: ascii\nx = 1\n\n\xff\n", "cannot be decoded as ascii", 4),
        (b"x = 1\nx\x00y\n", "cannot be parsed: a NUL byte is no Python", 2),
        (b"(" * 1000, "cannot be parsed: too many nested parentheses", 1),
        (b"x = " + b"-" * 100_000 + b"1", "cannot be parsed: nested too deeply", 1),
    ],
)
def test_what_is_no_python_is_refused_with_its_line(data: bytes, message: str, line: int) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        _ = Source("a.py", data).tree
    assert caught.value.line == line


def test_a_character_that_the_encoding_lacks_is_not_written() -> None:
    source = Source("a.py", b"# coding: latin-1\nx = 1\n")
    with pytest.raises(SourceError, match="cannot be written as iso-8859-1"):
        source.restore("# coding: latin-1\nx = 'あ'\n".encode())


def test_warnings_of_the_scanned_code_are_not_printed() -> None:
    assert Source("a.py", b"assert (1, 'x')\nx = '\\d'\nx is 1\n").tree


@pytest.mark.parametrize(
    ("code", "levels", "line"),
    [("", 1, 1), ("x", 3, 1), ("\nx = " + "1 + " * 400 + "1", 403, 2), ("if x: pass\n" + "elif x: pass\n" * 400, 403, 401)],
    ids=["empty", "name", "sum", "elif"],
)
def test_the_depth_is_told_with_a_line(code: str, levels: int, line: int) -> None:
    assert depth(ast.parse(code)) == (levels, line)


def test_a_file_holds_its_own_nodes_only() -> None:
    code = '''\
@first(
    lambda x: x
)
@second
class C:
    @third
    async def f(self, x: int = (lambda: 1)()) -> None:
        y = [
            each for each in x if (z := each)
        ]
        try:
            ...
        except E as e: s = f"""
            {y}
        """
a = 1; b = 2
match a:
    case {"k": [1, *c]}: pass
'''
    tree, equal = ast.parse(code), ast.parse(code)
    own, others = ([node for node in walk(each) if hasattr(node, "lineno")] for each in (tree, equal))
    assert holds(tree, tree)
    assert all(holds(tree, node) for node in own)
    assert len(own) > 50
    assert not any(holds(tree, node) for node in [equal, *others])
