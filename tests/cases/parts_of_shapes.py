"""Parts of the shape of an array of which nothing else is known: compared, unpacked, and made into other shapes."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)


def behind_the_batch(table):
    assert table.shape[1:] == (8,)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=3)  #: SC102 violated


def leading(q, k):
    if k.shape[0] != 4 or q.shape[:2] != (2, 8):
        raise ValueError(q.shape)
    paged_attention(q, k, k, lens, idx, pages_per_compute_block=4)  #: proven SC101 SC105


def trailing(q, k):
    assert q.shape[-2:] == (8, 128)
    assert k.shape == (4, 64, 16, 128)
    paged_attention(q, k, k, lens, idx, pages_per_compute_block=4)  #: proven SC101 SC104


def no_more_axes(table):
    assert table.shape[2:] == ()
    assert table.shape[1] % 4 == 0
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102


def not_the_one(table):
    if table.shape[1:] == (9,):
        return
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 unproven


def unpacked(x, table):
    batch, pages = table.shape[:2]
    heads, head_dim = x.shape[-2:]
    if pages % 4 or heads % 4 or head_dim != 128:
        raise ValueError(pages)
    paged_attention(x, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC101 SC102 SC104


def starred(x, table):
    *_, pages = table.shape
    batch, *rest = x.shape
    assert pages % 4 == 0
    paged_attention(x, kv, kv, jnp.zeros((batch,), jnp.int32), table, pages_per_compute_block=4)  #: proven SC102 SC105


def taken(table):
    assert table.shape[1:][0] % 4 == 0
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102


def another_shape(x, table):
    paged_attention(q, kv, kv, lens, jnp.zeros(table.shape[:2], jnp.int32), pages_per_compute_block=4)  #: SC109 unproven
    paged_attention(q, kv, kv, lens, jnp.zeros(x.shape[1:], jnp.int32), pages_per_compute_block=4)  #: SC109 unproven
    paged_attention(q, kv, kv, lens, jnp.zeros((2, *table.shape[1:]), jnp.int32), pages_per_compute_block=4)  #: SC109 unproven
