from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional, Union

import jax
import jaxtyping  # noqa: F401  an annotation below names it
import numpy as np
import pytest
from jaxtyping import Array, Float, Int, PyTree

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import RelationError
from shapecheck.signature import name_of, read_signature

if TYPE_CHECKING:
    from jax.sharding import Mesh

Block = Float[Array, "batch heads"]


class Quantized(NamedTuple):
    weight: Any
    scales: Any


def axes(annotation: Any) -> tuple[str, ...] | None:
    """The axes read off one annotation; None where it holds no array."""

    def function(x): ...

    function.__annotations__ = {"x": annotation}
    arrays = read_signature(function).arrays
    return arrays[0].axes if arrays else None


@pytest.mark.parametrize(
    "annotation",
    [
        Float[Array, "batch heads"],
        Float[Array, "batch heads"] | None,
        Optional[Float[Array, "batch heads"]],  # noqa: UP045
        Union[Float[Array, "batch heads"], Int[np.ndarray, "batch heads"]],  # noqa: UP007
        Float[Array | np.ndarray, "batch heads"],
        Annotated[Float[Array, "batch heads"], "the query"],
        Annotated[Float[Array, "batch heads"] | None, "the query"],
        Float[Float[Array, " heads"], "batch"],
        "Float[Array, 'batch heads']",
        "Float[Array, 'batch heads'] | None",
        "Block",
        Optional["Block"],
        "Annotated[Block, 'the query']",
    ],
)
def test_an_array_is_found_however_its_annotation_is_written(annotation: Any) -> None:
    assert axes(annotation) == ("batch", "heads")


@pytest.mark.parametrize("annotation", [int, "str | None", PyTree[Float[Array, " n"]], Any, None])
def test_what_only_holds_arrays_is_a_parameter(annotation: Any) -> None:
    assert axes(annotation) is None


def test_alternatives_that_disagree_on_their_axes_name_none() -> None:
    assert axes(Float[Array, "batch heads"] | Float[Array, " heads"]) == ("...",)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no TypeAliasType")
def test_an_alias_stands_for_its_value_and_may_hold_itself() -> None:
    namespace: dict[str, Any] = {"Block": Block}
    exec("type Alias = Block | None\ntype Tree = dict[str, Tree] | Block", namespace)
    assert axes(namespace["Alias"]) == axes(namespace["Tree"]) == ("batch", "heads")


def test_a_parameter_has_its_default_or_an_unknown_one() -> None:
    def function(block: int, mode: str | None = None, *args: int, limit=3, **kwargs: int): ...

    assert read_signature(function).parameters == (Parameter("block", UNKNOWN), Parameter("mode", None), Parameter("limit", 3))


def test_an_alternative_with_weight_and_scales_makes_an_array_quantizable() -> None:
    def function(plain: Block, pages: Block | Quantized): ...

    assert read_signature(function).arrays == (
        ArrayArgument("plain", ("batch", "heads")),
        ArrayArgument("pages", ("batch", "heads"), quantizable=True),
    )


def test_string_annotations_are_resolved_where_the_function_was_written() -> None:
    def function(q: Block) -> Block: ...

    signature = read_signature(function).signature
    assert signature.parameters["q"].annotation is Block
    assert signature.return_annotation is Block


@pytest.mark.parametrize("wrap", [jax.jit, functools.partial, lambda function: jax.jit(functools.partial(function))])
def test_annotations_are_resolved_through_jit_and_partial(wrap: Any) -> None:
    def function(q: Block): ...

    assert read_signature(wrap(function)).arrays == (ArrayArgument("q", ("batch", "heads")),)


def test_annotations_of_an_object_that_can_be_called_are_resolved() -> None:
    class Layer:
        def __call__(self, q: Block): ...

    assert read_signature(Layer()).arrays == (ArrayArgument("q", ("batch", "heads")),)


def test_an_annotation_without_a_shape_may_name_what_is_not_there_yet() -> None:
    def function(q: Block, mesh: Mesh | None): ...

    reading = read_signature(function)
    assert reading.unresolved == ("Mesh | None",)
    assert reading.signature.parameters["mesh"].annotation is Any


@pytest.mark.parametrize(
    "annotation",
    [
        'Shaped[Array, "batch heads"]',
        'Float[Tensor, "batch heads"] | None',
        "Float[Array, batch]",
        "jaxtyping.Float[Array, batch]",
    ],
)
def test_an_annotation_with_a_shape_must_be_resolved(annotation: str) -> None:
    def function(q): ...

    function.__annotations__ = {"q": annotation}
    with pytest.raises(TypeError, match=re.escape(f"function: the annotation {annotation} cannot be resolved")):
        read_signature(function)


@pytest.mark.parametrize(
    "annotation",
    [Float[Array, " n>=4"], list[Float[Array, " n>=4"]], PyTree[Float[Array, " n>=4"]], Float[Array, " n>=4"] | None],
)
@pytest.mark.parametrize("place", ["x", "return"])
def test_a_comparison_in_a_shape_is_refused_wherever_it_stands(annotation: Any, place: str) -> None:
    def function(x): ...

    function.__annotations__ = {place: annotation}
    with pytest.raises(RelationError, match="n>=4"):
        read_signature(function)


def test_a_shape_that_jaxtyping_refuses_is_refused_though_it_stands_in_a_string() -> None:
    def function(x: Float[Array, "*a *b"]): ...

    with pytest.raises(ValueError, match="more than once"):
        read_signature(function)


def test_a_partial_has_the_name_of_its_function() -> None:
    assert name_of(functools.partial(functools.partial(axes))) == "axes"


def test_fields_with_a_shape_that_cannot_be_resolved_are_refused() -> None:
    class Cache(NamedTuple):
        keys: Float[Missing, "heads dim"]  # type: ignore[name-defined]  # noqa: F821

    class Plain(NamedTuple):
        keys: Missing  # type: ignore[name-defined]  # noqa: F821

    assert axes(Plain) is None
    with pytest.raises(TypeError, match=r"the fields of Cache cannot be resolved.*'Missing' is not defined"):
        axes(Cache)
