"""Sequences: builtins and itertools."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods import formulas, operations, terms
from codemods.evaluate import configs, containers, iteration, objects
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.comprehensions import partly
from codemods.evaluate.externals import hand_on
from codemods.evaluate.interpreted import computes, integer, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.state import UNBOUND
from codemods.values import Array, DictRef, Filtered, Instance, Iterator, Opaque, SetRef, Value, describe

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@computes("builtins.len")
def _len(machine: Machine, value: Value) -> Value:
    match value:
        case Array(shape) if shape:
            return shape[0]
        case Opaque() if value.length is not None:
            return value.length
        case Opaque(key=("repeated", tuple(parts), count)):
            return operations.maximum(terms.multiply(len(parts), count), 0)
        case Opaque(key=(_, "call", "jax.devices" | "jax.local_devices")):
            return Opaque(("len", value.key), f"len({value.text})", value.reason, 1)
        case Opaque():
            if machine.state.epoch == 0:  # nothing has changed since: an array's length is the size of its first axis
                size = value.shape.item(0)
                return replace(size, text=f"len({value.text})")
            return Opaque(("len", value.key, machine.state.epoch), f"len({value.text})", value.reason, 0)
        case DictRef() if (contents := machine.contents(value)) is not None:
            return len(contents)
        case range() | str() | bytes():
            return len(value)
        case Iterator():
            raise Dies
        case SetRef() if not iteration.is_counted(machine, value):
            raise Unmodelled("which elements of a set are equal is not known")
        case Instance(cls=cls) if cls.kind == configs.KIND:
            raise Unmodelled("how many fields a config has is not followed")
        case Instance():
            return objects.special(machine, value, "__len__")
        case _:
            return len(iteration.in_any_order(machine, value))


@computes("builtins.range")
def _range(machine: Machine, *bounds: Value) -> Value:
    if all(isinstance(bound, int) for bound in bounds):
        try:
            return range(*bounds)
        except (TypeError, ValueError):
            raise Dies from None
    start, stop, *step = (0, *bounds) if len(bounds) == 1 else bounds
    text = f"range({', '.join(map(describe, bounds))})"
    return iteration.unknown_range(machine, integer(start), integer(stop), integer(step[0]) if step else 1, text)


@computes("builtins.iter")
def _iter(machine: Machine, value: Value) -> Value:
    match value:
        case Iterator() | Opaque() | Filtered():
            return value
        case _:
            return iteration.make_iterator(machine, iteration.elements(machine, value), value)


@computes("builtins.tuple")
def _tuple(machine: Machine, value: Value = ()) -> Value:
    if isinstance(value, Opaque):
        return value
    return value if isinstance(value, Filtered) else iteration.elements(machine, value)


@interprets("collections.deque")
def _deque(machine: Machine, arguments: Arguments) -> Value:
    if len(arguments.positional) > 1 or arguments.keywords or arguments.spread:
        iteration.forget(machine, *arguments.values())
        raise Unmodelled(unfollowed(arguments))
    return machine.spread(lambda *values: _list(machine, *values), *arguments.positional, text=text_of(arguments))


@computes("builtins.list")
def _list(machine: Machine, value: Value = ()) -> Value:
    if isinstance(value, Opaque | Filtered):
        return value
    return containers.make_list(machine, iteration.elements(machine, value))


@computes("builtins.set", "builtins.frozenset")
def _set(machine: Machine, value: Value = ()) -> Value:
    return containers.make_set(machine, iteration.in_any_order(machine, value))


@computes("builtins.reversed")
def _reversed(machine: Machine, value: Value) -> Value:
    return iteration.make_iterator(machine, iteration.elements(machine, value)[::-1], value)


@interprets("builtins.zip")
def _zip(machine: Machine, arguments: Arguments) -> Value:
    iterators = [value for value in arguments.positional if isinstance(value, Iterator)]
    if len({each.id for each in iterators}) < len(iterators):
        iteration.forget(machine, *iterators)
        raise Unmodelled("an iterator that is zipped with itself")
    sides = [iteration.elements(machine, value) for value in arguments.positional]
    rows: list[Value] = list(zip(*sides, strict=False))
    return iteration.make_iterator(machine, rows, *arguments.positional)


@interprets("builtins.enumerate")
def _enumerate(machine: Machine, arguments: Arguments) -> Value:
    parts = iteration.elements(machine, arguments.positional[0])
    start = arguments.keywords.get("start", arguments.positional[1] if len(arguments.positional) > 1 else 0)
    rows = [(terms.add(integer(start), index), part) for index, part in enumerate(parts)]
    return iteration.make_iterator(machine, rows, *arguments.positional[:1])


@interprets("itertools.product")
def _cartesian(machine: Machine, arguments: Arguments) -> Value:
    repeat = arguments.keywords.get("repeat", 1)
    sides = [iteration.elements(machine, value) for value in arguments.positional]
    if not isinstance(repeat, int) or math.prod(map(len, sides)) ** max(repeat, 0) > iteration.MAX_ELEMENTS:
        raise Unmodelled("too many combinations")
    return iteration.make_iterator(machine, tuple(itertools.product(*sides, repeat=repeat)))  # which reads all at once


@interprets("itertools.chain")
def _chain(machine: Machine, arguments: Arguments) -> Value:
    parts = [part for value in arguments.positional for part in iteration.elements(machine, value)]
    return iteration.make_iterator(machine, parts, *arguments.positional)


@interprets("builtins.map")
def _map(machine: Machine, arguments: Arguments) -> Value:
    function, *iterated = arguments.positional
    node = arguments.node
    how = machine.program.consumption(machine.frame.scope.path, node) if node is not None else "later"
    given: list[Value] = []

    def run() -> None:
        sides = [iteration.elements(machine, value) for value in iterated]
        rows: Iterable[tuple[Value, ...]] = zip(*sides, strict=False)
        given[:] = [call(machine, function, Arguments(tuple(row), node=node)) for row in rows]

    if how == "later":
        hand_on(machine, function, arguments)
        iteration.forget(machine, *iterated)
        raise Unmodelled("a map that is not consumed where it is made")
    if how == "whole":
        run()
    else:
        seen = node is None or partly(machine, run, node)
        iteration.forget(machine, *iterated)
        if not seen:
            raise Unmodelled("a map that is consumed in part")
    return iteration.make_iterator(machine, given)


@interprets("functools.reduce")
def _reduce(machine: Machine, arguments: Arguments) -> Value:
    function, iterated, *start = arguments.positional
    parts = [*start, *iteration.elements(machine, iterated)]
    if not parts:
        raise Dies
    result = parts[0]
    for part in parts[1:]:
        result = call(machine, function, Arguments((result, part), node=arguments.node))
    return result


@interprets("builtins.sum")
def _sum(machine: Machine, arguments: Arguments) -> Value:
    parts = iteration.elements(machine, arguments.positional[0])
    total: terms.Int = integer(arguments.positional[1]) if len(arguments.positional) > 1 else 0

    def add(*values: Value) -> Value:
        result = total
        for value in values:
            result = terms.add(result, integer(value))
        return result

    return machine.spread(add, *parts, text=text_of(arguments))


@interprets("builtins.any")
def _any(machine: Machine, arguments: Arguments) -> Value:
    return formulas.either(*map(machine.truth, iteration.in_any_order(machine, arguments.positional[0])))


@interprets("builtins.all")
def _all(machine: Machine, arguments: Arguments) -> Value:
    return formulas.both(*map(machine.truth, iteration.in_any_order(machine, arguments.positional[0])))


@interprets("builtins.next")
def _next(machine: Machine, arguments: Arguments) -> Value:
    source = arguments.positional[0]
    if isinstance(source, Iterator):
        found = iteration.take(machine, source)
        if found is UNBOUND and len(arguments.positional) < 2:
            raise Dies
        return arguments.positional[1] if found is UNBOUND else found
    if not isinstance(source, Filtered):
        raise Unmodelled("the next of an unknown iterator")
    default = arguments.positional[1] if len(arguments.positional) > 1 else Dies
    return containers.first_of(machine, source.elements, default)
