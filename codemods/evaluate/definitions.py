"""What definitions make: `def`, `lambda` and `class`, and the decorators on them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codemods.evaluate import annotations, constructors, enums, fields, havoc, names
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.frameworks import MARKS, TRANSPARENT
from codemods.evaluate.machine import Frame
from codemods.evaluate.objects import class_member
from codemods.evaluate.program import Scope
from codemods.evaluate.state import UNBOUND
from codemods.values import (
    PLAIN_BASES,
    Class,
    Contracted,
    External,
    Function,
    Instance,
    Opaque,
    Partial,
    Value,
    ancestry,
    lineage,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def function_statement(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    value: Value = make_function(machine, node, node.name)
    arguments = node.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    annotations.run(machine, *(each.annotation for each in parameters if each is not None), node.returns)
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Call) and _marks_a_test(machine.evaluate(decorator.func)):
            continue
        value = _decorated(machine, value, machine.evaluate(decorator), decorator)
    names.bind(machine, node.name, value)


def make_function(machine: Machine, node: Any, name: str) -> Function:
    """Make a function of its definition; its defaults are evaluated now."""
    machine.defined.add(id(node))
    arguments: ast.arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        (parameter.arg, machine.evaluate(default))
        for parameter, default in zip(positional[::-1], arguments.defaults[::-1], strict=False)
    ]
    defaults += [
        (parameter.arg, machine.evaluate(default))
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    scope = machine.frame.scope
    return Function(node, scope.path, name, scope.id, tuple(defaults))


def _decorated(machine: Machine, value: Value, decorator: Value, node: ast.expr) -> Value:
    """Apply a decorator: one of a test framework or of typing leaves the function as it is."""
    path = _origin(decorator)
    if path in ("builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property"):
        kind = path.rpartition(".")[2].replace("cached_property", "cached")
        if isinstance(value, Contracted):
            return replace(value, function=replace(value.function, kind=kind))
        return replace(value, kind=kind) if isinstance(value, Function) else value
    if path in ("functools.lru_cache", "functools.cache") and isinstance(value, Function):
        return replace(value, kind="memoized")
    if path.startswith(TRANSPARENT):
        return value
    return call(machine, decorator, Arguments((value,), node=node))


def _marks_a_test(decorator: Value) -> bool:
    """Say whether a decorator only tells the framework of a test: its arguments are conditions that may take long to follow."""
    return isinstance(decorator, External) and decorator.path.startswith(MARKS)


def _origin(decorator: Value) -> str:
    match decorator:
        case External(path) | Partial(External(path)) | Opaque(key=(_, "call", str(path))):
            return path
        case _:
            return ""


def class_statement(machine: Machine, node: ast.ClassDef) -> None:
    decorators = [machine.evaluate(decorator) for decorator in node.decorator_list]
    cls: Value = _make_class(machine, node)
    for decorator, written in zip(reversed(decorators), reversed(node.decorator_list), strict=True):
        if isinstance(decorator, Function | Class | Instance):  # of the source: it may give anything
            cls = call(machine, decorator, Arguments((cls,), node=written))
        elif isinstance(cls, Class):
            cls = _decorated_class(machine, cls, node, _origin(decorator), _options(machine, decorator, written))
    names.bind(machine, node.name, cls)


def _decorated_class(machine: Machine, cls: Class, node: ast.ClassDef, path: str, options: dict[str, ast.expr]) -> Class:
    """Apply a class decorator by its dotted path: one that makes a constructor of the fields, or one that changes nothing."""
    if path not in fields.DATACLASSES | fields.ATTRS | fields.OLD_ATTRS or cls.kind not in ("plain", "open", "dataclass"):
        return cls
    if isinstance(made := options.get("init"), ast.Constant) and made.value is False:
        constructors.add_initializer(machine, cls, path, options)
        return cls
    cls = replace(cls, kind="dataclass", parameters=fields.fields_of(machine, cls, node, path, options))
    constructors.add_initializer(machine, cls, path, options)
    return cls


def _options(machine: Machine, decorator: Value, written: ast.expr) -> dict[str, ast.expr]:
    """Return the arguments of a class decorator; where they are not seen, with those that may change any field."""
    options: dict[str, ast.expr] = {}
    if isinstance(written, ast.Call):
        options = {word.arg: word.value for word in written.keywords if word.arg}
        decorator = machine.evaluate(written.func)
        if len(options) < len(written.keywords):
            options["field_transformer"] = written
    return options if isinstance(decorator, External) else {**options, "field_transformer": written}


def _make_class(machine: Machine, node: ast.ClassDef) -> Value:
    """Execute a class statement, without its decorators."""
    outer = machine.frame.scope
    for keyword in node.keywords:
        machine.evaluate(keyword.value)
    bases = tuple(machine.evaluate(base) for base in node.bases if not isinstance(base, ast.Starred))
    scope = Scope(machine.new_id(), outer.path, node.name, "class", outer.id, outer.module)
    machine.program.scopes[scope.id] = scope
    with machine.entered(Frame(scope)):
        machine.execute(node.body)
        for name in {name for part in node.body if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}:
            names.rebind(machine, name)
    cls = Class(node.name, scope.id, bases, _kind(bases))
    path = next((base.path for base in ancestry(cls) if isinstance(base, External) and base.path in fields.BASES), "")
    if path or cls.kind != "dataclass":  # what only inherits a constructor adds nothing to it
        cls = replace(cls, parameters=fields.fields_of(machine, cls, node, path, {}))
        if path and path not in fields.MODELS:
            constructors.add_initializer(machine, cls, path, {})
    else:
        cls = replace(cls, parameters=next(base.parameters for base in lineage(cls)[1:] if base.kind == "dataclass"))
    if cls.kind == "enum":
        return _with_members(machine, cls, node)
    return _made_otherwise(machine, cls, node) or cls


def _with_members(machine: Machine, cls: Class, node: ast.ClassDef) -> Class:
    """Return an enum with its members; what it assigns to private names, `__x`, is none of them."""
    held = machine.members(cls.scope)
    private = {name: held[name] for name in held if name.startswith("__") and not name.endswith("__")}
    machine.state.cells.bind(cls.scope, dict.fromkeys(private, UNBOUND).items())
    members = enums.make_members(machine, cls, node)
    machine.state.cells.bind(cls.scope, private.items())
    return replace(cls, members=members)


def _made_otherwise(machine: Machine, cls: Class, node: ast.ClassDef) -> Value:
    """Return an unknown value for a class that code of the source makes or changes: its metaclass, a base, a descriptor."""
    metaclass = next((keyword.value for keyword in node.keywords if keyword.arg == "metaclass"), None)
    strange = metaclass is not None and not ast.unparse(metaclass).endswith(("ABCMeta", "EnumMeta"))
    strange = strange or any(_has(machine, base, "__init_subclass__") for base in cls.bases if isinstance(base, Class))
    members = machine.members(cls.scope).values()
    strange = strange or any(_has(machine, each.cls, "__set_name__") for each in members if isinstance(each, Instance))
    if not strange:
        return None
    havoc.everything(machine, f"making the class `{cls.name}` runs code of the source", node)
    return machine.unknown(cls.name, "code of the source makes the class", node)


def _has(machine: Machine, cls: Class, name: str) -> bool:
    return class_member(machine, cls, name) is not UNBOUND


def _kind(bases: tuple[Value, ...]) -> str:
    if enums.is_enum([base.path for base in bases if isinstance(base, External) and base.path not in PLAIN_BASES]):
        return "enum"
    for base in bases:
        match base:
            case Class(kind=kind) if kind != "plain":
                return kind
            case External("typing.NamedTuple" | "collections.namedtuple"):
                return "namedtuple"
            case External("typing.TypedDict" | "typing_extensions.TypedDict"):
                return "dict"
            case External(path) if path in fields.BASES:
                return "dataclass"
            case Class():
                pass
            case External(path) if path in PLAIN_BASES:
                pass
            case _:
                return "open"  # an unknown base may define anything
    return "plain"
