"""The assertions of chex that look at shapes, dtypes and numbers; the other ones look at what is known at run time only."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codemods import formulas, operations
from codemods.evaluate import containers, objects
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import Interpreted, integer, interprets, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.standard.assertions import as_parts, compared, compares, demand, given
from codemods.formulas import Formula, both, either
from codemods.values import Array, Opaque, SetRef, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def _demand(machine: Machine, formula: Formula) -> None:
    """Go on only where a condition holds, unless a file turns such assertions off."""
    if not machine.program.tree.disables_assertions(machine.frame.scope.path):
        demand(machine, formula)


interprets("chex.assert_equal")(compares(ast.Eq(), ("first", "second"), _demand))


@interprets("chex.assert_is_divisible")
def _divisible(machine: Machine, arguments: Arguments) -> Value:
    numerator, denominator = (
        integer(given(arguments, position, name)) for position, name in enumerate(("numerator", "denominator"))
    )
    if denominator == 0:
        if machine.program.tree.disables_assertions(machine.frame.scope.path):
            return
        raise Dies
    _demand(machine, formulas.equal(operations.mod(numerator, denominator), 0))


def _attribute(machine: Machine, value: Value, name: str, arguments: Arguments) -> Value:
    """Return the shape, the rank, the size or the dtype of an array; those of a number are not followed."""
    if not isinstance(value, Array | Opaque) or arguments.node is None:
        raise Unmodelled(unfollowed(arguments))
    return objects.attribute(machine, value, name, arguments.node)


def _is_one_of(machine: Machine, value: Value, options: Value, arguments: Arguments) -> Formula:
    """Return the condition under which a number is what a matcher allows: a number, one of a set, or with None any."""
    if options is None:
        return True
    if isinstance(options, SetRef):
        held = machine.contents(options)
        if held is None:
            return True
        return either(*(compared(machine, ast.Eq(), value, each, arguments) for each in held))
    return compared(machine, ast.Eq(), value, options, arguments)


def _of_each(check: Callable[[Machine, Value, Value, Arguments], Formula], name: str, *, nested: bool = False) -> Interpreted:
    """Return an assertion about one array or several, with what is expected of all of them or of each.

    `nested` says that what is expected of one array is a sequence itself.
    """

    def assertion(machine: Machine, arguments: Arguments) -> Value:
        inputs, expected = as_parts(machine, given(arguments, 0, "inputs")), as_parts(machine, given(arguments, 1, name))
        several = isinstance(expected, tuple) and (not nested or (bool(expected) and isinstance(expected[0], tuple)))
        if isinstance(inputs, Opaque) and several:
            raise Unmodelled(unfollowed(arguments))
        arrays: Sequence[Value] = inputs if isinstance(inputs, tuple) else (inputs,)
        wanted: Sequence[Value] = expected if several else (expected,) * len(arrays)
        if len(arrays) != len(wanted):
            return _demand(machine, False)
        return _demand(machine, both(*(check(machine, *pair, arguments) for pair in zip(arrays, wanted, strict=True))))

    return assertion


def _has_shape(machine: Machine, array: Value, expected: Value, arguments: Arguments) -> Formula:
    if not isinstance(expected, tuple):
        raise Unmodelled(unfollowed(arguments))
    shape = _attribute(machine, array, "shape", arguments)
    if Ellipsis in expected:
        if not isinstance(shape, tuple):
            raise Unmodelled(unfollowed(arguments))
        before = expected.index(Ellipsis)
        hidden = len(shape) - len(expected) + 1
        if hidden < 0:
            return False
        expected = (*expected[:before], *[None] * hidden, *expected[before + 1 :])
    rank = compared(machine, ast.Eq(), _attribute(machine, array, "ndim", arguments), len(expected), arguments)
    if rank is False:
        return False
    sizes = (containers.item(machine, shape, position) for position in range(len(expected)))
    return both(rank, *(_is_one_of(machine, *pair, arguments) for pair in zip(sizes, expected, strict=True)))


def _has_rank(machine: Machine, array: Value, expected: Value, arguments: Arguments) -> Formula:
    return _is_one_of(machine, _attribute(machine, array, "ndim", arguments), expected, arguments)


def _has_size(machine: Machine, array: Value, expected: Value, arguments: Arguments) -> Formula:
    return _is_one_of(machine, _attribute(machine, array, "size", arguments), expected, arguments)


interprets("chex.assert_shape")(_of_each(_has_shape, "expected_shapes", nested=True))
interprets("chex.assert_rank")(_of_each(_has_rank, "expected_ranks"))
interprets("chex.assert_size")(_of_each(_has_size, "expected_sizes"))


def _all_alike(name: str) -> Interpreted:
    """Return an assertion that an attribute is the same for several arrays."""

    def assertion(machine: Machine, arguments: Arguments) -> Value:
        arrays = as_parts(machine, given(arguments, 0, "inputs"))
        if not isinstance(arrays, tuple) or len(arguments.values()) > 1:
            raise Unmodelled(unfollowed(arguments))
        first, *others = (_attribute(machine, each, name, arguments) for each in arrays)
        _demand(machine, both(*(compared(machine, ast.Eq(), first, each, arguments) for each in others)))

    return assertion


interprets("chex.assert_equal_shape")(_all_alike("shape"))
interprets("chex.assert_equal_rank")(_all_alike("ndim"))
interprets("chex.assert_equal_size")(_all_alike("size"))


def _axis(op: ast.cmpop, name: str) -> Interpreted:
    def assertion(machine: Machine, arguments: Arguments) -> Value:
        array, axis, expected = (given(arguments, place, each) for place, each in enumerate(("tensor", "axis", name)))
        shape = _attribute(machine, array, "shape", arguments)
        _demand(machine, compared(machine, op, containers.item(machine, shape, axis), expected, arguments))

    return assertion


interprets("chex.assert_axis_dimension")(_axis(ast.Eq(), "expected"))
interprets("chex.assert_axis_dimension_gt")(_axis(ast.Gt(), "val"))
interprets("chex.assert_axis_dimension_gteq")(_axis(ast.GtE(), "val"))
interprets("chex.assert_axis_dimension_lt")(_axis(ast.Lt(), "val"))
interprets("chex.assert_axis_dimension_lteq")(_axis(ast.LtE(), "val"))


def _sign(op: ast.cmpop) -> Interpreted:
    def assertion(machine: Machine, arguments: Arguments) -> Value:
        _demand(machine, compared(machine, op, given(arguments, 0, "x"), 0, arguments))

    return assertion


interprets("chex.assert_scalar_positive")(_sign(ast.Gt()))
interprets("chex.assert_scalar_non_negative")(_sign(ast.GtE()))
interprets("chex.assert_scalar_negative")(_sign(ast.Lt()))
