"""Objects: their attributes and classes, copies, and calls that end the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import containers, havoc, iteration, objects
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.fields import SPECIFIERS
from codemods.evaluate.interpreted import Interpreted, interprets, text_of
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.settings import looked_up
from codemods.evaluate.state import UNBOUND
from codemods.evaluate.validation import KEPT, VALIDATORS
from codemods.values import (
    Choice,
    Class,
    DictRef,
    External,
    Instance,
    ListRef,
    Module,
    Names,
    Opaque,
    Partial,
    Super,
    Value,
    is_constant,
    plain_of,
)

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
    match arguments.positional:
        case (receiver, str(name), value):
            objects.set_attribute(machine, receiver, name, value)
        case given:
            havoc.leak(machine, *given)
            havoc.everything(machine, "an attribute of an unknown name is set", arguments.node, names=True)


@interprets("builtins.object.__setattr__", "builtins.type.__setattr__")
def _put(machine: Machine, arguments: Arguments) -> Value:
    """Set an attribute, whatever the class of the object makes of it."""
    match arguments.positional:
        case (Instance() as receiver, str(name), value):
            machine.state.cells[(receiver.id, name)] = value
            return None
        case _:
            return _setattr(machine, arguments)


@interprets("builtins.delattr")
def _delattr(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional:
        case (receiver, str(name)):
            objects.delete_attribute(machine, receiver, name)
        case _:
            havoc.everything(machine, "an attribute of an unknown name is deleted", arguments.node, names=True)


@interprets("builtins.vars", "builtins.locals", "builtins.globals")
def _names(machine: Machine, arguments: Arguments) -> Value:
    """The dict of names: of an object, of the module, or of the class or module whose body is executed."""
    scope = machine.frame.scope
    match arguments.positional:
        case (Instance(id),):
            return Names(id)
        case (Class() as cls,):
            return Names(cls.scope)
        case (Module(path),):
            return Names(machine.program.module_scopes[path])
        case (_,):
            raise Unmodelled("the attributes of an unknown object")
        case _:
            pass
    called = arguments.node.func if isinstance(arguments.node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id == "globals":
        return Names(scope.module)
    if scope.kind == "function":
        raise Unmodelled("a copy of the names of a function")
    return Names(scope.id)


@interprets("builtins.type")
def _type(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional:
        case (Instance(cls=cls),):
            return cls
        case (Opaque(text=text),):
            reason = machine.reason("the class of an unknown object", arguments.node)
            return Opaque((machine.new_id(), "call", "builtins.type"), f"type({text})", reason)
        case _:
            raise Unmodelled("the class of an unknown object")


@interprets("builtins.exec", "builtins.eval")
def _execute(machine: Machine, arguments: Arguments) -> Value:
    """Code in a string is not followed: it may change all that there is."""
    scope = machine.frame.scope
    havoc.everything(machine, "code in a string may change it", arguments.node, names=True)
    if scope.kind == "class":
        havoc.forget(machine, [(scope.id, name) for name in machine.members(scope.id)], "code in a string may bind it")
    raise Unmodelled("the result of code in a string")


@interprets("builtins.isinstance")
def _isinstance(machine: Machine, arguments: Arguments) -> Value:
    value, kinds = arguments.positional
    return is_instance(machine, value, kinds, text_of(arguments))


def is_instance(machine: Machine, value: Value, kinds: Value, text: str) -> formulas.Formula:
    """Return the condition under which a value is of a type, or of one of several."""
    value = plain_of(value)
    plain = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple}
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    names = [kind.path.removeprefix("builtins.") if isinstance(kind, External) else "" for kind in wanted]
    if all(name in plain for name in names) and (is_constant(value) or isinstance(value, tuple)):
        return isinstance(value, tuple(plain[name] for name in names))
    if isinstance(value, Instance) and all(isinstance(kind, Class) for kind in wanted):
        classes = {each.scope for each in objects.lineage(value.cls)}
        if any(kind.scope in classes for kind in wanted):
            return True
        if value.cls.kind != "open" and not any(_decides_instances(machine, kind) for kind in wanted):
            return False
    if isinstance(value, Opaque) and all(names):  # of a foreign class an object is or is not, whoever asks
        return formulas.Truthy((value.key, "isinstance", *sorted(names)), text)
    return machine.coin(text)


def _decides_instances(machine: Machine, kind: Class) -> bool:
    """Say whether a class may take objects of other classes for its own, as an abstract one does."""
    return any(
        External("builtins.object") != base
        for each in objects.lineage(kind)
        for base in each.bases
        if not isinstance(base, Class)
    )


@interprets("builtins.super")
def _super(machine: Machine, arguments: Arguments) -> Value:
    """`super()` is the object seen from behind the class whose method this is."""
    scope = machine.frame.scope
    match arguments.positional:
        case (Class(scope=behind), Instance() as receiver):
            pass
        case ():
            behind, receiver = scope.parent, machine.read((scope.id, "self"))
        case _:
            behind = receiver = None
    if (
        behind is not None
        and isinstance(receiver, Instance)
        and any(cls.scope == behind for cls in objects.lineage(receiver.cls))
    ):
        return Super(receiver, behind)
    return machine.unknown("super()", "the class above is not in the scanned source", arguments.node, pure=True)


@interprets("dataclasses.replace", "copy.replace", "attrs.evolve", "attr.evolve")
def _replace(machine: Machine, arguments: Arguments) -> Value:
    receiver = arguments.positional[0]
    if not isinstance(receiver, Instance) or arguments.spread or len(arguments.positional) > 1:
        raise Unmodelled("a changed copy of an unknown object")
    return objects.changed_copy(machine, receiver, arguments)


def _keep(path: str) -> Interpreted:
    """What says how a field is to be treated is kept with its arguments."""

    def specify(machine: Machine, arguments: Arguments) -> Value:
        spread = (("spread", None),) if arguments.spread else ()
        keywords = dict(arguments.keywords)
        if isinstance(several := keywords.get("validator"), ListRef):  # whatever becomes of the list
            keywords["validator"] = tuple(iteration.elements(machine, several))
        return Partial(External(path), arguments.positional, (*keywords.items(), *spread))

    return specify


for _path in (*SPECIFIERS, *(f"{module}{name}" for module in VALIDATORS for name in KEPT)):
    interprets(_path)(_keep(_path))


@interprets("copy.copy")
def _copy(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional[0]:
        case ListRef() as value:
            return containers.make_list(machine, iteration.elements(machine, value))
        case Instance() as value:
            return objects.copy_with(machine, value, {})
        case DictRef() as value:
            contents = machine.contents(value)
            return _unknown_dict() if contents is None else containers.make_dict(machine, contents, value.missing)
        case value:
            return value


@interprets("copy.deepcopy")
def _deepcopy(machine: Machine, arguments: Arguments) -> Value:
    return _deep(machine, arguments.positional[0], {})


def _deep(machine: Machine, value: Value, made: dict[int, Value]) -> Value:
    """Return a copy of a value with copies of all that it holds; `made` are those of the objects that were met before."""
    match value:
        case tuple():
            return tuple(_deep(machine, each, made) for each in value)
        case ListRef(id) | DictRef(id) | Instance(id) if id in made:
            return made[id]
        case ListRef(id):
            made[id] = copied = containers.make_list(machine, ())
            parts = tuple(_deep(machine, each, made) for each in iteration.elements(machine, value))
            machine.state.cells[(copied.id, "contents")] = parts
            return copied
        case DictRef(id):
            contents = machine.contents(value)
            if contents is None:
                return _unknown_dict()
            made[id] = copied = containers.make_dict(machine, (), value.missing)
            machine.state.cells[(copied.id, "contents")] = tuple((key, _deep(machine, each, made)) for key, each in contents)
            return copied
        case Instance(id, cls) if cls.kind != "enum" and objects.class_member(machine, cls, "__deepcopy__") is UNBOUND:
            made[id] = copied = objects.copy_with(machine, value, {})
            for name, held in machine.members(copied.id).items():
                machine.state.cells[(copied.id, name)] = _deep(machine, held, made)
            return copied
        case Instance() | Choice():
            raise Unmodelled("the copy of an object")
        case _:
            return value


def _unknown_dict() -> Any:
    raise Unmodelled("a copy of a dict of which nothing is known")


@interprets("typing.cast")
def _cast(machine: Machine, arguments: Arguments) -> Value:
    return arguments.positional[1]


@interprets("builtins.print")
def _print(machine: Machine, arguments: Arguments) -> Value:
    for value in arguments.values():
        if isinstance(value, Instance):
            for name in ("__str__", "__repr__"):
                objects.special(machine, value, name)


@interprets("builtins.object.__init__", "warnings.warn", "logging.info", "logging.warning", "jax.debug.print", "builtins.id")
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
