from __future__ import annotations

from pathlib import Path

import pytest

from codemods.rewrite import apply, inspect
from codemods.source import Source
from codemods.suppress import Suppressions, skips_file

from .fake_analysis import analyse


def reported(text: str) -> list[str]:
    """Return what is left of the findings, as `LINE CODE`."""
    source = Source("a.py", text.encode())
    _, findings = analyse([source], root=Path(), chips=())
    return [f"{finding.call.line} {finding.code}" for finding in Suppressions(source).keep(findings)]


def unused(text: str) -> list[str]:
    source = Source("a.py", text.encode())
    sites, findings = analyse([source], root=Path(), chips=())
    suppressions = Suppressions(source)
    suppressions.keep(findings)
    return [f"{each.span.line}:{each.span.column} {each.code} {each.message}" for each in suppressions.unused(sites)]


CALL = "paged_attention(pages=6, block=4, mode='kv_head')"


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# shapecheck: ignore[SC102]", ["1 SC201"]),
        ("# shapecheck: ignore[SC102, SC201]", []),
        ("# shapecheck: ignore[SC102,SC201] because", []),
        ("# shapecheck:ignore[sc102 SC201]", []),
        ("#shapecheck: ignore", []),
        ("# shapecheck: ignore: it is meant to fail", []),
        ("# type: ignore  # shapecheck: ignore[SC201]", ["1 SC102"]),
        ("# shapecheck: ignore[block-not-dividing]", ["1 SC201"]),
        ("# shapecheck: ignore[SC102, Megacore-KV-Heads]", []),
        ("# shapecheck: ignore[block-not-divided]", ["1 SC102", "1 SC201"]),
        ("# noqa: block-not-dividing", ["1 SC102", "1 SC201"]),
        ("# noqa", []),
        ("# NOQA", []),
        ("# noqa: SC102", ["1 SC201"]),
        ("# noqa:E501,SC102 SC201", []),
        ("# noqa: E501", ["1 SC102", "1 SC201"]),
        ("# noqa: see the ticket", ["1 SC102", "1 SC201"]),
        ("# shapecheck: ignore[]", ["1 SC102", "1 SC201"]),
        ("# shapecheck: ignore[SC1]", ["1 SC102", "1 SC201"]),  # no prefixes, as in ruff
        ("# noqa: SC1", ["1 SC102", "1 SC201"]),
        ("# shapecheck: ignore[SC102", ["1 SC102", "1 SC201"]),
        ("# shapecheck: ignored", ["1 SC102", "1 SC201"]),
        ("# shapecheck: ignore-this", ["1 SC102", "1 SC201"]),
        ("# noqa-ish", ["1 SC102", "1 SC201"]),
        ("# ruff: ignore", ["1 SC102", "1 SC201"]),
        ("; x = '# shapecheck: ignore'", ["1 SC102", "1 SC201"]),
    ],
)
def test_a_comment_after_the_call(comment: str, left: list[str]) -> None:
    assert reported(f"{CALL}  {comment}\n") == left


SEVERAL_LINES = """\
out = paged_attention(  {first}
    pages=6,  {pages}
    block=4,  {block}
    mode='kv_head',  {mode}
)  {last}
"""


