"""Counterexamples: values of the unknown under which a relation fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from codemods import formulas
from codemods.formulas import Compare, Equals, Formula, Truthy
from codemods.terms import Symbol, atoms

_MAX_SYMBOLS = 4
_TRIALS = 4000  # of combinations, in all


def counterexample(formula: Formula, known: Sequence[Formula]) -> dict[str, Any] | None:
    """Return the least values of the unknowns of `formula` that break it although `known` holds, by their text.

    What has a usual value is tried with it first, and sizes from 1 up. None where the search finds nothing, which proves nothing.
    """
    return _search(formula, tuple(fact for fact in known if formulas.subjects(fact) & formulas.subjects(formula)))


@lru_cache(maxsize=4096)  # the cases of a test ask the same over and over
def _search(formula: Formula, relevant: tuple[Formula, ...]) -> dict[str, Any] | None:
    leaves = dict.fromkeys(leaf for each in (formula, *relevant) for leaf in formulas.leaves(each))
    unknown = dict.fromkeys(atom for leaf in leaves if isinstance(leaf, Compare) for atom in atoms(leaf.term))
    symbols = sorted((atom for atom in unknown if isinstance(atom, Symbol)), key=lambda each: each.text)
    coins = [leaf for leaf in leaves if isinstance(leaf, Equals | Truthy)]
    if max(len(symbols), len(coins)) > _MAX_SYMBOLS or any(symbol.text == "quotient" for symbol in symbols):
        return None
    tossed = [dict(zip(coins, outcomes, strict=True)) for outcomes in itertools.product((True, False), repeat=len(coins))]
    cases = [(held, [_decided(each, held) for each in (formula, *relevant)]) for held in tossed if _consistent(held)]
    for numbers in itertools.islice(_assignments(symbols), _TRIALS // max(1, len(cases))):
        for held, (asked, *facts) in cases:
            if formulas.evaluate(asked, numbers) is not False:
                continue
            if all(formulas.evaluate(fact, numbers) is not False for fact in facts):
                shown: dict[str, Any] = {symbol.text: number for symbol, number in numbers.items()}
                return (shown | {coin.text: _shown(coin) for coin, outcome in held.items() if outcome}) or None
    return None


def _shown(coin: Equals | Truthy) -> Any:
    return coin.constant if isinstance(coin, Equals) else True


def _consistent(coins: Mapping[Any, bool]) -> bool:
    """Say whether outcomes can come together: nothing equals two constants."""
    equal = [coin.key for coin, outcome in coins.items() if isinstance(coin, Equals) and outcome]
    return len(equal) == len(set(equal))


def _decided(formula: Formula, coins: Mapping[Any, bool]) -> Formula:
    """Put outcomes in the place of what is no integer."""

    def put(part: Formula) -> Formula:
        match part:
            case formulas.Not(operand):
                return formulas.invert(put(operand))
            case formulas.And(operands):
                return formulas.both(*map(put, operands))
            case Compare() | bool():
                return part
            case _:
                return coins[part]

    return put(formula)


def _assignments(symbols: Sequence[Symbol]) -> Iterator[dict[Symbol, int]]:
    """Yield values for the symbols: first the usual ones, where there are any, and then those with the smaller sum."""
    usual = {symbol: symbol.usual for symbol in symbols if symbol.usual is not None}
    others = [symbol for symbol in symbols if symbol not in usual]
    if usual and others:
        yield from (usual | numbers for numbers in itertools.islice(_assignments(others), _TRIALS // 4))
    elif usual or not symbols:
        yield usual
    if not symbols:
        return
    trials = 0
    for total in itertools.count(len(symbols)):
        for parts in _compositions(total, len(symbols)):
            trials += 1
            if trials > _TRIALS:
                return
            yield dict(zip(symbols, parts, strict=True))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write `total` as a sum of `parts` positive numbers."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
