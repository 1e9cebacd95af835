"""Sizes that are known at run time only."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from shapecheck import largest_divisor

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)

BLOCK = 16


def literal(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=16))


def constant(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=BLOCK))


def parameter(q, k, v, lengths, table, block):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=block))


def conditional(q, k, v, lengths, table):
    n = table.shape[1]
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(n, at_most=16))


def unpacked(q, k, v, lengths, table):
    _, pages = table.shape
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(pages, at_most=BLOCK))


def local(q, k, v, lengths, table):
    block = largest_divisor(table.shape[1], at_most=16)
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)


def half(q, k, v, lengths, table):
    pages = table.shape[1]
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(pages, at_most=max(1, pages // 2)))


def tokens(q, k, v, lengths, table, block_tokens, page_size):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=max(1, block_tokens // page_size)))


def at_least_one(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=16))


def computed(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table + 1, pages_per_compute_block=16)


class Layer:
    def __init__(self, block):
        self.block = block

    def __call__(self, q, k, v, meta):
        return paged_attention(q, k, v, meta.lengths, meta.table, pages_per_compute_block=largest_divisor(meta.table.shape[1], at_most=self.block))


def nested(q, k, v, meta):
    return paged_attention(
        q, k, v, meta.lengths, meta.block_tables, pages_per_compute_block=largest_divisor(meta.block_tables.shape[1], at_most=16)
    )


def legal(q, k, v, lengths, table):
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=table.shape[1])


def twice(q, k, v, lengths, table):
    pages = table.shape[1]
    block = largest_divisor(pages, at_most=16)
    paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)
    return paged_attention(q, k, v, lengths, table, pages_per_compute_block=block)


def of_two_tables(q, k, v, lengths, table, other):
    block = min(16, table.shape[1])
    paged_attention(q, k, v, lengths, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=block))
    return paged_attention(q, k, v, lengths, other, pages_per_compute_block=largest_divisor(other.shape[1], at_most=block))
