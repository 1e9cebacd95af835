"""Guards that stand in helpers, in names, in `match` and in the conditions of loops."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128), jnp.bfloat16), jnp.zeros((4, 64, 16, 128), jnp.bfloat16)
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)


def f_loop(table):
    block = 16
    while table.shape[1] % block != 0:
        block //= 2
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def g_loop(table, block):
    while True:
        if table.shape[1] % block == 0:
            break
        block -= 1
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def check(table, block):
    if table.shape[1] % block:
        raise ValueError(f"{table.shape[1]} % {block}")


def f(table, block):
    check(table, block)
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def is_ok(table, block):
    return table.shape[1] % block == 0


def g(table, block):
    if not is_ok(table, block):
        return None
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def h(table, block):
    ok = table.shape[1] % block == 0
    if not ok:
        block = 1
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def i(table, block):
    match table.shape[1] % block:
        case 0:
            return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102
        case _:
            raise ValueError
