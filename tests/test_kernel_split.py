"""The front door over a mesh: equal to the call on one device for every legal split, and refused for every other."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from kernel import paged_attention
from kernel.split import Split
from shapecheck import ContractError

from .kernel_helpers import Call, Sequences, assert_resolved, attention, paged, quantized, sequences_of

LENGTHS = [3, 0, 8, 16, 7, 1, 9, 13]
TOKENS, PAGE_SIZE, BLOCK = 16, 4, 2
HEADS = [(32, 8), (28, 4), (14, 2), (71, 1), (16, 2), (8, 1)]  # of queries and of KV; over 8 devices, the last two share KV heads
AXES = {"heads_axis": "model", "batch_axis": "data"}
SPLITS = [(8, 1), (4, 2), (2, 4), (1, 8)]  # of the batch and of the heads


def mesh_of(data: int, model: int, axis_type: AxisType = AxisType.Auto) -> Mesh:
    devices = jax.devices()[: data * model]
    return jax.make_mesh((data, model), ("data", "model"), axis_types=(axis_type,) * 2, devices=devices)


@functools.cache
def sequences(heads: int, kv_heads: int, head_dim: int = 8) -> Sequences:
    return sequences_of(LENGTHS, tokens=TOKENS, num_kv_heads=kv_heads, group=heads // kv_heads, head_dim=head_dim)


@functools.cache
def call_of(heads: int, kv_heads: int) -> Call:
    return paged(sequences(heads, kv_heads), PAGE_SIZE)


def attend(call: Any, **options: Any) -> jax.Array:
    return paged_attention(*call, **{"pages_per_compute_block": BLOCK, **options})


def keeps_groups(heads: int, kv_heads: int, devices: int) -> bool:
    """Say whether all query heads of a device have one KV head each, or whole groups, found head by head."""
    if heads % devices:
        return False
    group, mine = heads // kv_heads, heads // devices
    parts = [[head // group for head in range(first, first + mine)] for first in range(0, heads, mine)]
    return all(len(set(part)) == 1 or mine % group == 0 for part in parts) and (
        kv_heads % devices == 0 or devices % kv_heads == 0
    )


CASES = [(heads, split) for heads in HEADS for split in SPLITS]


@pytest.mark.parametrize(("heads", "split"), CASES, ids=str)
def test_every_split_is_equal_to_the_whole_or_refused(heads: tuple[int, int], split: tuple[int, int]) -> None:
    options = {"mesh": mesh_of(*split), **AXES}
    if keeps_groups(*heads, split[1]):
        assert_resolved(attend(call_of(*heads), **options), attention(sequences(*heads)))
    else:
        with pytest.raises(ContractError, match="SC206 mesh-heads") as caught:
            attend(call_of(*heads), **options)
        legal = [str(size) for size in range(1, heads[0] + 1) if keeps_groups(*heads, size)]
        assert f"legal sizes of the mesh axis 'model': {', '.join(legal)}" in str(caught.value)


def test_the_cases_are_of_all_kinds() -> None:
    legal = {(heads, model) for heads, (_, model) in CASES if keeps_groups(*heads, model)}
    assert {((32, 8), 8), ((28, 4), 4), ((14, 2), 2), ((71, 1), 1)} <= legal
    assert {((16, 2), 4), ((16, 2), 8), ((8, 1), 8)} <= legal
    assert ((28, 4), 8) not in legal


# --- pages


def local(call: Call, parts: int) -> Call:
    """Return a call whose pool is so ordered that each part of it holds the pages of one part of the rows, by local ids."""
    rows, width = call.page_indices.shape
    order = np.asarray(call.page_indices).reshape(-1)  # the pages of the first rows come first
    pools = (jax.tree.map(lambda leaf: leaf[:, order], pages) for pages in (call.k_pages, call.v_pages))
    ids = np.arange(rows * width, dtype=np.int32).reshape(rows, width) % (rows * width // parts)
    return Call(call.q, *pools, call.lengths, ids)


@pytest.mark.parametrize("heads", [(8, 4), (8, 1)])
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("split", [(4, 2), (8, 1)])
def test_page_ids_are_local_where_pages_are_split(heads: tuple[int, int], is_quantized: bool, split: tuple[int, int]) -> None:
    whole = quantized(sequences(*heads)) if is_quantized else sequences(*heads)
    call = local(paged(whole, PAGE_SIZE), split[0])
    out = attend(call, mesh=mesh_of(*split), pages_axis="data", **AXES)
    assert_resolved(out, attention(whole))


@pytest.mark.parametrize("heads", [(8, 4), (8, 2)])
def test_nothing_is_sent_and_no_pages_are_copied(heads: tuple[int, int]) -> None:
    """Also where a device reads one of the KV heads that it has."""
    mesh = mesh_of(2, 4)
    call = paged(sequences(*heads), PAGE_SIZE, spare_pages=8 << 10)
    pool = P("model" if heads[1] == 4 else None, "data")
    specs = Call(P("data", "model"), pool, pool, P("data"), P("data"))
    shapes = (
        jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=NamedSharding(mesh, spec))
        for each, spec in zip(call, specs, strict=True)
    )
    compiled = jax.jit(lambda *call: attend(call, mesh=mesh, pages_axis="data", **AXES)).lower(*shapes).compile()
    assert not any(word in compiled.as_text() for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute"))
    assert compiled.memory_analysis().temp_size_in_bytes < call.k_pages.nbytes / 8 / 2


# --- what is wrong


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads_axis": "tensor"}, ["SC205 mesh-axis", "heads_axis_size = 0", "the axes of the mesh: 'data', 'model'"]),
        ({"heads_axis": "model", "batch_axis": "model"}, ["SC205 mesh-axis", "heads_axis != batch_axis"]),
        ({"heads_axis": "model", "pages_axis": "data"}, ["SC205 mesh-axis", "pages_axis == batch_axis", "pages_axis = 'data'"]),
        ({"heads_axis": "model", "mesh": None}, ["SC205 mesh-axis", "there is no mesh: pass `mesh`, or set one"]),
        ({"pages_axis": "data", "mesh": None}, ["SC205 mesh-axis", "pages_axis == batch_axis"]),
    ],
    ids=str,
)
def test_axes_that_cannot_be(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ContractError) as caught:
        attend(call_of(8, 4), **{"mesh": mesh_of(2, 4), **options})
    for word in words:
        assert word in str(caught.value)


def test_a_batch_that_cannot_be_split() -> None:
    odd = jax.tree.map(lambda each: each[:6] if len(each) == len(LENGTHS) else each, call_of(8, 4))
    with pytest.raises(ContractError) as caught:
        attend(odd, mesh=mesh_of(4, 2), **AXES)
    for word in ("SC207 mesh-batch", "batch_size = 6", "batch_axis_size = 4", "axis 'data': 1, 2, 3, 6"):
        assert word in str(caught.value)


def test_a_pool_that_cannot_be_split() -> None:
    with pytest.raises(ContractError) as caught:
        attend(paged(sequences(8, 4), PAGE_SIZE, spare_pages=1), mesh=mesh_of(4, 2), pages_axis="data", **AXES)
    for word in ("SC208 mesh-pages", "total_num_pages = 33", "pages_axis_size = 4", "axis 'data': 1"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "code", "size"), [("kv_head", "SC201", "num_kv_heads = 1"), ("batch", "SC202", "batch_size = 1")]
)
def test_a_megacore_mode_is_judged_on_each_device(mode: Any, code: str, size: str) -> None:
    """All 8 rows and all 4 KV heads are even."""
    split = (1, 4) if mode == "kv_head" else (8, 1)
    with pytest.raises(ContractError) as caught:
        attend(call_of(8, 4), megacore_mode=mode, mesh=mesh_of(*split), **AXES)
    for word in (code, size, "of one shard"):
        assert word in str(caught.value)
    attend(call_of(8, 4), megacore_mode=mode, mesh=mesh_of(2, 2), **AXES)


def test_what_is_wrong_with_the_whole_is_told_of_the_whole() -> None:
    with pytest.raises(ContractError) as caught:
        attend(call_of(8, 4), pages_per_compute_block=3, mesh=mesh_of(2, 4), **AXES)
    assert "SC102" in str(caught.value)
    assert "shard" not in str(caught.value)


# --- with the rest of JAX


def test_one_axis_is_enough() -> None:
    for axes in ({"heads_axis": "model"}, {"batch_axis": "data"}, {}):
        assert_resolved(attend(call_of(8, 4), mesh=mesh_of(2, 4), **axes), attention(sequences(8, 4)))


def test_the_result_is_split_as_the_queries_are() -> None:
    out = attend(call_of(8, 4), mesh=mesh_of(2, 4), **AXES)
    assert out.sharding.is_equivalent_to(NamedSharding(mesh_of(2, 4), P("data", "model")), 3)


def test_under_jit_and_ahead_of_time() -> None:
    function = jax.jit(lambda *call: attend(call, mesh=mesh_of(2, 4), **AXES))
    call = call_of(8, 4)
    assert_resolved(function(*call), attention(sequences(8, 4)))
    assert_resolved(function.lower(*call).compile()(*call), attention(sequences(8, 4)))


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("under_jit", [False, True])
def test_the_mesh_of_the_context(axis_type: AxisType, under_jit: bool) -> None:
    mesh = mesh_of(2, 4, axis_type)
    specs = Call(P("data", "model"), P("model"), P("model"), P("data"), P("data"))
    function = functools.partial(attend, **AXES)
    with jax.set_mesh(mesh):
        call = Call(*(jax.device_put(each, NamedSharding(mesh, spec)) for each, spec in zip(call_of(8, 4), specs, strict=True)))
        out = (jax.jit(function) if under_jit else function)(call)
    assert_resolved(np.asarray(out), attention(sequences(8, 4)))


@pytest.mark.parametrize("data", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("heads", [(8, 4), (8, 2)])
def test_arrays_are_split_over_explicit_axes(heads: tuple[int, int], data: AxisType) -> None:
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(data, AxisType.Explicit))
    function = functools.partial(attend, mesh=mesh, **AXES)
    assert_resolved(np.asarray(function(call_of(*heads))), attention(sequences(*heads)))
    assert_resolved(np.asarray(jax.jit(function)(call_of(*heads))), attention(sequences(*heads)))


def test_what_is_no_mesh_is_refused() -> None:
    with pytest.raises(ContractError, match="argument 'mesh' is refused"):
        attend(call_of(8, 4), mesh="x", **AXES)


@pytest.mark.parametrize("heads", [(8, 4), (8, 2)])
def test_gradients_are_those_of_one_device(heads: tuple[int, int]) -> None:
    call = call_of(*heads)

    def gradients(**options: Any) -> Any:
        return jax.grad(lambda *arrays: jnp.sin(attend((*arrays, *call[3:]), **options)).sum(), argnums=(0, 1, 2))(*call[:3])

    for split, whole in zip(gradients(mesh=mesh_of(2, 4), **AXES), gradients(), strict=True):
        np.testing.assert_allclose(split, whole, rtol=1e-5, atol=1e-5)


def test_under_vmap_scan_and_remat() -> None:
    call, options = call_of(8, 4), {"mesh": mesh_of(2, 4), **AXES}

    def once(q: jax.Array) -> jax.Array:
        return attend((q, *call[1:]), **options)

    queries = np.stack([call.q, -call.q])
    expected = np.stack([attention(sequences(8, 4)), attention(sequences(8, 4)._replace(q=-call.q))])
    assert_resolved(jax.vmap(once)(queries), expected)
    assert_resolved(jax.lax.scan(lambda carry, q: (carry, once(q)), 0, queries)[1], expected)
    np.testing.assert_allclose(
        jax.grad(lambda q: jax.checkpoint(once)(q).sum())(call.q), jax.grad(lambda q: once(q).sum())(call.q), rtol=1e-6
    )


def test_the_kernel_itself_interpreted_on_every_device() -> None:
    whole = sequences_of([3, 8], tokens=8, num_kv_heads=2, group=2, head_dim=128)
    out = attend(paged(whole, PAGE_SIZE), mesh=mesh_of(1, 2), implementation="interpret", **AXES)
    np.testing.assert_allclose(out, attention(whole), rtol=0.05, atol=0.05)


def test_a_call_like_an_earlier_one_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Split] = []
    over_devices = Split.over_devices
    monkeypatch.setattr(Split, "over_devices", lambda split, attend: traced.append(split) or over_devices(split, attend))
    for _ in range(2):
        attend(call_of(8, 4), mesh=mesh_of(1, 2), mask_value=-123.0, **AXES)
    assert len(traced) == 1
