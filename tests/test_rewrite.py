from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.findings import Edit
from codemods.rewrite import RewriteError, apply, displacement, inspect
from codemods.source import Source


def source(text: str | bytes) -> Source:
    return Source("a.py", text if isinstance(text, bytes) else text.encode())


def replacing(file: Source, old: str, new: str) -> Edit:
    start = file.text.index(old.encode())
    return Edit(start, start + len(old.encode()), new)


def rewritten(text: str | bytes, old: str, new: str) -> bytes:
    """Replace the first `old`, with all the checks of a fix."""
    file = source(text)
    edit = replacing(file, old, new)
    inspect(file, edit)
    return apply(file, [edit]).data


FILES = {
    "LF": b"f(a=4)\ny = 1\n",
    "CRLF": b"f(a=4)\r\ny = 1\r\n",
    "CR": b"f(a=4)\ry = 1\r",
    "mixed": b"x\r\nf(\r  a=4,\n)\r\n",
    "no final newline": b"f(a=4)",
    "BOM": b"\xef\xbb\xbff(a=4)\n",
    "latin-1": b"# coding: latin-1\nf('\xe9', a=4)\n",
    "form feed": b"\x0cx\n\x0cf(a=4)\n",
    "tabs": b"if x:\n\tf(\ta=4)\n",
    "backslash": b"f(0 + \\\r\n  0, a=4)\n",
    "separators that end no line": "f('\u2028\x85\x0b', a=4)\n".encode(),
    "comments": b"f(  # one\n  # two\n  a=4,  # three\n)\n",
    "unclean": b"f ( a = 4 , )   \n\n\n",
    "f-string": b"x = f(f'{1=}', a=4)\n",
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_only_the_span_changes(data: bytes) -> None:
    assert rewritten(data, "4", "-13") == data.replace(b"4", b"-13", 1)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_what_is_replaced_may_go_over_several_lines(newline: str) -> None:
    text = "f(a=2 *  # two" + newline + "  2, b=1)" + newline
    assert rewritten(text, "2 *  # two" + newline + "  2", "4") == ("f(a=4, b=1)" + newline).encode()


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("f(a=4)\n", "a=4", "a=4, b=None", "f(a=4, b=None)\n"),
        ("f(a=4, b=5)\n", ", b=5", "", "f(a=4)\n"),
        ("f(a=(4))\n", "4", "g(x)", "f(a=(g(x)))\n"),
        ("x: f(4) = 1\n", "4", "5", "x: f(5) = 1\n"),
        ("@f(a=4)\nclass A(f(4)): pass\n", "4", "5", "@f(a=5)\nclass A(f(4)): pass\n"),
        ("f(a=lambda: 4)\n", "lambda: 4", "2", "f(a=2)\n"),
        ("f(*a, **b, c=4)\n", "4", "x if y else z", "f(*a, **b, c=x if y else z)\n"),
    ],
)
def test_an_edit_may_cover_what_is_whole(text: str, old: str, new: str, expected: str) -> None:
    assert rewritten(text, old, new) == expected.encode()


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        ("f(a=4)\n", "4", "5)", "is no expression"),
        ("f(a=4)\n", "4", "", "the result cannot be parsed"),
        ("f(a=4)\n", "4", "x = 5", "is no expression"),
        ("f(a=4)\n", "4", "5 # or 6", "is no expression"),
        ("f(a=44)\n", "4", "5", "more would change"),
        ("f(a=1 + 4)\n", "1 + 4", "1 + 4, b=3", "is no expression"),
        ("f(a=1 * 4)\n", "4", "2 + 3", "more would change"),  # precedence
        ("f(a=4)\ny = 1\n", "4)\ny", "3)\ny", "LibCST does not parse"),
        ("f(f'{f(4)=}')\n", "4", "5", "more would change|not certain"),
        ("f(a=(b := 4))\n", "b := 4", "5", "b would no longer be assigned"),
        ("f(a=4)\n", "4", "[" * 150 + "5" + "]" * 150, "nested too deeply"),
        ("f(a=4)\n", "4", "-" * 150 + "5", "nested too deeply"),
        ("f(a=4)\n", "4", "a" + ".b()" * 150, "nested too deeply"),
    ],
)
def test_what_would_change_more_is_refused(text: str, old: str, new: str, message: str) -> None:
    with pytest.raises(RewriteError, match=message):
        rewritten(text, old, new)


def test_a_file_that_cannot_be_encoded_any_more_is_refused() -> None:
    with pytest.raises(RewriteError, match="cannot be written as iso-8859-1"):
        rewritten(b"# coding: latin-1\nf(a=4)\n", "4", "'あ'")


def test_edits_that_overlap_are_refused() -> None:
    file = source("f(a=4)\n")
    with pytest.raises(RewriteError, match="overlap"):
        apply(file, [Edit(2, 5, "a=5"), Edit(4, 5, "6")])
    with pytest.raises(RewriteError, match="overlap"):
        apply(file, [Edit(0, 0, "x\n"), Edit(0, 0, "y\n")])


def test_several_edits_are_made_together() -> None:
    file = source("import a\n\nf(x=4, y=5)\n")
    edits = [replacing(file, "5", "50"), replacing(file, "4", "40"), Edit(9, 9, "import b\n")]
    assert apply(file, edits).data == b"import a\nimport b\n\nf(x=40, y=50)\n"
    move = displacement(edits)
    assert move(file.text.index(b"f(")) == len(b"import a\nimport b\n\n")
    assert (move(8), move(9)) == (8, 18)
    assert move(len(file.text)) == len(file.text) + 11


def test_comparing_does_not_recurse() -> None:
    text = "f(a=4)\n" + "x = " + "1 + " * 900 + "1\n"
    assert rewritten(text, "4", "5") == text.replace("4", "5", 1).encode()


def test_a_number_too_long_to_print_is_no_obstacle() -> None:
    text = "f(a=4, b=0x" + "f" * 5000 + ")\n"
    assert rewritten(text, "4", "5") == text.replace("4", "5", 1).encode()


names = st.sampled_from(["a", "é", "名", "x1"])
atoms = st.one_of(names, st.integers(0, 99).map(str), st.sampled_from(["'é'", '"""s"""', "f'{a}'", "None"]))
gaps = st.sampled_from(["", " ", "  # ü\n ", "\n\n", "\t", "\r\n", "\x0c "])
ENCODINGS = {"": "utf-8", "\ufeff": "utf-8", "# coding: latin-1\n": "latin-1", "# coding: utf-8\r\n": "utf-8"}


@given(
    head=st.sampled_from(sorted(ENCODINGS)),
    before=st.lists(atoms, max_size=3),
    after=st.lists(names, max_size=2),
    gap=gaps,
    old=atoms,
    new=st.sampled_from(["5", "None", "g(x, 16)", "x if y else z"]),
)
def test_whatever_surrounds_it_stays(head: str, before: list[str], after: list[str], gap: str, old: str, new: str) -> None:
    left = f"{head}x = f({gap}" + "".join(f"{each},{gap}" for each in before) + f"block={gap}"
    right = f"{gap}" + "".join(f", **{each}{gap}" for each in after) + ")\ny = 1"
    try:
        data = f"{left}{old}{right}".encode(ENCODINGS[head])
    except UnicodeEncodeError:
        return
    file = source(data)
    start = len(left.removeprefix("\ufeff").encode())
    edit = Edit(start, start + len(old.encode()), new)
    inspect(file, edit)
    result = apply(file, [edit])
    assert result.data == f"{left}{new}{right}".encode(ENCODINGS[head])
    assert ast.dump(result.tree.body[1]) == ast.dump(file.tree.body[1])
