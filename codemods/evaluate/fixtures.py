"""Fixtures of pytest: the values that a test is given by the names of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.generators import is_fixed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.state import UNBOUND
from codemods.values import Class, External, Function, Instance, Partial, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

MAX_DEPTH = 4  # of fixtures that need fixtures


def given(machine: Machine, node: Any, known: Mapping[str, object]) -> list[list[dict[str, Value]]]:
    """Return the values of each parameter of a test that a fixture of its file gives; those of `known` are given otherwise."""
    indirect = any(
        isinstance(each, ast.Call) and any(word.arg in ("indirect", None) for word in each.keywords)
        for each in node.decorator_list
    )
    if indirect or not node.name.startswith("test"):
        return []
    names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs) if each.arg not in known]
    sides = ([{name: value} for value in _values(machine, name, MAX_DEPTH)] for name in names)
    return [side for side in sides if side]


def _values(machine: Machine, name: str, depth: int) -> Sequence[Value]:
    """Return the values that a fixture takes, one for each of its `params`; none where they are not known."""
    scope = machine.frame.scope
    fixture = machine.read((scope.module, name))
    if (
        depth == 0
        or not isinstance(fixture, Function)
        or (scope.id != scope.module and machine.read((scope.id, name)) is not UNBOUND)
    ):
        return ()
    node: Any = fixture.node
    options = _options(machine, node)
    if options is None or isinstance(node, ast.AsyncFunctionDef) or Bindings.of(node).yields:
        return ()
    needed: dict[str, Value] = {}
    for each in (*node.args.args, *node.args.kwonlyargs):
        if each.arg == "request":
            continue
        values = _values(machine, each.arg, depth - 1)
        if len(values) != 1:  # of several, each makes a case of its own
            return ()
        needed[each.arg] = values[0]
    try:
        rows = iteration.elements(machine, machine.evaluate(options["params"])) if "params" in options else (UNBOUND,)
        made = [_made(machine, fixture, needed, row) for row in rows]
    except (Unmodelled, Dies, Leaves):
        return ()
    return made if all(map(is_fixed, made)) else ()


def _options(machine: Machine, node: Any) -> dict[str | None, ast.expr] | None:
    """Return the options of a fixture; None for any other function."""
    match node.decorator_list if not isinstance(node, ast.Lambda) else ():
        case [decorator]:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            options = {word.arg: word.value for word in decorator.keywords} if isinstance(decorator, ast.Call) else {}
            is_fixture = machine.evaluate(called) == External("pytest.fixture")
            return options if is_fixture and options.keys().isdisjoint({"name", None}) else None
        case _:
            return None


def _made(machine: Machine, fixture: Function, needed: Mapping[str, Value], row: Value) -> Value:
    from codemods.evaluate.calls import call

    keywords = dict(needed)
    if any(each.arg == "request" for each in fixture.node.args.args):
        request = Instance(machine.new_id(), Class("request", machine.new_id(), (), "open"))
        if isinstance(row, Partial):
            if row.function != External("pytest.param") or row.keywords:  # with marks it may be skipped, or expected to fail
                raise Unmodelled("a case with marks")
            (row,) = row.positional
        if row is not UNBOUND:
            machine.state.cells[(request.id, "param")] = row
        keywords["request"] = request
    return call(machine, fixture, Arguments(keywords=keywords))
