"""What is put in order: `sorted`, `min` and `max`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codemods import operations
from codemods.evaluate import containers, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.interpreted import Interpreted, integer, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.values import Filtered, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("builtins.sorted")
def _sorted(machine: Machine, arguments: Arguments) -> Value:
    read = iteration.elements if arguments.keywords.get("key") is not None else iteration.in_any_order
    parts = read(machine, arguments.positional[0])
    backwards = arguments.keywords.get("reverse", False)
    if not isinstance(backwards, bool):
        raise Unmodelled("whether the order is reversed is not known")
    ranks = _ranks(machine, parts, arguments)
    try:
        order = sorted(range(len(parts)), key=ranks.__getitem__, reverse=backwards)
    except TypeError:
        raise Dies from None
    return containers.make_list(machine, [parts[place] for place in order])


def _ranks(machine: Machine, parts: Sequence[Value], arguments: Arguments) -> list[Any]:
    """Return what elements are ordered by, which must be known: numbers, strings or tuples of them."""
    key = arguments.keywords.get("key")
    if key is None:
        ranks = list(parts)
    else:
        ranks = [call(machine, key, Arguments((part,), node=arguments.node)) for part in parts]
    if not all(_is_rank(rank) for rank in ranks):
        raise Unmodelled("what the elements are ordered by is not known")
    return ranks


def _is_rank(value: Value) -> bool:
    return all(map(_is_rank, value)) if isinstance(value, tuple) else is_constant(value)


def _extreme(name: str) -> Interpreted:
    backwards = name == "max"

    def pick(machine: Machine, *values: Value) -> Value:
        if not values:
            raise Dies
        if all(is_constant(value) for value in values):
            try:
                return max(values) if backwards else min(values)
            except TypeError:
                raise Dies from None
        fold = operations.maximum if backwards else operations.minimum
        result = integer(values[0])
        for value in values[1:]:
            result = fold(result, integer(value))
        return result

    def interpret(machine: Machine, arguments: Arguments) -> Value:
        if set(arguments.keywords) - {"default", "key"} or arguments.spread:
            raise Unmodelled(unfollowed(arguments))
        values: Sequence[Value] = arguments.positional
        if arguments.keywords.get("key") is not None:
            return _extreme_by_key(machine, values, arguments, backwards)
        if len(values) == 1:
            if isinstance(values[0], Filtered):
                return _extreme_of_filtered(machine, values[0], arguments.keywords.get("default", Dies), backwards)
            values = iteration.elements(machine, values[0])
            if not values and "default" in arguments.keywords:
                return arguments.keywords["default"]
        return machine.spread(lambda *each: pick(machine, *each), *values, text=text_of(arguments))

    return interpret


def _extreme_by_key(machine: Machine, values: Sequence[Value], arguments: Arguments, backwards: bool) -> Value:
    read = iteration.elements if arguments.keywords.get("key") is not None else iteration.in_any_order
    parts = read(machine, values[0]) if len(values) == 1 else values
    if not parts:
        if "default" in arguments.keywords:
            return arguments.keywords["default"]
        raise Dies
    ranks = _ranks(machine, parts, arguments)
    try:
        return parts[(max if backwards else min)(range(len(parts)), key=ranks.__getitem__)]
    except TypeError:
        raise Dies from None


def _extreme_of_filtered(machine: Machine, filtered: Filtered, default: Any, backwards: bool) -> Value:
    """The extreme of what passes a filter: the first, in order of size, whose condition holds."""
    if not all(isinstance(value, int) for _, value in filtered.elements):
        raise Unmodelled("the extreme of unknown elements")
    ordered = sorted(filtered.elements, key=lambda pair: pair[1], reverse=backwards)
    return containers.first_of(machine, ordered, default)


interprets("builtins.min")(_extreme("min"))
interprets("builtins.max")(_extreme("max"))
