"""What is printed of plans: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from codemods.planning import Confirmed
from codemods.report.counts import number
from shapecheck.compiler import Answer
from shapecheck.planner import Cache, Option, Plan
from shapecheck.rule import Verdict

_SHOWN = 12  # options in a table; JSON has all
_MIB, _GIB = 2**20, 2**30


def as_text(plans: list[Confirmed]) -> str:
    """Return a table of the choices for each chip, the one to take with the reason, and what to change if there is none."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in plans)


def _lines(confirmed: Confirmed) -> Iterator[str]:
    each, answers = confirmed.plan, confirmed.answers
    sizes = each.geometry
    heads = ", ".join(number(sizes[f"num_{kind}_heads"], f"{words} head") for kind, words in (("q", "query"), ("kv", "KV")))
    heads += f", head_dim {sizes['head_dim']}"
    pages = f"{sizes['pages_per_sequence']} pages of {sizes['page_size']} tokens"
    yield f"{each.chip.name}, on each device: {heads}; batch {sizes['batch_size']}, {pages}, {sizes['pages_dtype']} pages"
    yield _cache(each)
    yield ""
    limit = each.chip.vmem_bytes // _MIB
    yield f"{'block':>7}  {'tokens':>7}  {'mode':<7}  {f'VMEM of {limit} MiB':<16}  verdict{'; compiler' if answers else ''}"
    for position, option in enumerate(each.options[:_SHOWN]):
        tokens = option.pages_per_compute_block * sizes["page_size"]
        verdict = "; ".join([_verdict(option), *(_said(answers[at]) for at in (position,) if at in answers)])
        mark = "  <- take this" if option is each.best else ""
        yield (
            f"{option.pages_per_compute_block:>7}  {tokens:>7}  {option.megacore_mode or '-':<7}  {_vmem(option):<16}"
            f"  {verdict}{mark}"
        )
    if (more := len(each.options) - _SHOWN) > 0:
        yield f"({more} more)"
    yield ""
    if each.best is not None:
        yield f"take: {_why(each.best, each)}"
        yield from call(each.best, sizes["attn_logits_soft_cap"]).splitlines()
    else:
        yield "none of these is known to be legal"
    if not each.cache.fits:
        would = number(each.cache.largest_num_pages, "page")
        yield f"problem: the pages of {_layers(each.cache)} do not fit: {would} would, without the weights"
    for change in each.changes:
        yield f"change: {change.words}"
    for note in confirmed.notes:
        yield f"note: {note}"


def _cache(each: Plan) -> str:
    cache, layer, there = each.cache, _gib(each.cache.layer_bytes), _gib(each.chip.hbm_bytes)
    pages = f"cache of {number(each.geometry['total_num_pages'], 'page')}: {layer}"
    if cache.num_layers is None:
        return f"{pages} in each layer, of {there} HBM; of how many layers is not known (--layers)"
    return f"{pages} in each layer, {_gib(cache.total_bytes)} in {_layers(cache)}, of {there} HBM; the weights come on top"


def _layers(cache: Cache) -> str:
    return "one layer" if cache.num_layers in (None, 1) else f"{cache.num_layers} layers"


def _gib(size: int) -> str:
    return f"{size / _GIB:.2f} GiB"


def _vmem(option: Option) -> str:
    least, most = (bound / _MIB for bound in option.vmem_bytes)
    return f"{least:.2f} to {most:.2f}"


def _verdict(option: Option) -> str:
    if option.verdict is Verdict.VIOLATED:
        return f"breaks {', '.join(option.broken)}"
    if option.verdict is Verdict.UNPROVEN:
        return f"cannot be told: {', '.join(option.open)}"
    return "legal"


def _said(answer: Answer) -> str:
    if answer.compiles is None:
        return f"no answer: {answer.brief}"
    return f"compiles in {answer.seconds:.1f} s" if answer.compiles else f"does not compile: {answer.words}"


def _why(best: Option, each: Plan) -> str:
    why = "the largest legal block, for the fewest steps (a sequence that is shorter copies all of it)"
    if best.megacore_mode is not None:
        return f"{why}; {best.megacore_mode!r} gives each of the two cores half"
    return f"{why}; no mode, since KV heads and batch are odd" if each.chip.cores_per_device == 2 else why


def call(best: Option, soft_cap: float | None) -> str:
    """Return the call to paste."""
    cap = "" if soft_cap is None else f"    attn_logits_soft_cap={soft_cap!r},\n"
    return (
        "paged_attention(\n"
        "    q, k_pages, v_pages, lengths, page_indices,\n"
        f"    pages_per_compute_block={best.pages_per_compute_block},\n"
        f"    megacore_mode={best.megacore_mode!r},\n"
        f"{cap})"
    )


def as_json(plans: list[Confirmed]) -> str:
    """Return one JSON object: `plans`, each with its chip, geometry, options, the best of them, and changes."""
    document = {"version": 1, "plans": [_plan(each) for each in plans]}
    return json.dumps(document, indent=2) + "\n"


def _plan(confirmed: Confirmed) -> dict[str, Any]:
    each, answers = confirmed.plan, confirmed.answers
    options = [_option(option) for option in each.options]
    for position, answer in answers.items():
        options[position]["compiler"] = {"compiles": answer.compiles, "seconds": answer.seconds, "message": answer.message}
    return {
        "chip": each.chip.name,
        "geometry": each.geometry,
        "vmem_bytes": each.chip.vmem_bytes,
        "hbm_bytes": each.chip.hbm_bytes,
        "cache": asdict(each.cache),
        "options": options,
        "best": None if each.best is None else options[each.options.index(each.best)],
        "changes": [{"message": change.words, "geometry": change.geometry} for change in each.changes],
        "notes": confirmed.notes,
    }


def _option(option: Option) -> dict[str, Any]:
    return {
        "pages_per_compute_block": option.pages_per_compute_block,
        "megacore_mode": option.megacore_mode,
        "verdict": option.verdict,
        "verdicts": option.verdicts,
        "vmem_bytes": list(option.vmem_bytes),
    }
