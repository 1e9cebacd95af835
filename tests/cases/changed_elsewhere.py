import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
blocks, options, fixed = [3], {"block": 3}, {"block": 3}


class Box:
    block = 3

    def __init__(self):
        self.pages = 3

    def grow(self, n):
        self.pages += n


box = Box()


def change(n):
    blocks.append(n)
    options["block"] = n
    Box.block += n


def use():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[-1])  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=options["block"])  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Box.block)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=box.pages)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=fixed["block"])  #: proven SC102
