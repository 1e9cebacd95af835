"""How every format words a finding and its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from codemods.callees import TYPE_ERROR
from codemods.codes import SIGNATURE
from codemods.findings import Finding, Value
from codemods.source import Span
from shapecheck.outcome import UNKNOWN
from shapecheck.rule import Verdict

_TAB = "    "


def sentence(finding: Finding) -> str:
    """Return a finding on one line: the demand, the values known, and what would be legal or why it cannot be told."""
    known = {name: value.value for name, value in finding.values.items() if is_known(value)}
    told = python_says(finding) or assignments(known)
    parts = [f"{finding.message}: {told}" if told else finding.message]
    if finding.verdict is Verdict.UNPROVEN:
        parts.append(f"unproven: {finding.reason}" if finding.reason else "unproven")
        parts += [f"fails when {assignments(finding.counterexample)}"] if finding.counterexample else []
    elif finding.advice:
        parts.append(finding.advice)
    return "; ".join(parts)


def python_says(finding: Finding) -> str:
    """Return Python's own words for a call that does not fit the parameters; nothing for any other finding."""
    return str(finding.values[TYPE_ERROR].value) if finding.code == SIGNATURE and TYPE_ERROR in finding.values else ""


def place(span: Span) -> str:
    """Return e.g. `12:5`, and in a notebook `cell 3:2:5`, as ruff has it."""
    return f"{in_cell(span.cell.number if span.cell else None)}{span.shown.line}:{span.column}"


def in_cell(number: int | None) -> str:
    """Return what precedes a line in a cell."""
    return "" if number is None else f"cell {number}:"


def is_known(value: Value) -> bool:
    """Say whether a value is more than the expression it comes from."""
    return value.value is not UNKNOWN and value.value != value.origin


def assignments(values: Mapping[str, Any]) -> str:
    """Return e.g. `num_kv_heads = 3, megacore_mode = 'kv_head'`."""
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def shown(value: Value) -> str:
    """Return a value with where it comes from, if that says more."""
    if not is_known(value):
        return value.origin or "unknown"
    text = repr(value.value)
    return text if value.origin in ("", text) else f"{text}  ({value.origin})"


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; what is unknown is null."""
    if value is UNKNOWN:
        return None
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return repr(value)


def printable(text: str) -> str:
    """Return text that a terminal shows as it is: no escapes, no characters that move what follows."""
    if text.isprintable():
        return text
    return "".join(_TAB if each == "\t" else each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
