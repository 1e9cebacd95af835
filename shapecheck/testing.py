"""Hypothesis strategies for calls of kernels: legal ones, and ones that break a single rule. Wants the extra `testing`.

@given(legal_calls())
def test_attend(geometry):
    attend(**arrays_for(geometry), ...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from shapecheck.chip import Chip, chip_of
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.error import violations_of
from shapecheck.plan import divisors
from shapecheck.rule import Verdict

Geometry: TypeAlias = dict[str, Any]
"""A call stated by the names of its axes, parameters and dtypes, as `shapecheck.judge` takes it."""

_QUANTIZED = "float32"  # the dtype of the scales


@st.composite
def _paged_attention(draw: st.DrawFn, most: int) -> Geometry:
    """Draw a call that is legal where there is no TPU."""
    kv_heads = draw(st.integers(1, most))
    batch = draw(st.integers(1, most))
    pages = draw(st.integers(1, 2 * most))
    modes = [None, *(["kv_head"] if kv_heads % 2 == 0 else []), *(["batch"] if batch % 2 == 0 else [])]
    scales = draw(st.sampled_from([None, _QUANTIZED]))
    return {
        "batch_size": batch,
        "num_q_heads": kv_heads * draw(st.integers(1, most)),
        "num_kv_heads": kv_heads,
        "head_dim": draw(st.sampled_from([128, 256])),
        "total_num_pages": draw(st.integers(1, 4 * most)),
        "page_size": draw(st.sampled_from([4, 8, 16, 32])),
        "pages_per_sequence": pages,
        "pages_per_compute_block": draw(st.sampled_from(divisors(pages))),
        "megacore_mode": draw(st.sampled_from(modes)),
        "attn_logits_soft_cap": draw(st.sampled_from([None, 1.0, 30.0])),
        "q_dtype": draw(st.sampled_from(["float32", "bfloat16"])),
        "lengths_dtype": "int32",
        "page_indices_dtype": "int32",
        "pages_dtype": draw(st.sampled_from(["float32", "bfloat16"])) if scales is None else "int8",
        "scales_dtype": scales,
    }


_Change: TypeAlias = Callable[[st.DrawFn, Geometry], Geometry | None]
"""Returns what to change of a legal call to break a rule; None where it cannot be done."""


def _one_head_more(draw: st.DrawFn, legal: Geometry) -> Geometry | None:
    kv_heads = legal["num_kv_heads"]
    return {"num_q_heads": legal["num_q_heads"] + draw(st.integers(1, kv_heads - 1))} if kv_heads > 1 else None


def _block_beside(draw: st.DrawFn, legal: Geometry) -> Geometry | None:
    pages = legal["pages_per_sequence"]
    blocks = [block for block in range(1, 2 * pages + 2) if pages % block]
    return {"pages_per_compute_block": draw(st.sampled_from(blocks))}


def _drawn(name: str, *values: Any) -> _Change:
    return lambda draw, legal: {name: draw(st.sampled_from(values))}


def _beside(name: str, axis: str) -> _Change:
    """Give one array another size than the others have."""
    return lambda draw, legal: {name: legal[axis] + draw(st.integers(1, 4))}


_BREAKS: Mapping[str, Mapping[str, _Change]] = {
    "paged_attention": {
        "SC101": _one_head_more,
        "SC102": _block_beside,
        "SC103": _beside("v_pages_total_num_pages", "total_num_pages"),
        "SC104": lambda draw, legal: {"q_head_dim": 384 - legal["head_dim"]},
        "SC105": _beside("lengths_batch_size", "batch_size"),
        "SC106": _beside("page_indices_batch_size", "batch_size"),
        "SC107": _drawn("lengths_dtype", "int16", "uint32", "int8"),
        "SC108": _drawn("page_indices_dtype", "int16", "uint8"),
        "SC110": _drawn("pages_per_compute_block", 0, -1),
        "SC111": _drawn("total_num_pages", 0),
        "SC113": _drawn("attn_logits_soft_cap", 0.0, float("inf"), float("nan")),
        "SC114": _drawn("mask_value", 0.0, 1.0),
        "SC115": _drawn("q_dtype", "int32", "int8"),
        "SC201": lambda draw, legal: {"megacore_mode": "kv_head"} if legal["num_kv_heads"] % 2 else None,
        "SC202": lambda draw, legal: {"megacore_mode": "batch"} if legal["batch_size"] % 2 else None,
        "SC204": lambda draw, legal: {"megacore_mode": "batch"} if legal["batch_size"] % 2 == 0 else None,
        "SC301": _drawn("head_dim", 64, 80, 192),
        "SC302": _drawn("pages_dtype", "float16"),
    }
}
_LEGAL: Mapping[str, Callable[[int], st.SearchStrategy[Geometry]]] = {"paged_attention": _paged_attention}


def legal_calls(contract: str = "paged_attention", chip: str | None = None, *, most: int = 4) -> st.SearchStrategy[Geometry]:
    """Return a strategy for calls that keep every rule.

    Args:
        contract: the kernel.
        chip: a TPU on which every rule is proven, those about its compiler and its memories too; None: nothing is asked of one.
        most: about how large sizes get: of batch and heads the most, of pages a multiple.

    Raises:
        ValueError: there are no such strategies, or there is no such chip.
    """
    demands = _contract(contract, _LEGAL)
    place = None if chip is None else chip_of(chip)

    def is_legal(geometry: Geometry) -> bool:
        return Verdict.worst(_verdicts(demands, geometry, place).values()) is Verdict.PROVEN

    return _LEGAL[contract](most).filter(is_legal)


@st.composite
def _nearly_legal(draw: st.DrawFn, contract: str, code: str, place: Chip | None, most: int) -> Geometry | None:
    legal = draw(legal_calls(contract, None if place is None else place.name, most=most))
    change = _BREAKS[contract][code](draw, legal)
    if change is None:
        return None
    geometry = {**legal, **change}
    broken = violations_of(CONTRACTS[contract], CONTRACTS[contract].geometry(chip=place, **geometry))
    return geometry if [violation.rule.code for violation in broken] == [code] else None


def nearly_legal_calls(
    contract: str = "paged_attention", code: str | None = None, chip: str | None = None, *, most: int = 4
) -> st.SearchStrategy[tuple[str, Geometry]]:
    """Return a strategy for calls that break exactly one rule, with its code.

    Args:
        contract: the kernel.
        code: the rule; None: any of `breakable_rules`.
        chip: a TPU, of which the rules are taken into account; rules about it need one.
        most: as for `legal_calls`.

    Raises:
        ValueError: there is no way to break this rule alone, or as `legal_calls` has it.
    """
    place = None if chip is None else chip_of(chip)
    codes = breakable_rules(contract, chip)
    if code is not None and code not in codes:
        raise ValueError(f"{contract}: no calls that break {code} alone; there are: {', '.join(codes)}")

    def breaking(each: str) -> st.SearchStrategy[tuple[str, Geometry]]:
        found = _nearly_legal(contract, each, place, most).filter(lambda geometry: geometry is not None)
        return found.map(lambda geometry: (each, geometry or {}))

    return st.sampled_from(codes if code is None else [code]).flatmap(breaking)


def breakable_rules(contract: str = "paged_attention", chip: str | None = None) -> list[str]:
    """Return the codes of the rules that `nearly_legal_calls` breaks, one at a time."""
    demands = _contract(contract, _BREAKS)
    place = None if chip is None else chip_of(chip)
    about_chips = {rule.code for rule in demands.rules if rule.on_tpu or rule.needs_chip}
    return [code for code in _BREAKS[contract] if code not in about_chips or (place and _can_break(demands, code, place))]


def _can_break(contract: Contract, code: str, chip: Chip) -> bool:
    """Say whether a rule that speaks of nothing but a parameter and the number of cores can be broken on a chip."""
    rule = next(rule for rule in contract.rules if rule.code == code)
    return "cores_per_device" not in rule.names or chip.cores_per_device == 1


def arrays_for(geometry: Geometry, contract: str = "paged_attention", *, seed: int = 0) -> dict[str, Any]:
    """Return the arguments of a call with this geometry, by name: random arrays, and the parameters that it states.

    Arrays of integers hold what is legal where anything is: lengths that the pages have room for, and ids of pages.
    """
    jnp: Any = import_module("jax.numpy")
    demands = _contract(contract, _LEGAL)
    values = demands.geometry(**geometry)
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    most = {"lengths": values["pages_per_sequence"] * values["page_size"] + 1, "page_indices": values["total_num_pages"]}
    for array in demands.arrays:
        shape, dtype = values[f"{array.name}_shape"], values[f"{array.name}_dtype"]
        if array.name in most:
            arrays[array.name] = jnp.asarray(rng.integers(0, max(1, most[array.name]), shape), dtype)
        elif array.quantizable and values[f"{array.name}_scales_dtype"] is not None:
            arrays[array.name] = _quantized(rng, shape, values[f"{array.name}_scales_dtype"])
        else:
            arrays[array.name] = jnp.asarray(rng.standard_normal(shape), dtype)
    stated = (parameter.name for parameter in demands.parameters if parameter.name in geometry)
    return {**arrays, **{name: geometry[name] for name in stated}}


def _quantized(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    jnp: Any = import_module("jax.numpy")
    quantization: Any = import_module("jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils")
    pages = quantization.quantize_to_int8(jnp.asarray(rng.standard_normal(shape), jnp.float32))
    return pages._replace(scales=pages.scales.astype(dtype))


def _verdicts(contract: Contract, geometry: Geometry, chip: Chip | None) -> dict[str, Verdict]:
    return contract.judge({**contract.geometry(chip=chip, **geometry), **({} if chip else {"on_tpu": False})})


def _contract(name: str, table: Mapping[str, Any]) -> Contract:
    if name not in table:
        raise ValueError(f"there are no calls of {name!r} to draw; of: {', '.join(table)}")
    return CONTRACTS[name]
