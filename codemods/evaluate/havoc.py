"""What code that is not followed may change: code that runs at an unknown time, or that holds an object under an unknown name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate.machine import Dies, Exhausted, Frame, Leaves
from codemods.evaluate.memory import Cell, Written
from codemods.evaluate.state import UNBOUND, State, choose
from codemods.values import (
    Bound,
    Choice,
    Class,
    Contracted,
    DictRef,
    External,
    Filtered,
    Function,
    Instance,
    Iterator,
    ListRef,
    Module,
    Names,
    Opaque,
    Partial,
    Transformed,
    Value,
    lineage,
    same,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_LASTING = (Function, Contracted, Transformed, Partial, Bound, External, Module, Class)
"""What nobody is expected to put something else in the place of, where a class holds it."""

_LEAVES = (Opaque, int, str)
"""Frequent values that hold nothing."""

MAX_ATTEMPTS = 8  # to find all that something changes which happens any number of times
MAX_DEFERRED = 64  # of one run


@dataclass(frozen=True)
class Deferred:
    """Something that may happen at any time after `state`: a thread, a callback, the body of a generator."""

    run: Callable[[], object]
    state: State
    frames: tuple[Frame, ...]
    since: int
    mark: int


def lasting(machine: Machine, cells: Iterable[Cell], mark: int) -> set[Cell]:
    """Return those cells that were there before `mark` was made: what is newer, nothing else sees."""
    return {cell for cell in cells if cell[0] < mark}


def forget_reachable(machine: Machine, value: Value, why: str, node: ast.AST | None = None, *, instances: bool = True) -> None:
    """Forget what an object and all that it holds may have become; without `instances`, only what lists and dicts hold."""
    owners = _reachable(machine, value)
    cells = {(owner, "contents") for owner in owners if machine.state.read((owner, "contents")) is not UNBOUND}
    if instances and owners:
        cells |= _cells_of(machine, owners)
    forget(machine, cells, why, node)


def forget(machine: Machine, cells: Iterable[Cell], why: str, node: ast.AST | None = None) -> None:
    """Make cells unknown; what they held may be what they hold, under another name."""
    for cell in sorted(cells, key=str):
        leak(machine, machine.state.read(cell))
        machine.state.cells[cell] = machine.unknown(cell[1], why, node)


def interrupt(machine: Machine, written: Written, mark: int, why: str, node: ast.AST) -> None:
    """Go on as an execution does that left a block at an unknown place: a cell holds what it held, or something written there."""
    for cell in sorted(lasting(machine, written, mark), key=str):
        before = machine.state.read(cell)
        values: list[Value] = [before]
        for value in written[cell]:
            if not any(same(value, each) for each in values):
                values.append(value)
        if len(values) > 2 or (len(values) == 2 and before is not UNBOUND):
            leak(machine, *values)
            machine.state.cells[cell] = machine.unknown(cell[1], why, node)
        elif len(values) == 2:
            is_set = machine.coin(f"{cell[1]} is set")
            machine.state.cells[cell] = choose([(is_set, values[1]), (formulas.invert(is_set), UNBOUND)])


def maybe(machine: Machine, run: Callable[[], object], why: str, node: ast.AST | None = None) -> set[Cell]:
    """Execute what may happen any number of times from here, or in part; return what it changes, which is unknown then."""
    mark, base, arrivals = machine.new_id(), machine.state, len(machine.arrivals)
    frames = list(machine.frames)
    if machine.uncertain > 3:
        raise Exhausted
    machine.uncertain += 1
    changed: set[Cell] = set()
    try:
        for _ in range(MAX_ATTEMPTS):
            del machine.arrivals[arrivals:]
            started = base.assume(machine.coin("an unknown caller calls it"), branch=True)
            assert started is not None
            machine.state = started
            forget(machine, changed, why, node)
            with machine.memory.watching() as written, suppress(Dies, Leaves):
                run()
            more = lasting(machine, written, mark)
            if more <= changed:
                break
            changed |= more
        else:
            raise Exhausted
    finally:
        machine.uncertain -= 1
        machine.frames[:] = frames
        machine.state = base
    forget(machine, changed, why, node)
    machine.state.epoch += 1
    return changed


def later(machine: Machine, run: Callable[[], object], why: str, node: ast.AST | None = None) -> None:
    """Take note that something may happen any number of times, at any time from here: what it changes is never known again."""
    state, since, mark = machine.state.fork(), machine.memory.now, machine.new_id()
    for cell in maybe(machine, run, why, node):
        machine.memory.volatile[cell] = machine.unknown(cell[1], why, node)
    if len(machine.deferred) >= MAX_DEFERRED:
        raise Exhausted
    machine.deferred.append(Deferred(run, state, tuple(machine.frames), since, mark))


def settle(machine: Machine) -> None:
    """Execute what may happen later once more, with all unknown that was written in the meantime."""
    state, frames = machine.state, list(machine.frames)
    volatile = machine.memory.volatile
    try:
        for each in machine.deferred:  # which may grow
            times = machine.memory.times
            written = {cell for cell in lasting(machine, times, each.mark) if times[cell] > each.since and cell not in volatile}
            if not written:
                continue
            machine.state, machine.frames[:] = each.state.fork(), each.frames
            changing = {cell: machine.unknown(cell[1], "it may change before this runs") for cell in written}
            machine.memory.volatile = volatile | changing
            forget(machine, written, "it may change before this runs")
            if not maybe(machine, each.run, "code that runs later changes it") <= {*written, *volatile}:
                raise Exhausted  # what it changed was taken to be known
            if len(machine.deferred) > MAX_DEFERRED:
                raise Exhausted
    finally:
        machine.memory.volatile = volatile
        machine.state, machine.frames[:] = state, frames
        machine.deferred.clear()


def leak(machine: Machine, *values: Value) -> None:
    """Take note that code that is not followed, or an unknown value, may stand for these objects and all that they hold."""
    from codemods.evaluate.externals import call_unseen

    functions: list[Value] = []
    for value in values:
        if not isinstance(value, _LEAVES):
            machine.escaped |= _reachable(machine, value, functions)
    for function in functions:
        key = (id(function.node), function.scope) if isinstance(function, Function) else id(function)
        if machine.recording and key not in machine.called_unseen:
            machine.called_unseen.add(key)
            call_unseen(machine, function, None)


def leak_elements(machine: Machine, *values: Value) -> None:
    """Take note that an unknown value may stand for something that these objects hold."""
    for value in values:
        leak(machine, *_held(machine, value))


def _reachable(machine: Machine, value: Value, functions: list[Value] | None = None) -> set[int]:
    """Return the ids of the objects that can be reached from a value, and gather the functions on the way."""
    found: set[int] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ListRef | DictRef | Instance | Names | Iterator):
            owner = each.owner if isinstance(each, Names) else each.id
            if owner in found:
                continue
            if not (isinstance(each, Instance) and each.cls.kind in ("namedtuple", "enum")):
                found.add(owner)
            if isinstance(each, Instance):
                machine.program.classes[owner] = each.cls
        elif isinstance(each, Class):
            if each.scope in found:
                continue
            found.add(each.scope)
        if isinstance(each, Function) and functions is not None:
            functions.append(each)
        waiting += _held(machine, each)
    return found


def _held(machine: Machine, value: Value) -> list[Value]:
    """Return the values that a value holds."""
    match value:
        case tuple():
            return [each for each in value if not isinstance(each, int | str)]
        case ListRef() | DictRef() | Iterator():
            contents = machine.contents(value)
            return [] if contents is None else _held(machine, contents)
        case Instance(id, cls):
            of_class = [] if cls.kind in ("namedtuple", "enum") else _held(machine, cls)
            return [*machine.members(id).values(), *of_class]
        case Class():
            members = (machine.members(each.scope) for each in lineage(value))
            return [each for held in members for each in held.values() if isinstance(each, ListRef | DictRef | Instance)]
        case Choice(pairs) | Filtered(pairs):
            return [each for _, each in pairs]
        case Partial(function, positional, keywords):
            return [function, *positional, *(each for _, each in keywords)]
        case Bound(receiver, function):
            return [receiver, function]
        case Transformed(function=function) | Contracted(function=function):
            return [function]
        case Function(defaults=defaults):
            return [each for _, each in defaults]
        case _:
            return []


def disturb(machine: Machine, why: str, node: ast.AST | None = None) -> None:
    """Forget what escaped objects hold: one of them may have been changed under another name."""
    if not machine.escaped:
        return
    for cell in _cells_of(machine, machine.escaped):
        leak(machine, machine.state.read(cell))
    machine.step(len(machine.state.cells) // 16)
    forget(machine, _cells_of(machine, machine.escaped), why, node)


def _cells_of(machine: Machine, owners: set[int]) -> set[Cell]:
    """Return the cells of objects: also those that they do not have yet, of attributes that their classes have."""
    heirs = {owner: {owner} for owner in owners}
    for owner in owners:
        for base in lineage(machine.program.classes[owner]) if owner in machine.program.classes else ():
            heirs.setdefault(base.scope, set()).add(owner)
    cells = [cell for cell in machine.state.cells if cell[0] in heirs]
    cells += [(owner, name) for owner in heirs for name in machine.program.names.get(owner, ())]
    scopes = machine.program.scopes
    return {
        (heir, name)
        for owner, name in cells
        for heir in heirs[owner]
        if owner not in scopes or not isinstance(machine.state.read((owner, name)), _LASTING)
    }


def forget_values(machine: Machine, concerns: Callable[[Value], bool], why: str) -> None:
    """Forget what cells hold, wherever it is something that this concerns."""
    for cell, value in {**machine.state.shared, **machine.state.cells}.items():
        if concerns(value) or (isinstance(value, tuple) and any(map(concerns, value))):
            machine.state.cells[cell] = machine.unknown(cell[1], why)


def everything(machine: Machine, why: str, node: ast.AST | None = None, *, names: bool = False) -> None:
    """Forget what all objects hold, and with `names` what the names of modules stand for."""
    held = {**machine.state.shared, **machine.state.cells}
    machine.step(len(held) // 2)
    scopes = machine.program.scopes
    for cell, value in held.items():
        scope = scopes.get(cell[0])
        if scope is not None and scope.kind in ("function", "comprehension"):
            continue
        if scope is not None and scope.kind == "module" and not names:
            continue
        if isinstance(value, Function | External | Module) and cell[1] != "contents":
            continue
        machine.state.cells[cell] = machine.unknown(cell[1], why, node)
