from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.check import Run, summarise
from codemods.files import Found, Problem
from codemods.findings import Contexts, ProposedFix, Value
from codemods.report import render
from codemods.report.counts import Counts, closing_line
from codemods.report.frame import frame
from codemods.source import Source, Span
from shapecheck.outcome import UNKNOWN
from shapecheck.rule import Applicability

from .fake_analysis import BAD, UNPROVEN, run_over


def text_of(run: Run, output_format: str = "text") -> str:
    return render(run, output_format)


def test_a_violation_is_shown_with_its_code_its_values_and_its_repair() -> None:
    assert text_of(run_over('"""Doc."""\n' + BAD)) == (
        "a.py:3:38: SC102 block-not-dividing: the block must divide the pages [*]\n"
        "  |\n"
        '1 | """Doc."""\n'
        "2 | from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\n"
        "3 | out = paged_attention(pages=6, block=4)\n"
        "  |                                      ^\n"
        "4 |\n"
        "  |\n"
        "  = does not hold: pages % block == 0\n"
        "  = where: pages = 6  (page_indices.shape[1])\n"
        "  = where: block = 4\n"
        "  = help: a divisor\n"
        "  = safe fix: use 3\n"
        "\n"
        "[*] 1 fixable with `shapecheck fix`\n"
        "1 call site: 0 proven, 1 violated, 0 unproven; 1 file\n"
    )


def test_what_cannot_be_told_is_shown_with_the_reason_and_a_counterexample() -> None:
    text = text_of(run_over(UNPROVEN))
    assert "  = cannot be told: pages % block == 0\n" in text
    assert "  = where: pages = page_indices.shape[1]\n" in text
    assert "  = because: `n` is a parameter\n  = fails when: pages = 5\n" in text
    assert "1 fixable with `shapecheck fix --unsafe-fixes`\n1 call site: 0 proven, 0 violated, 1 unproven; 1 file\n" in text


def test_the_executions_that_fail_are_counted() -> None:
    text = text_of(run_over(BAD, contexts=Contexts(2, 5, {"n": 4})))
    assert "  = fails in: 2 of the 5 cases in which the source reaches this call, e.g. where n = 4\n" in text


def test_advice_is_not_offered_as_a_fix() -> None:
    text = text_of(run_over(BAD, fix=ProposedFix(Applicability.DISPLAY, "pad the pages")))
    assert "  = help: pad the pages\n" in text
    assert "fixable" not in text
    assert "[*]" not in text


def test_the_concise_form_is_one_line() -> None:
    assert text_of(run_over(BAD), "concise").splitlines() == [
        "a.py:2:38: SC102 block-not-dividing: the block must divide the pages: pages = 6, block = 4; a divisor [*]",
        "[*] 1 fixable with `shapecheck fix`",
        "1 call site: 0 proven, 1 violated, 0 unproven; 1 file",
    ]
    assert text_of(run_over(UNPROVEN), "concise").splitlines()[0] == (
        "a.py:3:43: SC102 block-not-dividing: the block must divide the pages: block = 4; "
        "unproven: `n` is a parameter; fails when pages = 5"
    )


def test_errors_are_listed_and_counted() -> None:
    run = summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], [])
    assert text_of(run) == (
        "b.py:3:1: SC901 file-error: cannot be parsed: oh\n0 call sites: 0 proven, 0 violated, 0 unproven; 2 files; 1 error\n"
    )


def test_statistics_count_each_code() -> None:
    run = run_over(BAD + BAD + UNPROVEN)
    assert render(run, "text", statistics=True).splitlines() == [
        "2  SC102  block-not-dividing (violated)",
        "1  SC102  block-not-dividing (unproven)",
        "3 call sites: 0 proven, 2 violated, 1 unproven; 1 file",
    ]


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    run = run_over(BAD.replace("4)", "4)  # \x1b[2J \u202e é"), path="\x1b[31m\n.py", message="a\nb", advice="\x07")
    for output_format in ("text", "concise"):
        text = render(run, output_format)
        assert not any(character in text for character in "\x1b\u202e\x07")
        assert "a\nb" not in text
    assert "# \ufffd[2J \ufffd é" in render(run, "text")


