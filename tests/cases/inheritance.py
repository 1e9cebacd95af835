"""Methods of bases see the object itself, and `super()` goes on along the order of its classes."""

import abc

import jax.numpy as jnp
import torch
from jax._src import test_util as jtu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from serving_library import Runner
from transformers import PretrainedConfig

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


class Base:
    def __init__(self, factor=1):
        self.block = self.size() * factor

    def size(self):
        return 8

    @classmethod
    def make(cls):
        return cls()


class Overridden(Base):
    def __init__(self):
        super().__init__(factor=1)

    def size(self):
        return 9


class Extended(Base):
    def __init__(self):
        Base.__init__(self, factor=2)

    def size(self):
        return super(Extended, self).size() + 1


class Inherited(Overridden):
    pass


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Base(2).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Overridden().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Extended().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Inherited.make().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if isinstance(Inherited(), Base) else 9)  #: proven SC102


class Blocks:
    @property
    def block(self):
        return self.tokens // self.page_size


class Engine(abc.ABC):
    page_size = 16

    def __init__(self, tokens):
        super().__init__()
        self.tokens = tokens

    @abc.abstractmethod
    def table(self): ...


class Decode(Blocks, Engine):
    def __init__(self, tokens, *, extra=0):
        super().__init__(tokens + extra)

    def table(self):
        return jnp.zeros((2, 40), jnp.int32)


def step(engine):
    return paged_attention(q, kv, kv, lens, engine.table(), pages_per_compute_block=engine.block)


paged_attention(q, kv, kv, lens, Decode(128).table(), pages_per_compute_block=Decode(128).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Decode(256, extra=128).block)  #: SC102 violated


class Attention(torch.nn.Module):
    def __init__(self, heads, block=8):
        super().__init__()
        self.heads = heads
        self.block = block

    def forward(self, x, k, lens, table):
        q = x.view(x.shape[0], self.heads, -1)
        return torch.ops.xla.paged_attention(q, k, k, lens, table, self.block)  #: SC101 violated


pages, table = torch.zeros(4, 64, 16, 128), torch.zeros((2, 64), dtype=torch.int32)
Attention(8)(torch.zeros(2, 1024), pages, table[:, 0], table)
Attention(6)(torch.zeros(2, 768), pages, table[:, 0], table)


def of_torch(idx, block):
    torch._check(idx.shape[1] % block == 0)
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


class OfALibrary(Runner):
    pages = 64
    LANES = 128

    def __init__(self, block):
        self.early = block
        super().__init__()
        self.late = block


class Configured(PretrainedConfig):
    def __init__(self, block=8, **options):
        self.block = block
        super().__init__(**options)


class OfTests(jtu.JaxTestCase):
    block = 9

    def test_block(self):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=self.block)  #: SC102 violated


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=OfALibrary(8).late)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=OfALibrary(9).late)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=OfALibrary(8).early)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=OfALibrary(8).pages)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=OfALibrary.pages)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Configured(num_labels=3).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Configured(block=9).block)  #: SC102 violated
