"""Configs of ml_collections: items that are attributes, and dicts that become configs."""

import jax.numpy as jnp
import ml_collections
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from ml_collections import config_dict

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens = jnp.zeros((2,), jnp.int32)


def get_config():
    config = ml_collections.ConfigDict()
    config.block = 3
    config.model = ml_collections.ConfigDict({"heads": 8, "pages": 8})
    config.model.blocks = {"small": 2}
    config["mode"] = "kv_head"
    config.lock()
    return config


config = get_config()
table = jnp.zeros((2, config.model.pages), jnp.int32)
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config.block)  #: SC102 violated
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config["model"]["blocks"].small)  #: proven SC102
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config.get("chunk", 4), megacore_mode=config.mode)  #: proven SC102 SC201
config.block = 4
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config.block)  #: proven SC102
config.block = 2.0
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=config.block)  #: SC102 unproven
config.update({"model": {"pages": 9}})
paged_attention(q, kv, kv, lens, jnp.zeros((2, config.model.pages), jnp.int32), pages_per_compute_block=4)  #: SC102 unproven

made = config_dict.create(pages=8, block=4)
paged_attention(q, kv, kv, lens, jnp.zeros((2, made.pages), jnp.int32), pages_per_compute_block=made.block)  #: proven SC102
with made.unlocked():
    made.block = 3
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=made.block)  #: SC102 unproven

referring = ml_collections.ConfigDict({"pages": 8})
referring.block = referring.get_ref("pages") // 2
referring.pages = 9
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=referring.block)  #: SC102 unproven

import trainer  # noqa: E402  # it is not in the tree

handed_on = ml_collections.ConfigDict({"block": 4})
trainer.prepare(handed_on)
paged_attention(q, kv, kv, lens, table, pages_per_compute_block=handed_on.block)  #: SC102 unproven
