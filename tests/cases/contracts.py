from typing import NamedTuple

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jaxtyping import Array, Float, Int32

from shapecheck import checked, contract, install, relation


@contract("num_q_heads % num_kv_heads == 0", "pages_per_sequence % block == 0")
def attend(
    q: Float[Array, "batch num_q_heads head_dim"],
    pages: Float[Array, "num_kv_heads total page_size head_dim"],
    lengths: Int32[Array, "batch"],
    table: Int32[Array, "batch pages_per_sequence"],
    *,
    block: int = 4,
):
    return paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=block)  #: proven SC101 SC102


q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, table = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
attend(q, kv, lens, table)  #: SC001 violated
attend(q, kv, lens, table, block=3)  #: proven SC001
attend(q[:, :7], kv, lens, table, block=3)  #: SC001 violated


def unknown(q, kv, block):
    return attend(q, kv, lens, table, block=block)  #: SC001 unproven


WORDS = {"message": "whole blocks only"}


@contract(
    relation("rows % block == 0", name="whole-blocks", message="the grid has no ragged last block"),
    relation("itemsize(x) in (2, 4)", name="wide-enough"),
)
def blocked(x: Float[Array, "rows columns"], block: int = 8):
    return x


@contract(relation("rows % block == 0", **WORDS))
def with_words(x: Float[Array, "rows columns"], block: int = 8):
    return x


blocked(jnp.zeros((24, 4)))  #: proven SC001
blocked(jnp.zeros((20, 4)))  #: SC001 violated
blocked(jnp.zeros((24, 4), jnp.bfloat16))  #: proven SC001
blocked(jnp.zeros((24, 4), jnp.float64), 6)  #: proven SC001
with_words(jnp.zeros((20, 4)))  #: SC001 violated


@contract(relation("head_dim % 128 == 0", when="tpu"), relation("rows <= 64", when=("v5e", "v6e")))
def on_chips(x: Float[Array, "rows head_dim"]): ...


on_chips(jnp.zeros((128, 64)))  # quiet: where it runs is not said


def plain(x: Float[Array, "rows columns"], block: int = 8):
    return x


guarded = checked(plain, "rows % block == 0")
guarded(jnp.zeros((24, 4)))  #: proven SC001
guarded(jnp.zeros((20, 4)))  #: SC001 violated
kernel = checked(paged_attention, "batch_size >= 1")
with install():
    kernel(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 violated
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=3)  #: proven SC102
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 violated


class Cache(NamedTuple):
    keys: Float[Array, "heads dim"]


@contract("heads % 2 == 0", "caches_keys_dtype == 'float32'")
def layered(x: Float[Array, "rows dim"], caches: list[Cache]):
    return x


layered(jnp.zeros((4, 8)), [Cache(jnp.zeros((3, 8)))])  #: SC001 unproven


@contract("headz % 2 == 0")
def misspelt(x: Float[Array, "rows dim"]):
    return x


misspelt(jnp.zeros((4, 8)))  # quiet: the decoration fails


class Blocks:
    def __init__(self, block: int):
        self.block = block

    @contract("rows % block == 0")
    def method(self, x: Float[Array, "rows columns"], block: int):
        return x

    @staticmethod
    @contract("rows % block == 0")
    def static(x: Float[Array, "rows columns"], block: int):
        return x

    @classmethod
    @contract("rows % block == 0")
    def of_class(cls, x: Float[Array, "rows columns"], block: int):
        return x

    @contract("rows % block == 0")
    def __call__(self, x: Float[Array, "rows columns"], block: int = 5):
        return self.method(x, self.block)  #: SC001 unproven


Blocks(3).method(jnp.zeros((4, 8)), 3)  #: SC001 violated
Blocks(3).method(jnp.zeros((4, 8)), block=2)  #: proven SC001
Blocks.method(Blocks(3), jnp.zeros((4, 8)), 3)  #: SC001 violated
Blocks.static(jnp.zeros((4, 8)), 2)  #: proven SC001
Blocks(3).static(jnp.zeros((4, 8)), 3)  #: SC001 violated
Blocks.of_class(jnp.zeros((4, 8)), 3)  #: SC001 violated
Blocks(3).of_class(jnp.zeros((4, 8)), 2)  #: proven SC001
Blocks(2)(jnp.zeros((4, 8)))  #: SC001 violated
Blocks(2)(jnp.zeros((4, 8)), 4)  #: proven SC001
