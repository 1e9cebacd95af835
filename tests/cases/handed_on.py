"""Functions that are only handed to something that calls them; and what is known of arguments that no caller shows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import torch
from ejkernel.kernels._pallas.tpu.page_attention import page_attention
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int32

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


def jitted():
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: proven SC101 SC102 SC109

    fast = jax.jit(attend)
    return fast(q, idx)


def lowered():
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: SC102 violated

    return jax.jit(attend).lower(q, idx[:, :40]).compile()


def returned():
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: SC102 unproven

    fast = jax.jit(attend)
    fast(q, idx)
    return fast


def stored(registry):
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: SC102 unproven

    attend(q, idx)
    registry.add(jax.checkpoint(attend))


def given_to_a_loop():
    def step(carry, _):
        return paged_attention(carry, kv, kv, lens, idx, pages_per_compute_block=16), None  #: proven SC101 SC102 SC109

    return jax.lax.scan(step, q, None, length=3)


def compiled():
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: proven SC101 SC102

    run = torch.compile(functools.partial(attend, q))
    return run(idx)


mesh = Mesh(np.array(jax.devices()), ("x",))
specs = (P(None, "x"), P("x"), P("x"), P(), P())


def sharded(q: Float[Array, "b h d"], k: Float[Array, "kv p s d"], lengths: Int32[Array, "b"], idx: Int32[Array, "b n"]):
    attend = functools.partial(paged_attention, pages_per_compute_block=16)
    local = jax.shard_map(attend, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))
    assert q.shape[1] % k.shape[0] == 0
    return local(q, k, k, lengths, idx)  #: proven SC101 SC103 SC104


jax.shard_map(functools.partial(paged_attention, pages_per_compute_block=16), mesh=mesh, in_specs=specs, out_specs=P())(q, kv, kv, lens, idx)  #: proven SC101 SC102 SC111
jax.shard_map(functools.partial(paged_attention, pages_per_compute_block=16), mesh=mesh, in_specs=specs, out_specs=P())(q, kv[:, :, :0], kv[:, :, :0], lens, idx)  #: SC111 violated


def typed(q: Float[Array, "b 8 128"], lengths: Int32[Array, "b"], idx: Int32[Array, "b 40"], block):
    return paged_attention(q, kv, kv, lengths, idx, pages_per_compute_block=block)  #: proven SC101 SC104 SC105 SC106 SC109


def calls_typed(q, lengths, idx):
    typed(q, lengths, idx, 8)
    if q.shape[0] % 2 == 0:
        evenly(q, lengths, idx)


def evenly(q: Float[Array, "b 8 128"], lengths: Int32[Array, "b"], idx: Int32[Array, "b 40"]):
    rows = q.shape[0]
    return paged_attention(q, kv, kv, lengths, idx, pages_per_compute_block=7)  #: SC102 violated


def squeezed(query, cache, lengths, table, heads: int):
    batch, steps, _ = query.shape
    query = query.view(batch, steps, heads, 128) * 0.5
    query = query.squeeze(dim=1)
    if heads % 4:
        raise ValueError
    return torch.ops.xla.paged_attention(query, kv, kv, lengths, table, 16)  #: proven SC101 SC104


def squeezed_well(query, lengths, table):
    query = query.view(-1, 1, 8, 128).squeeze(dim=1)
    return torch.ops.xla.paged_attention(query, kv, kv, lengths, table.int(), 16)  #: proven SC101 SC104 SC108


def squeezed_unwell(query, cache, lengths, table):
    batch, steps, _ = query.shape
    query = query.view(batch, steps, 8, 128).squeeze(dim=1)
    return torch.ops.xla.paged_attention(query, kv, kv, lengths, table, 16)  #: SC109 unproven


first = page_attention(query=q, key_cache=kv, value_cache=kv, context_lens=lens, block_tables=idx, pages_per_compute_block=16)  #: proven SC102
paged_attention(first[:, :6], kv, kv, lens, idx, pages_per_compute_block=16)  #: SC101 violated


def rebound():
    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: proven SC101 SC102

    attend = jax.jit(attend)
    return attend(q, idx)


def made_global():
    global made

    def attend(q, idx):
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=16)  #: SC102 unproven

    made = jax.jit(attend)
    made(q, idx)
