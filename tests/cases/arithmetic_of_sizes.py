"""How people round sizes, and look for a block that divides them."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

kv = jnp.zeros((4, 64, 16, 128))


q, lens = jnp.zeros((2, 8, 128)), jnp.zeros((2,), jnp.int32)


def table(pages):
    return jnp.zeros((2, pages), jnp.int32)


paged_attention(q, kv, kv, lens, table(pl.cdiv(100, 8) * 8), pages_per_compute_block=8)  #: proven SC102
paged_attention(q, kv, kv, lens, table(pl.cdiv(100, 8)), pages_per_compute_block=8)  #: SC102 violated
paged_attention(q, kv, kv, lens, table(pl.next_power_of_2(100)), pages_per_compute_block=8)  #: proven SC102
paged_attention(q, kv, kv, lens, table(2 ** math.ceil(math.log2(100))), pages_per_compute_block=128)  #: proven SC102
paged_attention(q, kv, kv, lens, table(math.ceil(100 / 8)), pages_per_compute_block=8)  #: SC102 violated
paged_attention(q, kv, kv, lens, table(int(np.ceil(100 / 8)) * 8), pages_per_compute_block=int(64 / 8))  #: proven SC102
paged_attention(q, kv, kv, lens, table(math.lcm(6, 8)), pages_per_compute_block=math.isqrt(64))  #: proven SC102
paged_attention(q, kv, kv, lens, table(np.lcm(6, 8)), pages_per_compute_block=np.gcd(64, 40))  #: proven SC102
paged_attention(q, kv, kv, lens, table(64), pages_per_compute_block=functools.reduce(math.gcd, [32, 48]))  #: proven SC102
paged_attention(q, kv, kv, lens, table(40), pages_per_compute_block=functools.reduce(math.gcd, [32, 48]))  #: SC102 violated
paged_attention(q, kv, kv, lens, table(64), pages_per_compute_block=max([16, 5], key=lambda b: -b))  #: SC102 violated
paged_attention(q, kv, kv, lens, table(64), pages_per_compute_block=sorted([16, 5], key=lambda b: -b)[0])  #: proven SC102


def rounded_up(n: int):
    paged_attention(q, kv, kv, lens, table((n + 15) & ~15), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table((n + 15) & -16), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table((n + 15) & -8), pages_per_compute_block=16)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, table(n >> 4 << 4), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table(n >> 4 << 3), pages_per_compute_block=16)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, table(math.ceil(n / 16) * 16), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table(int(np.ceil(n / 16)) * 16), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table(n if n % 16 == 0 else n + 16 - n % 16), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table(n if n % 16 == 0 else n + 16), pages_per_compute_block=16)  #: SC102 unproven
    whole, rest = divmod(n, 16)
    paged_attention(q, kv, kv, lens, table((whole + bool(rest)) * 16), pages_per_compute_block=16)  #: proven SC102
    paged_attention(q, kv, kv, lens, table(16), pages_per_compute_block=n / 16)  #: SC110 violated


def shrinking(n: int):
    block = 16
    while n % block:
        block -= 1
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=block)  #: proven SC102 SC110
    block = 16
    while block > 1 and n % block != 0:
        block //= 2
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=block)  #: proven SC102 SC110
    block = 16
    while block > 2 and n % block != 0:
        block -= 1
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=block)  #: SC102 unproven
    block = 16
    while n % (block + 1):
        block -= 1
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=block)  #: SC110 unproven


def first_that_fits(pages, limit=16):
    for block in range(min(pages, limit), 0, -1):
        if pages % block == 0:
            return block
    return 1


def fits(n: int):
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=first_that_fits(n))  #: proven SC102 SC110
    blocks = [block for block in range(1, 17) if n % block == 0]
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=blocks[-1])  #: proven SC102 SC110
    blocks = [block for block in range(2, 17) if n % block]
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=blocks[-1])  #: SC102 violated
    blocks = [block for block in range(2, 17) if n % block < 2]
    paged_attention(q, kv, kv, lens, table(n), pages_per_compute_block=blocks[-1])  #: SC102 unproven
    block = 7
    for block in range(2, n):
        pass
    paged_attention(q, kv, kv, lens, table(64), pages_per_compute_block=block)  #: SC110 unproven
