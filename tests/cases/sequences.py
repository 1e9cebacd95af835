"""Lists that change in place, itertools, and operators as functions."""

import itertools
import math
import operator
from functools import reduce

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 96), jnp.int32)

blocks = [3, 9, 8]
blocks.insert(0, 4)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[0])  #: proven SC102
blocks.remove(9)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[2])  #: proven SC102
other = blocks
other += [5]
other.reverse()
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[0])  #: SC102 violated
blocks.sort(reverse=True)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=other[0])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=other[1])  #: SC102 violated
rows = [[8] * 2] * 2
rows[0][0] = 9
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=rows[1][0])  #: SC102 violated

paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=list(itertools.accumulate([1, 2, 3, 4]))[-1])  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=list(itertools.accumulate([1, 2, 4], operator.mul))[-1])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=[b - a for a, b in itertools.pairwise([0, 8, 24])][1])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=[a for a, b in itertools.zip_longest([4, 5], [1], fillvalue=2) if b == 2][0])  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=sum(itertools.islice([1, 2, 4, 8], 1, 3)))  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=reduce(operator.mul, (2, 4), 1))  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=max(a * b for a, b in itertools.combinations([2, 3, 4], 2)))  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=math.prod(itertools.repeat(2, 4)) + 1)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=(255).bit_count())  #: proven SC102


def unknown(n, m):
    blocks = [n, m]
    blocks.sort()
    paged_attention(q, kv, kv, lens, jnp.zeros((2, n), jnp.int32), pages_per_compute_block=blocks[0])  #: SC102 unproven
    blocks = [n, m]
    blocks.reverse()
    paged_attention(q, kv, kv, lens, jnp.zeros((2, n), jnp.int32), pages_per_compute_block=blocks[1])  #: proven SC102
    paged_attention(q, kv, kv, lens, jnp.zeros((2, reduce(operator.mul, (n, m))), jnp.int32), pages_per_compute_block=m)  #: proven SC102


def divisors(pages):
    for block in (1, 2, 4, 8):
        if pages % block == 0:
            yield block


def cases():
    for pages in (64, 40):
        for block in (8, 16):
            yield pages, block


class Sweep:
    def __iter__(self):
        yield from (4, 8)


for block in divisors(64):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102
for pages, block in cases():
    paged_attention(q, kv, kv, lens, jnp.zeros((2, pages), jnp.int32), pages_per_compute_block=block)  #: SC102 violated
for block in Sweep():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=max(divisors(64)))  #: proven SC102
