"""What raises unless a relation holds proves it: helpers, libraries, tests; and the marks of a case."""

import unittest

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jaxtyping import Array, Float, Int32

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


def check_argument(name, value, *, multiple_of):
    if value % multiple_of:
        raise ValueError(name)
    return value


def helper(idx, block):
    check_argument("pages", idx.shape[1], multiple_of=block)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def of_chex(idx, block):
    chex.assert_equal(idx.shape[1] % block, 0)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def of_chex_by_name(idx, block):
    chex.assert_is_divisible(idx.shape[1], block)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def of_numpy(idx, block):
    np.testing.assert_equal(idx.shape[1] % block, 0)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def not_of_interest(idx, block):
    chex.assert_equal(idx.shape[0] % block, 0)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def caught(idx, block):
    try:
        chex.assert_equal(idx.shape[1] % block, 0)
    except AssertionError:
        pass
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def odd_heads(pages, mode):
    if mode == "kv_head" and pages.shape[0] % 2 == 1:
        mode = None
    return paged_attention(q, pages, pages, lens, idx, pages_per_compute_block=1, megacore_mode=mode)  #: proven SC201


def computed(k: Float[Array, "kvh n p d"], q: Float[Array, "b kvh*2 d"], lens: Int32[Array, "b"], idx: Int32[Array, "b m"], wide: Int32[Array, "b 2*m"]):
    paged_attention(q, k, k, lens, idx, pages_per_compute_block=1)  #: proven SC101 SC104 SC105 SC106
    paged_attention(q, k, k, lens, wide, pages_per_compute_block=2)  #: proven SC102
    paged_attention(q, k, k, lens, wide, pages_per_compute_block=4)  #: SC102 unproven


class Tests(unittest.TestCase):
    def helper(self, idx, block):
        self.assertEqual(idx.shape[1] % block, 0)
        return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102

    def test_results(self):
        out = paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8)
        self.assertEqual(out.shape, q.shape)
        self.assertTrue(jnp.allclose(out, out))
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated


@pytest.mark.parametrize("block", [8, pytest.param(9, marks=pytest.mark.xfail(reason="odd"))])
def test_expected_to_fail(block):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


@pytest.mark.parametrize("block", [8, pytest.param(9, id="nine", marks=[pytest.mark.slow])])
def test_slow(block):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 violated


@pytest.mark.parametrize("config", [{"pages": 64, "block": 8}, dict(pages=40, block=16)])
def test_configs(config):
    table = jnp.zeros((2, config["pages"]), jnp.int32)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config["block"])  #: SC102 violated


def loops():
    def step(state):
        i, q = state
        return i + 1, paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8)  #: proven SC101 SC102

    lax.while_loop(lambda state: state[0] < 3, step, (0, q))
    lax.map(lambda x: paged_attention(x, kv, kv, lens, idx, pages_per_compute_block=8), jnp.zeros((3, 2, 8, 128)))  #: proven SC101 SC102
    jax.lax.map(lambda x: paged_attention(x, kv, kv, lens, idx, pages_per_compute_block=8), jnp.zeros((3, 2, 6, 128)))  #: SC101 violated


def of_dtype(lens, table):
    if lens.dtype != jnp.int32:
        lens = lens.astype(jnp.int32)
    assert table.dtype == jnp.int32
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=8)  #: proven SC107 SC108


def of_dtype_that_jit_narrows(lens):
    assert lens.dtype == np.int64
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8)  #: SC107 unproven
