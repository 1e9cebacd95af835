"""The changelog has the form of Keep a Changelog, and speaks of the version that is released."""

from __future__ import annotations

import re
import tomllib

import pytest

from .test_readme import ROOT

LOG = (ROOT / "CHANGELOG.md").read_text()
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
VERSIONS = re.split(r"^## ", LOG, flags=re.MULTILINE)[1:]


def test_versions_go_down_from_what_is_unreleased() -> None:
    names = [re.match(r"\[(.+?)\]( - \d{4}-\d\d-\d\d)?\n", version) for version in VERSIONS]
    assert all(names)
    unreleased, *released = (name[1] for name in names if name)
    assert unreleased == "Unreleased"
    assert released == sorted(released, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == released[0]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.split("]")[0])
def test_changes_are_listed_by_their_kind(version: str) -> None:
    kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
    assert kinds == [kind for kind in KINDS if kind in kinds]
    for body in re.split(r"^### .+\n", version, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(r"\n(- .+\n(  .+\n)*)+\n*", body), body


def test_how_to_contribute_fits_on_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 50
