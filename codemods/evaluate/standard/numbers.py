"""Numbers: builtins, math, and the helpers of shapecheck itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from codemods import formulas, operations, terms
from codemods.evaluate import containers, iteration, operators
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.arrays.shapes import at_least, ceil_divide
from codemods.evaluate.interpreted import computes, integer, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.values import Array, Opaque, Value, describe, plain_of

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@computes("builtins.abs", "math.fabs")
def _abs(machine: Machine, value: Value) -> Value:
    return abs(value) if isinstance(value, float) else operations.absolute(integer(value))


@computes("builtins.divmod")
def _divmod(machine: Machine, value: Value, divisor: Value) -> Value:
    a, b = integer(value), integer(divisor)
    if b == 0:
        raise Dies
    return operations.floordiv(a, b), operations.mod(a, b)


@computes("builtins.int", "operator.index")
def _int(machine: Machine, value: Value = 0, *base: Value) -> Value:
    if isinstance(value, str | float) and all(isinstance(each, int) for each in base):
        try:
            return int(value, *base)  # type: ignore[call-overload]
        except (ValueError, TypeError, OverflowError):
            raise Dies from None
    quotient = operators.quotient(value)
    if quotient is not None and not base and (quotient[1] == 1 or all(at_least(part, 0) for part in quotient)):
        return operations.floordiv(*quotient)
    value = plain_of(value)
    if isinstance(value, Opaque):
        usual = int(value.default) if isinstance(value.default, str) and value.default.isdecimal() else value.default
        return Opaque(("int", value.key), f"int({value.text})", value.reason, default=usual, kind="int")
    if isinstance(value, Array) and value.shape == () and isinstance(value.contents, int):
        return value.contents
    return integer(value)


@computes("builtins.float")
def _float(machine: Machine, value: Value = 0.0) -> Value:
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            raise Dies from None
    if isinstance(value, Opaque):
        return Opaque(("float", value.key), f"float({value.text})", value.reason, kind="float")
    raise Unmodelled("an unknown float")


@computes("builtins.str", "builtins.repr")
def _str(machine: Machine, value: Value = "") -> Value:
    if isinstance(value, str | int):
        return str(value)
    raise Unmodelled("an unknown string")


@interprets("builtins.bool")
def _bool(machine: Machine, arguments: Arguments) -> Value:
    return machine.truth(arguments.positional[0]) if arguments.positional else False


@computes("math.gcd", "numpy.gcd")
def _gcd(machine: Machine, *values: Value) -> Value:
    result: terms.Int = 0
    for value in values:
        result = operations.gcd(result, integer(value)) if result != 0 else integer(value)
    return abs(result) if isinstance(result, int) else result


_OfQuotient: TypeAlias = "Callable[[terms.Int, terms.Int], terms.Int]"


def _rounding(name: str, function: Callable[[float], int], of_quotient: _OfQuotient | None) -> None:
    def rounded(machine: Machine, value: Value) -> Value:
        if isinstance(value, float):
            try:
                return function(value)
            except (ValueError, OverflowError):
                raise Dies from None
        quotient = operators.quotient(value)
        if quotient is not None and of_quotient is not None:
            return of_quotient(*quotient)
        return integer(value)

    computes(name)(rounded)


_rounding("math.ceil", math.ceil, ceil_divide)
_rounding("math.floor", math.floor, operations.floordiv)
_rounding("math.trunc", math.trunc, None)
_rounding("builtins.round", round, None)


def _real(name: str, function: Callable[..., float]) -> None:
    def real(machine: Machine, *values: Value) -> Value:
        if not all(isinstance(value, int | float) for value in values):
            shown = f"{name}({', '.join(map(describe, values))})"
            key = (name, *(getattr(value, "key", value) for value in values))
            return Opaque(key, shown, machine.reason(f"`{shown}` is not known"), kind="float")
        try:
            return function(*values)
        except (ValueError, OverflowError, TypeError):
            raise Dies from None

    computes(name)(real)


for _function in (math.sqrt, math.log2, math.log10, math.log, math.exp, math.pow):
    _real(f"math.{_function.__name__}", _function)


@computes("math.isqrt")
def _isqrt(machine: Machine, value: Value) -> Value:
    number = integer(value)
    if not isinstance(number, int):
        raise Unmodelled("the root of a number that is not known")
    if number < 0:
        raise Dies
    return math.isqrt(number)


@computes("math.lcm", "numpy.lcm")
def _lcm(machine: Machine, *values: Value) -> Value:
    numbers = [integer(value) for value in values]
    if not all(isinstance(number, int) for number in numbers):
        raise Unmodelled("the least common multiple of numbers that are not known")
    return math.lcm(*(number for number in numbers if isinstance(number, int)))


@computes("jax.experimental.pallas.cdiv", "triton.cdiv")
def _cdiv(machine: Machine, value: Value, divisor: Value) -> Value:
    by = integer(divisor)
    if by == 0:
        raise Dies
    return ceil_divide(integer(value), by)


@computes("jax.experimental.pallas.next_power_of_2", "triton.next_power_of_2")
def _next_power_of_2(machine: Machine, value: Value) -> Value:
    number = integer(value)
    if isinstance(number, int):
        return 1 << max(number - 1, 0).bit_length()
    made = machine.unknown(f"next_power_of_2({number})", f"`{number}` is not known, nor the power of 2 above it")
    return replace(made, at_least=1)


@computes("math.prod")
def _product(machine: Machine, values: Value) -> Value:
    result: terms.Int = 1
    for value in iteration.elements(machine, values):
        result = terms.multiply(result, integer(value))
    return result


@computes("builtins.pow")
def _pow(machine: Machine, base: Value, exponent: Value) -> Value:
    return operators.binary("**", base, exponent)


def _largest_divisor(value: Value, at_most: Value) -> Value:
    try:
        return operations.divisor(integer(value), integer(at_most))
    except ZeroDivisionError:
        raise Dies from None


@interprets("shapecheck.largest_divisor", "shapecheck.plan.largest_divisor")
def _largest_divisor_call(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("n", "at_most"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if set(given) != {"n", "at_most"}:
        raise Unmodelled(unfollowed(arguments))
    return machine.spread(_largest_divisor, given["n"], given["at_most"], text=text_of(arguments))


@interprets("kernel.pad_page_indices", "kernel.padding.pad_page_indices")
def _pad_page_indices(machine: Machine, arguments: Arguments) -> Value:
    """A table whose second axis is rounded up to a multiple of the block; another rank is refused."""
    given = dict(zip(("table", "block"), arguments.positional, strict=False)) | dict(arguments.keywords)
    table = given.get("table", given.get("page_indices"))
    block = given.get("block", given.get("pages_per_compute_block"))

    def pad(table: Value, block: Value) -> Value:
        by = integer(block)
        match table:
            case Array((rows, pages)):
                return replace(table, shape=(rows, _rounded_up(pages, by)), contents=None)
            case Opaque():
                rows, pages = (integer(table.shape.item(axis)) for axis in (0, 1))
                return Array((rows, _rounded_up(pages, by)), None)
            case _:
                raise Unmodelled("the page table is not known")

    return machine.spread(pad, table, block, text=text_of(arguments))


def _rounded_up(value: terms.Int, multiple: terms.Int) -> terms.Int:
    return terms.multiply(ceil_divide(value, multiple), multiple)


@interprets("shapecheck.megacore_mode_for", "shapecheck.plan.megacore_mode_for")
def _megacore_mode_for(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("num_kv_heads", "batch_size"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if not {"num_kv_heads", "batch_size"} <= set(given):
        raise Unmodelled(unfollowed(arguments))
    two_cores = machine.coin("the device has two cores")

    def choose(heads: Value, batch: Value) -> Value:
        even = [formulas.equal(operations.mod(integer(value), 2), 0) for value in (heads, batch)]
        return containers.first_of(
            machine, [(formulas.invert(two_cores), None), (even[0], "kv_head"), (even[1], "batch"), (True, None)]
        )

    return machine.spread(choose, given["num_kv_heads"], given["batch_size"], text=text_of(arguments))
