"""The front door: what it takes, and what it refuses."""

import functools
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as jax_paged_attention
from jaxtyping import TypeCheckError

from kernel import paged_attention
from shapecheck import ContractError
from shapecheck.contracts import PAGED_ATTENTION

from .kernel_helpers import Call, assert_resolved, attention, cast, paged, quantized, sequences_of

SEQUENCES = sequences_of([3, 0, 20, 24], tokens=24, num_kv_heads=2, group=2, head_dim=8)
CALL = paged(SEQUENCES, 4)
EXPECTED = attention(SEQUENCES)
BLOCK = 2


def attend(call: Call = CALL, **options: Any) -> jax.Array:
    return paged_attention(*call, **{"pages_per_compute_block": BLOCK, **options})


def test_the_signature_is_jaxs_and_some_more() -> None:
    theirs = inspect.signature(jax_paged_attention).parameters
    ours = dict(inspect.signature(paged_attention).parameters)
    axes = {"heads_axis": None, "batch_axis": None, "pages_axis": None}
    more = {"implementation": "auto", "mesh": None, **axes, "check_values": False}
    assert {name: ours.pop(name).default for name in more} == more
    assert [(name, each.kind, each.default) for name, each in ours.items()] == [
        (name, each.kind, each.default) for name, each in theirs.items()
    ]


@pytest.mark.parametrize("array", PAGED_ATTENTION.arrays, ids=lambda array: array.name)
def test_the_axes_of_the_contract_stand_in_the_signature(array: Any) -> None:
    annotation = inspect.signature(paged_attention).parameters[array.name].annotation
    assert f"'{' '.join(array.axes)}'" in str(annotation)


@pytest.mark.parametrize("implementation", ["auto", "xla"])
def test_attends(implementation: Any) -> None:
    assert_resolved(attend(implementation=implementation), EXPECTED)


def _on_device(call: Call) -> Call:
    return jax.tree.map(jnp.asarray, call)


LEGAL: dict[str, tuple[Call, dict[str, Any]]] = {
    "numpy arrays": (CALL, {}),
    "jax arrays": (_on_device(CALL), {}),
    "64-bit lengths of numpy": (CALL._replace(lengths=CALL.lengths.astype(np.int64)), {}),
    "a table of uint32": (CALL._replace(page_indices=CALL.page_indices.astype(np.uint32)), {}),
    "integers of numpy": (CALL, {"pages_per_compute_block": np.int64(2)}),
    "an integer mask value": (CALL, {"mask_value": -(10**30)}),
    "a mask value of numpy": (CALL, {"mask_value": np.finfo(np.float32).min}),
    "a mask value of bfloat16": (CALL, {"mask_value": jnp.finfo(jnp.bfloat16).min}),
    "a flag of numpy": (CALL, {"inline_seq_dim": np.True_}),
    "a mode for an even batch": (CALL, {"megacore_mode": "batch"}),
    "a mode for even heads": (CALL, {"megacore_mode": "kv_head"}),
}


@pytest.mark.parametrize(("call", "options"), LEGAL.values(), ids=LEGAL)
def test_takes(call: Call, options: dict[str, Any]) -> None:
    assert_resolved(attend(call, **options), EXPECTED)


