"""Rules about the elements of arrays, judged when a call is made: at once, or where it is traced, when its program runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from shapecheck.contract import ON_TPU, Contract
from shapecheck.error import ContractError, Violation, contract_error, violations_of
from shapecheck.measure import Arrays, Measure
from shapecheck.observe import each_element, is_quantized, runs_on_tpu, sharding_note
from shapecheck.outcome import UNKNOWN
from shapecheck.paths import Key, root_of, spelled

VARIABLE = "SHAPECHECK_VALUES"
"""The variable of the environment that asks for these rules in every call."""


class Setting:
    """Whether these rules are judged in every call, also in one that does not ask for it."""

    def __init__(self, word: str) -> None:
        if word not in ("", "0", "1"):
            raise ValueError(f"{VARIABLE} must be 1 or 0, not {word!r}")
        self.on = word == "1"


SETTING = Setting(os.environ.get(VARIABLE, ""))


def examine(contract: Contract, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Judge the rules about elements of arrays, given a call's arguments by name.

    Where an array is traced, that is done by the program that it belongs to. The arguments that are returned must stand in for
    those that were given: to compute them, the program must judge.

    Raises:
        ContractError: an array holds what it must not.
    """
    stand_ins: dict[str, Any] = {}
    for key, values, arrays in each_element(contract, arguments):
        look = Look.at(contract.about_values, key, values, arrays)
        if look is None:
            continue
        used = {name: arrays[name] for measure in look.measures for name in measure.arrays}
        if not any(_is_traced(array) for array in used.values()):
            look.judge(look.concrete_numbers(used))
            continue
        from shapecheck.traced import judged_when_run

        carrier = min((name for name, each in used.items() if _is_traced(each)), key=lambda name: _count(used[name]))
        judged = judged_when_run(look, used, carrier)
        owner = root_of(look.contract.array(carrier).place)
        stand_ins[owner] = _replaced(stand_ins.get(owner, arguments[owner]), used[carrier], judged)
    return stand_ins


@dataclass(frozen=True, eq=False)
class Look:
    """What is to be found in the arrays of one call, and what it takes to judge that.

    Attributes:
        contract: the rules about elements.
        key: the indices and keys of the arrays, where arguments hold several under one name.
        values: what is known of the call besides.
        measures: the numbers to find.
        shapes: the arrays, or what has their shapes.
        notes: what an error says at its beginning.
    """

    contract: Contract
    key: Key
    values: Mapping[str, Any]
    measures: tuple[Measure, ...]
    shapes: Arrays
    notes: Sequence[str]

    @classmethod
    def at(cls, contract: Contract, key: Key, values: Mapping[str, Any], arrays: Arrays) -> Look | None:
        """Return how to look at arrays; None where no rule can be judged of them."""
        values = {**values, ON_TPU: any(rule.on_tpu for rule in contract.rules) and runs_on_tpu(contract, values)}
        possible = {name for name, each in contract.measures.items() if _can_be_found(each, values, arrays)}
        named = {name for rule in contract.applicable({**values, **dict.fromkeys(possible, UNKNOWN)}) for name in rule.names}
        measures = tuple(each for name, each in contract.measures.items() if name in possible & named)
        return cls(contract, key, values, measures, arrays, sharding_note()) if measures else None

    def numbers(self, xp: Any, arrays: Arrays) -> list[tuple[Any, ...]]:
        """Return what each measure finds."""
        with _usual_settings():
            return [measure.find(xp, arrays, self.values) for measure in self.measures]

    def concrete_numbers(self, arrays: Arrays) -> list[tuple[Any, ...]]:
        """Return what each finds in arrays of which none is traced; not as part of a program that is being traced."""
        jax: Any = sys.modules.get("jax")
        with nullcontext() if jax is None else jax.ensure_compile_time_eval():
            return self.numbers(sys.modules["numpy"] if jax is None else jax.numpy, arrays)

    def violations(self, numbers: Iterable[tuple[Any, ...]]) -> tuple[Violation, ...]:
        """Return the rules that are broken, given what each measure has found."""
        found: dict[str, Any] = {}
        places: dict[str, str] = {}
        for measure, (number, *position) in zip(self.measures, numbers, strict=True):
            array = measure.arrays[0]
            expression = spelled(self.contract.array(array).place, self.key)
            found[measure.name] = number.item()
            places[measure.name] = measure.place(expression, self.shapes[array], *map(int, position))
        broken = violations_of(self.contract, {**self.values, **found})
        return tuple(replace(each, key=self.key, places=places) for each in broken)

    def error(self, violations: tuple[Violation, ...]) -> ContractError:
        return contract_error(self.contract, violations, self.notes)

    def judge(self, numbers: Iterable[tuple[Any, ...]]) -> None:
        """Judge what was found.

        Raises:
            ContractError: a rule is broken.
        """
        if violations := self.violations(numbers):
            raise self.error(violations)


def _usual_settings() -> ExitStack:
    """Return a context in which JAX computes as it does by default, whatever the caller has set for code of its own."""
    jax: Any = sys.modules.get("jax")
    usual = ExitStack()
    if jax is not None:
        for setting in (jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"), jax.debug_nans(False)):
            usual.enter_context(setting)
    return usual


def _can_be_found(measure: Measure, values: Mapping[str, Any], arrays: Arrays) -> bool:
    known = all(isinstance(values.get(name), int) for name in measure.needs)
    return known and all(name in arrays and _has_elements(arrays[name]) for name in measure.arrays)


def _leaves(array: Any) -> Iterator[Any]:
    yield from (array.weight, array.scales) if is_quantized(array) else (array,)


def _has_elements(array: Any) -> bool:
    """Say whether these are arrays and not only their shapes, with sizes that are known, none of them 0."""
    jax, numpy = sys.modules.get("jax"), sys.modules.get("numpy")
    kinds = (*((jax.Array,) if jax else ()), *((numpy.ndarray,) if numpy else ()))
    return all(isinstance(leaf, kinds) and all(type(size) is int and size for size in leaf.shape) for leaf in _leaves(array))


def _is_traced(array: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(leaf, jax.core.Tracer) for leaf in _leaves(array))


def _count(array: Any) -> int:
    return sum(leaf.size for leaf in _leaves(array))


def _replaced(tree: Any, old: Any, new: Any) -> Any:
    """Return a container, or what is none, with one array in place of another."""
    jax: Any = sys.modules["jax"]

    def is_old(leaf: Any) -> bool:
        return leaf is old

    def renewed(leaf: Any) -> Any:
        return new if leaf is old else leaf

    return jax.tree.map(renewed, tree, is_leaf=is_old)
