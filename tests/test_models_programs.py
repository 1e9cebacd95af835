"""Random programs: what the models say with some sizes unknown must hold for the sizes that the libraries get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods import terms
from codemods.evaluate.arrays import binary
from codemods.evaluate.library import Unmodelled
from codemods.terms import Int, Symbol
from codemods.values import Array, DType, Value

from .model_programs import Interpreter, assert_agrees, dtype_name, run_real


@dataclass
class Program:
    """An expression under construction, the value it has so far, and the values of its unknown numbers."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    source: str = "x"
    value: np.ndarray = field(default_factory=lambda: np.zeros(()))
    shape: tuple[Int, ...] = ()
    known: dict[Symbol, int] = field(default_factory=dict)

    def start(self) -> None:
        sizes = self.draw(st.lists(st.integers(0, 5), max_size=4))
        self.value = np.zeros(sizes, np.float32)
        self.shape = tuple(self.hidden(size, f"x{axis}", 0) for axis, size in enumerate(sizes))

    def hidden(self, number: int, name: str, at_least: int | None = None) -> Int:
        """Return a number as itself, or as an unknown that has this value."""
        if self.draw(st.booleans()):
            return number
        symbol = Symbol(name, name, at_least)
        self.known[symbol] = number
        return terms.of(symbol)

    def names(self) -> dict[str, Any]:
        """Return the unknown numbers that the source names."""
        return {symbol.text: terms.of(symbol) for symbol in self.known}

    def number(self, value: int) -> str:
        """Return source for a number: a literal, or the name of an unknown."""
        kind = self.draw(st.sampled_from(["literal", "literal", "signed", "size"]))
        if kind == "literal" or (kind == "size" and value < 0):
            return str(value)
        symbol = Symbol(name := f"n{len(self.known)}", name, 0 if kind == "size" else None)
        self.known[symbol] = value
        return name

    def axis(self, extra: int = 0) -> int:
        rank = self.value.ndim + extra
        return self.draw(st.integers(-rank, rank - 1))

    def subscript(self) -> str:
        keys: list[str] = []
        taken = self.draw(st.integers(0, self.value.ndim))
        for size in self.value.shape[:taken]:
            key = self.draw(st.sampled_from([":", "number", "slice", "slice", "step"]))
            if key == "number" and size:
                key = self.number(self.draw(st.integers(-size, size - 1)))
            elif key in ("slice", "step"):
                bounds = [self.number(self.draw(st.integers(-6, 6))) if self.draw(st.booleans()) else "" for _ in range(2)]
                step = self.draw(st.sampled_from([1, 2, 3, -1, -2])) if key == "step" else ""
                key = ":".join([*bounds, str(step)])
            else:
                key = ":"
            keys.append(key)
        if self.draw(st.booleans()):
            keys.insert(self.draw(st.integers(0, len(keys))), "None")
        if taken == self.value.ndim and self.draw(st.booleans()):
            keys.insert(self.draw(st.integers(0, len(keys))), "...")
        return f"{self.source}[{', '.join(keys) or '...'}]"

    def reshape(self) -> str:
        sizes = [size for size in self.value.shape if size != 1]
        if len(sizes) > 1:
            place = self.draw(st.integers(0, len(sizes) - 2))
            sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
        shown = [self.number(size) for size in sizes]
        if shown and 0 not in sizes and self.draw(st.booleans()):
            shown[self.draw(st.integers(0, len(shown) - 1))] = "-1"
        return f"{self.source}.reshape(({''.join(f'{size}, ' for size in shown)}))"

    def sum(self) -> str:
        """Add an array that broadcasts, on either side."""
        ones = self.draw(st.integers(0, self.value.ndim))
        sizes = [size if self.draw(st.booleans()) else 1 for size in self.value.shape[ones:]]
        sizes = [
            self.draw(st.integers(0, 4)) if old == 1 else size for size, old in zip(sizes, self.value.shape[ones:], strict=True)
        ]
        other = f"np.zeros(({''.join(f'{self.number(size)}, ' for size in sizes)}))"
        return self.draw(st.sampled_from([f"({self.source} + {other})", f"({other} + {self.source})"]))

    def step(self) -> str:
        """Return the source with one more operation, of those that are legal for its value."""
        x, rank = self.source, self.value.ndim
        choices = [self.subscript, self.reshape, lambda: f"np.expand_dims({x}, {self.axis(1)})", self.sum]
        choices += [lambda: f"np.stack(({x}, {x}))"]
        if rank:
            choices += [
                lambda: f"{x}.transpose({tuple(self.draw(st.permutations(range(rank))))})",
                lambda: f"{x}.sum({self.axis()}, keepdims={self.draw(st.booleans())})",
                lambda: f"np.concatenate(({x}, {x}), axis={self.axis()})",
                lambda: f"np.repeat({x}, {self.number(self.draw(st.integers(0, 3)))}, axis={self.axis()})",
                lambda: f"np.tile({x}, {self.number(self.draw(st.integers(0, 3)))})",
                lambda: f"np.pad({x}, ({self.number(self.draw(st.integers(0, 3)))}, 1))",
                lambda: f"np.swapaxes({x}, {self.axis()}, {self.axis()})",
                lambda: f"{x}.ravel()",
                lambda: f"np.squeeze({x})",
                lambda: f"({x} @ {x}.T)",
            ]
        return self.draw(st.sampled_from(choices))()


