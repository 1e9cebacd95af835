"""Objects of `ml_collections.ConfigDict`: their items are their attributes.

A field keeps its type: what another type is set in its place is refused or converted, and is not followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from codemods.evaluate.arguments import Arguments
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.values import Class, DictRef, External, Instance, Term, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

KIND = "config"
_NAME = "ConfigDict"


def make(machine: Machine, items: Iterable[tuple[Value, Value]]) -> Instance:
    made = Instance(machine.new_id(), Class(_NAME, machine.new_id(), (External(f"ml_collections.{_NAME}"),), KIND))
    for key, value in items:
        if not isinstance(key, str) or "." in key:
            raise Unmodelled("a config with a key that is no name")
        put(machine, made, key, value)
    return made


def convert(machine: Machine, value: DictRef) -> Instance:
    """Return the config that a dict is made into, and the dicts in it."""
    contents = machine.contents(value)
    if contents is None:
        raise Unmodelled("the contents of the dict are not known")
    return make(machine, contents)


def put(machine: Machine, config: Instance, name: str, value: Value) -> None:
    """Execute `config.name = value`."""
    held = machine.state.read((config.id, name))
    if isinstance(value, DictRef):
        try:
            value = convert(machine, value)
        except Unmodelled as why:
            value = machine.unknown(f"{_NAME}().{name}", str(why))
    if held is not UNBOUND and not _are_of_one_type(held, value):
        value = machine.unknown(f"{_NAME}().{name}", "a config converts what is set in the place of another type, or refuses it")
    machine.state.cells[(config.id, name)] = value


def _are_of_one_type(held: Value, value: Value) -> bool:
    whole = [isinstance(each, int | Term) and not isinstance(each, bool) for each in (held, value)]
    return all(whole) or (is_constant(held) and held is not None and type(held) is type(value))


def get(machine: Machine, config: Instance, arguments: Arguments) -> Value:
    match arguments.positional:
        case (str(name), *rest) if "." not in name and not arguments.keywords:
            held = machine.read((config.id, name))
            return held if held is not UNBOUND else next(iter(rest), None)
        case _:
            raise Unmodelled("what is looked up in a config is not known")


def itself(machine: Machine, config: Instance, arguments: Arguments) -> Value:
    """`lock` and `unlock` give the config that they are called on."""
    return config


METHODS = {"get": get, "lock": itself, "unlock": itself}
