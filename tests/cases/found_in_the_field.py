import os
import unittest
import unittest.mock

import jax
import jax.numpy as jnp
import pytest
from absl.testing import parameterized
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)


class Skips(unittest.TestCase):
    @parameterized.product(heads=(1, 8), mode=("kv_head", None))
    def test(self, heads, mode):
        if heads % 2 != 0 and mode == "kv_head":
            self.skipTest("odd")
        pages = jnp.zeros((heads, 64, 16, 128))
        paged_attention(q, pages, pages, lens, idx, pages_per_compute_block=3, megacore_mode=mode)  #: proven SC101 SC102 SC201


def width(mode):
    if mode == "p":
        return 1
    else:
        return 2


def every_arm_returns(mode):
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=width(mode))  #: proven SC102


class Factory:
    known = {}

    @classmethod
    def register(cls, name):
        def decorate(function):
            cls.known[name] = function
            return function

        return decorate


@Factory.register("a")
def registered(block):
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def lowered():
    return jax.jit(paged_attention, static_argnames=["pages_per_compute_block"]).lower(q, kv, kv, lens, idx, pages_per_compute_block=4)  #: SC102 violated


def environment_replaced():
    with unittest.mock.patch.dict(os.environ, {"XLA_FLAGS": ""}):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3)  #: proven SC102


@pytest.fixture
def doubled(request):
    return request.param * 2


@pytest.mark.parametrize("doubled", [1, 3], indirect=True)
def test_through_a_fixture(doubled):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=doubled)  #: SC102 unproven
