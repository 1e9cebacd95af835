"""Objects: their attributes and classes, copies, and calls that end the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.evaluate import containers, objects
from codemods.evaluate.calls import Arguments
from codemods.evaluate.interpreted import interprets, text_of
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.settings import looked_up
from codemods.values import Class, DictRef, External, Instance, ListRef, Opaque, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("builtins.getattr")
def _getattr(machine: Machine, arguments: Arguments) -> Value:
    receiver, name, *default = arguments.positional
    if not isinstance(name, str) or arguments.node is None:
        raise Unmodelled("an attribute with an unknown name")
    node = arguments.node
    value = machine.spread(lambda each: objects.attribute(machine, each, name, node), receiver, text=text_of(arguments))
    if default and isinstance(value, Opaque | External):
        return looked_up(machine, text_of(arguments), default[0], node)
    return value


@interprets("builtins.setattr")
def _setattr(machine: Machine, arguments: Arguments) -> Value:
    receiver, name, value = arguments.positional
    if isinstance(name, str):
        objects.set_attribute(machine, receiver, name, value)
    else:
        objects.forget(machine, receiver, arguments.node)


@interprets("builtins.isinstance")
def _isinstance(machine: Machine, arguments: Arguments) -> Value:
    value, kinds = arguments.positional
    plain = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple}
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    names = [kind.path.removeprefix("builtins.") if isinstance(kind, External) else "" for kind in wanted]
    if all(name in plain for name in names) and (is_constant(value) or isinstance(value, tuple)):
        return isinstance(value, tuple(plain[name] for name in names))
    if isinstance(value, Instance) and all(isinstance(kind, Class) for kind in wanted):
        return any(kind in (value.cls, *value.cls.bases) for kind in wanted)
    return machine.coin(text_of(arguments))


@interprets("builtins.super")
def _super(machine: Machine, arguments: Arguments) -> Value:
    """`super()` is the object seen as one of the class above."""
    scope = machine.frame.scope
    owner = machine.program.scopes[scope.parent] if scope.parent is not None else scope
    receiver = machine.read((scope.id, "self"))
    if isinstance(receiver, Instance):
        lineage = [cls for cls in objects.lineage(receiver.cls) if cls.scope == owner.id]
        above = [base for cls in lineage for base in cls.bases if isinstance(base, Class)]
        if above:
            return Instance(receiver.id, above[0])
    return machine.unknown("super()", "the class above is not in the scanned source", arguments.node, pure=True)


@interprets("dataclasses.replace", "copy.replace", "attrs.evolve")
def _replace(machine: Machine, arguments: Arguments) -> Value:
    receiver = arguments.positional[0]
    if not isinstance(receiver, Instance) or arguments.spread:
        raise Unmodelled("a changed copy of an unknown object")
    return objects.copy_with(machine, receiver, dict(arguments.keywords))


@interprets("copy.copy", "copy.deepcopy")
def _copy(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional[0]:
        case ListRef() as value:
            return containers.make_list(machine, containers.elements(machine, value))
        case Instance() as value:
            return objects.copy_with(machine, value, {})
        case DictRef():
            raise Unmodelled("a copied dict")
        case value:
            return value


@interprets("typing.cast")
def _cast(machine: Machine, arguments: Arguments) -> Value:
    return arguments.positional[1]


@interprets("builtins.print", "warnings.warn", "logging.info", "logging.warning", "jax.debug.print", "builtins.id")
def _nothing(machine: Machine, arguments: Arguments) -> Value:
    return None


@interprets("sys.exit", "builtins.exit", "builtins.quit", "os._exit", "pytest.fail")
def _exit(machine: Machine, arguments: Arguments) -> Value:
    raise Dies


@interprets("pytest.skip", "pytest.xfail")
def _skip(machine: Machine, arguments: Arguments) -> Value:
    raise Leaves


@interprets("pytest.importorskip")
def _import_or_skip(machine: Machine, arguments: Arguments) -> Value:
    name = arguments.positional[0] if arguments.positional else None
    if not isinstance(name, str):
        raise Unmodelled("its name is not known")
    return External(name)
