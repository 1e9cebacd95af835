"""What is not known of a module when one of its functions runs: other functions, and other files, may have changed it before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from codemods.evaluate import havoc, names, objects, outside
from codemods.evaluate.relevance import rebound
from codemods.evaluate.sharing import Changes, changes
from codemods.source import Source
from codemods.values import COUNTER, Class, DictRef, Function, Module, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def forget(machine: Machine, source: Source, scope_id: int, *, main: bool = False) -> None:
    """Forget of the module's objects what a function may have changed before another one runs; with `main`, what the file
    may have changed when it is run as a script.
    """
    found = changes(source.tree, main=main)
    for name in rebound(source.tree) | found.bound:
        names.forget(machine, {name}, outside.rebound_reason(name), source.tree.body[0])
    if found.anything or found.any_attribute:
        why = "a function may change it: it runs code in a string, or sets what it computes"
        havoc.everything(machine, why, names=found.anything)
    forget_growing(machine, machine.program.cells.values())
    for (owner, name), value in machine.program.cells.items():
        if name == "contents" or owner in machine.program.scopes:
            continue
        if name in found.attributes | found.own:
            machine.state.cells[(owner, name)] = machine.unknown(name, f"a function may set the attribute `{name}`")
        elif f".{name}" in found.names:
            objects.forget(machine, value)
    for name, value in machine.members(scope_id).items():
        _forget_parts(machine, name, value, found)
    _forget_outside(machine, source)


def forget_growing(machine: Machine, values: Iterable[Value]) -> None:
    """Forget the dicts, of those that cells hold, that grow where a missing key is read: any function may have read one."""
    for value in [*values]:
        for each in _growing(value):
            objects.forget(machine, each)


def _growing(value: Value) -> Iterator[DictRef]:
    if isinstance(value, tuple):
        for each in value:
            yield from _growing(each)
    elif isinstance(value, DictRef) and value.missing not in (None, COUNTER):
        yield value


def _forget_outside(machine: Machine, source: Source) -> None:
    """Forget what other files, and the functions of other modules, may have changed before a function runs."""
    attributes = set[str]()
    for path, scope_id in [*machine.program.module_scopes.items()]:
        if scope_id not in machine.program.names:
            continue  # it was left out: whoever imports it knows nothing of what it may do
        found = outside.changes_before(machine, path, scope_id, mine=path == source.path)
        attributes |= found.attributes | found.own
        for name in machine.program.names.get(scope_id, ()):
            value = machine.state.read((scope_id, name))
            if name in found.bound or found.anything:
                objects.forget(machine, value)
                machine.state.cells[(scope_id, name)] = machine.unknown(name, outside.CHANGED)
            elif isinstance(value, Class | Function) or name in found.names:
                _forget_parts(machine, name, value, found)
    for owner, name in machine.program.cells:
        if name in attributes and owner not in machine.program.scopes and name != "contents":
            machine.state.cells[(owner, name)] = machine.unknown(name, f"a function may set the attribute `{name}`")


def _forget_parts(machine: Machine, name: str, value: Value, found: Changes) -> None:
    """Forget what functions may have changed of an object that the module holds under a name."""
    attributes: set[str] = set()
    held: Mapping[str, Value] = {}
    match value:
        case Class(scope=owner):
            held = machine.members(owner)
            attributes = {each for each, inner in held.items() if name in found.names and not isinstance(inner, Function)}
        case Module(path) if path in machine.program.module_scopes:
            owner = machine.program.module_scopes[path]
            held = machine.members(owner) if found.attributes else {}
        case Function(node):
            owner = -1
            for parameter, default in value.defaults:
                if parameter in found.parameters.get(id(node), ()):
                    objects.forget(machine, default)
        case _:
            owner = -1
    for attribute in sorted(attributes | (held.keys() & found.attributes)):
        why = f"a function may change `{name}.{attribute}`"
        machine.state.cells[(owner, attribute)] = machine.unknown(f"{name}.{attribute}", why)
    for attribute, inner in held.items():
        if f".{attribute}" in found.names:
            objects.forget(machine, inner)
        if isinstance(value, Class) and isinstance(inner, Function):
            _forget_parts(machine, attribute, inner, found)
    if name in found.names:
        objects.forget(machine, value)
