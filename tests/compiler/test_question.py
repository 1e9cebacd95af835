from __future__ import annotations

from typing import Any

import pytest

from shapecheck.chip import CHIPS
from shapecheck.compiler import (
    KERNELS,
    Mesh,
    Question,
    missing,
)

from .questions import SMALL, question


def test_states_whole_arrays() -> None:
    request = question(pages_dtype="int8", scales_dtype="float32").request
    pages = {"shape": (8, 128, 16, 128), "dtype": "int8", "scales": {"shape": (8, 128, 16, 1), "dtype": "float32"}}
    assert request["arrays"] == {
        "q": {"shape": (8, 32, 128), "dtype": "bfloat16"},
        "k_pages": pages,
        "v_pages": pages,
        "lengths": {"shape": (8,), "dtype": "int32"},
        "page_indices": {"shape": (8, 16), "dtype": "int32"},
    }
    assert request["parameters"]["pages_per_compute_block"] == 8
    assert request["parameters"]["inline_seq_dim"] is True


def test_an_argument_of_another_rank_can_be_asked_about() -> None:
    kernel = KERNELS["paged_attention"]
    values = kernel.contract.geometry(**SMALL, scales_dtype=None, **kernel.assumed)
    values = {name: value for name, value in values.items() if not name.startswith("q_")} | {"q_dtype": "bfloat16"}
    assert list(missing(kernel.contract, values)) == ["q_batch_size", "q_num_q_heads", "q_head_dim"]
    asked = Question(kernel, CHIPS[0], {**values, "q_shape": (8, 1, 32, 128)})
    assert asked.request["arrays"]["q"]["shape"] == (8, 1, 32, 128)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q_dtype": None}, "not known: q_dtype"),
        ({"chip": "v9"}, "unknown chip 'v9'"),
        (
            {"mesh": Mesh(model=3)},
            "num_q_heads = 32 cannot be split 3 ways, over 'model'; legal numbers: 1, 2, 4, 8, 16, 32$",
        ),
        ({"mesh": Mesh(model=16)}, "num_kv_heads = 8 cannot be split 16 ways, over 'model'; legal numbers: 1, 2, 4, 8$"),
        ({"mesh": Mesh(data=3, model=4)}, "batch_size = 8 cannot be split 3 ways, over 'data'"),
        ({"mesh": Mesh(data=3, model=43)}, "a mesh of 129 devices: 128 at most"),
    ],
)
def test_refuses_what_cannot_be_asked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        question(**changes)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="has no 'batch'"):
        question(batch=8)


def test_whatever_is_left_out_is_named() -> None:
    with pytest.raises(ValueError, match=r"not known: q_batch_size, lengths_batch_size, page_indices_batch_size$"):
        Question.of("v5e", **{name: value for name, value in SMALL.items() if name != "batch_size"})


def test_on_a_mesh_the_contract_judges_what_one_device_sees() -> None:
    scales = {"pages_dtype": "int8", "scales_dtype": "float32"}
    geometry = question(mesh=Mesh(data=2, model=4), **scales).geometry
    assert (geometry["num_q_heads"], geometry["num_kv_heads"], geometry["batch_size"]) == (8, 2, 4)
    assert (geometry["lengths_shape"], geometry["page_indices_shape"]) == ((4,), (4, 16))
    assert geometry["k_pages_shape"] == (2, 128, 16, 128)
    assert geometry["v_pages_scales_shape"] == (2, 128, 16, 1)
    assert geometry["cores_per_device"] == 2


def test_the_arrays_are_split_over_the_axes_of_a_mesh() -> None:
    request = question(mesh=Mesh(data=2, model=4)).request
    assert request["mesh"] == {"data": 2, "model": 4}
    assert request["specs"] == {
        "q": ["data", "model", None],
        "k_pages": ["model", None, None, None],
        "v_pages": ["model", None, None, None],
        "lengths": ["data"],
        "page_indices": ["data", None],
    }


def test_the_key_tells_apart_what_is_compiled_differently() -> None:
    asked = [
        question(),
        question("v5e"),
        question(batch_size=16),
        question(mesh=Mesh(model=2)),
        question(mesh=Mesh(data=2)),
        question(megacore_mode="batch"),
    ]
    assert len({each.key for each in asked}) == len(asked)
    assert question().key == question().key
