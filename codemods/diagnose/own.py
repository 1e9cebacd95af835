"""The rules that shapecheck itself names: in an error at call time, and in what `check` prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codemods.codes import names
from codemods.diagnose.diagnosis import Diagnosis
from codemods.diagnose.pasted import Frame, Pasted, snippet
from shapecheck.contract import Contract, Parameter
from shapecheck.contracts import CONTRACTS, FRONT_DOORS
from shapecheck.demands import OWN_CODE, relation
from shapecheck.relation import RelationError
from shapecheck.rule import Rule

_NAMED = re.compile(r"\b(SC\d{3}) ([a-z0-9]+(?:-[a-z0-9]+)*)")
_STATED = re.compile(rf"^\s*{OWN_CODE} (?:(?P<name>[^:]{{1,80}}): )?(?P<relation>.{{1,400}})$")
_CALLEE = re.compile(r"\b(\w+): \d+ relations? do(?:es)? not hold")
_PLACE = re.compile(r"(?P<path>[^\s:]+\.(?:pyi?|ipynb)):(?:cell \d+:)?(?P<line>\d{1,9}):\d+: SC")
_VALUE = r"([a-z]\w*) = ('[^'\n]{0,60}'|-?\d{1,15}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?|None|True|False|\([\d, ]{0,80}\))"
_BESIDE = re.compile(rf"(?<![\w.]){_VALUE}")
_BELOW = re.compile(rf"\s*(?:= where: )?{_VALUE}(?:\s+\(.*\))?\s*")
_NEAR = 60  # lines below a rule that may give values, and above it that may give the callee


def diagnosed(pasted: Pasted) -> Iterator[Diagnosis]:
    """Yield the rules that a text of shapecheck names, with the values that it gives."""
    for number, line in enumerate(pasted.lines):
        if "SC" not in line:
            continue
        if (found := _STATED.match(line)) and (stated := _stated(found, pasted, number)):
            yield stated
        for match in _NAMED.finditer(line):
            code, name = match.groups()
            if names().get(code) == name and (uses := list(_uses(code))):
                read = _values(pasted, number, match.end())
                contract, rule = _fitting(uses, read, _callee(pasted, number))
                yield _diagnosis(contract, rule, read, pasted, number)


def _diagnosis(contract: Contract, rule: Rule, read: Mapping[str, Any], pasted: Pasted, number: int) -> Diagnosis:
    known = {name: value for name, value in read.items() if name in contract.origins}
    text = snippet(pasted.lines[number])
    return Diagnosis(rule, contract, number + 1, text, known, place=_place(pasted, number), argument=rule.argument)


def _stated(found: re.Match[str], pasted: Pasted, number: int) -> Diagnosis | None:
    """Return the relation of a user's own contract that a line tells of."""
    try:
        rule = relation(found["relation"], name=found["name"] or "")
    except RelationError:
        return None
    parameters = tuple(Parameter(name) for name in rule.names)
    contract = Contract(_callee(pasted, number) or "your function", arrays=(), parameters=parameters, rules=(rule,))
    return _diagnosis(contract, rule, _values(pasted, number, found.end()), pasted, number)


def _uses(code: str) -> Iterator[tuple[Contract, Rule]]:
    """Yield the contracts that have a rule of that code."""
    for contract in (*CONTRACTS.values(), *FRONT_DOORS):
        yield from ((contract, rule) for rule in contract.rules if rule.code == code)


def _fitting(uses: list[tuple[Contract, Rule]], read: Mapping[str, Any], callee: str) -> tuple[Contract, Rule]:
    """Return the first of the callee's contracts, or else of all, that has the names of the values."""
    return max(uses, key=lambda use: (use[0].name == callee, sum(name in use[0].origins for name in read)))


def _callee(pasted: Pasted, number: int) -> str:
    for line in reversed(pasted.lines[max(0, number - _NEAR) : number + 1]):
        if found := _CALLEE.search(line):
            return found[1]
    return ""


def _values(pasted: Pasted, number: int, column: int) -> dict[str, Any]:
    """Return the values on the line, and those that have lines of their own below it, up to the next rule."""
    assigned = _BESIDE.findall(pasted.lines[number][column:])
    for line in pasted.lines[number + 1 : number + _NEAR]:
        if "SC" in line and (_NAMED.search(line) or _STATED.match(line)):
            break
        if found := _BELOW.fullmatch(line):
            assigned.append(found.groups())
    return {name: ast.literal_eval(value) for name, value in reversed(assigned)}


def _place(pasted: Pasted, number: int) -> Frame | None:
    """Return the place that `check` gives, or the user's own frame in the traceback of an error."""
    if found := _PLACE.search(pasted.lines[number]):
        return Frame(found["path"], int(found["line"]), "", number)
    return pasted.own_frame(number)
