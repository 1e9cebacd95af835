"""Sizes that are known at run time only."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)

BLOCK = 16


def literal(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=16)


def constant(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=BLOCK)


def parameter(q, k, v, lengths, table, block):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)


def conditional(q, k, v, lengths, table):
    n = table.shape[1]
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=n if n < 16 else 16)


def unpacked(q, k, v, lengths, table):
    _, pages = table.shape
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=min(pages, BLOCK))


def local(q, k, v, lengths, table):
    block = min(16, table.shape[1])
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)


def half(q, k, v, lengths, table):
    pages = table.shape[1]
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=pages // 2)


def tokens(q, k, v, lengths, table, block_tokens, page_size):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block_tokens // page_size)


def at_least_one(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=max(1, min(16, table.shape[1])))


def computed(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table + 1, pages_per_compute_block=16)


class Layer:
    def __init__(self, block):
        self.block = block

    def __call__(self, q, k, v, meta):
        return paged_attention(q, k, v, meta.lengths, meta.table, pages_per_compute_block=self.block)


def nested(q, k, v, meta):
    return paged_attention(
        q, k, v, meta.lengths, meta.block_tables, pages_per_compute_block=min(16, meta.block_tables.shape[1])
    )


def legal(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=table.shape[1])


def twice(q, k, v, lengths, table):
    pages = table.shape[1]
    block = min(16, pages)
    paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)


def of_two_tables(q, k, v, lengths, table, other):
    block = min(16, table.shape[1])
    paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)
    return paged_attention(q, k, v, lengths, other, pages_per_compute_block=block)
