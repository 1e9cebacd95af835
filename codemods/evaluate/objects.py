"""Attributes of values, and how objects of the classes of the scanned tree are made."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codemods.callees import CALLEES
from codemods.evaluate import arrays, configs, containers, enums, foreign, havoc, modules, mutation, names
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.constructors import INITIALIZER, forget_fields, is_model, set_fields
from codemods.evaluate.fields import MODELS as MODEL_BASES
from codemods.evaluate.frameworks import PATCHING
from codemods.evaluate.library import MODELS
from codemods.evaluate.machine import Dies
from codemods.evaluate.memory import Cell
from codemods.evaluate.state import ABSL_FLAGS, PATCHED, UNBOUND, choose
from codemods.values import (
    Array,
    Bound,
    Choice,
    Class,
    Contracted,
    DType,
    External,
    Function,
    Instance,
    Mesh,
    Module,
    Names,
    Opaque,
    Partial,
    Quantized,
    Super,
    Value,
    ancestry,
    describe,
    is_constant,
    lineage,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_FIXED = frozenset({"shape", "dtype", "ndim", "size"})
"""Attributes of an unknown object that stay as they are: arrays do not change their shape."""

_REMAKING = frozenset({"__defaults__", "__kwdefaults__", "__code__", "__bases__", "__class__", "cell_contents"})
"""Attributes that make something else of a function, a class, an object or a closure."""

_ASSERTIONS = (
    "assertBetween", "assertEqual", "assertFalse", "assertGreater", "assertGreaterEqual", "assertIn", "assertIs",
    "assertIsInstance", "assertIsNone", "assertIsNot", "assertIsNotNone", "assertLen", "assertLess", "assertLessEqual",
    "assertListEqual", "assertNotEqual", "assertNotIn", "assertSequenceEqual", "assertTrue", "assertTupleEqual",
)  # fmt: skip
_OF_TESTS = {
    "skipTest": "pytest.skip",
    "fail": "pytest.fail",
    **{name: f"unittest.TestCase.{name}" for name in _ASSERTIONS},
    "assertAllClose": "jax.test_util.assertAllClose",
    "assertArraysEqual": "jax.test_util.assertArraysEqual",
}
"""Methods of `unittest.TestCase`, which is not in the scanned tree, by the functions that do the same."""

COPYING = {"namedtuple": ("_replace", "_asdict"), "dataclass": ("replace", "model_copy")}
"""Methods that a library gives to the classes whose constructors it writes."""

LOOKING = ("lower", "trace", "eval_shape")
"""Methods of a jitted function that look at their arguments as a call does."""


def attribute(machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
    """Return `value.name`."""
    match value:
        case External("absl.flags.FLAGS") if (flag := machine.read((ABSL_FLAGS, name))) is not UNBOUND:
            return flag
        case External(path):
            patched = machine.state.read((PATCHED, f"{path}.{name}"))
            if patched is not UNBOUND:
                return patched
            return Bound(value, name) if path in CALLEES and name in LOOKING else External(f"{path}.{name}")
        case Module(path) if name == "__dict__":
            return Names(machine.program.module_scopes[path])
        case Module() if name in ("__setattr__", "__delattr__"):
            return Partial(External(f"builtins.{name.strip('_')}"), (value,), ())
        case Module():
            return modules.member(machine, value, name)
        case Instance():
            return _instance_attribute(machine, value, name, node)
        case Super():
            return _inherited(machine, value, name, node)
        case Class():
            found = class_member(machine, value, name)
            if isinstance(found, Function | Contracted) and found.kind == "classmethod":
                return Bound(value, found)
            if name == "_make" and value.kind == "namedtuple":
                return Bound(value, name)
            if found is UNBOUND and name == "__init__" and (base := foreign.base_of(value)) is not None:
                return attribute(machine, base, name, node)
            return machine.unknown(f"{value.name}.{name}", "the class does not define it", node) if found is UNBOUND else found
        case Array() | Quantized():
            found = arrays.attribute(value, name)
            return Bound(value, name) if found is None else found
        case Opaque() if (f"array.{name}" in MODELS and name not in _FIXED) or name in PATCHING:
            return Bound(value, name)
        case Opaque():
            return value.attribute(name, 0 if name in _FIXED or value.pure else machine.state.epoch)
        case DType(dtype) if name == "name":
            return dtype
        case Mesh(axes) if name == "shape":
            return containers.make_dict(machine, axes)
        case Mesh(axes) if name == "axis_names":
            return tuple(axis for axis, _ in axes)
        case _ if is_constant(value) and not callable(getattr(value, name, None)):
            return machine.unknown(f"{describe(value)}.{name}", "it is no method", node)
        case _:
            return Bound(value, name)


def _instance_attribute(machine: Machine, value: Instance, name: str, node: ast.AST) -> Value:
    if name == "__dict__":
        return Names(value.id)
    if name == "__class__":
        return value.cls
    if class_member(machine, value.cls, "__getattribute__") is not UNBOUND:
        havoc.everything(machine, "reading an attribute runs code of its class", node)
        return machine.unknown(f"{value.cls.name}().{name}", "its class decides what reading it gives", node)
    found = class_member(machine, value.cls, name)
    held = machine.state.read((value.id, name))
    if isinstance(found, Instance) and (held is UNBOUND or not _gives_way(machine, found)):
        if (given := special(machine, found, "__get__", value, value.cls)) is not UNBOUND:
            return given
    elif isinstance(found, Instance) and isinstance(held, Choice):
        return machine.unknown(f"{value.cls.name}().{name}", "a descriptor of its class gives it where it is not set", node)
    if isinstance(held, Choice) and found is not UNBOUND:  # where it is not set, the class's attribute counts
        return choose((formula, found if each is UNBOUND else each) for formula, each in held.alternatives)
    held = machine.read((value.id, name))
    if held is not UNBOUND:
        return held
    if found is not UNBOUND:
        return _seen_from(machine, value, found, name)
    if (given := special(machine, value, "__getattr__", name)) is not UNBOUND:
        return given
    if name in COPYING.get(value.cls.kind, ()) or (value.cls.kind == configs.KIND and name in configs.METHODS):
        return Bound(value, name)
    if value.cls.kind == configs.KIND:  # another method, which may change it
        forget(machine, value, node)
    if name in _OF_TESTS and value.cls.kind == "open":
        return External(_OF_TESTS[name])
    key = (("instance", value.id), ".", name, machine.state.epoch)
    return Opaque(
        key, f"{value.cls.name}().{name}", machine.reason(f"`{name}` is not set where the scanned source shows it", node)
    )


def _seen_from(machine: Machine, value: Instance, found: Value, name: str) -> Value:
    """Return what an attribute of its class is to an object."""
    match found:
        case Function(kind="staticmethod") | Contracted(kind="staticmethod"):
            return found
        case Function(kind="classmethod") | Contracted(kind="classmethod"):
            return Bound(value.cls, found)
        case Function(kind="property") | Contracted(kind="property"):
            return machine.call(found, (value,))
        case Function(kind="cached"):
            machine.state.cells[(value.id, name)] = given = machine.call(found, (value,))
            return given
        case Function() | Contracted() | Class(kind="initializer"):
            return Bound(value, found)
        case _:
            return found


def _gives_way(machine: Machine, descriptor: Instance) -> bool:
    """Say whether what is set on an object counts before a descriptor of its class: one that only reads."""
    return all(class_member(machine, descriptor.cls, name) is UNBOUND for name in ("__set__", "__delete__"))


def _inherited(machine: Machine, value: Super, name: str, node: ast.AST) -> Value:
    """Return `super().name`: of the first class behind that has it, for the object itself."""
    order = ancestry(value.of.cls)
    position = next(index for index, base in enumerate(order) if isinstance(base, Class) and base.scope == value.behind)
    for base in order[position + 1 :]:
        if name == "__init__" and isinstance(base, External) and base.path in MODEL_BASES:
            return Bound(value.of, replace(value.of.cls, kind=INITIALIZER))
        if not isinstance(base, Class):
            if name == "__init__":
                return Bound(value.of, attribute(machine, base, name, node))
            return machine.unknown(f"super().{name}", "the class above is not in the scanned source", node, pure=True)
        found = machine.read((base.scope, name))
        if found is not UNBOUND:
            return _seen_from(machine, value.of, found, name)
    return External(f"builtins.object.{name}")


def special(machine: Machine, value: Instance, name: str, *arguments: Value) -> Value:
    """Call what an operator calls, such as `__getitem__`; `UNBOUND` where the class does not define it."""
    found = class_member(machine, value.cls, name)
    if found is UNBOUND:
        return UNBOUND
    return machine.call(Bound(value, found), arguments)


def iterates(machine: Machine, value: Value) -> bool:
    """Say whether iterating a value runs code of the source."""
    names = ("__iter__", "__next__", "__getitem__")
    return isinstance(value, Instance) and any(class_member(machine, value.cls, name) is not UNBOUND for name in names)


def class_member(machine: Machine, cls: Class, name: str) -> Value:
    """Return an attribute of a class or of its bases in the scanned tree, or `UNBOUND`."""
    for scope in (each.scope for each in lineage(cls)):
        held = machine.read((scope, name))
        if held is not UNBOUND:
            return held
    return UNBOUND


def set_attribute(machine: Machine, receiver: Value, name: str, value: Value) -> None:
    """Execute `receiver.name = value`."""
    if name in _REMAKING:
        havoc.forget_values(machine, lambda held: _is_made_of(held, receiver), f"`{name}` is set: it is another thing now")
        havoc.everything(machine, f"`{name}` of something is set", names=name == "cell_contents")
    if name in ("_value_", "_name_"):  # what an enum's member gives for its `value` and its `name`
        set_attribute(machine, receiver, name.strip("_"), machine.unknown(f"its `{name}`", "it is set"))
    match receiver:
        case Instance(cls=Class(kind=configs.KIND)) if name != "__dict__":
            configs.put(machine, receiver, name, value)
        case Instance(id, cls) if name == "__dict__" or _sets_otherwise(machine, cls, name):
            havoc.everything(machine, f"setting `{name}` runs code of its class")
            machine.state.cells[(id, name)] = machine.unknown(f"{cls.name}().{name}", "its class decides what setting it does")
        case Instance() | Class() | Module() | External() if (cell := cell_of(machine, receiver, name)) is not None:
            names.store(machine, cell, value)
            if isinstance(receiver, External):
                havoc.leak(machine, value)  # to whoever calls the library
        case Choice(alternatives):
            for _, each in alternatives:
                if isinstance(each, Instance):
                    machine.state.cells[(each.id, name)] = machine.unknown(name, "it is set on one of several objects")
            machine.state.epoch += 1
        case Array():
            mutation.shape_changes(machine, receiver, None)
        case Opaque(key=(_, ".", "__class__", _) | (_, "call", "builtins.type")):
            havoc.everything(machine, "it may have been set on any class")
        case _:
            havoc.disturb(machine, "it may have been set under another name")
            machine.state.epoch += 1  # an unknown object has changed


def _is_made_of(held: Value, receiver: Value) -> bool:
    """Say whether a value changes when something else is made of the receiver: a function, a class or an object."""
    match receiver, held:
        case Function(node), Function(other):
            return node is other
        case Class(scope=scope), (Class() as cls) | Instance(cls=cls):
            return any(each.scope == scope for each in lineage(cls))
        case Instance(id), Instance(other):
            return id == other
        case Opaque() | Bound(), _:
            return is_constant(held)
        case _:
            return False


def cell_of(machine: Machine, receiver: Value, name: str) -> Cell | None:
    """Return the cell of an attribute, None where that is not known."""
    match receiver:
        case Instance(id):
            return id, name
        case Class():
            return receiver.scope, name
        case Module(path):
            return machine.program.module_scopes[path], name
        case External(path):
            return PATCHED, f"{path}.{name}"
        case _:
            return None


def _sets_otherwise(machine: Machine, cls: Class, name: str) -> bool:
    """Say whether setting an attribute does something else than to put it into the object: a property or a descriptor."""
    if any(each.name == name and each.watched for each in cls.parameters):
        return True
    found = class_member(machine, cls, name)
    if isinstance(found, Function) and found.kind == "property":
        return True
    if isinstance(found, Instance) and class_member(machine, found.cls, "__set__") is not UNBOUND:
        return True
    if isinstance(found, Opaque) and not found.pure:
        return True
    return class_member(machine, cls, "__setattr__") is not UNBOUND


def delete_attribute(machine: Machine, receiver: Value, name: str) -> None:
    """Execute `del receiver.name`."""
    if isinstance(receiver, Instance) and class_member(machine, receiver.cls, "__delattr__") is not UNBOUND:
        havoc.everything(machine, f"deleting `{name}` runs code of its class")
    else:
        set_attribute(machine, receiver, name, UNBOUND)


def forget(machine: Machine, value: Value, node: ast.AST | None = None) -> None:
    """Forget what unknown code may change of a value that it was given."""
    havoc.forget_reachable(machine, value, "unknown code may have changed it", node)


def construct(machine: Machine, cls: Class, arguments: Any) -> Value:
    """Make an object of a class of the scanned tree."""
    from codemods.evaluate.calls import call

    if cls.kind == INITIALIZER:
        return _initialize(machine, cls, arguments)
    if cls.kind == "enum":
        return enums.member_of(machine, cls, arguments.positional)
    if cls.kind == "dict":
        return call(machine, External("builtins.dict"), arguments)
    if class_member(machine, cls, "__new__") is not UNBOUND:
        havoc.everything(machine, f"making a `{cls.name}` runs `__new__`")
        call(machine, Bound(cls, class_member(machine, cls, "__new__")), arguments)
        return machine.unknown(f"{cls.name}(...)", "its class decides what is made", arguments.node)
    made = Instance(machine.new_id(), cls)
    initializer = class_member(machine, cls, "__init__")
    if isinstance(initializer, Function | Contracted | Class):
        if is_model(cls):
            forget_fields(machine, made, "its class has an `__init__` besides that of pydantic")
        call(machine, Bound(made, initializer), arguments)
    elif cls.kind in ("dataclass", "namedtuple") or (cls.kind == "open" and cls.parameters):
        set_fields(machine, made, arguments, cls.parameters)
    elif cls.kind == "plain" and (arguments.positional or arguments.keywords):
        raise Dies
    elif cls.kind == "open" and (base := foreign.base_of(cls)) is not None:
        foreign.initialize(machine, made, base, arguments)
    ending = class_member(machine, cls, "__del__")
    if isinstance(ending, Function):
        havoc.later(machine, lambda: machine.call(Bound(made, ending)), "`__del__` may change it", arguments.node)
    return made


def _initialize(machine: Machine, initializer: Class, arguments: Arguments) -> None:
    """Call the `__init__` that a library writes for a class."""
    receiver = arguments.positional[0] if arguments.positional else None
    if isinstance(receiver, Instance):
        set_fields(machine, receiver, arguments.without_first(), initializer.parameters)
    else:
        havoc.everything(machine, f"`{initializer.name}.__init__` sets fields of an unknown object", arguments.node)


def changed_copy(machine: Machine, value: Instance, arguments: Arguments) -> Value:
    """Return a copy of an object with other values for some fields; one of a dataclass is made anew, `__post_init__` and all."""
    if value.cls.kind != "dataclass":
        return copy_with(machine, value, dict(arguments.keywords))
    taken = {each.argument: machine.read((value.id, each.name)) for each in value.cls.parameters if each.argument and each.stored}
    held = {name: each for name, each in taken.items() if each is not UNBOUND}
    return construct(machine, value.cls, Arguments(keywords={**held, **arguments.keywords}, node=arguments.node))


def copy_with(machine: Machine, value: Instance, changes: dict[str, Value]) -> Instance:
    """Return a copy of an object with some attributes changed: `dataclasses.replace`, `_replace`."""
    made = Instance(machine.new_id(), value.cls)
    for name, content in (machine.members(value.id) | changes).items():
        machine.state.cells[(made.id, name)] = content
    return made
