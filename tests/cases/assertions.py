"""What raises unless a relation holds proves it: helpers, libraries, tests; and the marks of a case."""

import unittest

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import absltest
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


# What is known where an assertion that is given all it looks at by the source holds, or cannot hold.


def of_shapes(x, y, block):
    chex.assert_shape(x, (2, 8 * block))
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=block)  #: proven SC102 SC106 SC109
    chex.assert_shape([x, y], [(2, 24), (None, 12)])
    paged_attention(q, kv, kv, lens, y, pages_per_compute_block=8)  #: SC102 violated


def of_any_batch(x: Int32[Array, "b pages"]):
    chex.assert_shape(x, (..., 64))
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=16)  #: proven SC102


def of_one_of_several(x):
    chex.assert_rank(x, 2)
    chex.assert_shape(x, (2, {16, 32}))
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=32)  #: SC102 unproven


def of_axes(x):
    chex.assert_axis_dimension(x, 1, 24)
    chex.assert_scalar_positive(x.shape[0])
    chex.assert_equal_shape([x, lens[:, None] + jnp.arange(24)])
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=8)  #: proven SC102 SC106


def of_equal_shapes(k, v, block):
    assert k.shape == v.shape
    paged_attention(q, k, v, lens, idx, pages_per_compute_block=block)  #: proven SC103
    if v.shape != (4, 64, 16, 128):
        raise ValueError(v.shape)
    paged_attention(q, k, v, lens, idx, pages_per_compute_block=8)  #: proven SC101 SC103 SC104


def of_other_shapes(k, v):
    if k.shape == v.shape:
        return None
    return paged_attention(q, k, v, lens, idx, pages_per_compute_block=8)  #: SC103 unproven


def of_a_shape_by_numpy(x, pages):
    np.testing.assert_equal(x.shape, (2, 4 * pages))
    paged_attention(q, kv, kv, lens, x, pages_per_compute_block=pages)  #: proven SC102


def of_arrays(x):
    out = paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8)
    np.testing.assert_allclose(out, x, rtol=1e-2)
    np.testing.assert_array_equal(out, q)
    chex.assert_tree_all_finite(out)
    chex.assert_tpu_available()
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated


def never_equal():
    np.testing.assert_array_equal(idx.shape, [2, 63])
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def never_close():
    np.testing.assert_allclose(q, jnp.zeros((2, 8, 64)))
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def close_enough():
    np.testing.assert_allclose([1, 2.0], (1.0, 2 + 1e-9))
    np.testing.assert_array_almost_equal(0.1 + 0.2, 0.3)
    np.testing.assert_array_less((1, 2), 3)
    np.testing.assert_array_equal(np.array([1, 2]), [1, 2])
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated


def never_less():
    np.testing.assert_array_less((1, 3), 3)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def sequences_may_be_meant(x):
    np.testing.assert_array_equal(x, (2, 9))
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated


def not_followed():
    np.testing.assert_string_equal("a", "b")
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def not_followed_inside():
    def inside():
        chex.assert_type(idx, float)

    def between():
        inside()

    between()
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def skipped_far_inside(n):
    def inside():
        if n > 3:
            pytest.skip()

    def between():
        inside()

    between()
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def of_its_kind(block):
    if not isinstance(block, int) or block < 1:
        raise TypeError
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC110


def of_one_kind_or_another(block):
    if not isinstance(block, (int, float)) or block < 1:
        raise TypeError
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC110 unproven


class MoreTests(absltest.TestCase):
    def test_holds(self):
        self.assertIn(8, [4, 8])
        self.assertLen(idx.shape, 2)
        self.assertIsNone(None)
        self.assertFalse(idx.shape[1] % 8)
        self.assertSequenceEqual(idx.shape, [2, 64])
        self.assertIsInstance(8, int)
        self.assertBetween(8, 1, 64)
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated

    def test_never_holds(self):
        self.assertIn(9, [4, 8])
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven

    def test_never_of_this_kind(self):
        self.assertIsInstance(9, str)
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven

    def test_not_followed(self):
        self.assertDivisible(64, 9)
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven

    def test_not_empty(self):
        self.assertEmpty([1])
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven

    def test_of_another(self, helper):
        helper.assert_called_with(3)
        self.assertAllClose(q, helper())
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 violated

    def guarded(self, block):
        self.assertFalse(idx.shape[1] % block)
        self.assertNotEqual(block, 3)
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102
