"""Enums, typed dicts, patterns and trees."""

import enum
from dataclasses import dataclass
from typing import TypedDict

import jax
import jax.numpy as jnp
from einops import rearrange, reduce, repeat
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


class Block(enum.IntEnum):
    SMALL = 8
    ODD = 15


class Legal(enum.Enum):
    SMALL = 8
    LARGE = 16


class Sizes(TypedDict):
    pages: int
    block: int


@dataclass
class Config:
    pages: int = 64
    block: int = 16


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=int(Block.SMALL))  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=int(Block.ODD))  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Block["ODD"].value)  #: SC102 violated
for legal in Legal:
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=legal.value)  #: proven SC102
for block in Block:
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block.value)  #: SC102 violated
sizes = Sizes(pages=64, block=16)
paged_attention(q, kv, kv, lens, jnp.zeros((2, sizes["pages"]), jnp.int32), pages_per_compute_block=sizes["block"])  #: proven SC102

match (64, 24):
    case (40, block):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=7)
    case (pages, block):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 violated
match sizes:
    case {"pages": 64, "block": block}:
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102
match Config(block=8):
    case Config(pages=40, block=block):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=7)
    case Config(64, block):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def unknown_pattern(config):
    match config:
        case Config(pages=64, block=block):
            paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


narrow = jax.tree.map(lambda array: array[..., :64], (kv, kv))
paged_attention(q, *narrow, lens, idx, pages_per_compute_block=16)  #: SC104 violated
cache = jax.tree_util.tree_map(jnp.asarray, {"v": kv, "k": kv[:, :32]})
paged_attention(q, cache["k"], cache["v"], lens, idx, pages_per_compute_block=16)  #: SC103 violated
paged_attention(q, *jax.tree.leaves([kv, (kv,)]), lens, idx, pages_per_compute_block=16)  #: proven SC101 SC103 SC104

flat = jnp.zeros((2, 1024))
paged_attention(rearrange(flat, "b (h d) -> b h d", h=8), kv, kv, lens, idx, pages_per_compute_block=16)  #: proven SC101 SC104
paged_attention(rearrange(flat, "b (h d) -> b h d", h=4), kv, kv, lens, idx, pages_per_compute_block=16)  #: SC104 violated
heads = repeat(kv[0], "pages page dim -> heads pages page dim", heads=3)
paged_attention(q, heads, heads, lens, idx, pages_per_compute_block=16)  #: SC101 violated
merged = reduce(kv, "(heads two) pages page dim -> heads pages page dim", "mean", two=2)
paged_attention(q, merged, merged, lens, idx, pages_per_compute_block=16, megacore_mode="kv_head")  #: proven SC101 SC201
paged_attention(q, kv, kv, lens, rearrange(jnp.arange(128), "(b p) -> b p", b=2), pages_per_compute_block=16)  #: SC402 violated