@pytest.mark.parametrize(
    ("line", "left"),
    [("first", []), ("pages", ["1 SC102", "1 SC201"]), ("block", ["1 SC201"]), ("mode", ["1 SC102"]), ("last", [])],
)
@pytest.mark.parametrize("comment", ["# shapecheck: ignore", "# noqa"])
def test_the_line_of_the_argument_or_an_end_of_the_call(line: str, left: list[str], comment: str) -> None:
    comments = {name: comment if name == line else "" for name in ("first", "pages", "block", "mode", "last")}
    assert reported(SEVERAL_LINES.format(**comments)) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"# shapecheck: ignore\n{CALL}\n{CALL}\n", ["3 SC102", "3 SC201"]),
        (f"# shapecheck: ignore[SC102]\n# shapecheck: ignore[SC201]\n\n# more\n{CALL}\n", []),
        ("# shapecheck: ignore[SC102]\nx = [\n    0,\n    paged_attention(pages=6, block=4),\n]\n", []),
        (
            "f(\n    # shapecheck: ignore\n    paged_attention(pages=6, block=4),\n    paged_attention(pages=6, block=4))\n",
            ["4 SC102"],
        ),
        ("paged_attention(\n    pages=6,\n    # shapecheck: ignore\n    block=4,\n)\n", []),
        ("paged_attention(\n    # shapecheck: ignore\n    pages=6,\n    block=4,\n)\n", ["1 SC102"]),
        ("# shapecheck: ignore\nif x:\n    paged_attention(pages=6, block=4)\n", ["3 SC102"]),
        ("if x:\n    # shapecheck: ignore\n    paged_attention(pages=6, block=4)\n", []),
        (f"# noqa\n{CALL}\n", ["2 SC102", "2 SC201"]),
        (f"{CALL}\n# shapecheck: ignore\n", ["1 SC102", "1 SC201"]),
        ("paged_attention(pages=6, block=4)\r# shapecheck: ignore\rpaged_attention(pages=6, block=4)\r", ["1 SC102"]),
        ("x = 1\x0c\n# shapecheck: ignore\npaged_attention(pages=6, block=4)", []),
    ],
)
def test_a_comment_on_a_line_of_its_own_covers_the_code_that_follows(text: str, left: list[str]) -> None:
    assert reported(text) == left


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ("# shapecheck: skip-file\n", True),
        ("x = 1\ny = 2  # shapecheck: skip-file, generated\n", True),
        ("'# shapecheck: skip-file'\n", False),
        ("# shapecheck: skip-files\n", False),
        ("# skip-file\n", False),
        ("(((  # shapecheck: skip-file\n", True),
    ],
)
def test_a_comment_can_ask_to_leave_the_file_alone(text: str, skipped: bool) -> None:
    assert skips_file(Source("a.py", text.encode())) is skipped


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (f"{CALL}  # shapecheck: ignore[SC102, SC201]\n", []),
        (f"{CALL}  # shapecheck: ignore\n", []),
        ("x = 'é'  # shapecheck: ignore\n", ["1:10 SC902 nothing to suppress"]),
        ("paged_attention(pages=6, block=3)  # shapecheck: ignore[SC102]\n", ["1:36 SC902 nothing to suppress of SC102"]),
        ("paged_attention(pages=n, block=4)  # shapecheck: ignore[SC102]\n", []),  # unproven is a use
        ("paged_attention(pages=6, block=4)  # shapecheck: ignore[SC102, SC999]\n", ["1:36 SC902 nothing to suppress of SC999"]),
        ("paged_attention(pages=6, block=4)  # shapecheck: ignore[SC102, SC204]\n", []),  # not judged without a chip
        (f"{CALL}  # shapecheck: ignore[block-not-dividing, megacore-kv-heads]\n", []),
        (
            "paged_attention(pages=6, block=3)  # shapecheck: ignore[block-not-dividing]\n",
            ["1:36 SC902 nothing to suppress of SC102"],
        ),
        (f"{CALL}  # shapecheck: ignore[SC102, block]\n", [f"1:{len(CALL) + 3} SC902 nothing to suppress of block"]),
        ("x = 1  # noqa\n", []),
        ("# shapecheck: ignore\n", ["1:1 SC902 nothing to suppress"]),
    ],
)
def test_comments_without_a_use_are_told(text: str, findings: list[str]) -> None:
    assert unused(text) == findings


