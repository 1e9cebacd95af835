"""Counterexamples: values of the unknown under which a relation fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from codemods import formulas
from codemods.formulas import Compare, Equals, Formula, Truthy
from codemods.terms import Symbol

_MAX_SYMBOLS = 4
_TRIALS = 4000  # of combinations, in all


def counterexample(formula: Formula, known: Sequence[Formula]) -> dict[str, Any] | None:
    """Return the least values of the unknowns of `formula` that break it although `known` holds, by their text.

    Sizes are tried from 1 up. None where the search finds nothing, which proves nothing.
    """
    relevant = [fact for fact in known if formulas.integers(fact) & formulas.integers(formula)]
    symbols = sorted(set().union(formulas.integers(formula), *map(formulas.integers, relevant)), key=lambda each: each.text)
    if len(symbols) > _MAX_SYMBOLS or any(symbol.text == "quotient" for symbol in symbols):
        return None
    coins = [leaf for leaf in dict.fromkeys(formulas.leaves(formula)) if isinstance(leaf, Equals | Truthy)]
    if len(coins) > _MAX_SYMBOLS:
        return None
    for numbers in _assignments(symbols):
        if any(formulas.evaluate(fact, numbers) is False for fact in relevant):
            continue
        for outcomes in itertools.product((True, False), repeat=len(coins)):
            decided = _decided(formula, dict(zip(coins, outcomes, strict=True)))
            if decided is not None and formulas.evaluate(decided, numbers) is False:
                shown: dict[str, Any] = {symbol.text: number for symbol, number in numbers.items()}
                shown |= {coin.text: _shown(coin) for coin, outcome in zip(coins, outcomes, strict=True) if outcome}
                return shown or None
    return None


def _shown(coin: Equals | Truthy) -> Any:
    return coin.constant if isinstance(coin, Equals) else True


def _decided(formula: Formula, coins: dict[Formula, bool]) -> Formula | None:
    """Put outcomes in the place of what is no integer; None where they contradict each other."""
    held: dict[Any, Any] = {}
    for coin, outcome in coins.items():
        if isinstance(coin, Equals) and outcome:
            if coin.key in held:
                return None
            held[coin.key] = coin.constant

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
    """Yield values for the symbols, those with the smaller sum first."""
    if not symbols:
        yield {}
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
