"""Symbolic sizes of `jax.export`: proven and violated as far as their constraints decide, accepted where they do not."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jaxtyping import Array, Float

from kernel import paged_attention
from shapecheck import ContractError, contract
from shapecheck.outcome import UNKNOWN, Outcome
from shapecheck.relation import Relation
from shapecheck.symbolic import Symbolic


def sizes(*constraints: str) -> dict[str, Any]:
    names = ("a", "b")
    return dict(zip(names, map(Symbolic, export.symbolic_shape(",".join(names), constraints=constraints)), strict=True))


@pytest.mark.parametrize(
    ("relation", "constraints", "outcome"),
    [
        ("a % 8 == 0", (), UNKNOWN),
        ("a % 8 != 0", (), UNKNOWN),
        ("8 * a % 8 == 0", (), True),
        ("(8 * a + 1) % 8 == 0", (), False),
        ("(8 * a + 1) % 8 != 0", (), True),
        ("a % 8 == 0", ("mod(a, 8) == 0",), True),
        ("a % 8 == 0", ("mod(a, 8) == 3",), False),
        ("a >= 1", (), True),
        ("a >= 4", (), UNKNOWN),
        ("a >= 4", ("a >= 4",), True),
        ("a < 4", ("a >= 4",), False),
        ("a == 3", ("a >= 4",), False),
        ("a == b", (), UNKNOWN),
        ("a == a", (), True),
        ("a * b == b * a", (), True),
        ("a - a + 3 == 3", (), True),
        ("-a < 0 and abs(-a) == a", (), True),
        ("min(a, b) >= 1", (), UNKNOWN),
        ("max(a, 4) == 4", ("a <= 3",), True),
        ("a in (3, 5)", ("a >= 6",), False),
        ("a in (3, 5)", (), UNKNOWN),
        ("(a, 4) == (b, 5)", (), False),
        ("a is not None and a != 'x'", (), True),
        ("not a", (), False),
        ("a or b", (), True),
        ("a - 1 or b", (), True),
        ("a - 1 and b", (), UNKNOWN),
        ("a - 1 == 0 or b >= 1", (), True),
        ("100 // a >= 1", ("a <= 100",), True),
        ("100 % a < a", (), True),
        ("a // 0 == 1", (), UNKNOWN),
    ],
)
def test_outcomes(relation: str, constraints: tuple[str, ...], outcome: Outcome) -> None:
    assert Relation(relation).evaluate(sizes(*constraints)) is outcome


@pytest.mark.parametrize("relation", ["a % 8 == 0", "a > 7", "a - 1", "(a, 1) == (7, 1)", "min(a, b) > 3"])
def test_what_is_not_decided_is_not_undefined(relation: str) -> None:
    assert Relation(relation).undefined(sizes()) == ""


def test_outcomes_are_those_of_every_value() -> None:
    """What is decided of a symbol is true of each integer that it stands for."""
    relations = [
        "(a + 3) % 4 == 0",
        "4 * a % 2 == 0",
        "a // 2 * 2 <= a",
        "a % 3 in (0, 1, 2)",
        "a * a >= a",
        "2 * a + 1 != 2 * b",
    ]
    for relation in map(Relation, relations):
        if (outcome := relation.evaluate(sizes())) is not UNKNOWN:
            assert {relation.evaluate({"a": a, "b": b}) for a in range(1, 30) for b in range(1, 30)} == {outcome}


def test_sizes_are_keys_and_can_be_pickled() -> None:
    first, second = sizes()["a"], sizes()["b"]
    assert {first: 1, second: 2}[first] == 1
    assert first != second
    assert pickle.loads(pickle.dumps(first * 2)) == "2*a"


@contract("heads % kv_heads == 0")
def attend(q: Float[Array, "batch heads dim"], k: Float[Array, "kv_heads dim"]) -> Float[Array, "batch heads dim"]:
    return q


def exported(shape: str, *, kv_heads: int = 8, constraints: tuple[str, ...] = ()) -> export.Exported:
    q = jax.ShapeDtypeStruct(export.symbolic_shape(shape, constraints=constraints), jnp.float32)
    return export.export(jax.jit(attend))(q, jax.ShapeDtypeStruct((kv_heads, 4), jnp.float32))


def test_a_call_that_may_be_legal_is_exported() -> None:
    assert str(exported("b, h, 4").out_avals[0].shape) == "(b, h, 4)"
    assert str(exported("b, 8*h, 4").out_avals[0].shape) == "(b, 8*h, 4)"


@pytest.mark.parametrize(("shape", "constraints"), [("b, 8*h + 4, 4", ()), ("b, h, 4", ("mod(h, 8) == 4",))])
def test_a_call_that_no_size_makes_legal_is_not(shape: str, constraints: tuple[str, ...]) -> None:
    with pytest.raises(ContractError) as caught:
        exported(shape, constraints=constraints)
    assert f"heads = {shape.split(', ')[1]}   (q.shape[1])" in str(caught.value)
    assert "kv_heads = 8" in str(caught.value)


@pytest.mark.parametrize(("batch", "legal"), [("b", True), ("2*b", True), ("2*b + 1", False)])
def test_the_front_door(batch: str, legal: bool) -> None:
    (rows,) = export.symbolic_shape(batch)
    pages = jax.ShapeDtypeStruct((2, 16, 4, 128), jnp.bfloat16)
    call = (
        jax.ShapeDtypeStruct((rows, 4, 128), jnp.bfloat16),
        pages,
        pages,
        jax.ShapeDtypeStruct((rows,), jnp.int32),
        jax.ShapeDtypeStruct((rows, 4), jnp.int32),
    )
    function = export.export(jax.jit(lambda *call: paged_attention(*call, pages_per_compute_block=2, megacore_mode="batch")))
    if legal:
        assert str(function(*call).out_avals[0].shape) == f"({batch}, 4, 128)"
    else:
        with pytest.raises(ContractError, match=r"SC202 megacore-batch(.|\n)*batch_size = 2\*b \+ 1   \(q.shape\[0\]\)"):
            function(*call)
