"""What holds in each of a few cases is proven, though in no case at once."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

kv = jnp.zeros((4, 64, 16, 128))
q, lens = jnp.zeros((2, 8, 128)), jnp.zeros((2,), jnp.int32)


def table(pages):
    return jnp.zeros((2, pages), jnp.int32)


def even_batches_only(q, k, v, lens, idx, mode: str = "batch"):
    if mode == "batch" and q.shape[0] % 2:
        mode = None
    return paged_attention(q, k, v, lens, idx, pages_per_compute_block=1, megacore_mode=mode)  #: proven SC202


def even_heads_only(q, k, v, lens, idx, mode: str = "batch"):
    if mode == "batch" and k.shape[0] % 2:
        mode = None
    return paged_attention(q, k, v, lens, idx, pages_per_compute_block=1, megacore_mode=mode)  #: SC202 unproven


def chosen(q, k, v, lens, idx):
    mode = "kv_head" if k.shape[0] % 2 == 0 else ("batch" if q.shape[0] % 2 == 0 else None)
    return paged_attention(q, k, v, lens, idx, pages_per_compute_block=1, megacore_mode=mode)  #: proven SC201 SC202 SC203


def together(big: bool):
    block = 16 if big else 8
    pages = 64 if big else 40
    paged_attention(q, kv, kv, lens, table(pages), pages_per_compute_block=block)  #: proven SC102
    pages = 40 if big else 64
    paged_attention(q, kv, kv, lens, table(pages), pages_per_compute_block=block)  #: SC102 unproven


def scaled(q, lens, idx):
    batch, heads, dim = q.shape
    q = (q * (1.0 / jnp.sqrt(dim))).astype(jnp.bfloat16)
    assert batch % 2 == 0
    lens = jnp.asarray(lens, jnp.int32)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=1, megacore_mode="batch")  #: proven SC107 SC115 SC202
    paged_attention(q[1:], kv, kv, lens, idx.astype(jnp.int16), pages_per_compute_block=1, megacore_mode="batch")  #: SC108 violated


def unpacked(q, lens, idx):
    batch, heads, dim = q.shape
    rows, pages = idx.shape
    assert lens.ndim == 1 and len(idx.shape) == 2
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=1)  #: proven SC109
    paged_attention(q, kv, kv, idx, idx, pages_per_compute_block=1)  #: SC109 violated


def looked_up(name, other):
    sizes = {"small": {"pages": 40, "block": 8}, "large": {"pages": 64, "block": 16}}
    size = sizes[name]
    paged_attention(q, kv, kv, lens, table(size["pages"]), pages_per_compute_block=size["block"])  #: proven SC102
    size = sizes.get(name, {"pages": 32, "block": 4})
    paged_attention(q, kv, kv, lens, table(size["pages"]), pages_per_compute_block=size["block"])  #: proven SC102
    paged_attention(q, kv, kv, lens, table(size["pages"]), pages_per_compute_block=sizes[other]["block"])  #: SC102 unproven


def scales(q, idx, scale: float):
    batch, heads, dim = q.shape
    if batch % 2 or heads != 8:
        return None
    q = q * dim**-0.5 * scale * (1 / float(scale))
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=1, megacore_mode="batch")  #: proven SC101 SC202


def repeated(rows: int, width: int):
    q = jnp.zeros((2, 8, 128)) * width**-0.5
    paged_attention(q, kv, kv, lens, jnp.array([[0] * 17] * rows, jnp.int32), pages_per_compute_block=16)  #: SC102 violated
    paged_attention(q, kv, kv, lens, jnp.array([[0] * 16] * 2, jnp.int32), pages_per_compute_block=16)  #: proven SC102 SC104 SC115
