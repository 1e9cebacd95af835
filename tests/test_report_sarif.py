from __future__ import annotations

import json
from typing import Any

from codemods.check import Run, summarise
from codemods.files import Found, Problem
from codemods.report import render

from .fake_analysis import BAD, GOOD, UNPROVEN, run_over


def only_run(run: Run) -> Any:
    log = json.loads(render(run, "sarif"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    [each] = log["runs"]
    return each


def test_a_finding_is_a_result_of_its_rule() -> None:
    run = only_run(run_over(BAD))
    [result] = run["results"]
    assert result == {
        "ruleId": "SC102",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "the block must divide the pages: pages = 6, block = 4; a divisor"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "a.py"},
                    "region": {"startLine": 2, "startColumn": 38, "endLine": 2, "endColumn": 39},
                }
            }
        ],
    }
    [rule] = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("SC102", "block-not-dividing")
    assert rule["fullDescription"]["text"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_the_level() -> None:
    assert only_run(run_over(UNPROVEN))["results"][0]["level"] == "warning"
    assert only_run(run_over(BAD, code="SC902"))["results"][0]["level"] == "note"


def test_a_path_is_a_reference() -> None:
    [result] = only_run(run_over(BAD, path="a b/é#%\udcff.py"))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%A9%23%25%FF.py"


def test_errors_are_notifications() -> None:
    run = only_run(summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], []))
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "cannot be parsed: oh"
    assert notification["descriptor"]["id"] == "SC901"
    assert run["results"] == []


def test_nothing_to_report_is_a_run_without_results() -> None:
    run = only_run(run_over(GOOD))
    assert run["results"] == run["tool"]["driver"]["rules"] == []
