"""Functions of itertools that give finitely many elements, and the operators as functions."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from codemods.evaluate import iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.interpreted import Interpreted, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.values import Iterator, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def _sides(machine: Machine, arguments: Arguments, *options: str) -> list[tuple[Value, ...]]:
    """Return the elements of each positional argument."""
    if arguments.spread or not arguments.keywords.keys() <= set(options):
        raise Unmodelled(unfollowed(arguments))
    return [tuple(iteration.elements(machine, value)) for value in arguments.positional]


@interprets("itertools.pairwise")
def _pairwise(machine: Machine, arguments: Arguments) -> Value:
    (parts,) = _sides(machine, arguments)
    return iteration.make_iterator(machine, tuple(itertools.pairwise(parts)), *arguments.positional)


@interprets("itertools.zip_longest")
def _zip_longest(machine: Machine, arguments: Arguments) -> Value:
    sides = _sides(machine, arguments, "fillvalue")
    rows = tuple(itertools.zip_longest(*sides, fillvalue=arguments.keywords.get("fillvalue")))
    return iteration.make_iterator(machine, rows, *arguments.positional)


@interprets("itertools.accumulate")
def _accumulate(machine: Machine, arguments: Arguments) -> Value:
    first, *rest = arguments.positional
    if arguments.spread or not arguments.keywords.keys() <= {"func", "initial"} or len(rest) > 1:
        raise Unmodelled(unfollowed(arguments))
    function = rest[0] if rest else arguments.keywords.get("func")
    parts = iteration.elements(machine, first)
    if (initial := arguments.keywords.get("initial")) is not None:
        parts = (initial, *parts)
    totals: list[Value] = []
    for part in parts:
        if not totals:
            totals.append(part)
        elif function is None:
            totals.append(_apply(machine, ast.Add(), totals[-1], part, text_of(arguments)))
        else:
            totals.append(call(machine, function, Arguments((totals[-1], part), node=arguments.node)))
    return iteration.make_iterator(machine, tuple(totals), first)


@interprets("itertools.islice")
def _islice(machine: Machine, arguments: Arguments) -> Value:
    first, *bounds = arguments.positional
    if isinstance(first, Iterator) or arguments.keywords or not all(each is None or type(each) is int for each in bounds):
        iteration.forget(machine, first)  # what is left of an iterator depends on how far this one gets
        raise Unmodelled(unfollowed(arguments))
    parts = iteration.elements(machine, first)
    return iteration.make_iterator(machine, tuple(itertools.islice(parts, *bounds)), first)


@interprets("itertools.repeat")
def _repeat(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional:
        case (value, int(times)) if times <= iteration.MAX_ELEMENTS and not arguments.keywords:
            return iteration.make_iterator(machine, (value,) * times)
        case _:
            raise Unmodelled(unfollowed(arguments))


def _chosen(choose: Callable[[Any, int], Iterable[Any]]) -> Interpreted:
    def chosen(machine: Machine, arguments: Arguments) -> Value:
        match arguments.positional:
            case (first, int(count)) if not arguments.keywords:
                parts = iteration.elements(machine, first)
                rows = tuple(itertools.islice(choose(parts, count), iteration.MAX_ELEMENTS + 1))
                if len(rows) > iteration.MAX_ELEMENTS:
                    raise Unmodelled("more elements than are followed")
                return iteration.make_iterator(machine, rows, first)
            case _:
                raise Unmodelled(unfollowed(arguments))

    return chosen


interprets("itertools.combinations")(_chosen(itertools.combinations))
interprets("itertools.permutations")(_chosen(itertools.permutations))


def _apply(machine: Machine, op: ast.operator, left: Value, right: Value, text: str) -> Value:
    from codemods.evaluate.expressions import arithmetic

    return machine.spread(lambda a, b: arithmetic(machine, op, a, b), left, right, text=text)


def _operator(op: ast.operator) -> Interpreted:
    def operate(machine: Machine, arguments: Arguments) -> Value:
        if len(arguments.positional) != 2 or arguments.spread:
            raise Unmodelled(unfollowed(arguments))
        return _apply(machine, op, *arguments.positional, text_of(arguments))

    return operate


for _name, _op in {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "floordiv": ast.FloorDiv, "mod": ast.Mod, "pow": ast.Pow,
    "lshift": ast.LShift, "rshift": ast.RShift,
}.items():  # fmt: skip
    interprets(f"operator.{_name}")(_operator(_op()))
