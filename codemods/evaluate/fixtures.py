"""Fixtures of pytest: the values that a test is given by the names of its parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import iteration, modules
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.generators import is_fixed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Frame, Leaves
from codemods.evaluate.state import UNBOUND
from codemods.nodes import nodes
from codemods.values import Class, External, Function, Instance, Partial, Value, ancestry

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine
    from codemods.evaluate.program import Program

MAX_DEPTH = 4  # of fixtures that need fixtures


_PARAMETRIZES = re.compile(rb"\bpytest_generate_tests\b|\bpytestmark\b")
"""What gives the tests of a file values that nothing at the tests tells of."""


def load(program: Program, path: str) -> None:
    """Execute the conftest files above the tests of a file: what other files change of them is forgotten before a test runs."""
    for each in program.conftests(path):
        source = program.source(each)
        if each != path and each not in program.executed and source is not None and b"fixture" in source.text:
            modules.run(program, each)


def given(machine: Machine, node: Any, known: Collection[str]) -> list[list[dict[str, Value]]]:
    """Return the values of each parameter of a test that a fixture gives, of its file or of a conftest file above it; those of
    `known` are given otherwise.
    """
    indirect = any(
        isinstance(each, ast.Call) and any(word.arg in ("indirect", None) for word in each.keywords)
        for each in node.decorator_list
    )
    if indirect or not node.name.startswith("test") or _is_parametrized_elsewhere(machine):
        return []
    names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs) if each.arg not in known]
    sides = ([{name: value} for value in _values(machine, name, known, MAX_DEPTH)] for name in names)
    return [side for side in sides if side]


def _is_parametrized_elsewhere(machine: Machine) -> bool:
    """Say whether tests may be given values by what is not written at them: by their class, or by the classes above it."""
    program, scope = machine.program, machine.frame.scope
    for path in (scope.path, *program.conftests(scope.path)):
        source = program.source(path)
        if source is None or _PARAMETRIZES.search(source.text):
            return True
    if scope.id == scope.module:
        return False
    owner = machine.read((scope.parent or scope.module, scope.name))
    source = program.source(scope.path)
    marked = (cls.decorator_list for cls in nodes(source.tree, ast.ClassDef) if cls.name == scope.name) if source else ()
    return not isinstance(owner, Class) or len(ancestry(owner)) > 1 or any(marked)


def _fixture(machine: Machine, name: str) -> Function | None:
    """Return the function that a test of this scope is given a value by: the nearest of that name."""
    program, scope = machine.program, machine.frame.scope
    if scope.id != scope.module and machine.read((scope.id, name)) is not UNBOUND:
        return None
    above = (program.module_scopes[path] for path in program.conftests(scope.path) if path in program.module_scopes)
    held = (machine.read((owner, name)) for owner in (scope.module, *above))
    found = next((each for each in held if each is not UNBOUND), None)
    renamed = rb"fixture\s*\([^)]*\bname\s*=\s*([\"']" + name.encode() + rb"[\"']|[^\"'\s])"
    return found if isinstance(found, Function) and not program.declares(re.compile(renamed)) else None


def _values(machine: Machine, name: str, known: Collection[str], depth: int) -> Sequence[Value]:
    """Return the values that a fixture takes, one for each of its `params`; none where they are not known."""
    fixture = _fixture(machine, name) if depth and name not in known else None
    if fixture is None:
        return ()
    node: Any = fixture.node
    with machine.entered(Frame(machine.program.scopes[fixture.scope])):
        options = _options(machine, node)
    if options is None or isinstance(node, ast.AsyncFunctionDef) or Bindings.of(node).yields:
        return ()
    needed: dict[str, Value] = {}
    for each in (*node.args.args, *node.args.kwonlyargs):
        if each.arg == "request":
            continue
        values = _values(machine, each.arg, known, depth - 1)
        if len(values) != 1:  # of several, each makes a case of its own
            return ()
        needed[each.arg] = values[0]
    try:
        with machine.entered(Frame(machine.program.scopes[fixture.scope])):
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
