"""The command `plan`: what to call the kernel with, for a model on a chip."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.compiler import Ask
from codemods.config import ConfigError
from shapecheck.chip import chip_of
from shapecheck.compiler import Answer, Question
from shapecheck.model import MissingSize, Model
from shapecheck.planner import Option, Plan, geometry_of, plan


@dataclass(frozen=True)
class Confirmed:
    """A plan, and what the compiler says of its options, by their positions; of one that breaks a rule it is not asked.

    `notes` say what of the model is left out.
    """

    plan: Plan
    answers: Mapping[int, Answer] = field(default_factory=dict[int, Answer])
    notes: tuple[str, ...] = ()


def planned(options: Namespace, watch: Callable[[int, int], None]) -> list[Confirmed]:
    """Return a plan for each chip that the command line names; with `--compile`, each option is put to the compiler.

    Raises:
        ConfigError: the model cannot be read, or not be split so; or there is no compiler.
    """
    try:
        shard = _model(options).shard(options.tensor_parallelism)
    except ValueError as error:
        raise ConfigError(f"{options.config or 'the model'}: {error}") from None
    geometry = geometry_of(
        shard,
        batch=options.batch,
        context=options.context,
        page_size=options.page_size,
        pages=options.total_pages,
        q_dtype=options.q_dtype,
        pages_dtype=options.pages_dtype,
    )
    plans = [plan(chip_of(name), geometry, shard.num_layers) for name in options.chips]
    if not options.compile:
        return [Confirmed(each, notes=shard.notes) for each in plans]
    from codemods.compile import asking

    ask = asking(options, watch)
    return [Confirmed(each, _answers(each, ask), shard.notes) for each in plans]


def _answers(each: Plan, ask: Ask) -> dict[int, Answer]:
    asked = {at: _question(each, option) for at, option in enumerate(each.options) if not option.broken}
    return dict(zip(asked, ask(list(asked.values())), strict=True))


def _question(each: Plan, option: Option) -> Question:
    chosen = {"pages_per_compute_block": option.pages_per_compute_block, "megacore_mode": option.megacore_mode}
    return Question.of(each.chip.name, **each.geometry, **chosen)


def _model(options: Namespace) -> Model:
    """Return the model of the config file, with the sizes that are given besides."""
    stated = {name: getattr(options, name) for name in ("num_q_heads", "num_kv_heads", "head_dim")}
    given = {name: value for name, value in stated.items() if value is not None}
    if options.config is not None:
        try:
            return Model.of_config(_read(options.config), **given, num_layers=options.num_layers)
        except MissingSize as error:
            raise ConfigError(f"{options.config}: {error}; --q-heads, --kv-heads and --head-dim state what it lacks") from None
    if len(given) < len(stated):
        raise ConfigError("plan wants a config.json, or all of --q-heads, --kv-heads and --head-dim")
    return Model(**given, num_layers=options.num_layers)


def _read(path: str) -> Mapping[str, Any]:
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: is no JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]
