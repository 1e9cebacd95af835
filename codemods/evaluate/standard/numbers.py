"""Numbers: builtins, math, and the helpers of shapecheck itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codemods import formulas, terms
from codemods.evaluate import containers, operators
from codemods.evaluate.calls import Arguments
from codemods.evaluate.interpreted import computes, integer, interprets, text_of
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.values import Array, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@computes("builtins.abs", "math.fabs")
def _abs(machine: Machine, value: Value) -> Value:
    return abs(value) if isinstance(value, float) else terms.absolute(integer(value))


@computes("builtins.divmod")
def _divmod(machine: Machine, value: Value, divisor: Value) -> Value:
    a, b = integer(value), integer(divisor)
    if b == 0:
        raise Dies
    return terms.floordiv(a, b), terms.mod(a, b)


@computes("builtins.int", "operator.index")
def _int(machine: Machine, value: Value = 0, *base: Value) -> Value:
    if isinstance(value, str | float) and all(isinstance(each, int) for each in base):
        try:
            return int(value, *base)  # type: ignore[call-overload]
        except (ValueError, TypeError, OverflowError):
            raise Dies from None
    if isinstance(value, Opaque):
        return Opaque(("int", value.key), f"int({value.text})", value.reason)
    return integer(value)


@computes("builtins.float")
def _float(machine: Machine, value: Value = 0.0) -> Value:
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            raise Dies from None
    raise Unmodelled("an unknown float")


@computes("builtins.str", "builtins.repr")
def _str(machine: Machine, value: Value = "") -> Value:
    if isinstance(value, str | int):
        return str(value)
    raise Unmodelled("an unknown string")


@interprets("builtins.bool")
def _bool(machine: Machine, arguments: Arguments) -> Value:
    return machine.truth(arguments.positional[0]) if arguments.positional else False


@computes("math.gcd")
def _gcd(machine: Machine, *values: Value) -> Value:
    result: terms.Int = 0
    for value in values:
        result = terms.gcd(result, integer(value)) if result != 0 else integer(value)
    return abs(result) if isinstance(result, int) else result


@computes("math.ceil", "math.floor", "math.trunc", "builtins.round")
def _rounded(machine: Machine, value: Value) -> Value:
    if isinstance(value, float):
        raise Unmodelled("a rounded number")
    return integer(value)


@computes("math.sqrt", "math.log2", "math.log", "math.exp")
def _real(machine: Machine, value: Value) -> Value:
    raise Unmodelled("a real number")


@computes("math.prod")
def _product(machine: Machine, values: Value) -> Value:
    result: terms.Int = 1
    for value in containers.elements(machine, values):
        result = terms.multiply(result, integer(value))
    return result


@computes("builtins.pow")
def _pow(machine: Machine, base: Value, exponent: Value) -> Value:
    return operators.binary("**", base, exponent)


def _largest_divisor(value: Value, at_most: Value) -> Value:
    try:
        return terms.divisor(integer(value), integer(at_most))
    except ZeroDivisionError:
        raise Dies from None


@interprets("shapecheck.largest_divisor", "shapecheck.plan.largest_divisor")
def _largest_divisor_call(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("n", "at_most"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if set(given) != {"n", "at_most"}:
        raise Unmodelled("its arguments are not followed")
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
                rows, pages = (integer(table.attribute("shape").item(axis)) for axis in (0, 1))
                return Array((rows, _rounded_up(pages, by)), None)
            case _:
                raise Unmodelled("the page table is not known")

    return machine.spread(pad, table, block, text=text_of(arguments))


def _rounded_up(value: terms.Int, multiple: terms.Int) -> terms.Int:
    return terms.multiply(terms.negate(terms.floordiv(terms.negate(value), multiple)), multiple)


@interprets("shapecheck.megacore_mode_for", "shapecheck.plan.megacore_mode_for")
def _megacore_mode_for(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("num_kv_heads", "batch_size"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if not {"num_kv_heads", "batch_size"} <= set(given):
        raise Unmodelled("its arguments are not followed")
    two_cores = machine.coin("the device has two cores")

    def choose(heads: Value, batch: Value) -> Value:
        even = [formulas.equal(terms.mod(integer(value), 2), 0) for value in (heads, batch)]
        return containers.first_of(
            machine, [(formulas.invert(two_cores), None), (even[0], "kv_head"), (even[1], "batch"), (True, None)]
        )

    return machine.spread(choose, given["num_kv_heads"], given["batch_size"], text=text_of(arguments))
