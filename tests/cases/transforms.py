import functools

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

q, kv = jnp.zeros((4, 32, 128)), jnp.zeros((8, 64, 16, 128))
lens, idx = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32)
specs = (P(None, "model", None), P("model", None, None, None), P("model"), P(), P())
eight = jax.make_mesh((8,), ("model",), axis_types=(AxisType.Auto,))
attend = functools.partial(paged_attention, pages_per_compute_block=3, megacore_mode="kv_head")
sharded = jax.jit(jax.shard_map(attend, mesh=eight, in_specs=specs, out_specs=P(None, "model")))
sharded(q, kv, kv, lens, idx)  #: SC201 violated
four = jax.make_mesh((4,), ("model",), axis_types=(AxisType.Auto,))
jax.shard_map(attend, mesh=four, in_specs=specs, out_specs=P(None, "model"), check_vma=False)(q, kv, kv, lens, idx)  #: proven SC101 SC102 SC201


@functools.partial(jax.shard_map, mesh=eight, in_specs=(*specs, None), out_specs=P(None, "model"))
def wrapped(q, k, v, lens, idx, block):
    return paged_attention(q, k, v, lens, idx, pages_per_compute_block=block)  #: SC102 violated


wrapped(q, kv, kv, lens, idx, 4)


def any_mesh(mesh):
    plain = functools.partial(paged_attention, pages_per_compute_block=3)
    call = jax.shard_map(plain, mesh=mesh, in_specs=specs, out_specs=P(None, "model"))
    first = call(q, kv, kv, lens, idx)  #: proven SC101 SC102 SC103
    call = jax.shard_map(attend, mesh=mesh, in_specs=specs, out_specs=P(None, "model"))
    return first, call(q, kv, kv, lens, idx)  #: SC201 unproven


jax.lax.scan(lambda carry, _: (paged_attention(carry, kv, kv, lens, idx, pages_per_compute_block=4), None), q, None, length=3)  #: SC102 violated
batched = jax.vmap(lambda q, lens: paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3))  #: quiet
batched(jnp.zeros((5, 4, 32, 128)), jnp.zeros((5, 4), jnp.int32))
jax.lax.cond(True, lambda x: paged_attention(x, kv, kv, lens, idx, pages_per_compute_block=5), lambda x: x, q)  #: SC102 violated
jax.eval_shape(functools.partial(paged_attention, pages_per_compute_block=4), q, kv, kv, lens, idx)  #: SC102 violated
