"""The sizes of well-known models, read from configurations as they are published, and split over devices."""

from __future__ import annotations

from typing import Any

import pytest

from shapecheck.model import MissingSize, Model

# What the config.json of each says of its attention (the rest left out), and its published query heads, KV heads and head_dim.
PUBLISHED: dict[str, tuple[dict[str, Any], Model]] = {
    "Llama 2 7B": ({"num_attention_heads": 32, "num_key_value_heads": 32, "hidden_size": 4096}, Model(32, 32, 128)),
    "Llama 2 70B": ({"num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192}, Model(64, 8, 128)),
    "Llama 3.1 8B": ({"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}, Model(32, 8, 128)),
    "Llama 3.1 405B": ({"num_attention_heads": 128, "num_key_value_heads": 8, "hidden_size": 16384}, Model(128, 8, 128)),
    "Llama 3.2 1B": (
        {"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2048, "head_dim": 64},
        Model(32, 8, 64),
    ),
    "Llama 3.2 11B Vision": (
        {"text_config": {"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}, "vision_config": {}},
        Model(32, 8, 128),
    ),
    "Mistral 7B": ({"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}, Model(32, 8, 128)),
    "Mixtral 8x22B": ({"num_attention_heads": 48, "num_key_value_heads": 8, "hidden_size": 6144}, Model(48, 8, 128)),
    "Gemma 2B": (
        {"num_attention_heads": 8, "num_key_value_heads": 1, "hidden_size": 2048, "head_dim": 256},
        Model(8, 1, 256),
    ),
    "Gemma 7B": (
        {"num_attention_heads": 16, "num_key_value_heads": 16, "hidden_size": 3072, "head_dim": 256},
        Model(16, 16, 256),
    ),
    "Gemma 2 27B": (
        {"num_attention_heads": 32, "num_key_value_heads": 16, "hidden_size": 4608, "head_dim": 128},
        Model(32, 16, 128),
    ),
    "Qwen2 0.5B": ({"num_attention_heads": 14, "num_key_value_heads": 2, "hidden_size": 896}, Model(14, 2, 64)),
    "Qwen2 7B": ({"num_attention_heads": 28, "num_key_value_heads": 4, "hidden_size": 3584}, Model(28, 4, 128)),
    "Qwen2.5 72B": ({"num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192}, Model(64, 8, 128)),
    "Qwen3 32B": (
        {"num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 5120, "head_dim": 128},
        Model(64, 8, 128),
    ),
    "Phi-3 mini": ({"num_attention_heads": 32, "num_key_value_heads": 32, "hidden_size": 3072}, Model(32, 32, 96)),
    "Phi-4": ({"num_attention_heads": 40, "num_key_value_heads": 10, "hidden_size": 5120}, Model(40, 10, 128)),
    "Yi 34B": ({"num_attention_heads": 56, "num_key_value_heads": 8, "hidden_size": 7168}, Model(56, 8, 128)),
    "Falcon 7B": (
        {"num_attention_heads": 71, "multi_query": True, "new_decoder_architecture": False, "hidden_size": 4544},
        Model(71, 1, 64),
    ),
    "Falcon 40B": (
        {"num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": True, "hidden_size": 8192},
        Model(128, 8, 64),
    ),
    "GPT-2": ({"n_head": 12, "n_embd": 768}, Model(12, 12, 64)),
    "StarCoder": ({"n_head": 48, "n_embd": 6144, "multi_query": True}, Model(48, 1, 128)),
    "GPT-NeoX 20B": ({"num_attention_heads": 64, "hidden_size": 6144}, Model(64, 64, 96)),
    "MPT 7B": ({"n_heads": 32, "d_model": 4096, "attn_config": {"attn_type": "multihead_attention"}}, Model(32, 32, 128)),
    "DBRX": ({"n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}}, Model(48, 8, 128)),
    "ChatGLM3 6B": (
        {
            "num_attention_heads": 32,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "kv_channels": 128,
            "hidden_size": 4096,
        },
        Model(32, 2, 128),
    ),
    "ChatGLM 6B": (
        {"num_attention_heads": 32, "multi_query_attention": False, "multi_query_group_num": 2, "hidden_size": 4096},
        Model(32, 32, 128),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configurations(name: str) -> None:
    config, model = PUBLISHED[name]
    assert Model.of_config(config) == model


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "no number of attention heads"),
        ({"num_attention_heads": 32}, "neither a head_dim nor a width"),
        ({"num_attention_heads": 30, "hidden_size": 4096}, "4096 is no multiple of its 30"),
        ({"num_attention_heads": "32", "hidden_size": 4096}, "num_attention_heads is '32', not a positive integer"),
        ({"num_attention_heads": True, "hidden_size": 4096}, "is True, not"),
        ({"num_attention_heads": 32, "num_key_value_heads": 0, "hidden_size": 4096}, "num_key_value_heads is 0"),
        ({"num_query_heads": [12, 16], "head_dim": 64}, r"num_query_heads is \[12, 16\], not a positive integer"),
        ({"num_attention_heads": 128, "kv_lora_rank": 512, "hidden_size": 7168}, "multi-head latent attention"),
    ],
)
def test_a_configuration_that_cannot_be_read_says_why(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Model.of_config(config)


def test_what_is_stated_holds_whatever_the_file_says() -> None:
    gemma_3 = {"text_config": {"hidden_size": 2560, "sliding_window": 1024}}  # the rest is the default of its class
    with pytest.raises(MissingSize):
        Model.of_config(gemma_3)
    assert Model.of_config(gemma_3, num_q_heads=8, num_kv_heads=4, head_dim=256) == Model(8, 4, 256)
    assert Model.of_config({"num_attention_heads": 32, "hidden_size": 4096}, num_kv_heads=8) == Model(32, 8, 128)


@pytest.mark.parametrize(
    ("config", "notes"),
    [
        ({"sliding_window": 4096}, ["sliding_window = 4096 is left out: each token attends to the whole context"]),
        ({"sliding_window": 4096, "use_sliding_window": False}, []),
        ({"sliding_window": None}, []),
        ({"attn_config": {"alibi": True}}, ["alibi = True is left out: the logits get no bias"]),
        ({"attention_chunk_size": 8192}, ["attention_chunk_size = 8192 is left out: each token attends to the whole context"]),
    ],
)
def test_what_the_kernel_does_not_do_is_noted(config: dict[str, Any], notes: list[str]) -> None:
    sizes = {"num_attention_heads": 32, "hidden_size": 4096}
    assert list(Model.of_config({**sizes, **config}).shard(2).notes) == notes
    assert list(Model.of_config({"text_config": {**sizes, **config}}).notes) == notes


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({}, None),
        ({"num_hidden_layers": 32}, 32),
        ({"n_layer": 12}, 12),
        ({"n_layers": 40}, 40),
        ({"num_layers": 28}, 28),
        # Of Qwen3-Next, only every fourth layer has keys and values.
        ({"num_hidden_layers": 4, "layer_types": ["linear_attention"] * 3 + ["full_attention"]}, 1),
        ({"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}, 2),
    ],
)
def test_layers(config: dict[str, Any], layers: int | None) -> None:
    sizes = {"num_attention_heads": 32, "hidden_size": 4096}
    assert Model.of_config({**sizes, **config}).num_layers == layers
    assert Model.of_config({"text_config": {**sizes, **config}}).shard(2).num_layers == layers
    assert Model.of_config({"text_config": {**sizes, **config}}, num_layers=7).num_layers == 7


def test_keys_without_a_value_are_missing() -> None:
    config = {"num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "hidden_size": 4096}
    assert Model.of_config(config) == Model(32, 32, 128)


@pytest.mark.parametrize(
    ("model", "ways", "shard"),
    [
        (Model(32, 8, 128), 1, Model(32, 8, 128)),
        (Model(32, 8, 128), 4, Model(8, 2, 128)),
        (Model(32, 8, 128), 8, Model(4, 1, 128)),
        (Model(32, 8, 128), 16, Model(2, 1, 128)),  # two devices hold the same KV head
        (Model(28, 4, 128), 4, Model(7, 1, 128)),
        (Model(71, 1, 64), 71, Model(1, 1, 64)),
    ],
)
def test_heads_are_split_in_whole_groups_or_within_one(model: Model, ways: int, shard: Model) -> None:
    assert model.shard(ways) == shard


@pytest.mark.parametrize(
    ("model", "ways", "legal"),
    [
        (Model(28, 4, 128), 8, "1, 2, 4, 28"),
        (Model(14, 2, 64), 7, "1, 2, 14"),
        (Model(71, 1, 64), 2, "1, 71"),
    ],
)
def test_a_split_that_would_tear_groups_apart_is_refused_with_the_legal_ones(model: Model, ways: int, legal: str) -> None:
    with pytest.raises(ValueError, match=f"over {ways} devices; legal numbers: {legal}$"):
        model.shard(ways)
