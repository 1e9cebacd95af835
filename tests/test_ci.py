"""The workflows that are shown: they are YAML, their commands are run, and what these write is what the next step reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from . import sessions
from .test_readme import DOCS, ROOT, blocks_of

FILES = [ROOT / "examples" / ".github" / "workflows" / "check.yml", ROOT / "examples" / ".pre-commit-config.yaml"]
SHOWN = {
    **{f"ci.md:{block.line}": block.body for block in blocks_of(DOCS / "ci.md", "yaml")},
    **{path.name: path.read_text() for path in FILES},
}
MATCHER = json.loads((DOCS / "problem-matcher.json").read_text())["problemMatcher"][0]["pattern"][0]


def steps(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything that is run or used."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key in ("run", "uses"):
            yield key, value
        elif key == "script":
            yield from (("run", each) for each in value)
        else:
            yield from steps(value)


def commands(text: str) -> list[str]:
    return [value for kind, value in steps(yaml.safe_load(text)) if kind == "run"]


CHECKS = sorted({command for text in SHOWN.values() for command in commands(text) if command.startswith("shapecheck")})


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_yaml_and_names_versions(name: str) -> None:
    used = [value for kind, value in steps(yaml.safe_load(SHOWN[name])) if kind == "uses"]
    assert all(re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", each) for each in used)


@pytest.mark.parametrize("command", CHECKS)
def test_a_command_runs_and_writes_what_is_read(command: str) -> None:
    with sessions.scratch() as folder:
        status = sessions.run(f"{command} > output; echo $?", folder)
        assert status == ("0\n" if "--exit-zero" in command else "1\n")
        written = re.search(r"--output-file (\S+)", command)
        text = (folder / (written[1] if written else "output")).read_text()
    chosen = re.search(r"--output-format (\w+)", command)
    assert chosen is not None
    assert count(chosen[1], text) == 4


def count(output_format: str, text: str) -> int:
    """Return how many findings a report has, as its reader would."""
    match output_format:
        case "github":
            return len(re.findall(r"^::error title=shapecheck \(SC\d{3}\),file=serving/bench\.py,line=\d+", text, re.MULTILINE))
        case "sarif":
            return len(json.loads(text)["runs"][0]["results"])
        case "gitlab":
            return sum(issue["location"]["path"] == "serving/bench.py" for issue in json.loads(text))
        case "junit":
            return len(ElementTree.fromstring(text.encode()).findall(".//failure"))
    raise AssertionError(output_format)


@pytest.mark.parametrize("name", [name for name in SHOWN if name.startswith("ci.md")])
def test_what_a_later_step_reads_was_written(name: str) -> None:
    written = set(re.findall(r"--output-file (\S+)", SHOWN[name]))
    read = set(re.findall(r"^\s*(?:sarif_file|codequality|junit): (\S+)$", SHOWN[name], re.MULTILINE))
    assert written == read


@pytest.mark.parametrize("output_format", ["text", "concise"])
def test_the_matcher_reads_the_formats_for_people(output_format: str) -> None:
    with sessions.scratch() as folder:
        output = sessions.run(f"shapecheck check --output-format {output_format} .", folder)
    found = [each for line in output.splitlines() if (each := re.search(MATCHER["regexp"], line))]
    assert [each[MATCHER["code"]] for each in found] == ["SC102", "SC201", "SC101", "SC108"]
    assert {each[MATCHER["file"]] for each in found} == {"serving/bench.py"}


def test_the_tests_of_the_example_are_run_by_its_workflow() -> None:
    workflow = SHOWN["check.yml"]
    assert "python -m pytest" in commands(workflow)
    assert (ROOT / "examples" / "tests").is_dir()
