from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from codemods.check import Run, summarise
from codemods.files import Found, Problem
from codemods.findings import Edit, FileError, Note, ProposedFix
from codemods.report import render
from codemods.report.fingerprints import fingerprints
from shapecheck.rule import Applicability

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
        "partialFingerprints": {"shapecheck/v1": result["partialFingerprints"]["shapecheck/v1"]},
        "fixes": [
            {
                "description": {"text": "use 3 (safe)"},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": "a.py"},
                        "replacements": [
                            {
                                "deletedRegion": {"startLine": 2, "startColumn": 38, "endLine": 2, "endColumn": 39},
                                "insertedContent": {"text": "3"},
                            }
                        ],
                    }
                ],
            }
        ],
    }
    [rule] = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("SC102", "block-not-dividing")
    assert rule["fullDescription"]["text"]
    assert "pages_per_sequence % pages_per_compute_block == 0" in rule["help"]["text"]
    assert "Suppress: `# shapecheck: ignore[SC102]`" in rule["help"]["text"]
    assert "\n    +     q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=12\n" in rule["help"]["text"]
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


def test_advice_without_an_edit_is_no_fix() -> None:
    advice = ProposedFix(Applicability.DISPLAY, "look there")
    assert "fixes" not in only_run(run_over(BAD, fix=advice))["results"][0]
    elsewhere = ProposedFix(Applicability.SAFE, "use 3", (Edit(0, 1, "3", "not_at_hand.py"),))
    assert "fixes" not in only_run(run_over(BAD, fix=elsewhere))["results"][0]


# What SARIF's schema says of the objects that are written here: the keys that each may have, those it must have marked by `!`.
# The schema itself may not be copied into this repository; the whole of it was asked when this was written.
SCHEMA = {
    "": "$schema version! runs!",
    "runs": "tool! invocations columnKind results",
    "tool": "driver! extensions",
    "driver": "name! version rules",
    "rules": "id! name shortDescription fullDescription help defaultConfiguration",
    "shortDescription": "text! markdown",
    "fullDescription": "text! markdown",
    "help": "text! markdown",
    "defaultConfiguration": "level",
    "invocations": "executionSuccessful! toolExecutionNotifications",
    "toolExecutionNotifications": "message! level descriptor locations",
    "descriptor": "id",
    "results": "message! ruleId ruleIndex level locations partialFingerprints fixes",
    "message": "text",
    "description": "text",
    "locations": "physicalLocation",
    "physicalLocation": "artifactLocation region",
    "artifactLocation": "uri",
    "region": "startLine startColumn endLine endColumn",
    "deletedRegion": "startLine startColumn endLine endColumn",
    "fixes": "artifactChanges! description",
    "artifactChanges": "artifactLocation! replacements!",
    "replacements": "deletedRegion! insertedContent",
    "insertedContent": "text",
    "partialFingerprints": "shapecheck/v1",
}


def offences(value: Any, key: str = "") -> Iterator[str]:
    """Yield what the schema does not have."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            allowed = SCHEMA[key].split()
            needed = {name.rstrip("!") for name in allowed if name.endswith("!")}
            yield from (f"{key}.{name} is missing" for name in needed - set(each))
            yield from (f"{key}.{name} is unknown" for name in set(each) - {name.rstrip("!") for name in allowed})
            for name, inner in each.items():
                yield from offences(inner, name)
        elif key == "level":
            yield from [] if each in ("none", "note", "warning", "error") else [f"level {each}"]
        elif isinstance(each, int) and not isinstance(each, bool):
            yield from [] if each >= (0 if key == "ruleIndex" else 1) else [f"{key} {each}"]


def test_a_log_is_what_the_schema_says() -> None:
    both = run_over(BAD + UNPROVEN + "paged_attention(pages=8, block=4, mode='kv_head')\n")
    assert len(only_run(both)["results"]) == 3
    both.report.errors.append(FileError("b.py", 3, "cannot be parsed: oh"))
    both.report.notes.append(Note("b.py", 3, "adopted"))
    assert list(offences(json.loads(render(both, "sarif")))) == []


def test_a_fingerprint_stays_when_lines_move() -> None:
    [before] = fingerprints(run_over(BAD))
    assert list(fingerprints(run_over("# a comment\n\n" + BAD.replace("pages=6, block=4", "\n    pages=6,\n    block=4")))) == [
        before
    ]
    assert before not in fingerprints(run_over(BAD, path="b.py"))
    assert before not in fingerprints(run_over(BAD, code="SC103"))
    assert before not in fingerprints(run_over(BAD.replace("6", "10")))
    twice = list(fingerprints(run_over(BAD + BAD)))
    assert twice[0] == before != twice[1]
