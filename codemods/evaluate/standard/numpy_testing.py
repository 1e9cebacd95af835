"""The assertions of `numpy.testing`: shapes must agree, and elements that the source spells out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import Interpreted, interprets, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.standard.assertions import as_parts, compared, demand, given
from codemods.formulas import Formula, both
from codemods.terms import Int, Term
from codemods.values import Array, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_Compare = Callable[[Value, Value], Formula]


def _shape(value: Value) -> tuple[Int, ...] | None:
    """Return the shape of what numpy makes of a value, None where that is not known."""
    if isinstance(value, Array):
        return value.shape
    if _is_number(value):
        return ()
    if not isinstance(value, tuple):
        return None
    inner = {_shape(each) for each in value} or {()}
    (first, *others) = inner
    return None if others or first is None else (len(value), *first)


def _is_number(value: Value) -> bool:
    return isinstance(value, bool | int | float | Term)


def _agree(left: Value, right: Value) -> Formula:
    """Return the condition under which the shapes of two values agree, so far as it is known: a scalar goes with any."""
    first, second = _shape(left), _shape(right)
    if first is None or second is None or () in (first, second):
        return True
    return len(first) == len(second) and both(*map(formulas.equal, first, second))


def _each(left: Value, right: Value, compare: _Compare) -> Formula:
    """Return the condition under which all pairs of elements compare, so far as it is known."""
    left, right = (each.contents if isinstance(each, Array) else each for each in (left, right))
    match left, right:
        case tuple(), tuple():
            return len(left) != len(right) or both(*(_each(*pair, compare) for pair in zip(left, right, strict=True)))
        case tuple(), _ if _is_number(right):
            return both(*(_each(each, right, compare) for each in left))
        case _, tuple() if _is_number(left):
            return both(*(_each(left, each, compare) for each in right))
        case _ if any(map(_is_number, (left, right))) and all(
            _is_number(each) or isinstance(each, Opaque) for each in (left, right)
        ):
            return compare(left, right)
        case _:
            return True


def _sides(machine: Machine, arguments: Arguments, names: tuple[str, str]) -> list[Value]:
    if arguments.keywords.get("strict", False) is not False:
        raise Unmodelled(unfollowed(arguments))
    return [as_parts(machine, given(arguments, position, name)) for position, name in enumerate(names)]


def _comparing(op: ast.cmpop, names: tuple[str, str]) -> Interpreted:
    def assertion(machine: Machine, arguments: Arguments) -> Value:
        left, right = _sides(machine, arguments, names)
        demand(machine, both(_agree(left, right), _each(left, right, lambda a, b: _compared(machine, op, a, b, arguments))))

    return assertion


def _compared(machine: Machine, op: ast.cmpop, left: Value, right: Value, arguments: Arguments) -> Formula:
    if left != left and right != right:  # NaN, which is equal to itself here
        return isinstance(op, ast.Eq)
    return compared(machine, op, left, right, arguments)


_ACTUAL = ("actual", "desired")
_arrays_equal = _comparing(ast.Eq(), _ACTUAL)
interprets("numpy.testing.assert_array_equal")(_arrays_equal)
interprets("numpy.testing.assert_array_less")(_comparing(ast.Lt(), ("x", "y")))


@interprets("numpy.testing.assert_equal")
def _equal(machine: Machine, arguments: Arguments) -> Value:
    """Of sequences, all pairs of elements must be equal; of anything else, `==` decides."""

    def equal(left: Value, right: Value) -> Formula:
        if isinstance(left, tuple) and isinstance(right, tuple):
            return len(left) == len(right) and both(*map(equal, left, right))
        if isinstance(left, Array) or isinstance(right, Array):
            return both(_agree(left, right), _each(left, right, equal))
        return _compared(machine, ast.Eq(), left, right, arguments)

    demand(machine, equal(*_sides(machine, arguments, _ACTUAL)))


def _close(tolerated: Callable[[Arguments, float], float | None]) -> Interpreted:
    """Return what demands that numbers differ by no more than a tolerance, which is None where that is not known."""

    def assertion(machine: Machine, arguments: Arguments) -> Value:
        def close(left: Value, right: Value) -> Formula:
            if left == right or not (isinstance(left, int | float) and isinstance(right, int | float)):
                return True
            most = tolerated(arguments, right)
            if most is None or left != left or right != right:
                raise Unmodelled(unfollowed(arguments))
            return abs(left - right) <= most

        left, right = _sides(machine, arguments, _ACTUAL)
        demand(machine, both(_agree(left, right), _each(left, right, close)))

    return assertion


def _option(arguments: Arguments, position: int, name: str, default: float) -> float | None:
    value = arguments.positional[position] if position < len(arguments.positional) else arguments.keywords.get(name, default)
    return value if isinstance(value, int | float) else None


def _relative(arguments: Arguments, right: float) -> float | None:
    rtol, atol = _option(arguments, 2, "rtol", 1e-7), _option(arguments, 3, "atol", 0.0)
    return None if rtol is None or atol is None else atol + rtol * abs(right)


def _decimal(default: int) -> Callable[[Arguments, float], float | None]:
    def tolerated(arguments: Arguments, right: float) -> float | None:
        decimal = _option(arguments, 2, "decimal", default)
        return None if decimal is None else 1.5 * 10.0**-decimal

    return tolerated


interprets("numpy.testing.assert_allclose")(_close(_relative))
interprets("numpy.testing.assert_almost_equal")(_close(_decimal(7)))
interprets("numpy.testing.assert_array_almost_equal")(_close(_decimal(6)))
interprets("jax.test_util.assertAllClose")(_close(lambda arguments, right: None))  # by a tolerance that depends on dtypes
interprets("jax.test_util.assertArraysEqual")(_arrays_equal)


@interprets("numpy.testing.assert_")
def _true(machine: Machine, arguments: Arguments) -> Value:
    demand(machine, machine.truth(given(arguments, 0, "val")))
