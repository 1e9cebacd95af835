"""The models of einops: their shapes are those of einops 0.8, and where it is installed it is asked."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from codemods.evaluate.library import Unmodelled
from codemods.values import Array, Opaque, Reason

from .model_programs import Interpreter, assert_agrees, inputs, run_real

SHAPES = {
    "einops.rearrange(x, 'a b c -> c (a b)')": (4, 6),
    "einops.rearrange(x, 'a b (c d) -> a c b d', d=2)": (2, 2, 3, 2),
    "einops.rearrange(x, 'a ... -> ... a')": (3, 4, 2),
    "einops.rearrange(x, 'a b c -> a () b c')": (2, 1, 3, 4),
    "einops.rearrange(one, 'a 1 b 1 -> a b')": (2, 3),
    "einops.rearrange(x, 'v x size->v (x size)')": (2, 12),
    "einops.repeat(x, 'a b c -> a (r b) c', r=3)": (2, 9, 4),
    "einops.repeat(x, 'a b c -> a b 5 c')": (2, 3, 5, 4),
    "einops.reduce(x, 'a b c -> a c', 'max')": (2, 4),
    "einops.reduce(x, 'a (b s) c -> a b c', 'mean', s=3)": (2, 1, 4),
    "einops.reduce(tensor=x, pattern='a b c -> c', reduction='sum')": (4,),
}
FAILING = [
    "einops.rearrange(x, 'a b -> b a')",
    "einops.rearrange(x, '1 b c -> b c')",
    "einops.rearrange(x, 'a b c -> a b')",
    "einops.rearrange(x, 'a b (c d) -> a b c d')",
    "einops.rearrange(x, 'a b (c d) -> a b c d', d=3)",
    "einops.rearrange(x, 'a b c -> a b c', a=3)",
]


@pytest.mark.parametrize(("source", "shape"), SHAPES.items())
def test_shapes(source: str, shape: tuple[int, ...]) -> None:
    made = Interpreter({name: pair[0] for name, pair in inputs("numpy").items()}).run(source)
    assert isinstance(made, Array)
    assert made.shape == shape


@pytest.mark.parametrize("source", FAILING)
def test_what_einops_refuses_gives_nothing(source: str) -> None:
    with pytest.raises(Unmodelled):
        Interpreter({name: pair[0] for name, pair in inputs("numpy").items()}).run(source)


@pytest.mark.skipif(importlib.util.find_spec("einops") is None, reason="einops is not installed")
@pytest.mark.parametrize("source", SHAPES)
def test_einops_agrees(source: str) -> None:
    made = Interpreter({name: pair[0] for name, pair in inputs("numpy").items()}).run(source)
    einops = importlib.import_module("einops")
    assert_agrees(made, run_real(source, {"einops": einops, **{name: pair[1] for name, pair in inputs("numpy").items()}}))


def test_elements_that_stay_in_order_stay_known() -> None:
    names = {"i": Array((4,), None, "numpy", (0, 1, 2, 3))}
    assert Interpreter(names).run("einops.rearrange(i, '(b p) -> b p', b=2)").contents == ((0, 1), (2, 3))
    assert Interpreter(names).run("einops.rearrange(i, '(b p) -> p b', b=2)").contents is None


def test_a_pattern_says_the_rank_of_an_unknown_array() -> None:
    thing = Opaque(("thing",), "thing", Reason("it is a parameter"))
    made = Interpreter({"thing": thing}).run("einops.rearrange(thing, 'b (h d) -> b h d', d=128)")
    assert ", ".join(map(str, made.shape)) == "thing.shape[0], (thing.shape[1] // 128), 128"
    with pytest.raises(Unmodelled):
        Interpreter({"thing": thing}).run("einops.rearrange(thing, '... d -> d ...')")
