"""More ways that values go: the cases of absl, closures, two functions in a row, a partial under jit."""

import functools

import jax
import jax.numpy as jnp
import pytest
from absl.testing import parameterized
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from shapecheck import largest_divisor

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)


class Tests(parameterized.TestCase):
    @parameterized.parameters((6, 3), (8, 4))
    def test_a(self, pages, block):
        paged_attention(q, kv, kv, lens, jnp.zeros((4, pages), jnp.int32), pages_per_compute_block=block)

    @parameterized.product(block=[3, 2], mode=[None, "batch"])
    def test_b(self, block, mode):
        paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block, megacore_mode=mode)

    @parameterized.named_parameters(dict(testcase_name="x", block=3), {"testcase_name": "y", "block": 2})
    def test_c(self, block):
        paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block)


@pytest.mark.parametrize("mode", ["batch", None])
@pytest.mark.parametrize("block", [3, 2], ids=str)
def test_d(block, mode):
    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block, megacore_mode=mode)


def outer(table, block=3):
    return inner(table, block)


def inner(table, size):
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=size))


outer(six)


def closure():
    block = 3

    def run(table):
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)

    return run(six)


closure()
BLOCK = 3
jitted = jax.jit(functools.partial(paged_attention, pages_per_compute_block=BLOCK))
jitted(q, kv, kv, lens, six)


def branches(table, x):
    block = largest_divisor(table.shape[1], at_most=16)
    if x:
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)


def rebound(table, n):
    block = min(16, table.shape[1])
    table = table[:, :n]
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=block))


def statement(table):
    block = table.shape[1]
    if block > 16:
        block = 16
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=largest_divisor(table.shape[1], at_most=block))
