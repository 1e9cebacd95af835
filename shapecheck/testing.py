"""Hypothesis strategies for calls of kernels: legal ones, and ones that break a single rule. Wants the extra `testing`.

@given(legal_calls())
def test_attend(geometry):
    attend(**arrays_for(geometry), ...)
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shapecheck.chip import Chip, chip_of
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.drawn.drawing import Drawing, Geometry
from shapecheck.drawn.paged_attention import PAGED_ATTENTION
from shapecheck.drawn.ragged_paged_attention import RAGGED_PAGED_ATTENTION
from shapecheck.error import violations_of
from shapecheck.rule import Verdict

_DRAWINGS: Mapping[str, Drawing] = {"paged_attention": PAGED_ATTENTION, "ragged_paged_attention": RAGGED_PAGED_ATTENTION}


def legal_calls(contract: str = "paged_attention", chip: str | None = None, *, most: int = 4) -> st.SearchStrategy[Geometry]:
    """Return a strategy for calls that keep every rule.

    Args:
        contract: the kernel.
        chip: a TPU on which every rule is proven, those about its compiler and its memories too; None: nothing is asked of one.
        most: about how large sizes get: of batch and heads the most, of pages a multiple.

    Raises:
        ValueError: there are no such strategies, or there is no such chip.
    """
    demands = _contract(contract)
    place = None if chip is None else chip_of(chip)

    def is_legal(geometry: Geometry) -> bool:
        return Verdict.worst(_verdicts(demands, geometry, place).values()) is Verdict.PROVEN

    return _DRAWINGS[contract].legal(most).filter(is_legal)


@st.composite
def _nearly_legal(draw: st.DrawFn, contract: str, code: str, place: Chip | None, most: int) -> Geometry | None:
    legal = draw(legal_calls(contract, place and place.name, most=most))
    change = _DRAWINGS[contract].breaks[code](draw, legal)
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
    demands = _contract(contract)
    place = None if chip is None else chip_of(chip)
    about_chips = {rule.code for rule in demands.rules if rule.on_tpu or rule.needs_chip}
    codes = _DRAWINGS[contract].breaks
    return [code for code in codes if code not in about_chips or (place and _can_break(demands, code, place))]


def _can_break(contract: Contract, code: str, chip: Chip) -> bool:
    """Say whether a rule that speaks of nothing but a parameter and the number of cores can be broken on a chip."""
    rule = next(rule for rule in contract.rules if rule.code == code)
    return "cores_per_device" not in rule.names or chip.cores_per_device == 1


def arrays_for(geometry: Geometry, contract: str = "paged_attention", *, seed: int = 0) -> dict[str, Any]:
    """Return the arguments of a call with this geometry, by name: random arrays, and the parameters that it states.

    Arrays of integers hold what is legal where anything is: lengths that the pages have room for, and ids of pages; for the
    ragged kernel some sequences, each with a query at least, which may leave rows of q and of the metadata to none.
    """
    jnp: Any = import_module("jax.numpy")
    demands = _contract(contract)
    values = demands.geometry(**geometry)
    rng = np.random.default_rng(seed)
    elements = _DRAWINGS[contract].elements(rng, values)
    arrays: dict[str, Any] = {}
    for array in demands.arrays:
        shape, dtype = values[f"{array.name}_shape"], values[f"{array.name}_dtype"]
        if array.name in elements:
            arrays[array.name] = jnp.asarray(elements[array.name], dtype)
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


def _contract(name: str) -> Contract:
    if name not in _DRAWINGS:
        raise ValueError(f"there are no calls of {name!r} to draw; of: {', '.join(_DRAWINGS)}")
    return CONTRACTS[name]
