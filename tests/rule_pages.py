"""The page of each rule, made of the rule itself: `python -m tests.test_readme` writes them to `docs/rules/`."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from codemods.analyse import analyse
from codemods.check import Run, check
from codemods.codes import severity
from codemods.config import Configuration
from codemods.explain import Case, Explanation, explanations
from codemods.files import discover
from codemods.report import render
from codemods.words import Words
from shapecheck import ContractError
from shapecheck.contracts import CONTRACTS
from shapecheck.contracts.paged_attention import PORTABLE_PAGED_ATTENTION
from shapecheck.contracts.ragged_paged_attention import PORTABLE_RAGGED_PAGED_ATTENTION
from shapecheck.demands import OWN_CODE
from shapecheck.values import SETTING

FOLDER = Path(__file__).parent.parent / "docs" / "rules"
FILE = "example.py"
_SPEAKER = re.compile(r" \(as Python [\d.]+\)")  # whose message it is
_DOORS = {each.name: each for each in (PORTABLE_PAGED_ATTENTION, PORTABLE_RAGGED_PAGED_ATTENTION)}
_KERNELS = re.compile(r"^from jax\.experimental\.pallas\.ops\.tpu\.\w+ import (\w*paged_attention)$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    return {FOLDER / f"{each.code}.md": "\n".join(_page(each)) + "\n" for each in explanations()}


def settings(code: str, chip: str) -> Configuration:
    """Return those with which a rule is judged: a chip is declared, and a hint selected."""
    select = {"select": (code,)} if severity(code) == "hint" else {}
    chips = {"chips": (chip,)} if chip else {}
    return Configuration(lambda each: each._replace(**select, **chips))


@cache
def checked(program: str, code: str, chip: str) -> Run:
    """Return what `check` says of a program."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(FILE).write_text(program)
        return check(discover([FILE], settings(code, chip), Words()), analyse)


def through_the_front_door(program: str) -> str:
    """Return the program with calls of `kernel` in place of those of JAX."""
    return _KERNELS.sub(r"from kernel import \1", program)


@cache
def refusal(program: str, *, traced: bool = False) -> ContractError | None:
    """Return how the front door refuses a program; its values are looked at, but where it is only traced."""
    import jax

    code = compile(through_the_front_door(program), FILE, "exec", dont_inherit=True)
    namespace: dict[str, Any] = {"__name__": "example"}
    before, SETTING.on = SETTING.on, True
    try:
        if traced:
            jax.eval_shape(lambda: exec(code, namespace))
        else:
            exec(code, namespace)
    except ContractError as error:
        return error
    finally:
        SETTING.on = before
    return None


def said_by_jax(program: str) -> str:
    """Return the error that tracing a program ends in, its first line; empty where there is none."""
    import jax

    code = compile(program, FILE, "exec", dont_inherit=True)
    try:
        jax.eval_shape(lambda: exec(code, {"__name__": "example"}))
    except Exception as error:
        words = "" if isinstance(error, ZeroDivisionError) else str(error).partition("\n")[0]  # Python's own words change
        return f"{type(error).__name__}: {words}".removesuffix(": ")
    return ""


def is_traced(code: str, case: Case) -> bool:
    """Say whether a case is a call of a kernel of JAX, of which more can be said than what a TPU makes of it."""
    rules = CONTRACTS[case.kernel].rules if _KERNELS.search(case.failing) and case.kernel else ()
    return any(rule.code == code and not rule.on_tpu and not rule.is_hint for rule in rules)


def is_refused(code: str, kernel: str) -> bool:
    """Say whether the front door of a kernel refuses calls that break a rule on a machine without a TPU."""
    door = _DOORS.get(kernel)
    rule = next((each for each in door.rules if each.code == code), None) if door else None
    if door is None or rule is None or rule.is_hint:
        return False
    looks = bool(door.values_parameter) or door.value_names.isdisjoint(rule.names)
    return looks and not rule.on_tpu and not rule.needs_chip


def _page(rule: Explanation) -> Iterator[str]:
    yield f"# {rule.code} {rule.name}"
    yield from ("", f"**{rule.message}**", "", _linked(rule.text))
    for kernel, text in rule.others:
        yield from ("", f"`{kernel}`: {_linked(text)}")
    if rule.hardware:
        yield from ("", f"On which hardware: {rule.hardware}")
    if rule.demands:
        yield from ("", "## What must hold", "", *_block("text", "\n".join(rule.demands)))
    for case in rule.cases:
        yield from ("", "## Example" if case is rule.cases[0] else f"## With `{case.kernel}`", "", *_example(rule.code, case))
    if rule.notes:
        yield from ("", "## Repair and suppress")
        yield from (line for note in rule.notes for line in ("", note))
    if rule.sources:
        yield from ("", "## Sources", "", *(f"- {source}" for source in rule.sources))
    if rule.related:
        yield from ("", "## See also", "", ", ".join(map(_link, rule.related)))


def _example(code: str, case: Case) -> Iterator[str]:
    yield from (f"This fails{f', on a {case.chip}' if case.chip else ''}:", "", *_block("python", case.failing), "")
    applicability = ""
    if case.in_source:
        run = checked(case.failing, code, case.chip)
        told = [_SPEAKER.sub("", line) for line in render(run, "concise").splitlines() if line.startswith(FILE)]
        options = f"{f' --chip {case.chip}' if case.chip else ''}{f' --select {code}' if severity(code) == 'hint' else ''}"
        yield from (f"`shapecheck check{options} {FILE}`:", "", *_block("text", "\n".join(told)), "")
        applicability = next((each.fix.applicability for each in run.report.findings if each.fix and each.fix.edits), "")
    else:
        yield from ("`check` cannot tell, as it takes what only a run knows.", "")
    if is_traced(code, case):
        said = said_by_jax(case.failing)
        yield from (
            ("What JAX says (0.10 to 0.12):", "", *_block("text", said), "") if said else ("JAX traces it without a word.", "")
        )
    if code == OWN_CODE or is_refused(code, case.kernel):
        error = refusal(case.failing)
        values = " with `check_values=True`" if code.startswith("SC4") else ""
        yield from (
            "At call time:" if code == OWN_CODE else f"At call time, by `kernel.{case.kernel}`{values}:",
            "",
            *_block("text", f"ContractError: {error}"),
            "",
        )
    if case.repaired == case.failing:
        yield f"It is legal on a {case.moved_to}."
        return
    fix = {"safe": "What `shapecheck fix` makes of it:", "unsafe": "What `shapecheck fix --unsafe-fixes` makes of it:"}
    yield from (fix.get(applicability, "Repaired:"), "", *_block("python", case.repaired))


def _block(language: str, text: str) -> Iterator[str]:
    yield from (f"```{language}", *text.strip("\n").splitlines(), "```")


def _link(code: str) -> str:
    return f"[{code}]({code}.md)"


def _linked(text: str) -> str:
    """Return a text with a link at each code that it names outside of quoted code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"SC\d{3}", lambda found: _link(found[0]), part) for part in parts[::2]]
    return "`".join(parts)
