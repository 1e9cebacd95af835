"""Values that are handed on from where they are written down."""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)

import functools
from dataclasses import dataclass

import pytest


def local():
    block = 3
    return paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block)


def also_printed():
    block = 4
    print(block)
    return paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3)


kernel = functools.partial(paged_attention, pages_per_compute_block=3)
kernel(q, kv, kv, lens, six)


def keyword_only(table, *, block=3):
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)


keyword_only(six)
keyword_only(eight, block=8)


def passed(table, block):
    return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)


passed(six, 3)
passed(eight, block=4)


@pytest.mark.parametrize("block", [3, 2])
def test_one(block):
    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block)


@pytest.mark.parametrize("pages, block", [(6, 3), (8, 4), (9, 3)])
def test_pairs(pages, block):
    table = jnp.zeros((4, pages), jnp.int32)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)


@dataclass
class Config:
    block: int = 3


config = Config()
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=config.block)


class Layer:
    def __init__(self, size=3):
        self.size = size

    def __call__(self, table):
        return paged_attention(q, kv, kv, lens, table, pages_per_compute_block=self.size)


Layer()(six)

SETTINGS = {"attention": {"block": 3, "mode": "kv_head"}}
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=SETTINGS["attention"]["block"])


def forwarding(table, **options):
    return paged_attention(q, kv, kv, lens, table, **options)


forwarding(six, pages_per_compute_block=3)
for each in (3, 3):
    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=each)