def test_color_highlights_but_changes_nothing() -> None:
    run = run_over(BAD)
    colored = render(run, "text", color=True)
    assert "\033[1;31mSC102\033[0m" in colored
    for escape in ("\033[1m", "\033[1;31m", "\033[34m", "\033[0m"):
        colored = colored.replace(escape, "")
    assert colored == render(run, "text")


def carets(text: str, old: str, last: str | None = None) -> list[str]:
    """Return the line of code that a frame marks, and the marks."""
    source = Source("a.py", text.encode())
    start = text.index(old)
    end = text.index(last) + len(last) if last else start + len(old)
    line, end_line = (text.count("\n", 0, position) + 1 for position in (start, end))
    column, end_column = (position - text.rfind("\n", 0, position) for position in (start, end))
    lines = list(frame(source, Span(0, 0, line, column, end_line, end_column)))
    at = next(index for index, each in enumerate(lines) if set(each.text.strip()) == {"^"})
    return [lines[at - 1].text, lines[at].text]


@pytest.mark.parametrize(
    ("text", "old", "code", "marks"),
    [
        ("f(xyz)", "xyz", "f(xyz)", "  ^^^"),
        ("\tf(xyz)", "xyz", "    f(xyz)", "      ^^^"),
        ("f('あ', xyz)", "xyz", "f('あ', xyz)", "        ^^^"),
        ("f('e\u0301', xyz)", "xyz", "f('e\u0301', xyz)", "       ^^^"),
        ("f('\x1b', xyz)", "xyz", "f('\ufffd', xyz)", "       ^^^"),
        ("f(あい)", "あい", "f(あい)", "  ^^^^"),
    ],
)
def test_carets_stand_below_the_code(text: str, old: str, code: str, marks: str) -> None:
    assert carets(text, old) == [code, marks]


def test_of_several_lines_the_first_is_marked() -> None:
    assert carets("x = f(\n    1,\n)\ny\n", "f(", last=")") == ["x = f(", "    ^^"]


def test_a_long_line_is_cut_around_what_it_is_about() -> None:
    code, marks = carets("x = [" + "1, " * 500 + "xyz" + ", 1" * 500 + "]", "xyz")
    assert len(code) == 160
    assert code.startswith("...")
    assert code.endswith("...")
    assert code[marks.index("^") : marks.rindex("^") + 1] == "xyz"
    code, marks = carets("x = f(" + "1, " * 500 + ")", "f(" + "1, " * 500 + ")")
    assert code.startswith("...f(1")
    assert code.endswith("...")
    assert len(code) == len(marks) == 160


def test_a_line_that_fits_is_not_cut() -> None:
    fits = "x = [" + "1" * 151 + "xyz]"
    assert carets(fits, "xyz") == [fits, " " * 156 + "^^^"]
    code, marks = carets(fits + ";", "xyz")
    assert len(code) <= 160
    assert code.startswith("...1")
    assert code.endswith("xyz];")
    assert code[marks.index("^") : marks.rindex("^") + 1] == "xyz"


def test_the_width_of_a_line_is_that_of_its_characters() -> None:
    code, marks = carets("x = ['" + "あ" * 78 + "', xyz]", "xyz")
    assert code.startswith("...あ")
    assert code.endswith("xyz]")
    assert sum(1 + (each == "あ") for each in code) <= 160
    assert marks.index("^") == sum(1 + (each == "あ") for each in code[: code.index("xyz")])


def test_code_fits_into_the_width_of_a_terminal() -> None:
    run = run_over(BAD.replace("pages=6,", "pages=6, " + " " * 60))
    lines = render(run, "text", width=50).splitlines()
    frames = [line for line in lines if " | " in line]
    assert max(map(len, frames)) <= 50
    [marks] = [line for line in frames if line.rstrip().endswith("^")]
    [code] = [line for line in frames if line.startswith("2 | ")]
    assert code[marks.index("^")] == "4"
    assert max(map(len, render(run, "text").splitlines()[:8])) > 100


