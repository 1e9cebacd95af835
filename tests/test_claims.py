"""What `check` says of a fix is what `fix` does."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.check import check
from codemods.config import Configuration, Settings
from codemods.files import discover
from codemods.findings import Finding
from codemods.fix import fix
from codemods.words import Words
from shapecheck.rule import Applicability, Verdict

CASES = Path(__file__).parent / "cases"
SOURCES = [path for path in sorted(CASES.rglob("*.py")) if ".fixed" not in path.name]
TWO_CHIPS = ("v5p", "v5e")  # one has two cores, the other one


def claimed(finding: Finding, *, unsafe: bool) -> bool:
    if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
        return False
    return unsafe or finding.fix.applicability is Applicability.SAFE


def declaring(settings: Settings, chips: tuple[str, ...]) -> Settings:
    return settings._replace(chips=chips, unproven=True)


def broken_claims(file: Path, chips: tuple[str, ...], *, unsafe: bool) -> Counter[tuple[str, Verdict]]:
    """Return the findings of which it is said that `fix` repairs them, and that are there afterwards.

    What was violated may be unproven then: not every caller may be known.
    """
    found = discover([file.name], Configuration(partial(declaring, chips=chips)), Words())
    findings = check(found, analyse).report.findings
    claims = {finding.code for finding in findings if claimed(finding, unsafe=unsafe)}
    if not claims:
        return Counter()
    run, _ = fix(found, analyse, None, unsafe=unsafe)
    left = Counter((each.code, each.verdict) for each in findings if not claimed(each, unsafe=unsafe))
    left.update((each.code, Verdict.UNPROVEN) for each in findings if each.verdict is Verdict.VIOLATED)
    return Counter((each.code, each.verdict) for each in run.report.findings if each.code in claims) - left


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(CASES)))
def test_what_is_said_to_be_fixable_is_fixed(source: Path, unsafe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_bytes(source.read_bytes())
    Path("pyproject.toml").touch()
    chips = TWO_CHIPS if source.parent.name == "fix" else ()
    assert broken_claims(Path("a.py"), chips, unsafe=unsafe) == Counter()


CALL = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="kv_head")
"""


@pytest.mark.parametrize(("chips", "mode"), [((), "'batch'"), (("v5p",), "'batch'"), (("v5e",), "None"), (TWO_CHIPS, "None")])
def test_a_mode_is_one_that_every_chip_allows(
    chips: tuple[str, ...], mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(CALL)
    found = discover(["a.py"], Configuration(partial(declaring, chips=chips)), Words())
    [finding] = [each for each in check(found, analyse).report.findings if each.code == "SC201"]
    assert ("batch" in finding.advice) is (mode != "None")
    run, [change] = fix(found, analyse, None)
    assert run.report.findings == []
    assert change.after.decode() == CALL.replace('"kv_head"', mode.replace("'", '"'))


def test_of_a_stub_nothing_is_said_to_be_fixable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pyi").write_text(CALL)
    [finding] = check(discover(["a.pyi"], Configuration(), Words()), analyse).report.findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY
