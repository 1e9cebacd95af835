"""The constructors that libraries write: what an object holds after one of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.evaluate.arguments import Arguments
from codemods.evaluate.fields import (
    ATTRS,
    DEFAULT,
    MODELS,
    OLD_ATTRS,
    SETTINGS,
    Field,
    is_attribute,
    is_specifier,
    member,
)
from codemods.evaluate.machine import Dies
from codemods.evaluate.settings import option
from codemods.evaluate.state import UNBOUND
from codemods.evaluate.validation import validate
from codemods.values import Bound, Class, External, Function, Instance, Opaque, Partial, Value, ancestry, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

AFTER = ("__post_init__", "__attrs_post_init__", "model_post_init")
"""Methods that such a constructor calls once the fields are set."""

INITIALIZER = "initializer"
"""The kind of a class that stands for the `__init__` that a library writes for it."""


def add_initializer(machine: Machine, cls: Class, path: str, options: dict[str, ast.expr]) -> None:
    """Put the `__init__` that a library writes among the attributes of a class, as code of the source may call it too."""
    written = replace(cls, kind=INITIALIZER)
    own = machine.read((cls.scope, "__init__"))
    if path == "equinox.Module" and own is UNBOUND:
        own = member(machine, cls, "__init__")
    made = options.get("init")
    if isinstance(made, ast.Constant) and made.value is False:
        if path in ATTRS or path in OLD_ATTRS:
            machine.state.cells[(cls.scope, "__attrs_init__")] = written
    elif own is UNBOUND or isinstance(own, Class) or (path in OLD_ATTRS and "auto_detect" not in options):
        machine.state.cells[(cls.scope, "__init__")] = written
    elif path in ATTRS or path in OLD_ATTRS:
        machine.state.cells[(cls.scope, "__attrs_init__")] = written


def is_model(cls: Class) -> bool:
    """Say whether a class is a model of pydantic, which has one `__init__` for all."""
    return any(isinstance(base, External) and base.path in MODELS for base in ancestry(cls))


def forget_fields(machine: Machine, made: Instance, why: str) -> None:
    """Make the fields of an object unknown, those that were never set too."""
    for name in made.cls.fields:
        machine.state.cells[(made.id, name)] = machine.unknown(f"{made.cls.name}().{name}", why)


def set_fields(machine: Machine, made: Instance, arguments: Arguments, parameters: tuple[Field, ...]) -> None:
    """Execute a constructor that has these parameters: set the fields of an object, and call what comes before and after."""
    from codemods.evaluate.calls import call

    positional = [each.argument for each in parameters if each.argument is not None and not each.keyword_only]
    given = {**dict(zip(positional, arguments.positional, strict=False)), **arguments.keywords}
    if isinstance(before := member(machine, made.cls, "__attrs_pre_init__"), Function):
        shown = arguments if len(before.node.args.args) > 1 else Arguments(node=arguments.node)
        call(machine, Bound(made, before), replace(shown, spread=True))
    handed: list[Value] = []
    for each in parameters:
        value = _value(machine, made, each, given, spread=arguments.spread)
        if each.stored:
            if value is not UNBOUND:
                machine.state.cells[(made.id, each.name)] = value
        else:
            handed.append(value)
    for each in parameters:
        validate(machine, made, each, given=each.argument in given)
    for name in AFTER:
        after = member(machine, made.cls, name)
        if isinstance(after, Function):
            extra = [machine.unknown("context", "pydantic's")] if name == "model_post_init" else handed
            machine.call(Bound(made, after), tuple(extra))


def _value(machine: Machine, made: Instance, each: Field, given: dict[str, Value], *, spread: bool) -> Value:
    """Return what a field holds after the constructor has set it; `UNBOUND` where it holds nothing."""
    value = _taken(machine, made, each, given, spread=spread)
    converter = dict(each.default.keywords).get("converter") if is_attribute(each.default) else None
    if converter is None or value is UNBOUND:
        return value
    if isinstance(converter, Function | Class | Partial) or converter in _CONVERTERS:
        return machine.call(converter, (value,))
    return machine.unknown(f"{made.cls.name}().{each.name}", f"what its converter makes of `{each.name}` is not known")


_CONVERTERS = frozenset(External(f"builtins.{name}") for name in ("int", "float", "str", "bool", "tuple", "list"))


def _taken(machine: Machine, made: Instance, each: Field, given: dict[str, Value], *, spread: bool) -> Value:
    """Return what a field is given, or its default."""
    cls = made.cls
    value = given.get(each.argument, UNBOUND) if each.argument is not None else UNBOUND
    if value is not UNBOUND:
        if _stays(each, value):
            return value
        return machine.unknown(f"{cls.name}().{each.name}", f"its class decides what `{each.name}` holds of what it is given")
    if _reads_environment(cls):
        return unknown_field(machine, cls, each.name, f"{cls.name}().{each.name}", f"a setting of `{cls.name}`")
    if not spread or each.argument is None:
        value = _default(machine, made, each)
        if value is UNBOUND and each.argument is None:
            return UNBOUND
    if value is UNBOUND or each.kept == frozenset():
        if value is UNBOUND and cls.kind != "open" and not spread and each.kept != frozenset():
            raise Dies
        return machine.unknown(f"{cls.name}().{each.name}", "the call does not show it")
    return value


def _stays(each: Field, value: Value) -> bool:
    """Say whether a field holds just what it is given."""
    if each.kept is None:
        return True
    if is_constant(value):
        return type(value).__name__.replace("NoneType", "None") in each.kept or (value is None and "Optional" in each.kept)
    return bool(each.kept) and isinstance(value, Instance | Opaque)


def _default(machine: Machine, made: Instance, each: Field) -> Value:
    """Return the default of a field, made anew for each object."""
    value = each.default
    if not (isinstance(value, Partial) and is_specifier(value)):
        return value
    keywords = dict(value.keywords)
    if DEFAULT in keywords:
        return machine.call(Bound(made, keywords[DEFAULT]))
    if "default" in keywords:
        return keywords["default"]
    for name in ("default_factory", "factory"):
        if name in keywords:
            return machine.call(keywords[name])
    if value.positional and value.function not in _DEFAULT_IS_NAMED:
        return UNBOUND if value.positional[0] is Ellipsis else value.positional[0]
    return UNBOUND


_DEFAULT_IS_NAMED = frozenset({External("dataclasses.field"), External("attrs.field"), External("attr.field")})


def unknown_field(machine: Machine, cls: Class, name: str, text: str, kind: str) -> Value:
    """Return a field of which nothing is known but what it is where nobody sets it."""
    value = next((each.default for each in cls.parameters if each.name == name), member(machine, cls, name))
    if isinstance(value, Partial) and is_specifier(value):
        value = dict(value.keywords).get("default", value.positional[0] if value.positional else UNBOUND)
    return option(machine, text, None if value is UNBOUND or value is Ellipsis else value, None, kind=kind)


def _reads_environment(cls: Class) -> bool:
    """Say whether a class takes the fields that are not given from the environment."""
    return any(isinstance(base, External) and base.path in SETTINGS for base in ancestry(cls))