def test_a_line_feed_is_what_ends_a_line() -> None:
    source = Source("a.py", "a\x0cb\u2028c\nxyz\n".encode())
    assert [line.margin for line in frame(source, Span(0, 0, 2, 1, 2, 4))] == [" ", "1", "2", " ", "3", " "]


def test_what_one_unknown_keeps_from_being_told_of_a_call_is_one_entry() -> None:
    run = run_over(UNPROVEN)
    [first] = run.report.findings
    run.report.findings.append(
        replace(first, code="SC201", name="megacore-kv-heads", message="even", fix=None, counterexample=None)
    )
    assert text_of(run) == (
        "a.py:3:12: SC102, SC201: 2 rules cannot be told of paged_attention\n"
        "  |\n"
        "1 | from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\n"
        "2 | def f(n):\n"
        "3 |     return paged_attention(pages=n, block=4)\n"
        "  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "4 |\n"
        "  |\n"
        "  = because: `n` is a parameter\n"
        "  = SC102 block-not-dividing: the block must divide the pages\n"
        "  = SC102 fails when: pages = 5\n"
        "  = SC102 unsafe fix: use the largest divisor\n"
        "  = SC201 megacore-kv-heads: even\n"
        "\n"
        "1 fixable with `shapecheck fix --unsafe-fixes`\n"
        "1 call site: 0 proven, 0 violated, 1 unproven; 1 file\n"
    )
    assert [line[:16] for line in text_of(run, "concise").splitlines()[:2]] == ["a.py:3:43: SC102", "a.py:3:43: SC201"]
    run.report.findings[1] = replace(run.report.findings[1], reason="another")
    assert text_of(run).count("cannot be told: ") == 2


def test_counts() -> None:
    assert closing_line(Counts(1, 2, 3), files=1) == "6 call sites: 1 proven, 2 violated, 3 unproven; 1 file"
    assert closing_line(Counts(), files=2, errors=2, fixed=1).endswith("; 2 files; 2 errors; 1 fixed")


def test_a_call_site_counts_by_its_worst_rule() -> None:
    mixed = run_over("paged_attention(pages=n, block=4, mode='kv_head')\n" + UNPROVEN + BAD.replace("4", "3"))
    assert Counts.of(mixed.report.call_sites) == Counts(proven=1, violated=1, unproven=1)


def test_values_that_are_not_known_are_told_by_where_they_come_from() -> None:
    values = {"a": Value(UNKNOWN, "q.shape[0]"), "b": Value("q.shape[1]", "q.shape[1]"), "c": Value(4, "4"), "d": Value(None, "")}
    run = run_over(BAD, values=values)
    where = [line.strip() for line in render(run, "text").splitlines() if "where:" in line]
    assert where == ["= where: a = q.shape[0]", "= where: b = q.shape[1]", "= where: c = 4", "= where: d = None"]
    assert "the block must divide the pages: c = 4, d = None; a divisor" in render(run, "concise")


@pytest.mark.parametrize("path", ["a.py", "src/b c.py", "C:/x.py"])
def test_the_problem_matcher_reads_the_concise_format(path: str) -> None:
    matcher = json.loads((Path(__file__).parent.parent / "docs/problem-matcher.json").read_text())["problemMatcher"][0]
    (pattern,) = matcher["pattern"]
    lines = text_of(run_over(BAD, path=path), "concise").splitlines()
    (found,) = filter(None, (re.match(pattern["regexp"], line) for line in lines))
    read = {key: found[group] for key, group in pattern.items() if key != "regexp"}
    assert read == {
        "file": path, "line": "2", "column": "38", "code": "SC102",
        "message": "block-not-dividing: the block must divide the pages: pages = 6, block = 4; a divisor [*]",
    }  # fmt: skip
    assert re.match(pattern["regexp"], "a.ipynb:cell 3:2:5: SC102 x: y")[1] == "a.ipynb"  # type: ignore[index]
