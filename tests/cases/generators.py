"""What a generator gives is known where its body only computes: numbers, and lists and dicts that it makes for each."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens = jnp.zeros((2,), jnp.int32)


class Allocator:
    def __init__(self, pages):
        self.pages = pages

    def rows(self):
        for row in range(2):
            yield [row] * self.pages


table = jnp.asarray(list(Allocator(8).rows()), jnp.int32)
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102 SC106
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=5)  #: SC102 violated


def cases(most):
    for block in (2, 4):
        for pages in (8, most):
            yield dict(block=block, pages=pages)


for case in cases(16):
    table = jnp.zeros((2, case["pages"]), jnp.int32)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=case["block"])  #: proven SC102

for case in cases(10):
    table = jnp.zeros((2, case["pages"]), jnp.int32)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=case["block"])  #: SC102 violated
