"""What iterating a value gives: its elements, all at once or one after the other."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods import formulas, terms
from codemods.evaluate import arrays, havoc, objects
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.state import UNBOUND
from codemods.values import Array, Class, DictRef, Instance, Iterator, ListRef, Opaque, SetRef, Value, View, describe, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


MAX_ELEMENTS = 4096


def elements(machine: Machine, value: Value) -> tuple[Value, ...]:
    """Return the elements that iterating a value gives.

    Raises:
        Unmodelled: they are not known.
    """
    match value:
        case tuple():
            return value
        case str() | bytes():
            return tuple(value[index : index + 1] for index in range(min(len(value), MAX_ELEMENTS)))
        case range() if len(value) <= MAX_ELEMENTS:
            return tuple(value)
        case SetRef() if (contents := machine.contents(value)) is not None and len(contents) > 1 and not _is_ordered(contents):
            raise Unmodelled("the order of the elements of a set is not known")
        case ListRef() if (contents := machine.contents(value)) is not None:
            return contents
        case DictRef() if (contents := machine.contents(value)) is not None:
            return tuple(key for key, _ in contents)
        case Array(shape) if shape and isinstance(shape[0], int) and shape[0] <= 256:
            return tuple(arrays.index(value, position) for position in range(shape[0]))
        case View(of, kind) if (contents := machine.contents(of)) is not None:
            return _seen(contents, kind)
        case Iterator():
            left = _left(machine, value)
            machine.state.cells[(value.id, "contents")] = ()
            return left
        case Instance():
            return _elements_of_object(machine, value)
        case Class(kind="enum"):
            return _members(machine, value)
        case _:
            raise Unmodelled(f"the elements of `{describe(value)}` are not known")


def in_any_order(machine: Machine, value: Value) -> tuple[Value, ...]:
    """Return the elements that iterating a value gives, those of a set in any order; it may be left before its end."""
    contents = machine.contents(value) if isinstance(value, SetRef) else None
    given = elements(machine, value) if contents is None else contents
    forget(machine, value)
    return given


def _is_ordered(contents: tuple[Value, ...]) -> bool:
    """Say whether the elements of a set have an order that does not change from run to run: numbers have."""
    return all(isinstance(each, int) for each in contents)


def is_known(element: Value) -> bool:
    """Say whether of an element of a set it is known which others it is equal to."""
    if isinstance(element, tuple):
        return all(map(is_known, element))
    return is_constant(element) and (not isinstance(element, float) or not math.isnan(element))


def is_counted(machine: Machine, value: SetRef) -> bool:
    """Say whether it is known how many elements a set has."""
    contents = machine.contents(value)
    return contents is not None and (len(contents) < 2 or all(map(is_known, contents)))


def forget(machine: Machine, *values: Value) -> None:
    """Forget what is left of iterators that something reads, nobody knows how far."""
    for value in values:
        if isinstance(value, Iterator):
            havoc.leak_elements(machine, value)
            why = "how far the iterator is read is not known"
            machine.state.cells[(value.id, "contents")] = machine.unknown("the rest of an iterator", why)


def _members(machine: Machine, enum: Class) -> tuple[Value, ...]:
    """Return the members of an enum in the order of their definition, without those that are other names of one."""
    members = [machine.read((enum.scope, name)) for name in enum.members]
    if any(not isinstance(each, Instance) or isinstance(machine.read((each.id, "value")), Opaque) for each in members):
        raise Unmodelled(f"the values of `{enum.name}` are not known")
    return tuple(dict.fromkeys(members))


def unknown_range(machine: Machine, start: terms.Int, stop: terms.Int, step: terms.Int, text: str) -> Opaque:
    """Return a `range` of which it is not known how far it goes."""
    made = machine.unknown(text, f"how far `{text}` goes is not known")
    return replace(made, key=("range", made.key, start, stop, step))


def any_element(machine: Machine, value: Value, text: str, why: str, node: ast.AST) -> Value:
    """Return an unknown element of what is iterated, and go on with what is certain of it."""
    made = machine.unknown(text, why, node)
    match value:
        case Opaque(key=("range", _, start, stop, int(step))) if step:
            low, high = (start, terms.subtract(stop, 1)) if step > 0 else (terms.add(stop, 1), start)
            least = low if isinstance(low, int) else None
            made = replace(made, at_least=least, kind="int")
            number = terms.of(made.symbol())
            within = formulas.both(formulas.at_most(low, number), formulas.at_most(number, high))
            machine.state = machine.state.assume(within, branch=False) or machine.state
        case _:
            pass
    return made


def _seen(items: Sequence[Value], kind: str) -> tuple[Value, ...]:
    """Return what a view of a dict with these items shows."""
    return tuple(pair if kind == "items" else pair[kind == "values"] for pair in items)


def _elements_of_object(machine: Machine, value: Instance) -> tuple[Value, ...]:
    fields = named_fields(machine, value)
    if fields is not None:
        return fields
    given = objects.special(machine, value, "__iter__")
    if given is UNBOUND or isinstance(given, Instance):
        if objects.iterates(machine, value):
            havoc.everything(machine, "an iterator of the source may change it")
        raise Unmodelled("its elements are not known")
    return elements(machine, given)


def make_iterator(machine: Machine, given: Sequence[Value], *sources: Value) -> Iterator:
    """Make an iterator that is to give these elements, which come from the containers `sources`."""
    held: list[tuple[tuple[int, str], Value]] = []
    for source in sources:
        match source:
            case ListRef(id) | DictRef(id) | View(DictRef(id)):
                held.append(((id, "contents"), machine.state.read((id, "contents"))))
            case Iterator(id, sources):  # which is read as far as this one is
                forget(machine, source)
                held += [*sources, ((id, "contents"), machine.state.read((id, "contents")))]
            case _:
                pass
    made = Iterator(machine.new_id(), tuple(held))
    machine.state.cells[(made.id, "contents")] = tuple(given)
    return made


def _left(machine: Machine, iterator: Iterator) -> tuple[Value, ...]:
    """Return what an iterator has left to give."""
    contents = machine.contents(iterator)
    if contents is None or any(machine.state.read(cell) is not held for cell, held in iterator.sources):
        forget(machine, iterator)
        raise Unmodelled("what it walks through has changed since it was made")
    return contents


def take(machine: Machine, iterator: Iterator) -> Value:
    """Return the next element of an iterator, `UNBOUND` at its end."""
    left = _left(machine, iterator)
    machine.state.cells[(iterator.id, "contents")] = left[1:]
    return left[0] if left else UNBOUND


def walk(machine: Machine, value: Value) -> Callable[[int], Value]:
    """Return what gives the element at a position when a loop gets there, `UNBOUND` behind the last.

    What a loop changes of the list or dict that it walks through, it sees.
    """
    match value:
        case ListRef():
            elements(machine, value)
            return lambda position: _at(elements(machine, value), position)
        case DictRef() | View():
            size = len(elements(machine, value))

            def item(position: int) -> Value:
                held = elements(machine, value)
                if len(held) != size:
                    raise Dies  # RuntimeError
                return _at(held, position)

            return item
        case Iterator():
            _left(machine, value)
            return lambda position: take(machine, value)
        case _:
            fixed = elements(machine, value)
            return lambda position: _at(fixed, position)


def _at(parts: Sequence[Value], position: int) -> Value:
    return parts[position] if position < len(parts) else UNBOUND


def named_fields(machine: Machine, value: Instance) -> tuple[Value, ...] | None:
    """Return the fields of a NamedTuple, in order."""
    if value.cls.kind != "namedtuple":
        return None
    return tuple(machine.read((value.id, name)) for name in value.cls.fields)
