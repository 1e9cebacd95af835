"""The sizes of a model that attention depends on, and what of them one device of several holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")  # of models that also see or hear
_QUERY_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
_HEAD_DIM = ("head_dim", "kv_channels")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_WITH_PAGES = (
    "attention",
    "full_attention",
    "sliding_attention",
    "chunked_attention",
)  # kinds of layers
_SOFT_CAP = "attn_logit_softcapping"
_OTHERS = {  # what a config.json may say of attention that the kernel does not do
    "sliding_window": "each token attends to the whole context",
    "attention_chunk_size": "each token attends to the whole context",
    "alibi": "the logits get no bias",
}


class MissingSize(ValueError):
    """A configuration does not say a size; who knows it can state it."""


@dataclass(frozen=True)
class Model:
    """Attention heads as a model is published, or as one shard of it holds them.

    Attributes:
        num_q_heads: query heads.
        num_kv_heads: heads of keys and values.
        head_dim: elements of one head.
        attn_logits_soft_cap: the cap of its logits, if it has one.
        num_layers: layers that have a cache of keys and values; None: not known.
        notes: what else is said of its attention, and is not done by the kernel.
    """

    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    attn_logits_soft_cap: float | None = None
    num_layers: int | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of_config(
        cls,
        config: Mapping[str, Any],
        *,
        num_q_heads: int | None = None,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        num_layers: int | None = None,
    ) -> Model:
        """Read a `config.json` as Hugging Face has it.

        Args:
            config: the parsed file; of a model with several parts, that of the language model is read.
            num_q_heads, num_kv_heads, head_dim, num_layers: what is known besides, and holds whatever the file says; files of
                some models leave out sizes that are a default of their class.

        Raises:
            MissingSize: a size is missing.
            ValueError: a size is no positive integer, or the model does not attend over pages of keys and values
                (multi-head latent attention).
        """
        for part in _PARTS:
            if isinstance(inner := config.get(part), Mapping):
                stated = {"num_q_heads": num_q_heads, "num_kv_heads": num_kv_heads, "head_dim": head_dim}
                stated["num_layers"] = num_layers
                return cls.of_config(inner, **stated)  # pyright: ignore[reportUnknownArgumentType]
        if config.get("kv_lora_rank") is not None:
            raise ValueError("this model has multi-head latent attention (kv_lora_rank): paged_attention is not for it")
        query_heads = num_q_heads or _size(config, _QUERY_HEADS)
        if query_heads is None:
            raise MissingSize(f"it has no number of attention heads: none of {', '.join(_QUERY_HEADS)}")
        head_dim = head_dim or _size(config, _HEAD_DIM)
        if head_dim is None:
            width = _size(config, _WIDTH)
            if width is None:
                raise MissingSize(f"it has neither a head_dim nor a width: none of {', '.join((*_HEAD_DIM, *_WIDTH))}")
            if width % query_heads:
                raise ValueError(f"its width {width} is no multiple of its {query_heads} attention heads, and it has no head_dim")
            head_dim = width // query_heads
        kv_heads = num_kv_heads or _kv_heads(config, query_heads)
        layers = num_layers or _layers(config)
        return cls(query_heads, kv_heads, head_dim, config.get(_SOFT_CAP), layers, tuple(_notes(config)))

    def shard(self, ways: int) -> Model:
        """Return what one of `ways` devices holds when heads are split over them.

        Where there are fewer KV heads than devices, each device holds a copy of one.

        Raises:
            ValueError: the heads cannot be split so; it says which numbers of devices are legal.
        """
        legal = [each for each in range(1, self.num_q_heads + 1) if self._splits(each)]
        if ways not in legal:
            raise ValueError(
                f"{self.num_q_heads} query heads in groups of {self.num_q_heads // self.num_kv_heads} cannot be split over "
                f"{ways} devices; legal numbers: {', '.join(map(str, legal))}"
            )
        return replace(self, num_q_heads=self.num_q_heads // ways, num_kv_heads=max(1, self.num_kv_heads // ways))

    def _splits(self, ways: int) -> bool:
        """Say whether each device gets whole groups, or a part of one group: query heads that share a KV head."""
        if self.num_q_heads % ways:
            return False
        return self.num_kv_heads % ways == 0 or ways % self.num_kv_heads == 0


def _notes(config: Mapping[str, Any]) -> Iterator[str]:
    inner = config.get("attn_config")
    for name, instead in _OTHERS.items():
        value = config.get(name) or (inner.get(name) if isinstance(inner, Mapping) else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if value and config.get(f"use_{name}") is not False:
            yield f"{name} = {value} is left out: {instead}"


def _kv_heads(config: Mapping[str, Any], query_heads: int) -> int:
    """Return the heads of keys and values: as many as query heads where the file says nothing of them."""
    inner = config.get("attn_config")
    nested: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    if config.get("multi_query_attention") is False:  # ChatGLM, which has a number of groups all the same
        return query_heads
    alone = config.get("multi_query") and not config.get("new_decoder_architecture")  # Falcon, StarCoder
    if alone or nested.get("attn_type") == "multiquery_attention":
        return 1
    return _size(config, _KV_HEADS) or _size(nested, _KV_HEADS) or query_heads


def _layers(config: Mapping[str, Any]) -> int | None:
    """Return the layers that keep keys and values: of a model with other layers besides, those that attend."""
    kinds = config.get("layer_types")
    attending = sum(kind in _WITH_PAGES for kind in kinds) if isinstance(kinds, list) else 0  # pyright: ignore[reportUnknownVariableType]
    return attending or _size(config, _LAYERS)


def _size(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = config.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"its {name} is {value!r}, not a positive integer")
            return value
    return None
