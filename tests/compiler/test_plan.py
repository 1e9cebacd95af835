"""What is planned compiles."""

from __future__ import annotations

import json

import pytest

from codemods import cli

pytest.importorskip("libtpu", reason="asks the TPU compiler, which is in libtpu")


def test_every_choice_that_is_planned_as_legal_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--q-heads", "28", "--kv-heads", "4", "--head-dim", "128", "--tp", "4")
    load = ("--batch", "8", "--context", "480", "--page-size", "32")
    assert cli.main(["plan", *model, *load, "--chip", "v5e,v6e", "--compile", "--no-cache", "--output-format", "json"]) == 0
    options = [option for each in json.loads(capsys.readouterr().out)["plans"] for option in each["options"]]
    assert len(options) == 8
    assert {(option["verdict"], option["compiler"]["compiles"]) for option in options} == {("proven", True)}
