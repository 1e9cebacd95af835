"""Functions that raise unless something holds: those of `unittest`, and what all such functions share."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate import iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import INTERPRETED, Interpreted, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.formulas import Formula, both
from codemods.values import ListRef, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def demand(machine: Machine, formula: Formula) -> None:
    """Go on only where a condition holds."""
    assumed = machine.state.assume(formula, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed


def given(arguments: Arguments, position: int, name: str) -> Value:
    """Return an argument that a call must have."""
    if position < len(arguments.positional):
        return arguments.positional[position]
    if name not in arguments.keywords:
        raise Unmodelled(unfollowed(arguments))
    return arguments.keywords[name]


def compared(machine: Machine, op: ast.cmpop, left: Value, right: Value, arguments: Arguments) -> Formula:
    """Return the condition under which a comparison is true; raises `Unmodelled` where there is none to state."""
    from codemods.evaluate.expressions import compare

    outcome = machine.spread(lambda a, b: compare(machine, op, a, b), left, right, text=text_of(arguments))
    if isinstance(outcome, Opaque):
        raise Unmodelled(unfollowed(arguments))
    return machine.truth(outcome)


def compares(op: ast.cmpop, names: tuple[str, str], check: Callable[[Machine, Formula], None] = demand) -> Interpreted:
    """Return what demands that its first two arguments, called so, compare."""

    def assertion(machine: Machine, arguments: Arguments) -> Value:
        left, right = (given(arguments, position, name) for position, name in enumerate(names))
        check(machine, compared(machine, op, left, right, arguments))

    return assertion


def as_parts(machine: Machine, value: Value) -> Value:
    """Return a list as a tuple, with the lists in it."""
    if isinstance(value, tuple) or type(value) is ListRef:
        return tuple(as_parts(machine, each) for each in iteration.elements(machine, value))
    return value


_TEST = "unittest.TestCase."
_PAIR = ("first", "second")
interprets(f"{_TEST}assertEqual")(compares(ast.Eq(), _PAIR))
interprets(f"{_TEST}assertNotEqual")(compares(ast.NotEq(), _PAIR))
interprets(f"{_TEST}assertGreater")(compares(ast.Gt(), ("a", "b")))
interprets(f"{_TEST}assertLess")(compares(ast.Lt(), ("a", "b")))
interprets(f"{_TEST}assertGreaterEqual")(compares(ast.GtE(), ("a", "b")))
interprets(f"{_TEST}assertLessEqual")(compares(ast.LtE(), ("a", "b")))
interprets(f"{_TEST}assertIs")(compares(ast.Is(), ("expr1", "expr2")))
interprets(f"{_TEST}assertIsNot")(compares(ast.IsNot(), ("expr1", "expr2")))
interprets(f"{_TEST}assertIn")(compares(ast.In(), ("member", "container")))
interprets(f"{_TEST}assertNotIn")(compares(ast.NotIn(), ("member", "container")))


@interprets("torch._check", "torch._assert", f"{_TEST}assertTrue")
def _true(machine: Machine, arguments: Arguments) -> Value:
    demand(machine, machine.truth(given(arguments, 0, "expr")))


@interprets(f"{_TEST}assertFalse")
def _false(machine: Machine, arguments: Arguments) -> Value:
    demand(machine, formulas.invert(machine.truth(given(arguments, 0, "expr"))))


@interprets(f"{_TEST}assertIsNone")
def _none(machine: Machine, arguments: Arguments) -> Value:
    demand(machine, compared(machine, ast.Is(), given(arguments, 0, "obj"), None, arguments))


@interprets(f"{_TEST}assertIsNotNone")
def _not_none(machine: Machine, arguments: Arguments) -> Value:
    demand(machine, compared(machine, ast.IsNot(), given(arguments, 0, "obj"), None, arguments))


@interprets(f"{_TEST}assertIsInstance")
def _instance(machine: Machine, arguments: Arguments) -> Value:
    from codemods.evaluate.standard.objects import is_instance

    demand(machine, is_instance(machine, given(arguments, 0, "obj"), given(arguments, 1, "cls"), text_of(arguments)))


@interprets(f"{_TEST}assertSequenceEqual", f"{_TEST}assertListEqual", f"{_TEST}assertTupleEqual")
def _same_elements(machine: Machine, arguments: Arguments) -> Value:
    left, right = (as_parts(machine, arguments.positional[position]) for position in range(2))
    demand(machine, compared(machine, ast.Eq(), left, right, arguments))


@interprets(f"{_TEST}assertLen")
def _length(machine: Machine, arguments: Arguments) -> Value:
    count = INTERPRETED["builtins.len"](machine, Arguments((given(arguments, 0, "container"),), node=arguments.node))
    demand(machine, compared(machine, ast.Eq(), count, given(arguments, 1, "expected_len"), arguments))


@interprets(f"{_TEST}assertBetween")
def _between(machine: Machine, arguments: Arguments) -> Value:
    value, least, most = (given(arguments, place, name) for place, name in enumerate(("value", "minv", "maxv")))
    sides = ((least, value), (value, most))
    demand(machine, both(*(compared(machine, ast.LtE(), *side, arguments) for side in sides)))
