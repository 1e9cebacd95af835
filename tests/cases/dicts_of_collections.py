"""Dicts that have something to say of a key that is missing."""

from collections import Counter, OrderedDict, defaultdict

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)

pages = defaultdict(list)
for page in range(16):
    pages[page % 2].append(page)
table = jnp.asarray([pages[0], pages[1]], jnp.int32)
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102 SC106 SC402
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=3)  #: SC102 violated

blocks = defaultdict(lambda: 4, {"small": 2})
blocks["odd"] = 3
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks["large"])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks["small"])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks["odd"])  #: SC102 violated

owners = Counter("aabbbb")
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=owners["b"])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=owners.total() - 1)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=owners["nobody"])  #: SC110 violated

options = OrderedDict(megacore_mode="kv_head", pages_per_compute_block=4)
paged_attention(q, kv, kv, lens, idx, **options)  #: proven SC102 SC201


def looked_at(key):
    return blocks[key]


def in_a_function(key):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks["large"])  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=looked_at(key))  #: SC102 unproven
