import argparse
import enum
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils

from kernel import pad_page_indices
from shapecheck import largest_divisor, megacore_mode_for


class Config(NamedTuple):
    pages: int = 6
    block: int = 4


class Mode(enum.Enum):
    HEADS = "kv_head"


q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
config = Config()
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=config.block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=config._replace(block=3).block)  #: proven SC102
paged_attention(q, kv[:1], kv[:1], lens, idx, pages_per_compute_block=3, megacore_mode=Mode.HEADS.value)  #: SC201 violated
parser = argparse.ArgumentParser()
parser.add_argument("--block", type=int, default=4)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=parser.parse_args().block)  #: SC102 unproven
paged_attention(q, quantization_utils.quantize_to_int8(kv), kv, lens, idx, pages_per_compute_block=3)  #: SC112 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=512 // 128 * 0)  #: SC110 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=6 / 2)  #: SC110 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=math.gcd(6, 4))  #: proven SC102 SC110
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, attn_logits_soft_cap=0.0)  #: SC113 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=0.0)  #: SC114 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=-1.0)  #: SC507 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=-1e4)  #: proven SC114
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=float("-inf"))  #: proven SC114
paged_attention(q, kv, kv, lens.astype(jnp.int16), idx, pages_per_compute_block=3)  #: SC107 violated
paged_attention(q, kv, kv, lens, idx.astype(jnp.int16), pages_per_compute_block=3)  #: SC108 violated
paged_attention(q, kv, kv, np.asarray([1, 2]), np.zeros((2, 6), np.int64), pages_per_compute_block=3)  #: proven SC107 SC108
paged_attention(q[0], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC109 violated
paged_attention(q.astype(jnp.int32), kv, kv, lens, idx, pages_per_compute_block=3)  #: SC115 violated
paged_attention(q, kv, kv[:, :32], lens, idx, pages_per_compute_block=3)  #: SC103 violated
paged_attention(q[..., :64], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC104 violated
paged_attention(q, kv, kv, lens[:1], idx, pages_per_compute_block=3)  #: SC105 violated
paged_attention(q, kv, kv, lens, idx[:1], pages_per_compute_block=3)  #: SC106 violated
paged_attention(q, kv[:, :, :0], kv[:, :, :0], lens, idx, pages_per_compute_block=3)  #: SC111 violated

for case in ({"pages": 6, "block": 3}, {"pages": 6, "block": 5}):
    paged_attention(q, kv, kv, lens, jnp.zeros((2, case["pages"]), jnp.int32), pages_per_compute_block=case["block"])  #: SC102 violated


class Attention:
    pages = 6

    def __init__(self, block):
        self.block = block

    @property
    def table(self):
        return jnp.zeros((2, self.pages), jnp.int32)

    def __call__(self, q):
        return paged_attention(q, kv, kv, lens, self.table, pages_per_compute_block=self.block)  #: SC102 violated


Attention(4)(q)


def options(**kwargs):
    return paged_attention(q, kv, kv, lens, idx, **kwargs)  #: SC102 violated


options(pages_per_compute_block=4)


def unknown_options(**kwargs):
    return paged_attention(q, kv, kv, lens, idx, **kwargs)  #: SC203 unproven


def divisor(n, block):
    return block if n % block == 0 else divisor(n, block - 1)


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=divisor(6, 5))  #: proven SC102 SC110


def exit_condition(table):
    block = 8
    while table.shape[1] % block:
        block -= 1
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def candidates(table):
    for block in (8, 4, 2, 1):
        if table.shape[1] % block == 0:
            break
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102 SC110


def offered(table, kv):
    block = largest_divisor(table.shape[1], at_most=16)
    mode = megacore_mode_for(kv.shape[0], q.shape[0])
    first = paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block, megacore_mode=mode)  #: proven SC102 SC110 SC201 SC202 SC203
    table = pad_page_indices(table, 16)
    return first, paged_attention(q, kv, kv, lens, table, pages_per_compute_block=16)  #: proven SC102
