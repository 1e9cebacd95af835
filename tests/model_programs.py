"""Expressions evaluated twice: by the models of library functions, and by the libraries themselves."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from codemods import formulas, operations, substitution, terms
from codemods.evaluate import arrays
from codemods.evaluate.library import MODELS, Call, Unmodelled
from codemods.evaluate.operators import NAMES
from codemods.terms import Int, Symbol, Term
from codemods.values import Array, Bound, Choice, DType, External, ListRef, Opaque, Quantized, Reason, Slice, Value

MODULES = {
    "jnp": "jax.numpy",
    "np": "numpy",
    "jax": "jax",
    "lax": "jax.lax",
    "torch": "torch",
    "F": "torch.nn.functional",
    "einops": "einops",
}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


INPUTS: dict[str, Any] = {
    "x": np.zeros((2, 3, 4), np.float32),
    "row": np.zeros((1, 4), np.float32),
    "h": np.zeros((4,), np.float16),
    "i": np.arange(12, dtype=np.int32).reshape(3, 4) - 4,
    "n": np.array([3, 1, 2], np.int32),
    "i8": np.array([1, 2], np.int8),
    "u8": np.array([1, 2], np.uint8),
    "b": np.array([True, False, True, True]),
    "m": np.zeros((4, 5), np.float32),
    "one": np.zeros((2, 1, 3, 1), np.float32),
    "empty": np.zeros((0, 3), np.int32),
    "scalar": np.array(2, np.int32),
}


class Interpreter:
    """Evaluates an expression with the models alone."""

    def __init__(self, names: Mapping[str, Value] | None = None) -> None:
        self.names = {**{name: External(path) for name, path in MODULES.items()}, **(names or {})}
        self.lists: dict[int, tuple[Value, ...]] = {}
        self.counter = count()

    def run(self, source: str) -> Value:
        return self._value(ast.parse(source, mode="eval").body)

    def elements(self, value: Value) -> tuple[Value, ...]:
        return self.lists[value.id] if isinstance(value, ListRef) else tuple(value)

    def fresh(self, text: str) -> Value:
        return Opaque(("fresh", next(self.counter)), text, Reason("it is new"))

    def value(self, node: ast.expr | None) -> Value:
        """Return the value of a part of an expression; what is made of each of its alternatives, no model is asked."""
        found = self._value(node)
        if isinstance(found, Choice):
            raise Unmodelled("a part that may be one of several arrays")
        return found

    def _value(self, node: ast.expr | None) -> Value:
        match node:
            case None:
                return None
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self.names.get(name, External(f"builtins.{name}"))
            case ast.Tuple(elements):
                return tuple(map(self.value, elements))
            case ast.List(elements):
                made = ListRef(next(self.counter))
                self.lists[made.id] = tuple(map(self.value, elements))
                return made
            case ast.Slice(lower, upper, step):
                return Slice(self.value(lower), self.value(upper), self.value(step))
            case ast.UnaryOp(op, operand):
                return self.negated(_UNARY[type(op)], self.value(operand))
            case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
                return self.binary(NAMES[type(op)], self.value(left), self.value(right))
            case ast.Subscript(value, key):
                return self.item(self.value(value), self.value(key))
            case ast.Attribute(value, name):
                return self.attribute(self.value(value), name)
            case ast.Call(function, positional, keywords):
                return self.call(
                    self.value(function),
                    tuple(map(self.value, positional)),
                    {each.arg or "": self.value(each.value) for each in keywords},
                )
            case _:
                raise NotImplementedError(ast.dump(node))

    def negated(self, op: str, value: Value) -> Value:
        if isinstance(value, Array):
            return arrays.unary(op, value)
        return -value if op == "-" else value

    def binary(self, op: str, left: Value, right: Value) -> Value:
        if isinstance(left, Array) or isinstance(right, Array):
            return arrays.binary(op, left, right)
        if isinstance(left, Term) or isinstance(right, Term):
            return {"+": terms.add, "-": terms.subtract, "*": terms.multiply, "//": operations.floordiv}[op](left, right)
        return eval(f"left {op} right")

    def item(self, value: Value, key: Value) -> Value:
        if isinstance(value, Array):
            return arrays.index(value, key, self.elements)
        return value[slice(key.lower, key.upper, key.step) if isinstance(key, Slice) else key]

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, External):
            return External(f"{value.path}.{name}")
        found = arrays.attribute(value, name)
        return Bound(value, name) if found is None else found

    def call(self, function: Value, positional: tuple[Value, ...], keywords: Mapping[str, Value]) -> Value:
        if function == External("builtins.len"):
            return arrays.length(positional[0])
        if isinstance(function, Bound):
            function, positional = External(f"array.{function.function}"), (function.receiver, *positional)
        return MODELS[function.path](Call(function.path, positional, keywords, self.elements, self.fresh))


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Collect the paths of the models that are asked."""
    asked: set[str] = set()
    plain = dict(MODELS)

    def recording(path: str) -> Any:
        def model(call: Call) -> Value:
            asked.add(path)
            return plain[path](call)

        return model

    MODELS.update({path: recording(path) for path in plain})
    try:
        yield asked
    finally:
        MODELS.update(plain)


