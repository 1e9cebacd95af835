"""Patterns of `match` statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate import names, operators
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.program import Bindings
from codemods.values import Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def match(machine: Machine, pattern: ast.pattern, subject: Value) -> formulas.Formula:
    """Return the condition under which a pattern matches, and bind the names that it captures."""
    match pattern:
        case ast.MatchAs(None, None):
            return True
        case ast.MatchAs(None, str(name)):
            names.bind(machine, name, subject)
            return True
        case ast.MatchValue(expected):
            return _equals(machine, subject, machine.evaluate(expected))
        case ast.MatchSingleton(constant):
            return _equals(machine, subject, constant)
        case ast.MatchOr(parts) if not any(map(_captures, parts)):
            return formulas.either(*(match(machine, part, subject) for part in parts))
        case _:
            found = Bindings()
            found.visit(pattern)
            for name in sorted(found.bound):
                names.bind(machine, name, machine.unknown(name, "a pattern captures it", pattern))
            return machine.coin("a pattern matches")


def _captures(pattern: ast.pattern) -> bool:
    found = Bindings()
    found.visit(pattern)
    return bool(found.bound)


def _equals(machine: Machine, subject: Value, expected: Value) -> formulas.Formula:
    try:
        return machine.truth(machine.spread(operators.equals, subject, expected, text="a match"))
    except Unmodelled:
        return machine.coin("a pattern matches")
