from __future__ import annotations

import pytest

from codemods.check import summarise
from codemods.files import Found, Problem
from codemods.report import render

from .fake_analysis import BAD, GOOD, UNPROVEN, run_over


def test_a_finding_is_a_command() -> None:
    assert render(run_over(BAD), "github") == (
        "::error title=shapecheck (SC102),file=a.py,line=2,col=38,endLine=2,endColumn=39::"
        "a.py:2:38: SC102 block-not-dividing: the block must divide the pages: pages = 6, block = 4; a divisor\n"
    )


@pytest.mark.parametrize(
    ("text", "code", "level"), [(BAD, "SC102", "error"), (UNPROVEN, "SC102", "warning"), (BAD, "SC501", "notice")]
)
def test_the_level(text: str, code: str, level: str) -> None:
    assert render(run_over(text, code=code), "github").startswith(f"::{level} ")


def test_what_would_end_a_command_is_escaped() -> None:
    text = render(run_over(BAD, path="a,b:c%.py", message="100%\r\nof\x1b it", advice=""), "github")
    assert "file=a%2Cb%3Ac%25.py,line=2" in text
    assert text.endswith("::a,b:c%25.py:2:38: SC102 block-not-dividing: 100%25%0D%0Aof\ufffd it: pages = 6, block = 4\n")


def test_errors() -> None:
    run = summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], [])
    assert render(run, "github") == (
        "::error title=shapecheck (SC901),file=b.py,line=3::b.py:3: SC901 file-error: cannot be parsed: oh\n"
    )


def test_nothing_to_report_is_nothing() -> None:
    assert render(run_over(GOOD), "github") == ""
