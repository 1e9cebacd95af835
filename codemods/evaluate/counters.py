"""`collections.Counter`: a dict of how often its elements were met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codemods.evaluate import containers, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.values import COUNTER, DictRef, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def count(machine: Machine, counter: DictRef, arguments: Arguments) -> None:
    """Add to a counter what it is given: elements, or numbers of elements."""
    if arguments.spread or len(arguments.positional) > 1:
        raise Unmodelled(unfollowed(arguments))
    added: list[tuple[Value, Value]] = list(arguments.keywords.items())
    for value in arguments.positional:
        if isinstance(value, DictRef):
            added += _counts(machine, value)
        elif value is not None:
            added += [(each, 1) for each in iteration.in_any_order(machine, value)]
    counted = dict(_counts(machine, counter))
    for element, times in added:
        if not iteration.is_known(element) or type(times) is not int:
            raise Unmodelled("what is counted is not known")
        counted[element] = counted.get(element, 0) + times
    machine.state.cells[(counter.id, "contents")] = tuple(counted.items())


def _counts(machine: Machine, counter: DictRef) -> list[tuple[Any, int]]:
    contents = machine.contents(counter)
    if contents is None or not all(iteration.is_known(element) and type(times) is int for element, times in contents):
        raise Unmodelled("what is counted is not known")
    return [*contents]


def most_common(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    most = arguments.positional[0] if arguments.positional else None
    if receiver.missing != COUNTER or not isinstance(most, int | None):
        raise Unmodelled(unfollowed(arguments))
    return containers.make_list(machine, sorted(_counts(machine, receiver), key=lambda pair: -pair[1])[:most])


def total(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    if receiver.missing != COUNTER:
        raise Unmodelled(unfollowed(arguments))
    return sum(times for _, times in _counts(machine, receiver))