@given(st.data())
def test_what_is_said_of_unknown_sizes_holds_for_each(data: st.DataObject) -> None:
    program = Program(data.draw)
    program.start()
    x = program.value
    for _ in range(data.draw(st.integers(1, 4))):
        source = program.step()
        reals = {"x": x, **{symbol.text: value for symbol, value in program.known.items()}}
        try:
            value = run_real(source, reals)
        except (ValueError, IndexError):  # not a legal program
            return
        program.source, program.value = source, value
        models = {"x": Array(program.shape, DType("float32"), "numpy")}
        try:
            said = Interpreter({**models, **program.names()}).run(source)
        except (Unmodelled, terms.TermError):
            return
        assert_agrees(said, value, program.known)


@st.composite
def subscripts(draw: st.DrawFn, rank: int) -> str:
    """Return a key of numbers, slices, None, an ellipsis and arrays of one shape or another that fits it."""
    keys = draw(st.lists(st.sampled_from(["0", "1:", ":", "many", "few", "one"]), max_size=rank))
    for extra in draw(st.lists(st.sampled_from(["None", "..."]), max_size=2, unique=True)):
        keys.insert(draw(st.integers(0, len(keys))), extra)
    return f"x[{', '.join(keys) or '...'}]"


@pytest.mark.parametrize("library", ["jax", "numpy", "torch"])
@given(st.data())
def test_subscripts_with_arrays_put_axes_where_the_library_does(library: str, data: st.DataObject) -> None:
    if library == "torch":
        torch = pytest.importorskip("torch")
    make = {"jax": jnp.asarray, "numpy": np.asarray, "torch": lambda array: torch.tensor(array)}[library]
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    arrays = {
        "x": np.zeros(sizes, np.float32),
        "many": np.zeros((3, 2), np.int32),
        "few": np.zeros((2,), np.int32),
        "one": np.zeros((), np.int32),
    }
    source = data.draw(subscripts(len(sizes)))
    models = {name: Array(array.shape, DType(array.dtype.name), library) for name, array in arrays.items()}
    try:
        said = Interpreter(models).run(source)
    except Unmodelled:
        return
    assert_agrees(said, run_real(source, {name: make(array) for name, array in arrays.items()}, eagerly=library != "jax"))


NUMBERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"]
SCALARS: list[bool | int | float] = [True, 2, 2.5]


def operands(library: str) -> Iterator[tuple[Value, Any]]:
    """Yield arrays and numbers of every dtype, as the models and as the library have them."""
    make: Callable[[np.ndarray], Any] = jnp.asarray if library == "jax" else np.asarray
    if library == "torch":
        torch = pytest.importorskip("torch")
        make = lambda array: torch.ones(array.shape, dtype=getattr(torch, array.dtype.name))  # noqa: E731
    for name, shape in product(NUMBERS, [(), (2,)]):
        if library != "jax" or "64" not in name:
            yield Array(shape, DType(name), library), make(np.ones(shape, jnp.dtype(name)))
    yield from ((scalar, scalar) for scalar in SCALARS)
    if library == "jax":
        yield from ((Array((), DType(name), weak=True), jnp.asarray(number)) for name, number in (("int32", 2), ("float32", 2.5)))


def sum_dtype(library: str, left: Any, right: Any) -> str | None:
    """Return the dtype of `left + right`; None where the library has no rule for it."""
    try:
        return dtype_name(jnp.result_type(left, right) if library == "jax" else (left + right).dtype)
    except (RuntimeError, TypeError):
        return None


@pytest.mark.parametrize("library", ["jax", "numpy", "torch"])
def test_dtypes_are_promoted_as_the_library_promotes_them(library: str) -> None:
    for (left, real_left), (right, real_right) in product(operands(library), repeat=2):
        if isinstance(left, Array) or isinstance(right, Array):
            real = sum_dtype(library, real_left, real_right)
            said = binary("+", left, right)
            assert isinstance(said, Array)
            if said.dtype is None:
                odd = {"numpy": ("bfloat16",), "torch": ("uint16", "uint32")}[library]
                assert any(isinstance(each, Array) and each.dtype and each.dtype.name in odd for each in (left, right))
            elif real is not None:
                assert said.dtype.name == real, (left, right)