@pytest.mark.parametrize("cap", [50, 50.0, np.float32(50), np.int64(50)])
def test_takes_a_soft_cap_of_any_kind(cap: Any) -> None:
    assert_resolved(attend(attn_logits_soft_cap=cap), attention(SEQUENCES, 50.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_takes_pages_of_any_floating_dtype(dtype: str) -> None:
    rounded = cast(cast(SEQUENCES, dtype), np.float32)
    expected = attention(SEQUENCES._replace(k=rounded.k, v=rounded.v))
    pages = paged(cast(SEQUENCES, dtype), 4)
    assert_resolved(attend(pages._replace(q=CALL.q)), expected)


@pytest.mark.parametrize("place", [lambda call: call, _on_device], ids=["numpy", "jax"])
def test_takes_quantized_pages(place: Any) -> None:
    sequences = quantized(SEQUENCES)
    assert_resolved(attend(place(paged(sequences, 4))), attention(sequences))


def test_under_jit() -> None:
    assert_resolved(jax.jit(attend)(CALL), EXPECTED)
    static = jax.jit(paged_attention, static_argnames=("pages_per_compute_block", "megacore_mode"))
    assert_resolved(static(*CALL, pages_per_compute_block=BLOCK, megacore_mode="batch"), EXPECTED)
    partial = jax.jit(functools.partial(paged_attention, pages_per_compute_block=BLOCK))
    assert_resolved(partial(*CALL), EXPECTED)


def _scales_of_pages(pages: Any) -> Any:
    return pages._replace(scales=pages.scales[:, :, :1])


QUANTIZED = paged(quantized(SEQUENCES), 4)

ILLEGAL: dict[str, tuple[Call, dict[str, Any], list[str]]] = {
    "a block that does not divide": (
        CALL,
        {"pages_per_compute_block": 4},
        ["SC102", "pages_per_sequence = 6", "page_indices.shape[1]", "1, 2, 3, 6", "kernel.pad_page_indices"],
    ),
    "heads that are not grouped": (CALL._replace(q=CALL.q[:, :3]), {}, ["SC101", "num_q_heads = 3", "num_kv_heads = 2"]),
    "pages that differ": (CALL._replace(v_pages=CALL.v_pages[:, 1:]), {}, ["SC103", "24", "23"]),
    "another head_dim": (CALL._replace(q=CALL.q[..., :4]), {}, ["SC104", "q_head_dim = 4", "k_pages_head_dim = 8"]),
    "lengths of another batch": (CALL._replace(lengths=CALL.lengths[1:]), {}, ["SC105", "batch_size = 4", "3"]),
    "a table of another batch": (CALL._replace(page_indices=CALL.page_indices[1:]), {}, ["SC106", "batch_size = 4", "3"]),
    "lengths of uint32": (CALL._replace(lengths=CALL.lengths.astype(np.uint32)), {}, ["SC107", "uint32"]),
    "a table of int16": (CALL._replace(page_indices=CALL.page_indices.astype(np.int16)), {}, ["SC108", "int16"]),
    "a missing axis": (CALL._replace(q=CALL.q[:, 0]), {}, ["SC109", "q_rank = 2"]),
    "a block of nothing": (CALL, {"pages_per_compute_block": 0}, ["SC110", "pages_per_compute_block = 0"]),
    "a floating block": (CALL, {"pages_per_compute_block": 2.0}, ["SC110"]),
    "an empty table": (CALL._replace(page_indices=CALL.page_indices[:, :0]), {}, ["SC111", "pages_per_sequence = 0"]),
    "one side quantized": (CALL._replace(k_pages=QUANTIZED.k_pages), {}, ["SC112"]),
    "a scale for each page": (
        QUANTIZED._replace(k_pages=_scales_of_pages(QUANTIZED.k_pages), v_pages=_scales_of_pages(QUANTIZED.v_pages)),
        {},
        ["SC112"],
    ),
    "a soft cap of 0": (CALL, {"attn_logits_soft_cap": 0.0}, ["SC113", "attn_logits_soft_cap = 0.0"]),
    "a positive mask value": (CALL, {"mask_value": 1.0}, ["SC114", "mask_value = 1.0"]),
    "a weak mask value": (CALL, {"mask_value": -1.0}, ["SC114", "mask_value <= -17"]),
    "an integer query": (CALL._replace(q=CALL.q.astype(np.int32)), {}, ["SC115", "int32"]),
    "odd heads for two cores": (
        CALL._replace(q=CALL.q[:, :2], k_pages=CALL.k_pages[:1], v_pages=CALL.v_pages[:1]),
        {"megacore_mode": "kv_head"},
        ["SC201", "num_kv_heads = 1"],
    ),
    "an odd batch for two cores": (
        CALL._replace(q=CALL.q[1:], lengths=CALL.lengths[1:], page_indices=CALL.page_indices[1:]),
        {"megacore_mode": "batch"},
        ["SC202", "batch_size = 3"],
    ),
    "no such mode": (CALL, {"megacore_mode": "heads"}, ["SC203", "'heads'"]),
    "all that is wrong at once": (
        CALL._replace(q=CALL.q[:, :3]),
        {"pages_per_compute_block": 5, "mask_value": 0.0},
        ["3 relations do not hold", "SC101", "SC102", "SC114"],
    ),
}


@pytest.mark.parametrize(("call", "options", "fragments"), ILLEGAL.values(), ids=ILLEGAL)
def test_refuses(call: Call, options: dict[str, Any], fragments: list[str]) -> None:
    with pytest.raises(ContractError) as caught:
        attend(call, **options)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(("call", "options", "fragments"), ILLEGAL.values(), ids=ILLEGAL)
def test_refuses_when_traced(call: Call, options: dict[str, Any], fragments: list[str]) -> None:
    with pytest.raises(ContractError) as caught:
        jax.eval_shape(functools.partial(attend, **options), call)
    assert fragments[0] in str(caught.value)


@pytest.mark.parametrize("kind", [TypeCheckError, ValueError])
def test_the_error_is_both_kinds(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="SC102"):
        attend(pages_per_compute_block=4)


def test_refuses_what_no_rule_speaks_of() -> None:
    with pytest.raises(ContractError, match="implementation"):
        attend(implementation="cuda")
    with pytest.raises(ContractError, match="q"):
        attend(CALL._replace(q=[[[1.0]]]))  # type: ignore[arg-type]
    scales_of_integers = [pages._replace(scales=pages.scales.astype(np.int32)) for pages in QUANTIZED[1:3]]
    with pytest.raises(ContractError, match="k_pages"):
        attend(QUANTIZED._replace(k_pages=scales_of_integers[0], v_pages=scales_of_integers[1]))


def test_vmap_checks_one_example() -> None:
    queries = np.stack([CALL.q, CALL.q])
    with pytest.raises(ContractError, match="num_q_heads = 3"):
        jax.vmap(lambda q: attend(CALL._replace(q=q)))(queries[:, :, :3])
