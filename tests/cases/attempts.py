"""Calls that the code around them lets fail."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, table = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)


def best_block():
    for block in (4, 8, 6):
        try:
            return block, paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: SC102 unproven
        except ValueError:
            continue


def whatever_fails():
    try:
        return paged_attention(q[:, :7], kv, kv, lens, table, pages_per_compute_block=6)  #: SC101 unproven
    except (RuntimeError, Exception) as error:
        print(error)
    try:
        return paged_attention(q[:, :7], kv, kv, lens, table, pages_per_compute_block=6)  #: SC101 unproven
    except:  # noqa: E722
        return None


def another_error():
    try:
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 violated
    except (RuntimeError, KeyError):
        return None


def raised_again():
    try:
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 violated
    except ValueError as error:
        print("no such block")
        raise RuntimeError("decode") from error


def behind():
    try:
        print(q)
    except ValueError:
        paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 unproven
    finally:
        paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 violated


def silent():
    try:
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=6, attn_logits_soft_cap=0.0)  #: SC113 violated
    except ValueError:
        return None
