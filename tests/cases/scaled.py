"""Queries that are scaled by what a configuration says: a number, where its class says so, leaves the shape as it is."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, table = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


@dataclass
class Config:
    heads: int
    scale: float
    bias: object

    @property
    def head_dim(self) -> int:
        return 1024 // self.heads

    @property
    def per_head(self):
        return self.bias


def by_property(config: Config):
    return paged_attention(q * config.head_dim**-0.5, kv, kv, lens, table, pages_per_compute_block=8)  #: proven SC101 SC104 SC105


def by_field(config: Config):
    return paged_attention(q * config.scale, kv, kv, lens, table, pages_per_compute_block=8)  #: proven SC101 SC104 SC105


def by_what_may_be_an_array(config: Config):
    return paged_attention(q * config.bias, kv, kv, lens, table, pages_per_compute_block=8)  #: SC101 SC104 unproven


def by_a_property_that_says_nothing(config: Config):
    return paged_attention(q * config.per_head, kv, kv, lens, table, pages_per_compute_block=8)  #: SC101 SC104 unproven


def by_anything(config):
    return paged_attention(q * config.scale, kv, kv, lens, table, pages_per_compute_block=8)  #: SC101 SC104 unproven


def for_ever(config):
    while True:
        paged_attention(q * config.scale, kv, kv, lens, table, pages_per_compute_block=7)  #: SC102 violated
