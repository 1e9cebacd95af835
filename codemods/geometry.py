"""From the arguments that reach a kernel to the values of the names of its contract."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from codemods.callees import Callee
from codemods.evaluate.arrays.contents import element
from codemods.evaluate.machine import Arrival
from codemods.evaluate.operators import quotient
from codemods.formulas import Formula, equal
from codemods.terms import Symbol, Term, of
from codemods.values import Array, Choice, DType, Opaque, Quantized, Reason, Value, is_constant, plain_of
from shapecheck.arguments import ArrayArgument
from shapecheck.axes import VARIADIC
from shapecheck.contract import Contract
from shapecheck.observe import NARROWED
from shapecheck.outcome import UNKNOWN

_MISSING = object()


def bind(callee: Callee, arrival: Arrival) -> dict[str, Value]:
    """Return the value of each parameter of the contract that the call gives; the rest has its default or is unknown."""
    given: dict[str, Value] = dict(zip(callee.positional, arrival.positional, strict=False))
    given |= {name: value for name, value in arrival.keywords.items() if name in callee.by_keyword}
    given = {callee.contract_name(name): value for name, value in given.items()}
    for parameter in callee.contract.parameters:
        has_default = parameter.default is not UNKNOWN and parameter.name not in callee.required
        if parameter.name not in given and not arrival.spread and has_default:
            given[parameter.name] = parameter.default
    return given


def type_error(callee: Callee, arrival: Arrival) -> str | None:
    """Return what Python says of a call that does not fit the signature, whatever it may spread besides; else None."""
    return _misfit(callee.signature, arrival)


def is_of_another(callee: Callee, arrival: Arrival) -> bool:
    """Say whether a call is one of the kernel that had this one's path before, and not of this one."""
    return callee.earlier is not None and _misfit(callee.signature, arrival) is not None and not _misfit(callee.earlier, arrival)


def _misfit(signature: Signature, arrival: Arrival) -> str | None:
    try:
        (signature.bind_partial if arrival.spread else signature.bind)(*arrival.positional, **arrival.keywords)
    except TypeError as error:
        parameters = signature.parameters
        any_will_do = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
        strange = [] if any_will_do else [name for name in arrival.keywords if name not in parameters]
        if not strange or "missing" not in str(error):
            return str(error)
        return f"{error}, and got an unexpected keyword argument {strange[0]!r}"  # what is missing may be misspelt
    return None


def nodes(callee: Callee, arrival: Arrival) -> dict[str, ast.expr]:
    """Return the expression of each argument that is written down, by the contract's name of its parameter."""
    found: dict[str, ast.expr] = {}
    for key, node in arrival.nodes.items():
        if isinstance(key, str):
            found[callee.contract_name(key)] = node
        elif key < len(callee.positional):
            found[callee.contract_name(callee.positional[key])] = node
    return found


def array_values(array: ArrayArgument, value: Value) -> dict[str, Value]:
    """Return the names that an array argument defines; those that cannot be told are left out."""
    name = array.name
    match value:
        case Array(shape, dtype):
            values = array.sizes(shape) | _dtype(f"{name}_dtype", dtype, value.library)
            plain: dict[str, Value] = {f"{name}_scales_shape": None, f"{name}_scales_dtype": None}
            values |= plain if array.quantizable else {}
        case Quantized(weight, scales) if array.quantizable:
            values = array.sizes(weight.shape) | _dtype(f"{name}_dtype", weight.dtype, weight.library)
            values |= _dtype(f"{name}_scales_dtype", scales.dtype, scales.library)
            values |= {f"{name}_scales_shape": scales.shape}
        case Opaque(dtype=dtype):
            values = {
                f"{name}_rank": value.rank,
                **({f"{name}_dtype": value.attribute("dtype")} if dtype is None else _dtype(f"{name}_dtype", dtype, "")),
                **{f"{name}_{axis}": value.shape.item(index) for axis, index in array.positions.items()},
            }
        case _:
            return {}
    return values | array.bits(values)


def _dtype(name: str, dtype: DType | None, library: str) -> dict[str, Value]:
    """jit narrows 64-bit arrays of jax and numpy; what torch_xla makes of a 64-bit tensor is not known."""
    if dtype is None or (library == "torch" and dtype.name.endswith("64")):
        return {}
    return {name: NARROWED.get(dtype.name, dtype.name)}


def parameter_values(name: str, value: Value) -> dict[str, Value]:
    """Return the names that a parameter defines: its value, and the name of its type where that is certain."""
    if isinstance(value, Term) or (isinstance(value, Opaque) and (value.at_least is not None or value.kind == "int")):
        return {name: value, f"{name}_type": "int"}
    if is_constant(value):
        return {name: value, f"{name}_type": type(value).__name__}
    if quotient(value) is not None:
        return {name: value, f"{name}_type": "float"}
    return {name: plain_of(value)}


