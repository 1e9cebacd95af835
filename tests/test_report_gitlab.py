from __future__ import annotations

import json
from typing import Any

from codemods.check import summarise
from codemods.files import Found, Problem
from codemods.report import render

from .fake_analysis import BAD, GOOD, UNPROVEN, run_over


def issues(*arguments: Any, **changes: Any) -> Any:
    return json.loads(render(run_over(*arguments, **changes), "gitlab"))


def test_a_finding_is_an_issue() -> None:
    [issue] = issues(BAD)
    assert len(issue.pop("fingerprint")) == 32
    assert issue == {
        "description": "SC102 block-not-dividing: the block must divide the pages: pages = 6, block = 4; a divisor",
        "check_name": "SC102",
        "severity": "critical",
        "location": {"path": "a.py", "lines": {"begin": 2}},
    }


def test_the_severity() -> None:
    assert issues(UNPROVEN)[0]["severity"] == "minor"
    assert issues(BAD, code="SC902")[0]["severity"] == "info"


def test_each_fingerprint_is_its_own() -> None:
    found = [issue["fingerprint"] for issue in issues(BAD + BAD)]
    assert len(set(found)) == 2


def test_a_file_that_cannot_be_checked_is_an_issue() -> None:
    [issue] = json.loads(render(summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], []), "gitlab"))
    assert issue["description"] == "SC901 file-error: cannot be parsed: oh"
    assert (issue["severity"], issue["location"]) == ("blocker", {"path": "b.py", "lines": {"begin": 3}})


def test_nothing_to_report_is_an_empty_list() -> None:
    assert issues(GOOD) == []
