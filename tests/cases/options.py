"""Values that a user may set: a default is what they may be, and no proof; but where it is wrong, an example."""

import argparse
import os
from dataclasses import dataclass

import click
import jax.numpy as jnp
import typer
from absl import flags
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from pydantic_settings import BaseSettings

q, kv = jnp.zeros((3, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((3,), jnp.int32), jnp.zeros((3, 64), jnp.int32)

FLAGS = flags.FLAGS
flags.DEFINE_integer("block", 15, "pages in a block")
_OTHER = flags.DEFINE_enum("mode", "kv_head", ["kv_head", "none"], "megacore mode")


def main():
    parser = argparse.ArgumentParser()
    sizes = parser.add_argument_group("sizes")
    sizes.add_argument("--block-size", "-b", type=int, default=24)
    parser.add_argument("--legal", type=int, choices=[8, 16], default=8)
    parser.add_argument("--mixed", type=int, choices=[8, 15], default=8)
    parser.add_argument("--maybe", type=int, choices=[8, 16])
    parser.add_argument("--mode", choices=["kv_head", "batch", "none"], default="kv_head")
    parser.add_argument("--fast", action="store_true")
    args = parser.parse_args()
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=args.block_size)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=args.legal)  #: proven SC102 SC110
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=args.mixed)  #: SC102 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=args.maybe)  #: SC110 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if args.fast else 16)  #: proven SC102
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8 if args.fast else 15)  #: SC102 unproven
    mode = args.mode if args.mode != "none" else None
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=mode)  #: SC202 unproven
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=mode)  #: proven SC201 SC203
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=args.mode)  #: SC203 unproven
    args = parser.parse_args([])
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=args.block_size)  #: SC102 violated
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=vars(args)["legal"])  #: proven SC102


def with_flags():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=FLAGS.block)  #: SC102 unproven
    mode = None if _OTHER.value == "none" else _OTHER.value
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=8, megacore_mode=mode)  #: proven SC201 SC202 SC203


if __name__ == "__main__":
    main()


@click.command()
@click.option("--block", default=12)
def clicked(block):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


def typed(block: int = typer.Option(12)):
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)  #: SC102 unproven


@dataclass
class Config:
    block: int = 12

    def run(self):
        paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=self.block)  #: SC102 unproven


class Settings(BaseSettings):
    block: int = 12


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Settings().block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Settings(block=16).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Config().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=int(os.environ.get("BLOCK", "15")))  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=int(os.getenv("BLOCK", "16")))  #: SC102 unproven


def looked_up(config, pages):
    table = jnp.zeros((3, pages), jnp.int32)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=config.get("block", 12))  #: SC102 unproven
    block = getattr(config, "block", 12)
    if pages % block:
        raise ValueError
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102


def refused(block):
    parser = argparse.ArgumentParser()
    if block % 2:
        parser.error("odd")
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=2 - block % 2)  #: proven SC102
    parser.exit(1)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven
