"""The cases that a test's decorators and fixtures spell out: `pytest.mark.parametrize` and absl's `parameterized`."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import fixtures, iteration
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.values import DictRef, External, ListRef, Opaque, Partial, Value, describe

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

MAX_CASES = 1024

Case = dict[str, Value]


class TooMany(Exception):
    """There are more cases than are followed."""


def of(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Case]:
    """Return the cases of a test function, each with the parameters that it sets; none where nothing spells them out.

    Raises:
        TooMany: there are more than are followed.
    """
    sides: list[list[Case]] = []
    for decorator in node.decorator_list:
        try:
            side = _cases(machine, decorator, node)
        except (Unmodelled, Dies):
            side = []
        if side:
            sides.append(side)
    sides += fixtures.given(machine, node, {name for side in sides for name in side[0]})
    if math.prod(map(len, sides)) > MAX_CASES:
        raise TooMany
    return [_joined(parts) for parts in itertools.product(*sides)] if sides else []


def _joined(parts: Sequence[Case]) -> Case:
    return {name: value for part in parts for name, value in part.items()}


def _cases(machine: Machine, decorator: ast.expr, node: Any) -> list[Case]:
    if not isinstance(decorator, ast.Call):
        return []
    origin = machine.evaluate(decorator.func)
    path = origin.path if isinstance(origin, External) else ""
    if path == "pytest.mark.parametrize":
        return _parametrize(machine, decorator)
    match path.removeprefix("absl.testing.parameterized."):
        case "product":
            return _product(machine, decorator)
        case "parameters" | "named_parameters" as name:
            rows = [machine.evaluate(argument) for argument in decorator.args]
            if len(rows) == 1 and not isinstance(rows[0], DictRef):
                rows = list(iteration.elements(machine, rows[0]))
            return [_row(machine, row, node, named=name == "named_parameters") for row in rows]
        case _:
            return []


def _parametrize(machine: Machine, decorator: ast.Call) -> list[Case]:
    """`parametrize("a, b", [(1, 2), pytest.param(3, 4, id="x")])`."""
    given = dict(zip(("argnames", "argvalues"), decorator.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg in ("argnames", "argvalues")}
    declared = machine.evaluate(given["argnames"])
    if isinstance(declared, str):
        names = [name.strip() for name in declared.split(",") if name.strip()]
        several = len(names) > 1
    else:
        names, several = list(iteration.elements(machine, declared)), True
    if any(keyword.arg == "indirect" for keyword in decorator.keywords):  # fixtures make something of the values
        return []
    rows = iteration.elements(machine, machine.evaluate(given["argvalues"]))
    return [_named(machine, names, row, several=several) for row in rows]


def _named(machine: Machine, names: Sequence[str], row: Value, *, several: bool) -> Case:
    if isinstance(row, Partial) and row.function == External("pytest.param"):
        return dict(zip(names, _of_param(machine, row), strict=False))
    if not several:
        return {names[0]: row}
    if isinstance(row, Opaque):
        return {name: row.item(index) for index, name in enumerate(names)}
    return dict(zip(names, iteration.elements(machine, row), strict=False))


def _of_param(machine: Machine, row: Partial) -> tuple[Value, ...]:
    """Return the values of a `pytest.param`; unknown ones where its marks may keep the test from running, or let it fail."""
    marks = dict(row.keywords).get("marks", ())
    listed = iteration.elements(machine, marks) if isinstance(marks, ListRef | tuple) else (marks,)
    if all(isinstance(mark, External) and not mark.path.startswith(_EXCUSED) for mark in listed):
        return row.positional
    return tuple(machine.unknown(describe(value), "the marks of its case are not followed") for value in row.positional)


_EXCUSED = ("pytest.mark.skip", "pytest.mark.xfail")


def _product(machine: Machine, decorator: ast.Call) -> list[Case]:
    """`product(a=(1, 2), b=[3, 4])`, with dicts of parameters that go together as positional arguments."""
    sides: list[list[Case]] = []
    for argument in decorator.args:
        rows = iteration.elements(machine, machine.evaluate(argument))
        sides.append([_items(machine, row) for row in rows])
    for keyword in decorator.keywords:
        if keyword.arg is None:
            raise Unmodelled("what is spread into the product is not known")
        parts = iteration.elements(machine, machine.evaluate(keyword.value))
        sides.append([{keyword.arg: value} for value in parts])
    if math.prod(map(len, sides)) > MAX_CASES:
        raise TooMany
    return [_joined(parts) for parts in itertools.product(*sides)]


def _items(machine: Machine, row: Value) -> Case:
    contents = machine.contents(row) if isinstance(row, DictRef) else None
    if contents is None:
        raise Unmodelled("the parameters of a case are not known")
    return {str(name): value for name, value in contents}


def _row(machine: Machine, row: Value, node: Any, *, named: bool) -> Case:
    """One case of `parameters`: a dict, or values in the order of the test's parameters; a named one has its name first."""
    if isinstance(row, DictRef):
        case: Mapping[str, Value] = _items(machine, row)
        return {name: value for name, value in case.items() if name != "testcase_name"}
    try:
        values = iteration.elements(machine, row) if not isinstance(row, str) else (row,)
    except Unmodelled:
        values = (row,)
    parameters = [parameter.arg for parameter in node.args.args if parameter.arg != "self"]
    return dict(zip(parameters, values[1:] if named else values, strict=False))
