"""What is evaluated late, changed under another name, or left half done; tests/hard_programs.txt has many more."""

import contextlib
import threading

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)


class Box:
    def __init__(self, block):
        self.block = block

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.block = 4
        return True


def late_body():
    blocks = [4]

    def append():
        blocks.append(3)
        yield

    waiting = append()
    list(waiting)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[-1])  #: SC102 unproven


def late_expression():
    blocks = [4]
    waiting = (blocks.append(3) for _ in range(1))
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[-1])  #: SC102 unproven
    list(waiting)


def evaluated_at_once():
    block = max(b for b in range(1, 9) if 8 % b == 0)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: proven SC102


def early_stop():
    any((block := b) > 2 for b in (1, 3, 4))
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def grows_while_iterated():
    blocks = [1, 2]
    for block in blocks:
        if len(blocks) < 3:
            blocks.append(3)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 violated


def view_of_a_dict():
    blocks = {"a": 4}
    values = blocks.values()
    blocks["a"] = 3
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=sum(values))  #: SC102 violated


def half_done(n):
    blocks = [4]
    try:
        blocks[0] = 3
        1 // n
        blocks[0] = 4
    except ZeroDivisionError:
        pass
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[0])  #: SC102 unproven


def half_done_and_suppressed(n):
    block = 4
    with contextlib.suppress(ZeroDivisionError):
        block = 3
        1 // n
        block = 4
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def entered_and_left():
    with Box(8) as box:
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=box.block)  #: proven SC102
        box.block = 3
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=box.block)  #: SC102 violated


def changed_on_the_way_out():
    def last(blocks):
        try:
            return blocks
        finally:
            blocks.append(3)

    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=last([4])[-1])  #: SC102 violated


def changed_by_a_thread():
    blocks = [4]
    thread = threading.Thread(target=lambda: blocks.append(3))
    thread.start()
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[-1])  #: SC102 unproven


def changed_by_name():
    box = Box(4)
    vars(box)["block"] = 3
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=box.block)  #: SC102 violated


def one_of_two(n):
    blocks = [4]
    [blocks, [5]][n].append(3)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=blocks[-1])  #: SC102 unproven


shared, kept = [4], [4]


def change_under_another_name():
    other = shared
    other.append(3)


def use():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=shared[-1])  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=kept[-1])  #: proven SC102


class Four:
    def width(self):
        return 4


class Twice(Four):
    def width(self):
        return super().width() * 2


class Thrice(Four):
    def width(self):
        return super().width() * 3


class Both(Twice, Thrice):
    pass


def the_next_class_is_that_of_the_object():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Twice().width())  #: proven SC102
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Both().width())  #: SC102 violated
