from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from shapecheck import observe
from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import chip_of
from shapecheck.contract import Contract
from shapecheck.observe import geometry_of, sharding_note, static_value
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import Relation
from shapecheck.rule import Rule
from shapecheck.symbolic import Symbolic

CONTRACT = Contract(
    "f", (ArrayArgument("x", ("rows", "columns")), ArrayArgument("w", ("rows", "width"), True)), (Parameter("p"),), ()
)


class Quantized(NamedTuple):
    weight: Any
    scales: Any


@pytest.mark.parametrize("make", [jnp.zeros, np.zeros, jax.ShapeDtypeStruct])
def test_an_array_of_any_kind_gives_its_names(make: Any) -> None:
    geometry = geometry_of(CONTRACT, {"x": make((2, 3), jnp.bfloat16)})
    expected = {"x_rank": 2, "x_shape": (2, 3), "x_rows": 2, "x_columns": 3, "x_dtype": "bfloat16", "rows": 2, "columns": 3}
    assert expected.items() <= geometry.items()


def test_sizes_of_numpy_are_plain_ints() -> None:
    geometry = geometry_of(CONTRACT, {"x": jax.ShapeDtypeStruct((np.int64(2), 3), jnp.float32)})
    assert type(geometry["rows"]) is int


@pytest.mark.parametrize("value", [None, [1, 2], "x", 3.0, object()])
def test_what_is_no_array_gives_no_names(value: Any) -> None:
    assert not [name for name in geometry_of(CONTRACT, {"x": value}) if name.startswith("x_")]


def test_an_array_of_another_rank_gives_its_rank_and_no_axes() -> None:
    geometry = geometry_of(CONTRACT, {"x": np.zeros((2, 3, 4))})
    assert (geometry["x_rank"], geometry["rows"]) == (3, UNKNOWN)


def test_a_symbolic_size_is_itself_and_as_a_parameter_unknown() -> None:
    (batch,) = export.symbolic_shape("b")
    geometry = geometry_of(CONTRACT, {"x": jax.ShapeDtypeStruct((batch, 3), jnp.float32), "p": batch})
    assert isinstance(geometry["rows"], Symbolic)
    assert (str(geometry["x_shape"]), str(geometry["rows"]), geometry["columns"]) == ("(b, 3)", "b", 3)
    assert geometry["p"] is UNKNOWN


def test_a_quantized_array_has_the_shape_and_dtype_of_its_weight_and_those_of_its_scales() -> None:
    geometry = geometry_of(CONTRACT, {"w": Quantized(np.zeros((2, 3), np.int8), np.zeros((2, 1), np.float32))})
    assert (geometry["w_shape"], geometry["w_dtype"]) == ((2, 3), "int8")
    assert (geometry["w_scales_shape"], geometry["w_scales_dtype"]) == ((2, 1), "float32")


def test_a_plain_array_where_a_quantized_one_may_stand_has_no_scales() -> None:
    geometry = geometry_of(CONTRACT, {"w": np.zeros((2, 3))})
    assert (geometry["w_scales_shape"], geometry["w_scales_dtype"]) == (None, None)


def test_a_quantized_array_with_placeholders_gives_no_names() -> None:
    geometry = geometry_of(CONTRACT, {"w": Quantized(object(), object())})
    assert not [name for name in geometry if name.startswith("w_")]


def test_64_bit_types_are_narrowed_as_jit_does() -> None:
    assert geometry_of(CONTRACT, {"x": np.zeros((2, 3), np.int64)})["x_dtype"] == "int32"


def test_64_bit_types_stay_where_x64_is_on() -> None:
    with jax.enable_x64(True):
        assert geometry_of(CONTRACT, {"x": np.zeros((2, 3), np.int64)})["x_dtype"] == "int64"


@pytest.mark.parametrize("dtype", ["torch.float32", SimpleNamespace(name="float32")])
def test_a_dtype_is_named_however_its_library_spells_it(dtype: Any) -> None:
    assert geometry_of(CONTRACT, {"x": SimpleNamespace(shape=(2, 3), dtype=dtype)})["x_dtype"] == "float32"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (4, 4),
        (np.int64(4), 4),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.asarray(4), 4),
        (jnp.int32(4), 4),
        (None, None),
        ("batch", "batch"),
    ],
)
def test_a_parameter_is_the_plain_value_it_holds(value: Any, plain: Any) -> None:
    assert static_value(value) == plain
    assert type(static_value(value)) is type(plain)


@pytest.mark.parametrize("value", [np.zeros(3), jax.ShapeDtypeStruct((), jnp.int32)])
def test_a_parameter_that_holds_no_plain_value_is_unknown(value: Any) -> None:
    assert static_value(value) is UNKNOWN


def test_a_traced_parameter_is_unknown_and_so_is_its_type() -> None:
    seen: list[dict[str, Any]] = []
    jax.jit(lambda p: seen.append(geometry_of(CONTRACT, {"p": p})) or p)(4)
    assert seen[0]["p"] is UNKNOWN
    assert "p_type" not in seen[0]


MEGACORE = Contract(
    "f",
    (),
    (Parameter("mode", None),),
    (Rule("SC204", "chip", Relation("mode is None or cores_per_device == 2"), "", "", "mode"),),
)


def test_on_a_tpu_a_rule_about_the_chip_sees_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5e"))
    assert geometry_of(MEGACORE, {"mode": "batch"})["cores_per_device"] == 1


def test_on_a_cpu_no_rule_speaks_of_the_chip() -> None:
    assert "cores_per_device" not in geometry_of(MEGACORE, {"mode": "batch"})


@pytest.mark.parametrize(("contract", "arguments"), [(MEGACORE, {"mode": None}), (CONTRACT, {"p": 3})])
def test_the_device_is_not_asked_for_where_no_rule_depends_on_it(
    monkeypatch: pytest.MonkeyPatch, contract: Contract, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr(observe, "local_chip", lambda: pytest.fail("asked for the device"))
    geometry_of(contract, arguments)


def test_outside_shard_map_there_is_no_note() -> None:
    assert sharding_note() == ()
