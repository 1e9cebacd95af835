"""The examples of the rules: the failing one is refused for exactly that rule, the repaired one is not; and their pages."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from codemods.analyse import analyse
from codemods.callees import CALLEES
from codemods.codes import OWN_CODES
from codemods.explain import Case, case_of, explanations
from codemods.files import discover
from codemods.fix import fix
from codemods.words import Words
from shapecheck import Verdict
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS, FRONT_DOORS
from shapecheck.demands import OWN_CODE
from shapecheck.rule import Rule

from . import rule_pages
from .rule_pages import FILE, FOLDER, checked, is_refused, refusal, settings

WITHOUT = {
    "SC399": "what the compiler refuses and no rule describes: a call of which that is known would be a reason for a rule",
    "SC903": "a defect of a contract: none is known",
}


SAMPLES = {contract.sample for contract in (*CONTRACTS.values(), *FRONT_DOORS)}
"""These are executed; other repaired calls are only traced, as it takes half a minute to compile them all."""


class Shown(NamedTuple):
    """An example of a code; `rule` is None for a code that no contract has."""

    code: str
    case: Case
    rule: Rule | None = None

    def __str__(self) -> str:
        return f"{self.code}-{self.case.kernel}"


def rules() -> Iterator[tuple[Contract, Rule]]:
    """Yield the rules that a call can break, as it can give the argument; of front doors those that are theirs alone."""
    for contract in (*CONTRACTS.values(), *FRONT_DOORS):
        behind = {rule.code for rule in CONTRACTS[contract.name].rules} if contract in FRONT_DOORS else set[str]()
        given = {
            callee.contract_name(name)
            for callee in CALLEES.values()
            if callee.contract.name == contract.name
            for name in callee.signature.parameters
        }
        yield from ((contract, rule) for rule in contract.rules if rule.code not in behind and rule.argument in given)


def shown() -> list[Shown]:
    own = [Shown(each.code, case) for each in explanations() if each.code in OWN_CODES for case in each.cases]
    return own + [Shown(rule.code, case, rule) for contract, rule in rules() if (case := case_of(contract, rule)) is not None]


def fixed(program: str, each: Shown, *, unsafe: bool) -> str:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(FILE).write_text(program)
        _, changes = fix(discover([FILE], settings(each.code, each.case.chip), Words()), analyse, None, unsafe=unsafe)
    return changes[0].after.decode() if changes else program


def test_every_rule_has_an_example() -> None:
    """The edit of an example is one to the sample of each contract that has the rule."""
    assert [f"{contract.name}: {rule.code}" for contract, rule in rules() if rule.example is None] == []
    assert {code for code, own in OWN_CODES.items() if own.example is None} == set(WITHOUT)


@pytest.mark.parametrize("each", shown(), ids=str)
def test_check_reports_the_failing_one_for_exactly_that_rule(each: Shown) -> None:
    report = checked(each.case.failing, each.code, each.case.chip).report
    told = {finding.code for finding in report.findings if finding.verdict is Verdict.VIOLATED} | {e.code for e in report.errors}
    assert told == ({each.code} if each.case.in_source else set())


@pytest.mark.parametrize("each", shown(), ids=str)
def test_check_reports_nothing_of_the_repaired_one(each: Shown) -> None:
    report = checked(each.case.repaired, each.code, each.case.moved_to).report
    assert [finding.code for finding in report.findings if finding.verdict is Verdict.VIOLATED] == []
    assert report.errors == []


@pytest.mark.parametrize("each", shown(), ids=str)
def test_the_repaired_one_is_what_fix_makes_of_the_failing_one(each: Shown) -> None:
    fixes = [finding.fix for finding in checked(each.case.failing, each.code, each.case.chip).report.findings if finding.fix]
    offered = [each.applicability for each in fixes if each.edits]
    assert (offered != []) == ((each.rule is not None and each.rule.fix is not None) or each.code == "SC902")
    if offered:
        assert fixed(each.case.failing, each, unsafe=offered == ["unsafe"]) == each.case.repaired


@pytest.mark.parametrize(
    "each", [each for each in shown() if each.code == OWN_CODE or is_refused(each.code, each.case.kernel)], ids=str
)
def test_at_call_time_the_failing_one_is_refused_and_the_repaired_one_is_not(each: Shown) -> None:
    error = refusal(each.case.failing)
    assert error is not None
    assert {violation.rule.code for violation in error.violations} == {each.code}
    assert refusal(each.case.repaired, traced=each.case.repaired not in SAMPLES) is None


def test_the_pages_are_those_of_the_rules() -> None:
    """`python -m tests.test_readme` brings them up to date."""
    pages = rule_pages.pages()
    assert {*FOLDER.iterdir()} == {*pages}
    assert [page.name for page, text in pages.items() if page.read_text() != text] == []


def test_every_rule_says_what_it_rests_on() -> None:
    assert [each.code for each in explanations() if each.code not in OWN_CODES and not all(each.sources)] == []
    assert all(each.hardware for each in explanations() if each.code not in OWN_CODES)
