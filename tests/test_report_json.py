from __future__ import annotations

import json
from typing import Any

from codemods.check import summarise
from codemods.files import Found, Problem
from codemods.findings import Contexts, Value
from codemods.report import render
from shapecheck.outcome import UNKNOWN

from .fake_analysis import BAD, UNPROVEN, run_over


def document(run: Any) -> Any:
    return json.loads(render(run, "json"), parse_constant=lambda name: 1 / 0)


def test_every_key_is_there() -> None:
    assert document(run_over("é = 1; " + BAD.splitlines()[1] + "\n")) == {
        "version": 1,
        "findings": [
            {
                "code": "SC102",
                "name": "block-not-dividing",
                "verdict": "violated",
                "severity": "error",
                "path": "a.py",
                "line": 1,
                "column": 45,
                "end_line": 1,
                "end_column": 46,
                "call_line": 1,
                "callee": "paged_attention",
                "message": "the block must divide the pages: pages = 6, block = 4; a divisor",
                "relation": "pages % block == 0",
                "values": {"pages": {"value": 6, "origin": "page_indices.shape[1]"}, "block": {"value": 4, "origin": ""}},
                "counterexample": None,
                "contexts": None,
                "fix": {"applicability": "safe", "message": "use 3"},
            }
        ],
        "call_sites": [
            {
                "path": "a.py",
                "line": 1,
                "column": 14,
                "callee": "paged_attention",
                "contract": "paged_attention",
                "verdicts": {"SC102": "violated", "SC201": "proven"},
            }
        ],
        "errors": [],
        "summary": {
            "files": 1,
            "parsed": 1,
            "call_sites": 1,
            "proven": 0,
            "violated": 1,
            "unproven": 0,
            "suppressed": 0,
            "baselined": 0,
            "fixed": 0,
        },
    }


def test_what_is_unproven() -> None:
    [finding] = document(run_over(UNPROVEN))["findings"]
    assert finding["verdict"] == "unproven"
    assert finding["counterexample"] == {"pages": 5}
    assert finding["values"]["pages"] == {"value": None, "origin": "page_indices.shape[1]"}
    assert "unproven: `n` is a parameter" in finding["message"]


def test_contexts() -> None:
    [finding] = document(run_over(BAD, contexts=Contexts(1, 2, {"shape": (2, UNKNOWN)}), fix=None))["findings"]
    assert finding["contexts"] == {"violating": 1, "total": 2, "example": {"shape": [2, None]}}
    assert finding["fix"] is None


def test_values_that_json_has_no_word_for() -> None:
    values = {"cap": float("inf"), "mask": -1.5, "shape": (1, (2, "x")), "mode": None, "flag": True, "other": {1}}
    [finding] = document(run_over(BAD, values={name: Value(value, "") for name, value in values.items()}))["findings"]
    assert {name: each["value"] for name, each in finding["values"].items()} == {
        "cap": "inf", "mask": -1.5, "shape": [1, [2, "x"]], "mode": None, "flag": True, "other": "{1}",
    }  # fmt: skip


def test_a_hint_is_told_from_an_error() -> None:
    assert document(run_over(BAD, code="SC501"))["findings"][0]["severity"] == "hint"
    assert document(run_over(BAD, code="SC902"))["findings"][0]["severity"] == "hint"


def test_errors() -> None:
    run = summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], [])
    assert document(run)["errors"] == [{"code": "SC901", "path": "b.py", "line": 3, "message": "cannot be parsed: oh"}]
    assert document(run)["summary"]["files"] == 2
