"""The command `plan`: what to call the kernel with, for a model on a chip."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codemods.config import ConfigError
from shapecheck.chip import chip_of
from shapecheck.model import Model
from shapecheck.planner import Option, Plan, geometry_of, plan
from shapecheck.rule import Verdict

_SHOWN = 12  # options in a table; JSON has all


def planned(options: Namespace) -> list[Plan]:
    """Return a plan for each chip that the command line names.

    Raises:
        ConfigError: the model cannot be read, or not be split so.
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
    return [plan(chip_of(name), geometry) for name in options.chips]


def _model(options: Namespace) -> Model:
    """Return the model of the config file, with the sizes that are given besides."""
    stated = {name: getattr(options, name) for name in ("num_q_heads", "num_kv_heads", "head_dim")}
    given = {name: value for name, value in stated.items() if value is not None}
    if options.config is not None:
        return replace(Model.of_config(_read(options.config)), **given)
    if len(given) < len(stated):
        raise ConfigError("plan wants a config.json, or all of --q-heads, --kv-heads and --head-dim")
    return Model(**given)


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


def as_text(plans: list[Plan]) -> str:
    """Return a table of the choices for each chip, the one to take with the reason, and what to change if there is none."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in plans)


def _lines(each: Plan) -> Iterator[str]:
    sizes = each.geometry
    heads = f"{sizes['num_q_heads']} query heads, {sizes['num_kv_heads']} KV heads, head_dim {sizes['head_dim']}"
    pages = f"{sizes['pages_per_sequence']} pages of {sizes['page_size']} tokens"
    yield f"{each.chip.name}: {heads} a device; batch {sizes['batch_size']}, {pages}, {sizes['pages_dtype']} pages"
    yield ""
    yield f"{'block':>7}  {'tokens':>7}  {'mode':<8}  verdict"
    for option in each.options[:_SHOWN]:
        tokens = option.pages_per_compute_block * sizes["page_size"]
        mark = "<- take this" if option is each.best else ""
        yield f"{option.pages_per_compute_block:>7}  {tokens:>7}  {option.megacore_mode or '-':<8}  {_verdict(option)}  {mark}".rstrip()
    if (more := len(each.options) - _SHOWN) > 0:
        yield f"({more} more)"
    yield ""
    if each.best is not None:
        yield f"take: {_why(each.best, each)}"
        yield from call(each).splitlines()
    else:
        yield "none of these is known to be legal"
    for change in each.changes:
        yield f"change: {change.words}"


def _verdict(option: Option) -> str:
    if option.verdict is Verdict.VIOLATED:
        return f"breaks {', '.join(option.broken)}"
    if option.verdict is Verdict.UNPROVEN:
        open_ = [code for code, verdict in option.verdicts.items() if verdict is Verdict.UNPROVEN]
        return f"cannot be told: {', '.join(open_)}"
    return "legal"


def _why(best: Option, each: Plan) -> str:
    why = "the largest legal block, for the fewest and longest copies"
    if best.megacore_mode is not None:
        why += f"; '{best.megacore_mode}' gives each of the two cores half"
    elif each.chip.cores_per_device == 2:
        why += "; no mode, since KV heads and batch are odd"
    return why


def call(each: Plan) -> str:
    """Return the call to paste, for a plan that has a legal choice."""
    best = each.best
    assert best is not None
    return (
        "paged_attention(\n"
        "    q, k_pages, v_pages, lengths, page_indices,\n"
        f"    pages_per_compute_block={best.pages_per_compute_block},\n"
        f"    megacore_mode={best.megacore_mode!r},\n"
        ")"
    )


def as_json(plans: list[Plan]) -> str:
    """Return one JSON object: `plans`, each with its chip, geometry, options, the best of them, and changes."""
    document = {
        "version": 1,
        "plans": [
            {
                "chip": each.chip.name,
                "geometry": each.geometry,
                "options": [_option(option) for option in each.options],
                "best": None if each.best is None else _option(each.best),
                "changes": [{"message": change.words, "geometry": change.geometry} for change in each.changes],
            }
            for each in plans
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _option(option: Option) -> dict[str, Any]:
    return {
        "pages_per_compute_block": option.pages_per_compute_block,
        "megacore_mode": option.megacore_mode,
        "verdict": option.verdict,
        "verdicts": option.verdicts,
    }
