"""Classes and objects that functions of the standard library make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.evaluate import containers, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.fields import Field
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.values import Class, DictRef, External, Instance, Partial, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("collections.namedtuple", "typing.NamedTuple")
def _namedtuple(machine: Machine, arguments: Arguments) -> Value:
    """`namedtuple("Point", "x y", defaults=[0])` and `NamedTuple("Point", [("x", int)])`."""
    if len(arguments.positional) != 2 or arguments.spread or not arguments.keywords.keys() <= {"defaults"}:
        raise Unmodelled("a class that a call makes")
    name, listed = arguments.positional
    parts = listed.replace(",", " ").split() if isinstance(listed, str) else iteration.elements(machine, listed)
    names = [iteration.elements(machine, part)[0] if isinstance(part, tuple) else part for part in parts]
    if not isinstance(name, str) or not all(isinstance(each, str) for each in names):
        raise Unmodelled("a class that a call makes")
    defaults = iteration.elements(machine, given) if (given := arguments.keywords.get("defaults")) is not None else ()
    padded = (*(UNBOUND for _ in range(len(names) - len(defaults))), *defaults)
    parameters = tuple(Field(each, each, default=default) for each, default in zip(names, padded, strict=True))
    return Class(name, machine.new_id(), (External("collections.namedtuple"),), "namedtuple", parameters=parameters)


@interprets("pytest.param")
def _param(machine: Machine, arguments: Arguments) -> Value:
    """A case of a test is kept with its marks."""
    if arguments.spread:
        raise Unmodelled("a case of unknown values")
    return Partial(External("pytest.param"), arguments.positional, tuple(arguments.keywords.items()))


@interprets("types.SimpleNamespace")
def _namespace(machine: Machine, arguments: Arguments) -> Value:
    if arguments.positional or arguments.spread:
        raise Unmodelled("a namespace of unknown names")
    made = Instance(machine.new_id(), Class("SimpleNamespace", machine.new_id(), ()))
    for name, value in arguments.keywords.items():
        machine.state.cells[(made.id, name)] = value
    return made


@interprets("types.MappingProxyType")
def _proxy(machine: Machine, arguments: Arguments) -> Value:
    """A view of a dict that nothing can be set in: whoever tries raises."""
    match arguments.positional:
        case (DictRef() as value,):
            return value
        case _:
            raise Unmodelled("a view of an unknown mapping")


@interprets("dataclasses.asdict", "attrs.asdict", "attr.asdict")
def _as_dict(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional:
        case (Instance(cls=cls) as value,) if cls.kind == "dataclass" and not arguments.keywords:
            return containers.make_dict(machine, tuple((name, _plain(machine, value, name)) for name in cls.fields))
        case _:
            raise Unmodelled("the fields of an unknown object")


def _plain(machine: Machine, value: Instance, name: str) -> Value:
    """Return what a field is in `asdict`: objects and containers, which are copied, are not followed."""
    held = machine.read((value.id, name))
    if held is UNBOUND or isinstance(held, Instance | DictRef) or hasattr(held, "id"):
        return machine.unknown(f"asdict()[{name!r}]", f"what `asdict` makes of `{name}` is not followed")
    return held
