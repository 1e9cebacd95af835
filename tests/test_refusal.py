from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype.vale import IsAttr, IsInstance
from jaxtyping import Array, Float

from shapecheck import ContractError, contract


def refusal(annotation: Any, value: Any) -> str:
    def function(x): ...

    function.__annotations__ = {"x": annotation}
    with pytest.raises(ContractError) as caught:
        contract()(function)(value)
    assert caught.value.violations == ()
    assert caught.value.__cause__ is caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected", "got"),
    [
        (int, "abc", "int", "'abc' (str)"),
        (int | None, 2.5, "int | None", "2.5 (float)"),
        (list[int], 3, "list[int]", "3 (int)"),
        (Float[Array, "n m"], [1, 2], "Float[Array, 'n m']", "[1, 2] (list)"),
        (Float[Array, " n"] | None, "abc", "Float[Array, 'n'] | None", "'abc' (str)"),
        (Annotated[Float[Array, " n"], "doc"], 3, "Float[Array, 'n']", "3 (int)"),
        (Float[Array, "n m"], np.ones((2, 3), np.float32), "Float[Array, 'n m']", "float32[2,3] (ndarray)"),
    ],
)
def test_a_refused_argument_is_named_with_what_was_expected_and_what_was_given(
    annotation: Any, value: Any, expected: str, got: str
) -> None:
    assert refusal(annotation, value) == f"function: argument 'x' is refused\n  expected {expected}\n  got {got}"


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Float[Array, " n"], "this array has 2 dimensions, not the 1 expected by the type hint"),
        (Float[Array, "n 4"], "the dimension size 3 does not equal 4 as expected by the type hint"),
        (Float[np.ndarray | Array, " n"], "this array has 2 dimensions, not the 1 expected by the type hint"),
    ],
)
def test_an_array_of_the_right_kind_is_refused_with_jaxtypings_reason(annotation: Any, reason: str) -> None:
    assert refusal(annotation, jnp.ones((2, 3))).endswith(f"got float32[2,3] (Array): {reason}")


def test_a_dtype_among_many_is_refused_without_their_list() -> None:
    assert refusal(Float[Array, " n"], jnp.ones(3, jnp.int32)).endswith("got int32[3] (Array)")


def test_arrays_inside_a_value_are_shown_by_dtype_and_shape() -> None:
    assert refusal(int, [jnp.ones((2, 3))]).endswith("got [float32[2,3]] (list)")


class Quantized(NamedTuple):
    weight: Any
    scales: Any


@dataclass
class Layer:
    cache: list[Any]
    inner: Any = None


def test_arrays_inside_a_record_are_shown_by_dtype_and_shape() -> None:
    assert refusal(int, Layer([jnp.ones((2, 3))])).endswith("got Layer(cache=[float32[2,3]], inner=None) (Layer)")


def test_a_record_inside_itself_is_shown_in_part() -> None:
    layer = Layer([])
    layer.inner = layer
    assert refusal(int, layer).endswith("inner=Layer(...))))))) (Layer)")


Checked = Annotated[Quantized, IsAttr["weight", IsInstance[Float[Array, " n"]]]]


def test_a_quantized_array_is_shown_by_its_parts_and_the_validator_that_refuses_it() -> None:
    text = refusal(Checked, Quantized(jnp.ones((2, 3), jnp.int8), jnp.ones((2, 1))))
    assert "expected Annotated[Quantized, IsAttr['weight', IsInstance[Float[Array, 'n']]]]\n" in text
    assert text.endswith("got Quantized(weight=int8[2,3], scales=float32[2,1])")


def test_a_validator_is_not_shown_to_a_value_of_another_type() -> None:
    assert "expected Quantized\n" in refusal(Checked, 3)


def test_a_long_value_is_shortened() -> None:
    assert len(refusal(int, "x" * 10_000)) < 200


def test_of_two_arrays_that_disagree_the_later_one_is_refused() -> None:
    @contract()
    def function(x: Float[Array, " n"], y: Float[Array, " n"]) -> None: ...

    with pytest.raises(ContractError, match=r"argument 'y'.*\n.*\n.*size of dimension n is 3 .* existing value of 2"):
        function(jnp.ones(2), jnp.ones(3))


def test_a_size_computed_from_an_argument_is_in_scope() -> None:
    @contract()
    def function(size: int, x: Float[Array, " {size}"], y: Float[Array, " n"]) -> None: ...

    function(2, jnp.ones(2), jnp.ones(2))
    with pytest.raises(ContractError, match="argument 'y' is refused"):
        function(2, jnp.ones(2), 3)  # type: ignore[arg-type]


def test_a_traced_array_is_shown_by_dtype_and_shape() -> None:
    @contract()
    def function(x: Float[Array, " n"]) -> None: ...

    with pytest.raises(ContractError, match=r"got int32\[3\]"):
        jax.jit(function)(jnp.ones(3, jnp.int32))
