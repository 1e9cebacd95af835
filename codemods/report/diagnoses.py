"""How `explain` tells what a text means."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.diagnose import Diagnosis, Remark, Unplaced
from codemods.explain import explanation_of
from codemods.report.wording import plain, printable
from shapecheck.compiler.answer import mebibytes
from shapecheck.demands import OWN_CODE

_WIDTH = 88


def as_text(found: Iterable[Diagnosis]) -> str:
    """Return each rule with the cause, the numbers, what would be legal, and where the call is."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in found)


def of_remarks(remarks: Iterable[Remark]) -> str:
    """Return what words mean that tell of no broken rule."""
    return "\n".join(f"line {each.line}: {printable(each.text)}\n\n{_wrapped(each.message)}\n" for each in remarks)


def nothing_found(unplaced: Iterable[Unplaced]) -> str:
    """Say that nothing is recognised, and what comes near to it."""
    lines = ["nothing in this text is known to be about one of the kernels; `shapecheck explain` lists the rules"]
    lines += [f"  line {each.line}: {printable(each.text)}\n    {printable(each.reason)}" for each in unplaced]
    return "\n".join(lines)


def _lines(each: Diagnosis) -> Iterator[str]:
    rule = each.rule
    doubt = "" if each.certain else " may be the cause"
    yield f"{_title(each)}{doubt} ({each.contract.name})"
    yield f"  line {each.line}: {printable(each.text)}"
    yield ""
    yield f"  What must hold: {rule.message}" if rule.code != OWN_CODE else f"  What must hold: {rule.relation.text}"
    yield from (f"      {line}" for line in _numbers(each))
    yield from (f"  {words}" for words in _help(each))
    if rule.explanation:
        yield ""
        yield _wrapped(rule.explanation)
    for repair in explanation_of(rule.code).repairs:
        yield ""
        yield _wrapped(repair)
    yield from ("", *_next(each))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _title(each: Diagnosis) -> str:
    rule = each.rule
    return rule.code if rule.name == rule.relation.text else f"{rule.code} {rule.name}"


def _numbers(each: Diagnosis) -> Iterator[str]:
    for name, value in each.shown.items():
        origin = each.contract.origins.get(name, name)
        yield f"{name} = {value!r}" + (f"   ({origin})" if origin != name else "")
    if each.used and each.limit:
        yield f"the compiler wants {mebibytes(each.used)}, and there are {mebibytes(each.limit)}"


def _help(each: Diagnosis) -> Iterator[str]:
    if each.advice:
        yield f"Help: {'; or '.join(each.advice)}"
    elif shape := _shape(each):
        yield f"Help: {shape}"
    for other in each.also:
        yield f"The same numbers break {other.code} {other.name}: {other.message}"


def _shape(each: Diagnosis) -> str:
    """Return the axes of the argument at fault, where its rank is."""
    array = next((array for array in each.contract.arrays if array.name == each.argument), None)
    return f"{array.name} of shape ({', '.join(array.axes)})" if array and f"{array.name}_rank" in each.rule.names else ""


def _next(each: Diagnosis) -> Iterator[str]:
    """Yield where the call is, and what to run next."""
    if (place := each.place) is not None:
        function = f", in {place.function}" if place.function else ""
        yield f"  Your code: {printable(place.path)}:{place.line}{printable(function)}"
        if os.path.isfile(place.path) and os.access(place.path, os.R_OK):
            yield f"  See the call: shapecheck check {printable(shlex.quote(place.path))}"
    yield f"  More: shapecheck explain {each.rule.code}"


def document(each: Diagnosis) -> dict[str, Any]:
    place = each.place
    return {
        "code": each.rule.code,
        "name": each.rule.name,
        "callee": each.contract.name,
        "certain": each.certain,
        "line": each.line,
        "text": each.text,
        "message": each.rule.message,
        "explanation": each.rule.explanation,
        "relation": each.rule.relation.text,
        "values": {
            name: {"value": plain(value), "origin": each.contract.origins.get(name, name)} for name, value in each.shown.items()
        },
        "memory": {"used": each.used, "limit": each.limit} if each.used or each.limit else None,
        "advice": list(each.advice) or [shape for shape in [_shape(each)] if shape],
        "also": [rule.code for rule in each.also],
        "place": {"path": place.path, "line": place.line, "function": place.function} if place else None,
        "repairs": list(explanation_of(each.rule.code).repairs),
    }
