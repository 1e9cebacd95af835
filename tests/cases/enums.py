"""Members of enums: their values, other names of one member, and what they are besides."""

import enum

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


class Size(enum.IntEnum):
    NONE = 0
    A = enum.auto()
    B = enum.auto()
    C = 9
    D = enum.auto()

    @property
    def block(self):
        return 2**self.value

    @classmethod
    def biggest(cls):
        return cls.D


class Same(enum.Enum):
    X = 8
    Y = 8
    Z = 9


class Own(enum.Enum):
    X = (64, 8)
    Y = (64, 9)

    def __init__(self, pages, block):
        self.pages = pages
        self.block = block


class New(enum.Enum):
    X = 8

    def __new__(cls, number):
        made = object.__new__(cls)
        made._value_ = number + 1
        return made


class Lower(enum.StrEnum):
    KV_HEAD = enum.auto()
    BATCH = enum.auto()


class Mode(str, enum.Enum):
    KV = "kv_head"
    BATCH = "batch"


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = enum.auto()


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.B.value)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.D.value)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.C)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.B + 7)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.B.block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Size.biggest().value - 2)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if Size.NONE else 9)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=len(Same))  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if Same.X is Same.Y else 9)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if Same.Y.name == "X" else 9)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if Same.X == Same.Z else 9)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Own.X.block)  #: proven SC102
for each in Own:
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=each.value[1])  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=New.X.value)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Bits.C.value)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=Lower.KV_HEAD.value)  #: proven SC201 SC203
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=Mode("batch").value)  #: proven SC202 SC203
paged_attention(q[:1], kv, kv, lens[:1], idx[:1], pages_per_compute_block=8, megacore_mode=Mode.BATCH.value)  #: SC202 violated
paged_attention(q[:1], kv, kv, lens[:1], idx[:1], pages_per_compute_block=8, megacore_mode=Mode.BATCH)  #: SC202 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if Mode.KV == "kv_head" else 9)  #: proven SC102
