from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lsprotocol.types import Position, TextEdit

from codemods.lsp.positions import Text, units

TEXTS = st.text(st.sampled_from("ab é🙂\t\f\u2028\x1d\r\n"), max_size=30)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def applied(text: Text, edits: list[TextEdit]) -> str:
    result, end = [], 0
    for each in edits:
        start = text.offset(each.range.start)
        assert start >= end, "edits overlap, or are out of order"
        result += [text.text[end:start], each.new_text]
        end = text.offset(each.range.end)
    return "".join([*result, text.text[end:]])


@given(TEXTS, TEXTS, ENCODINGS)
def test_the_edits_make_the_other_text(before: str, after: str, encoding: str) -> None:
    before, after = (each.replace("\r\n", "\n").replace("\r", "\r\n") for each in (before, after))
    text = Text(before, encoding)
    assert applied(text, list(text.edits(after))) == after


@given(TEXTS, ENCODINGS, st.data())
def test_a_position_leads_back_to_its_character(text: str, encoding: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    assume(not (text[:offset].endswith("\r") and text[offset:].startswith("\n")))  # no position is within the end of a line
    assert Text(text, encoding).offset(Text(text, encoding).position(offset)) == offset


@pytest.mark.parametrize(("encoding", "counted"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_a_line_is_counted_in_the_units_of_the_encoding(encoding: str, counted: int) -> None:
    assert units("é🙂", encoding) == counted


def test_a_position_behind_the_end_is_the_end() -> None:
    text = Text("ab\r\ncd", "utf-16")
    assert [text.offset(Position(*place)) for place in ((0, 9), (1, 9), (7, 0))] == [2, 6, 6]


def test_an_edit_is_as_short_as_can_be() -> None:
    text = Text("f(1)\nblock=16)\ng(2)\n", "utf-16")
    (edit,) = text.edits("f(1)\nblock=13)\ng(2)\n")
    assert (edit.range.start, edit.range.end, edit.new_text) == (Position(1, 7), Position(1, 8), "3")
