"""Fixtures of pytest give a test its values, where its file has them and nothing else decides them."""

import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens = jnp.zeros((2,), jnp.int32)


@pytest.fixture
def pages():
    return 64


@pytest.fixture(scope="module")
def table(pages):
    return jnp.zeros((2, pages), jnp.int32)


@pytest.fixture(params=[8, 9], ids=str)
def block(request):
    return request.param


@pytest.fixture
def sizes():
    return [8, 9]


@pytest.fixture
def late():
    yield 8


@pytest.fixture(name="other")
def renamed():
    return 9


def test_one(table):
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=8)  #: proven SC102


def test_each(table, block):
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: SC102 violated


@pytest.mark.parametrize("block", [4, 8])
def test_overridden(table, block):
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


@pytest.mark.parametrize("block", [4, 8], indirect=True)
def test_indirect(table, block):
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: SC102 unproven


def test_changed(table, sizes, late, other, renamed):
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=sizes[0])  #: SC102 unproven
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=late)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=other)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=renamed)  #: SC102 unproven


class TestOwn:
    @pytest.fixture
    def pages(self):
        return 9

    def test_own(self, pages, table):
        paged_attention(q, kv, kv, lens, jnp.zeros((2, pages), jnp.int32), pages_per_compute_block=9)  #: SC102 unproven
        paged_attention(q, kv, kv, lens, table, pages_per_compute_block=9)  #: SC102 unproven

    def test_outer(self, block):
        paged_attention(q, kv, kv, lens, jnp.zeros((2, 64), jnp.int32), pages_per_compute_block=block)  #: SC102 violated


def helper(pages, block):
    paged_attention(q, kv, kv, lens, jnp.zeros((2, pages), jnp.int32), pages_per_compute_block=block)  #: SC102 unproven
