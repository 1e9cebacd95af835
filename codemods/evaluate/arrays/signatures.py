"""Models as plain functions: registered under the names of several libraries, called with the arguments bound.

The libraries call one argument `a`, `x`, `input` or `arr`, and `axis` or `dim`; here it has one name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import reduce, wraps
from typing import Any, TypeVar

from codemods.evaluate.library import MODELS, Call, Impossible, Unmodelled, models
from codemods.values import Array, At, Opaque, Value

FUNCTIONS = ("jax.numpy", "numpy")
METHODS = ("jax.Array", "numpy.ndarray")
TORCH = ("torch", "torch.Tensor")
AT = "jax.Array.at"
UNKNOWN = "unknown"  # the library of an array that may be of any

_CLASSES = {"jax": "jax.Array", "numpy": "numpy.ndarray", "torch": "torch.Tensor"}

_RENAMED = {
    **dict.fromkeys(("x", "input", "arr", "ary", "m", "x1", "operand", "array", "prototype", "lhs", "object", "data"), "a"),
    **dict.fromkeys(("y", "x2", "other", "rhs", "v"), "b"),
    **dict.fromkeys(("dim", "dimension", "dims", "dimensions"), "axis"),
    **dict.fromkeys(("size", "newshape", "new_sizes"), "shape"),
    **dict.fromkeys(("tensors", "operands", "tup", "seq"), "arrays"),
    "keepdim": "keepdims",
    "end": "stop",
    "steps": "num",
}
_CONVERSIONS = frozenset(f"numpy.{name}" for name in ("array", "asarray", "asanyarray", "ascontiguousarray", "copy"))
_IGNORED = frozenset(
    {
        "casting", "copy", "device", "generator", "indices_are_sorted", "layout", "memory_format", "non_blocking",
        "out_sharding", "pin_memory", "precision", "requires_grad", "sharding", "subok", "unique_indices",
    }
)  # fmt: skip
"""Arguments that change neither shape nor dtype."""

Function = TypeVar("Function", bound=Callable[..., Any])


def model(owners: str | tuple[str, ...], *names: str) -> Callable[[Function], Function]:
    """Register a function `(call, arguments...)` as the model of `owner.name` for each owner and name."""

    def register(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def bound(call: Call) -> Value:
            keywords = {_RENAMED.get(name, name): value for name, value in call.keywords.items() if name not in _IGNORED}
            try:
                arguments = signature.bind(call, *call.positional, **keywords)
            except TypeError as error:
                raise Unmodelled(f"the arguments of {call.path} are not modelled: {error}") from None
            made = function(*arguments.args, **arguments.kwargs)
            return _of_unknown_library(made) if _hands_over(call) else made

        for owner in (owners,) if isinstance(owners, str) else owners:
            models(*(f"{owner}.{name}" for name in names))(bound)
            if owner in (*_CLASSES.values(), AT):
                models(*(f"array.{name}" for name in names))(_method)
        return function

    return register


def _hands_over(call: Call) -> bool:
    """Say whether NumPy may leave the work to a method of its argument: `np.sum(x)` of JAX's `x` is `x.sum()`."""
    if call.library != "numpy" or call.path in _CONVERSIONS:
        return False
    foreign = {value.library for value in call.positional if isinstance(value, Array)} - {"numpy"}
    if "torch" in foreign:
        raise Unmodelled("NumPy applied to an array of torch")
    return bool(foreign)


def _of_unknown_library(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_of_unknown_library, value))
    shape, contents = (value.shape, value.contents) if isinstance(value, Array) else ((), value)
    return Array(shape, None, UNKNOWN, contents)


def _method(call: Call) -> Value:
    """Call `array.NAME` as the method of the class that the array is of, or of each that it may be of."""
    receiver, name = call.positional[0], call.path.rpartition(".")[2]
    if isinstance(receiver, At):
        classes = [AT]
    elif isinstance(receiver, Array) and receiver.library in _CLASSES:
        classes = [_CLASSES[receiver.library]]
    elif isinstance(receiver, Array | Opaque):
        classes = [*_CLASSES.values()]
    else:
        raise Unmodelled(f"`{name}` is no method of a {type(receiver).__name__}")
    paths = [path for each in classes if (path := f"{each}.{name}") in MODELS]
    if not paths:
        raise Unmodelled(f"`{classes[0]}.{name}` is not modelled")
    return reduce(_common, _succeeding(call, paths))


def _succeeding(call: Call, paths: list[str]) -> list[Value]:
    """Return what a call gives under each of several paths; what would fail under one is not a call of that one."""
    found: list[Value] = []
    failure: Impossible | None = None
    for path in paths:
        try:
            found.append(MODELS[path](replace(call, path=path)))
        except Impossible as why:
            failure = why
    if not found and failure is not None:
        raise failure
    return found


def _common(left: Value, right: Value) -> Value:
    """Return what is known of a value that is one of two, because its library is not known."""
    if left == right:
        return left
    if isinstance(left, Array) and isinstance(right, Array) and left.shape == right.shape:
        dtype = left.dtype if left.dtype == right.dtype else None
        return Array(left.shape, dtype, UNKNOWN, left.contents if left.contents == right.contents and dtype else None)
    raise Unmodelled("the libraries differ in this, and of which the array is is not known")
