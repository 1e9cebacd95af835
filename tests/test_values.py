"""What is in the arrays of a call, looked at when it is made, and by the program that it is traced into."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import quantize_to_int8
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Int32

import shapecheck
from kernel import paged_attention
from shapecheck import ContractError, contract, values

WHILE_IT_RUNS = (jax.errors.JaxRuntimeError, ValueError)  # whichever it is says JAX, that runs the callback
NAN, INF = float("nan"), float("inf")
LENGTHS = (5, 0, 16, 9)  # 4 pages of 4 tokens, in blocks of 2 pages


def call(**changes: Any) -> dict[str, Any]:
    pages = jnp.ones((2, 16, 4, 128))
    arrays = {
        "q": jnp.ones((4, 4, 128)),
        "k_pages": pages,
        "v_pages": pages,
        "lengths": jnp.asarray(LENGTHS, jnp.int32),
        "page_indices": jnp.arange(16, dtype=jnp.int32).reshape(4, 4),
    }
    return {**arrays, **changes}


def attend(arrays: dict[str, Any], **options: Any) -> jax.Array:
    return paged_attention(**arrays, **{"pages_per_compute_block": 2, "check_values": True, **options})


def spoilt(*index: int, by: float = NAN) -> jax.Array:
    return call()["k_pages"].at[index].set(by)


def lengths(row: int, length: int) -> jax.Array:
    return call()["lengths"].at[row].set(length)


def table(row: int, column: int, page: int) -> jax.Array:
    return call()["page_indices"].at[row, column].set(page)


TAIL = (
    "  SC407 tail-not-finite: what follows the last token of a row, in the same compute block, must be finite\n"
    "        implementation = 'auto'\n"
)
MESSAGES = {
    "length": (
        {"lengths": lengths(3, 17)},
        "  SC401 length-overrun: lengths_max <= pages_per_sequence * page_size\n"
        "        lengths_max = 17   (lengths[3])\n"
        "        pages_per_sequence = 4   (page_indices.shape[1])\n"
        "        page_size = 4   (k_pages.shape[2])\n"
        "        at least 0, at most 16 = pages_per_sequence * page_size (4 * 4)",
    ),
    "negative length": (
        {"lengths": lengths(2, -1)},
        "  SC401 length-overrun: 0 <= lengths_min\n"
        "        lengths_min = -1   (lengths[2])\n"
        "        at least 0, at most 16 = pages_per_sequence * page_size (4 * 4)",
    ),
    "page id of padding": (
        {"page_indices": table(1, 3, -1)},
        "  SC402 page-id-range: 0 <= page_indices_min\n"
        "        page_indices_min = -1   (page_indices[1, 3])\n"
        "        at least 0, at most 15 = total_num_pages - 1",
    ),
    "page id": (
        {"page_indices": table(2, 0, 16)},
        "  SC402 page-id-range: page_indices_max < total_num_pages\n"
        "        page_indices_max = 16   (page_indices[2, 0])\n"
        "        total_num_pages = 16   (k_pages.shape[1])\n"
        "        at least 0, at most 15 = total_num_pages - 1",
    ),
    "keys": (
        {"k_pages": spoilt(1, 1, 2, 7)},
        f"{TAIL}        k_pages_tail = nan   (k_pages[1, 1, 2, 7], behind the 5 tokens of row 0)",
    ),
    "values": (
        {"v_pages": spoilt(0, 15, 3, 0, by=INF)},
        f"{TAIL}        v_pages_tail = inf   (v_pages[0, 15, 3, 0], behind the 9 tokens of row 3)",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_call_is_refused_with_the_number_and_its_place(name: str) -> None:
    changes, message = MESSAGES[name]
    with pytest.raises(ContractError) as caught:
        attend(call(**changes))
    assert str(caught.value) == f"paged_attention: 1 relation does not hold\n{message}"
    assert attend(call(**changes), check_values=False).shape == (4, 4, 128)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_error_of_checkify_says_the_same(name: str) -> None:
    changes, message = MESSAGES[name]
    error, _ = checkify.checkify(jax.jit(attend))(call(**changes))
    assert error.get() == f"paged_attention: 1 relation does not hold\n{message} (`check` failed)"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_program_that_is_not_functionalized_fails_while_it_runs_with_the_same_words(name: str) -> None:
    changes, message = MESSAGES[name]
    with pytest.raises(WHILE_IT_RUNS) as caught:
        jax.jit(attend)(call(**changes)).block_until_ready()
    assert message in str(caught.value)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: lambda x: checkify.checkify(jax.jit(f))(x)[1]])
def test_a_legal_call_gives_what_it_gives_without(transform: Any) -> None:
    expected = attend(call(), check_values=False)
    np.testing.assert_array_equal(transform(attend)(call()), expected)


UNREAD = {
    "the row itself": spoilt(0, 1, 0, 0),
    "a later block": spoilt(0, 2, 0, 0),
    "a row of length 0": spoilt(0, 4, 0, 0),
    "behind a whole block": spoilt(0, 14, 0, 0).at[0, 14, 0, 0].set(1.0),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_the_kernel_does_not_multiply_by_0_may_be_anything(name: str) -> None:
    attend(call(k_pages=UNREAD[name]))


@pytest.mark.parametrize("place", ["last page", "padding page", "next block"])
@pytest.mark.parametrize("argument", ["k_pages", "v_pages"])
def test_the_kernel_gives_nan_exactly_where_the_rule_says(argument: str, place: str) -> None:
    page = {"last page": 1, "padding page": 11, "next block": 2}[place]
    arrays = call(lengths=jnp.asarray([5, 0, 0, 0] if page != 11 else [0, 0, 10, 0], jnp.int32))
    arrays[argument] = arrays[argument].at[1, page, 3, 7].set(NAN)
    out = attend(arrays, check_values=False, implementation="interpret")
    assert bool(jnp.isnan(out).any()) == (place != "next block")
    assert not jnp.isnan(attend(arrays, implementation="xla")).any()
    if place != "next block":
        with pytest.raises(ContractError, match="SC407"):
            attend(arrays, implementation="interpret")


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_settings_of_the_caller_are_for_the_code_of_the_caller(transform: Any) -> None:
    arrays = call(k_pages=spoilt(1, 1, 2, 7))
    with (
        jax.numpy_rank_promotion("raise"),
        jax.debug_nans(True),
        pytest.raises(WHILE_IT_RUNS, match="k_pages_tail = nan"),
    ):
        jax.block_until_ready(transform(lambda arrays: attend(arrays, implementation="interpret"))(arrays))


def test_of_quantized_pages_the_scales_are_looked_at() -> None:
    pages = quantize_to_int8(call()["k_pages"])
    attend(call(k_pages=pages, v_pages=pages))
    bad = pages._replace(scales=pages.scales.at[0, 1, 1, 0].set(NAN))
    with pytest.raises(
        ContractError, match=r"v_pages_tail = nan   \(v_pages.scales\[0, 1, 1, 0\], behind the 5 tokens of row 0\)"
    ):
        attend(call(k_pages=pages, v_pages=bad))


def test_arrays_of_numpy_and_several_rules_at_once() -> None:
    arrays = {name: np.asarray(each) for name, each in call(lengths=lengths(0, 99), page_indices=table(0, 0, -7)).items()}
    with pytest.raises(ContractError) as caught:
        attend(arrays)
    assert [each.rule.code for each in caught.value.violations] == ["SC401", "SC402"]


def test_an_empty_batch_holds_nothing_wrong() -> None:
    arrays = call()
    empty = {name: arrays[name][:0] for name in ("q", "lengths", "page_indices")}
    assert attend({**arrays, **empty}).shape == (0, 4, 128)


def test_a_constant_of_a_program_is_looked_at_where_the_program_uses_it() -> None:
    constant = call(lengths=lengths(3, 17))

    def guarded(q: jax.Array, is_legal: Any) -> jax.Array:
        return jax.lax.cond(is_legal, lambda: attend({**constant, "q": q}), lambda: q)

    np.testing.assert_array_equal(guarded(constant["q"], False), constant["q"])
    for program in (guarded, jax.jit(guarded)):
        with pytest.raises(WHILE_IT_RUNS, match="SC401"):
            program(constant["q"], True).block_until_ready()
    error, _ = checkify.checkify(guarded)(constant["q"], True)
    assert "SC401" in str(error.get())


def test_a_right_constant_of_a_program_takes_nothing_while_it_runs() -> None:
    constant = call()
    program = jax.make_jaxpr(lambda q: attend({**constant, "q": q, "k_pages": constant["k_pages"]}))(constant["q"])
    assert "shapecheck_values" not in str(program)


def test_what_checkify_makes_of_a_program_can_be_mapped() -> None:
    both = jnp.stack([call()["lengths"], lengths(3, 17)])
    error, _ = jax.vmap(checkify.checkify(jax.jit(lambda each: attend(call(lengths=each)))))(both)
    assert "at mapped index 1" in str(error.get())
    assert "lengths_max = 17   (lengths[3])" in str(error.get())


def scanned(arrays: dict[str, Any]) -> jax.Array:
    def step(carry: jax.Array, length: jax.Array) -> tuple[jax.Array, None]:
        return carry + attend({**arrays, "lengths": length}), None

    return jax.lax.scan(step, jnp.zeros((4, 4, 128)), jnp.stack([call()["lengths"], arrays["lengths"]]))[0]


def mapped(arrays: dict[str, Any]) -> jax.Array:
    both = jnp.stack([call()["lengths"], arrays["lengths"]])
    return jax.vmap(lambda length: attend({**arrays, "lengths": length}))(both)


def derived(arrays: dict[str, Any]) -> jax.Array:
    return jax.grad(lambda pages: attend({**arrays, "k_pages": pages}).sum())(arrays["k_pages"])


def recomputed(arrays: dict[str, Any]) -> jax.Array:
    return jax.grad(jax.checkpoint(lambda q: attend({**arrays, "q": q}).sum()))(arrays["q"])


@pytest.mark.parametrize(
    "transformed", [scanned, derived, *(pytest.param(each, marks=pytest.mark.thorough) for each in (mapped, recomputed))]
)
def test_inside_other_transformations(transformed: Any) -> None:
    good, bad = call(), call(lengths=lengths(3, 17))
    assert jnp.isfinite(jax.jit(transformed)(good)).all()
    error, _ = checkify.checkify(jax.jit(transformed))(bad)
    assert "lengths_max = 17   (lengths[3])" in str(error.get())
    error, _ = checkify.checkify(jax.jit(transformed))(good)
    assert error.get() is None
    with pytest.raises(WHILE_IT_RUNS, match="lengths_max = 17"):
        jax.block_until_ready(jax.jit(transformed)(bad))
    with pytest.raises(WHILE_IT_RUNS, match="lengths_max = 17"):
        jax.block_until_ready(transformed(bad))


def test_split_calls_are_looked_at_shard_by_shard() -> None:
    mesh = Mesh(np.asarray(jax.devices()[:2]), ("rows",))
    options = {"mesh": mesh, "batch_axis": "rows", "pages_axis": "rows"}
    arrays = call(page_indices=jnp.tile(jnp.arange(8, dtype=jnp.int32).reshape(2, 4), (2, 1)))
    jax.block_until_ready(attend(arrays, **options))
    arrays["k_pages"] = spoilt(1, 8 + 6, 3, 7)  # page 6 of the second device, past the 9 tokens of its second row
    with pytest.raises(WHILE_IT_RUNS, match=r"k_pages_tail = nan   \(k_pages\[1, 6, 3, 7\], behind the 9 tokens of row 1"):
        jax.block_until_ready(attend(arrays, **options))


def test_where_the_pool_is_split_a_page_id_is_one_of_the_pages_of_a_device() -> None:
    options = {"mesh": Mesh(np.asarray(jax.devices()[:2]), ("rows",)), "batch_axis": "rows"}
    arrays = call(page_indices=jnp.arange(16, dtype=jnp.int32).reshape(4, 4))
    jax.block_until_ready(attend(arrays, **options))
    with pytest.raises(ContractError) as caught:
        attend(arrays, pages_axis="rows", **options)
    for words in (
        "SC402",
        "page_indices_max = 15   (page_indices[3, 3])",
        "pages_axis_size = 2",
        "at least 0, at most 7 = total_num_pages // pages_axis_size - 1",
    ):
        assert words in str(caught.value)
    with pytest.raises(WHILE_IT_RUNS, match=r"page_indices_max = 15   \(page_indices\[1, 3\]\)"):  # of the second device
        jax.block_until_ready(jax.jit(lambda q: attend({**arrays, "q": q}, pages_axis="rows", **options))(arrays["q"]))


def test_where_one_device_finds_something_in_a_traced_call_that_is_split_none_waits_for_it() -> None:
    options = {"mesh": Mesh(np.asarray(jax.devices()[:2]), ("rows",)), "batch_axis": "rows"}
    program = jax.jit(functools.partial(attend, **options))
    jax.block_until_ready(program(call()))
    with pytest.raises(WHILE_IT_RUNS, match=r"lengths_max = 17   \(lengths\[1\]\)"):
        jax.block_until_ready(program(call(lengths=lengths(3, 17))))


@pytest.fixture
def everywhere() -> Iterator[None]:
    values.SETTING.on = True
    yield
    values.SETTING.on = False


@contract("0 <= ids_min and ids_max < rows")
def gathered(table: Float[Array, "rows width"], ids: Int[Array, " wanted"]) -> Float[Array, "wanted width"]:
    return table[ids]


def test_a_contract_of_your_own_may_speak_of_the_least_and_the_greatest_element(everywhere: None) -> None:
    assert gathered(jnp.ones((4, 2)), jnp.arange(4)).shape == (4, 2)
    with pytest.raises(ContractError, match=r"ids_max = 4   \(ids\[4\]\)"):
        gathered(jnp.ones((4, 2)), jnp.arange(5))
    with pytest.raises(WHILE_IT_RUNS, match=r"ids_max = 4   \(ids\[4\]\)"):
        jax.jit(gathered)(jnp.ones((4, 2)), jnp.arange(5)).block_until_ready()


@contract("lengths_max <= most")
def in_layers(lengths: list[Int32[Array, " rows"]], *, most: int) -> Array:
    return sum(lengths, jnp.zeros_like(lengths[0]))


def test_of_a_list_the_array_is_named(everywhere: None) -> None:
    layers = [jnp.asarray([1, 2]), jnp.asarray([3, 9])]
    with pytest.raises(ContractError, match=r"lengths_max = 9   \(lengths\[1\]\[1\]\)"):
        in_layers(layers, most=8)
    with pytest.raises(WHILE_IT_RUNS, match=r"lengths_max = 9   \(lengths\[1\]\[1\]\)"):
        jax.jit(functools.partial(in_layers, most=8))(layers).block_until_ready()


def test_an_installed_contract_looks_as_well(everywhere: None) -> None:
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as of_jax

    arrays = call(lengths=lengths(3, 17))
    with shapecheck.install(), pltpu.force_tpu_interpret_mode(), pytest.raises(WHILE_IT_RUNS, match="SC401"):
        of_jax(**arrays, pages_per_compute_block=2).block_until_ready()


def test_nothing_is_looked_at_unless_it_is_asked_for() -> None:
    assert gathered(jnp.ones((4, 2)), jnp.arange(5)).shape == (5, 2)
    bad = call(lengths=lengths(3, 17))
    text = jax.jit(functools.partial(attend, check_values=False)).lower(bad).as_text()
    assert "callback" not in text
    assert "callback" in jax.jit(attend).lower(bad).as_text()


@pytest.mark.parametrize(
    ("word", "outcome"), [("1", "ContractError"), ("0", "done"), ("", "done"), ("yes", "must be 1 or 0, not 'yes'")]
)
def test_the_environment_asks_for_it_in_every_call(word: str, outcome: str, tmp_path: Path) -> None:
    code = """
import sys
import numpy
from jaxtyping import Int
from shapecheck import ContractError, contract

@contract("ids_max < 3")
def use(ids: Int[numpy.ndarray, "n"]):
    pass

try:
    use(numpy.arange(4))
    print("done")
except ContractError as error:
    print(type(error).__name__, "ids_max = 3   (ids[3])" in str(error))
assert "jax" not in sys.modules
"""
    environment = {**os.environ, "SHAPECHECK_VALUES": word}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert outcome in run.stdout + run.stderr
    assert "False" not in run.stdout


def test_the_switch_of_jaxtyping_turns_it_off(monkeypatch: pytest.MonkeyPatch, everywhere: None) -> None:
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    try:
        assert gathered(jnp.ones((4, 2)), jnp.arange(5)).shape == (5, 2)
    finally:
        config.update("jaxtyping_disable", False)