NEVER = "paged_attention(pages=6, block=3)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{NEVER}  # shapecheck: ignore\n", f"{NEVER}\n"),
        (f"{NEVER}\t# shapecheck: ignore[SC102]", f"{NEVER}"),
        (f"{NEVER}  # type: ignore  # shapecheck: ignore\r\n", f"{NEVER}  # type: ignore\r\n"),
        (f"{NEVER}  # shapecheck: ignore[SC102]  # noqa: E501\n", f"{NEVER}  # noqa: E501\n"),
        (f"{NEVER}  # shapecheck: ignore[SC102]: it is é\n", f"{NEVER}  # it is é\n"),
        (
            f"{NEVER}  # shapecheck: ignore[block-not-dividing] why\n",
            f"{NEVER}  # why\n",
        ),
        (f"{CALL}  # shapecheck: ignore[SC102, rank, SC201]\n", f"{CALL}  # shapecheck: ignore[SC102, rank, SC201]\n"),
        (f"{CALL}  # shapecheck: ignore[SC102, ranks, SC201]\n", f"{CALL}  # shapecheck: ignore[SC102, SC201]\n"),
        (
            f"{CALL}  # é shapecheck: # shapecheck: ignore[SC102, sc999,SC201] why\n",
            f"{CALL}  # é shapecheck: # shapecheck: ignore[SC102, SC201] why\n",
        ),
        (f"{NEVER}  # shapecheck: ignore SC102\n", f"{NEVER}\n"),
        (f"{NEVER}  # shapecheck: ignore(SC102, SC201): why\n", f"{NEVER}  # why\n"),
        ("# shapecheck: ignore\nx = 1\n", "x = 1\n"),
        ("if x:\r\n    # shapecheck: ignore\r\n    y = 1\r\n", "if x:\r\n    y = 1\r\n"),
        ("f(\n    # shapecheck: ignore\n    1,  # shapecheck: ignore\n)\n", "f(\n    1,\n)\n"),
        ("x = 'é'\r  # shapecheck: ignore", "x = 'é'\r"),
        ("# shapecheck: ignore", ""),
        ("#!/usr/bin/env python\n# shapecheck: ignore\n", "#!/usr/bin/env python\n"),
    ],
)
def test_comments_without_a_use_can_be_removed(before: str, after: str) -> None:
    source = Source("a.py", before.encode())
    sites, findings = analyse([source], root=Path(), chips=())
    suppressions = Suppressions(source)
    suppressions.keep(findings)
    edits = [edit for finding in suppressions.unused(sites) if finding.fix for edit in finding.fix.edits]
    for edit in edits:
        inspect(source, edit)
    assert apply(source, edits).text.decode() == after
    assert unused(after) == []


@pytest.mark.parametrize(
    ("comment", "messages"),
    [
        ("# shapecheck: ignore[SC102]", []),
        ("# shapecheck: ignore[sc102, rank]", []),
        ("# shapecheck: ignore", []),
        ("# noqa: SC12", []),
        ("# shapecheck: ignore[SC20]", ["'SC20' is the beginning of 8 codes; name each"]),
        ("# shapecheck: ignore: it is meant to fail", []),
        ("# shapecheck: ignore SC102, sc201", ["it ignores every rule; for SC102, sc201 alone, write ignore[SC102, sc201]"]),
        ("# shapecheck: ignore: SC102", ["it ignores every rule; for SC102 alone, write ignore[SC102]"]),
        ("# shapecheck: ignore(SC102)", ["it ignores every rule; for SC102 alone, write ignore[SC102]"]),
        ("# shapecheck: ignore[SC102", ["'# shapecheck: ignore[SC102' suppresses nothing; write `ignore`, "]),
        ("# shapecheck: disable=SC102", ["suppresses nothing; write `ignore`, `ignore[CODE]` or `skip-file`"]),
        ("# shapecheck: skip-file", []),
        ("# see shapecheck: ignored", []),
        ("# shapecheck: ignore[SC1O2]", ["no rule 'SC1O2'; nearest: SC102, SC112, SC122"]),
        ("# shapecheck: ignore[SC102 block-not-divided]", ["no rule 'block-not-divided'; nearest: block-not-dividing"]),
    ],
)
def test_a_word_that_is_no_rule_is_told_with_the_nearest(comment: str, messages: list[str]) -> None:
    notes = list(Suppressions(Source("a.py", f"x = 1\n{CALL}  {comment}\n".encode())).unknown())
    assert [note.line for note in notes] == [2] * len(messages)
    for note, message in zip(notes, messages, strict=True):
        assert message in note.message