def run_real(source: str, names: Mapping[str, Any], eagerly: bool = True) -> Any:
    """Evaluate an expression with the libraries; unless `eagerly`, JAX only traces it, which is much faster."""
    scope = {"jnp": jnp, "np": np, "jax": jax, "lax": jax.lax, **names}
    results: list[Any] = []

    def program() -> None:
        results.append(eval(source, dict(scope)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a dtype of 64 bits is narrowed, that a cast is lossy, ...
        program() if eagerly else jax.eval_shape(program)
    return results[0]


def assert_agrees(model: Value, real: Any, known: Mapping[Symbol, int] | None = None) -> None:
    """Hold what the models say against the real result, where the unknowns have the values `known`."""
    match model:
        case Array():
            _assert_same_array(model, real, known or {})
        case Quantized():
            _assert_same_array(model.weight, real.weight, {})
            _assert_same_array(model.scales, real.scales, {})
        case DType(name):
            assert dtype_name(real) == name
        case tuple():
            assert len(model) == len(real)
            for each, other in zip(model, real, strict=True):
                assert_agrees(each, other, known)
        case Term():
            assert isinstance(real, int | np.integer)
            assert_same_size(model, int(real), known or {})
        case External():
            assert not hasattr(real, "dtype")
        case Choice(alternatives):
            outcomes = [(formulas.evaluate(formula, known or {}), value) for formula, value in alternatives]
            held = [value for outcome, value in outcomes if outcome is not False]
            if any(outcome is None for outcome, _ in outcomes):  # it rests on a size that is not among the known ones
                assert any(_agrees(value, real, known) for value in held)
            else:
                assert len(held) == 1
                assert_agrees(held[0], real, known)
        case _:
            assert model == real


def _agrees(model: Value, real: Any, known: Mapping[Symbol, int] | None) -> bool:
    try:
        assert_agrees(model, real, known)
    except AssertionError:
        return False
    return True


def _assert_same_array(model: Array, real: Any, known: Mapping[Symbol, int]) -> None:
    if type(real) is float:  # NumPy draws a Python float
        assert model.shape == () and model.weak and model.library == "numpy"  # noqa: PT018
        return
    assert model.library in ("unknown", type(real).__module__.partition(".")[0].removesuffix("lib"))
    assert len(model.shape) == len(real.shape)
    for size, other in zip(model.shape, real.shape, strict=True):
        assert_same_size(size, other, known)
    if model.dtype is not None:
        assert model.dtype.name == dtype_name(real.dtype)
        if model.library == "jax" and model.dtype.name != "bool":
            assert model.weak == getattr(real, "weak_type", False)
    if model.contents is not None:
        assert as_tuples(real.tolist()) == model.contents


def assert_same_size(size: Int, real: int, known: Mapping[Symbol, int]) -> None:
    if terms.symbols(size) <= known.keys():
        assert substitution.evaluate(size, known) == real


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def has_elements(value: Value) -> bool:
    """Say whether it is a number, or holds an array whose elements are known."""
    if isinstance(value, tuple):
        return any(map(has_elements, value))
    return isinstance(value, int) or getattr(value, "contents", None) is not None


def assert_program(source: str, names: Mapping[str, tuple[Value, Any]]) -> None:
    """Evaluate an expression both ways; `names` holds the model and the real value of each name."""
    model = Interpreter({name: pair[0] for name, pair in names.items()}).run(source)
    real = run_real(source, {name: pair[1] for name, pair in names.items()}, eagerly=has_elements(model))
    assert_agrees(model, real)


def inputs(library: str) -> dict[str, tuple[Value, Any]]:
    """Return each input as the models and as the library have it."""
    made = {"jax": jnp.asarray, "numpy": lambda array: array}[library]
    names: dict[str, tuple[Value, Any]] = {
        name: (
            Array(array.shape, DType(array.dtype.name), library, as_tuples(array.tolist()) if array.dtype.kind in "iu" else None),
            made(array),
        )
        for name, array in INPUTS.items()
    }
    names["bf"] = (Array((2, 4), DType("bfloat16"), library), made(np.zeros((2, 4), jnp.bfloat16)))
    return names


def expressions(*texts: str) -> list[str]:
    """Return the lines of texts."""
    return [line for text in texts for line in text.strip().splitlines()]
