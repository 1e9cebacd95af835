"""Suites of absl, and what they set up."""

import jax.numpy as jnp
from absl.testing import parameterized
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128), jnp.bfloat16), jnp.zeros((4, 64, 16, 128), jnp.bfloat16)
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)


class T(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.pages = 8

    @parameterized.product(block=(2, 4), mode=(None, "kv_head", "batch"))
    def test_a(self, block, mode):
        table = jnp.zeros((2, self.pages), jnp.int32)
        paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block, megacore_mode=mode)  #: proven SC102 SC201 SC202

    @parameterized.named_parameters(("x", 2), {"testcase_name": "y", "block": 3})
    def test_b(self, block):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 violated

    def test_c(self):
        for block in (2, 3):
            with self.subTest(block=block):
                if 8 % block:
                    self.skipTest("no")
                paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102