def shape_facts(array: ArrayArgument, value: Value, used: set[Symbol]) -> Iterator[Formula]:
    """Yield what follows for an unknown array from its having the rank it must have: `x.shape[-1]` is `x.shape[2]`.

    Only sizes among `used` matter: others would only be in the way of a counterexample.
    """
    if isinstance(value, Opaque) and VARIADIC not in array.axes:
        shape = value.shape
        for index in range(len(array.axes)):
            back = shape.item(index - len(array.axes)).symbol()
            if back in used:
                yield equal(of(shape.item(index).symbol()), of(back))


def missing(name: str, argument: str, value: Value, node: ast.expr | None, arrival: Arrival) -> Opaque:
    """Stand in for a name whose value cannot be told, with the reason."""
    path, call = arrival.source
    text = ast.unparse(node) if node is not None else argument
    if isinstance(value, Opaque):
        reason = value.reason
    elif value is UNKNOWN:
        reason = Reason(_not_shown(argument, arrival), path, call.lineno)
    elif isinstance(value, Array | Quantized):
        why = f"the dtype of `{text}` is not known" if name.endswith(("dtype", "bits")) else f"`{text}` has another rank"
        reason = Reason(why, path, call.lineno)
    elif name == f"{argument}_size":
        reason = Reason("what mesh it is split over is not known", path, call.lineno)
    else:
        reason = Reason(f"`{text}` is not known to be an array", path, call.lineno)
    return Opaque((_MISSING, name), name, reason)


def _not_shown(argument: str, arrival: Arrival) -> str:
    """Say why an argument is not seen: the call spreads something, or it is made elsewhere by what the kernel is handed to."""
    _, call = arrival.source
    if not arrival.spread:
        return f"the call gives no `{argument}`"
    if any(isinstance(each, ast.Starred) for each in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return f"`{argument}` may be in what the call spreads"
    return f"`{ast.unparse(call.func)}` is given the function, and calls it with arguments that are not known"


def has_rank(callee: Callee, arguments: Mapping[str, Value]) -> bool:
    """Say whether no array among the arguments has another number of axes than the contract demands."""
    axes = {array.name: array.axes for array in callee.contract.arrays if VARIADIC not in array.axes}
    pairs = ((axes[name], value) for name, value in arguments.items() if name in axes)
    return all(len(value.shape) == len(named) for named, value in pairs if isinstance(value, Array))


def is_missing(value: Value) -> bool:
    """Say whether a value only stands in for a name that the call does not define."""
    return isinstance(value, Opaque) and isinstance(value.key, tuple) and value.key[0] is _MISSING


def alternatives(value: Value) -> tuple[tuple[Formula, Value], ...]:
    """Return the alternatives of a value, each with its condition."""
    return value.alternatives if isinstance(value, Choice) else ((True, value),)


def values_of(callee: Callee, arguments: Mapping[str, Value]) -> dict[str, Any]:
    """Return the values of all names, for arguments without alternatives."""
    contract = callee.contract
    values: dict[str, Any] = {}
    for array in contract.arrays:
        values |= array_values(array, arguments.get(array.name, UNKNOWN))
    for parameter in contract.parameters:
        if parameter.name in arguments:
            values |= parameter_values(parameter.name, arguments[parameter.name])
    return values | _measured(contract, arguments, values)


@dataclass(frozen=True)
class _SpelledOut:
    """An array whose elements are known, as measures take it."""

    shape: tuple[Any, ...]  # numbers: those of arrays whose elements are known are
    contents: Any

    def __getitem__(self, index: int | tuple[int, ...]) -> int:
        return element(self.contents, index if isinstance(index, tuple) else (index,))


def _measured(contract: Contract, arguments: Mapping[str, Value], values: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers that stand for elements of arrays, as far as these elements are known."""
    arrays = {
        array.name: _SpelledOut(value.shape, value.contents)
        for array in contract.arrays
        if isinstance(value := arguments.get(array.name), Array) and value.contents is not None
        if array.takes_rank(len(value.shape)) and 0 not in (value.shape or (0,))
    }
    if not arrays:
        return {}
    found: dict[str, int] = {}
    for name, measure in contract.measures.items():
        known = arrays.keys() >= set(measure.arrays) and all(isinstance(values.get(each), int) for each in measure.needs)
        if measure.read_off is not None and known:
            with suppress(IndexError):  # sizes that do not fit, which is for other rules to say
                found[name] = measure.read_off(arrays, values)
    return found
