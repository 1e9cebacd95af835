"""Functions that raise unless something holds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from codemods import formulas, operations
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import Interpreted, integer, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.formulas import Formula
from codemods.values import Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def _demand(machine: Machine, formula: Formula) -> None:
    """Go on only where a condition holds."""
    assumed = machine.state.assume(formula, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed


def _given(arguments: Arguments, position: int, name: str) -> Value:
    if position < len(arguments.positional):
        return arguments.positional[position]
    if name not in arguments.keywords:
        raise Unmodelled(unfollowed(arguments))
    return arguments.keywords[name]


def _demand_of_chex(machine: Machine, formula: Formula) -> None:
    """Go on only where a condition holds, unless a file turns such assertions off."""
    if not machine.program.tree.disables_assertions(machine.frame.scope.path):
        _demand(machine, formula)


def _compared(op: ast.cmpop, demand: Callable[[Machine, Formula], None] = _demand) -> Interpreted:
    def check(machine: Machine, arguments: Arguments) -> Value:
        from codemods.evaluate.expressions import compare

        left, right = (_given(arguments, position, name) for position, name in enumerate(("first", "second")))
        outcome = machine.spread(lambda a, b: compare(machine, op, a, b), left, right, text=text_of(arguments))
        demand(machine, machine.truth(outcome))

    return check


interprets("chex.assert_equal")(_compared(ast.Eq(), _demand_of_chex))
interprets("unittest.TestCase.assertEqual", "numpy.testing.assert_equal")(_compared(ast.Eq()))
interprets("unittest.TestCase.assertGreater")(_compared(ast.Gt()))
interprets("unittest.TestCase.assertLess")(_compared(ast.Lt()))
interprets("unittest.TestCase.assertGreaterEqual")(_compared(ast.GtE()))
interprets("unittest.TestCase.assertLessEqual")(_compared(ast.LtE()))


@interprets("torch._check", "torch._assert", "unittest.TestCase.assertTrue")
def _check(machine: Machine, arguments: Arguments) -> Value:
    _demand(machine, machine.truth(_given(arguments, 0, "expr")))


@interprets("chex.assert_is_divisible")
def _divisible(machine: Machine, arguments: Arguments) -> Value:
    if len(arguments.positional) != 2:
        raise Unmodelled("an assertion that is not followed")
    numerator, denominator = map(integer, arguments.positional)
    if denominator == 0:
        if machine.program.tree.disables_assertions(machine.frame.scope.path):
            return
        raise Dies
    _demand_of_chex(machine, formulas.equal(operations.mod(numerator, denominator), 0))
