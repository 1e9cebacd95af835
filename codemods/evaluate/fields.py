"""The fields of a class of which a library writes the constructor: dataclasses, attrs, pydantic, equinox and flax."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.values import Class, External, Function, Opaque, Partial, Value, ancestry

if TYPE_CHECKING:
    from codemods.evaluate.arguments import Arguments
    from codemods.evaluate.machine import Machine

DATACLASSES = frozenset(
    {
        "dataclasses.dataclass", "flax.struct.dataclass", "chex.dataclass", "jax.tree_util.register_dataclass",
        "pydantic.dataclasses.dataclass",
    }
)  # fmt: skip
ATTRS = frozenset({"attrs.define", "attrs.frozen", "attrs.mutable", "attr.define", "attr.frozen", "attr.mutable"})
OLD_ATTRS = frozenset({"attr.s", "attr.attrs", "attr.dataclass"})
SETTINGS = frozenset({"pydantic_settings.BaseSettings", "pydantic.BaseSettings", "pydantic.v1.BaseSettings"})
"""Classes whose fields have their values from the environment."""
MODELS = frozenset({"pydantic.BaseModel", "pydantic.v1.BaseModel", *SETTINGS})
BASES = frozenset({"flax.linen.Module", "equinox.Module", *MODELS})

SPECIFIERS = frozenset(
    {
        "dataclasses.field", "flax.struct.field", "equinox.field", "attrs.field", "attr.field", "attr.ib", "attr.attrib",
        "pydantic.Field", "pydantic.fields.Field", "pydantic.dataclasses.Field",
    }
)  # fmt: skip
"""Functions that say what a field is; their calls are kept as partials."""

_WATCHING = frozenset({"converter", "validator", "on_setattr"})
"""Arguments of such a function of attrs with which an assignment runs code of the source."""

VALIDATOR, DEFAULT = "<validator>", "<default>"
"""What the call of such a function is given besides: the methods under `@field.validator` and `@field.default` of attrs."""

_CHANGING = frozenset({"converter", "on_setattr", "alias", "validation_alias", "alias_priority", "strict", "init_var", "spread"})
"""Arguments of such a function with which a field may hold something else than what the constructor is given by its name."""


@dataclass(frozen=True)
class Field:
    """One field, or one argument of the constructor that is no field.

    Attributes:
        name: the attribute.
        argument: what the constructor calls it, None where it does not take it.
        keyword_only: whether it can only be given by name.
        stored: whether the object keeps it; an `InitVar` is only handed to `__post_init__`.
        kept: the types of constants that stay what they are, as names; None: whatever it is given. Empty: nothing.
        default: what the class says of it: a value, a `Partial` of one of `SPECIFIERS`, or `UNBOUND`.
        watched: whether assigning to it runs code that may store something else.
        annotation: what the class says it is, as written.
    """

    name: str
    argument: str | None
    keyword_only: bool = False
    stored: bool = True
    kept: frozenset[str] | None = None
    default: Value = UNBOUND
    watched: bool = False
    annotation: str = ""


def fields_of(machine: Machine, cls: Class, node: ast.ClassDef, path: str, options: dict[str, ast.expr]) -> tuple[Field, ...]:
    """Return the fields of a class, those of its bases first, given the dotted path of what makes its constructor."""
    found = {each.name: each for base in reversed(cls.bases) if isinstance(base, Class) for each in base.parameters}
    for each in _own(machine, cls, node, path, options):
        found[each.name] = each  # one of the same name stays in its place
    if unread := _is_unread(machine, cls, node, options):
        machine.state.cells[(cls.scope, _UNREAD)] = True
    pydantic = path in MODELS or path == "pydantic.dataclasses.dataclass"
    if pydantic:
        unread = unread or member(machine, cls, _UNREAD) is not UNBOUND or _decided_elsewhere(node)[0]
        unread = unread or (path in MODELS and not all(map(_is_known_base, ancestry(cls))))
    if unread if pydantic else path in ATTRS | OLD_ATTRS and "field_transformer" in options:
        found = {name: replace(each, kept=frozenset[str](), watched=True) for name, each in found.items()}
    if "on_setattr" in options:
        found = {name: replace(each, watched=True) for name, each in found.items()}
    return tuple(found.values())


def _own(machine: Machine, cls: Class, node: ast.ClassDef, path: str, options: dict[str, ast.expr]) -> Iterator[Field]:
    attrs = path in ATTRS or path in OLD_ATTRS
    written = list(_written(node))
    specified = [name for name, _, value in written if value is not None and is_specifier(machine.read((cls.scope, name)))]
    unannotated = any(annotation is None and name in specified for name, annotation, _ in written)
    only_specified = attrs and (unannotated or (path in OLD_ATTRS and "auto_attribs" not in options and path != "attr.dataclass"))
    everything, chosen = _decided_elsewhere(node)
    looked_at = {
        decorator.value.id
        for statement in node.body
        for decorator in getattr(statement, "decorator_list", ())
        if isinstance(decorator, ast.Attribute) and decorator.attr == "validator" and isinstance(decorator.value, ast.Name)
    }
    keyword_only = isinstance(given := options.get("kw_only"), ast.Constant) and given.value is True
    for name, annotation, value in written:
        if annotation is None or only_specified:
            if not attrs or name not in specified:
                continue
        elif "ClassVar" in annotation:
            continue
        if annotation is not None and "KW_ONLY" in annotation:
            keyword_only = True
            continue
        default = machine.read((cls.scope, name)) if value is not None else UNBOUND
        keywords = dict(default.keywords) if isinstance(default, Partial) and is_specifier(default) else {}
        argument = name.lstrip("_") if attrs else name
        kept: frozenset[str] | None = None
        if path in MODELS or path == "pydantic.dataclasses.dataclass":
            kept = frozenset(re.findall(r"\w+", annotation or "")) - {"Annotated"}
            kept = frozenset() if "Annotated" in (annotation or "") else kept
        changing = keywords.keys() & (_CHANGING - {"converter"} if attrs else _CHANGING)
        if everything or (name in chosen and DEFAULT not in keywords) or changing:
            kept = frozenset()
        if isinstance(default, Opaque):
            kept = frozenset()  # a library's word for a field that is not known here
        yield Field(
            name,
            None if keywords.get("init") is False else argument,
            keyword_only or keywords.get("kw_only") is True,
            "InitVar" not in (annotation or ""),
            kept,
            default,
            attrs and (kept is not None or name in looked_at or not keywords.keys().isdisjoint(_WATCHING)),
            annotation or "",
        )


def _written(node: ast.ClassDef) -> Iterator[tuple[str, str | None, ast.expr | None]]:
    """Yield the names that a class body gives a type or a value: each with its annotation and its value."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(ast.Name(name), annotation, value):
                yield name, ast.unparse(annotation), value
            case ast.Assign([ast.Name(name)], value):
                yield name, None, value
            case _:
                pass


def is_specifier(value: Value) -> bool:
    return isinstance(value, Partial) and isinstance(value.function, External) and value.function.path in SPECIFIERS


def is_attribute(value: Value) -> bool:
    """Say whether a class says with a function of attrs what a field is."""
    return is_specifier(value) and value.function.path.startswith("attr")


def hook(kind: str) -> Callable[[Machine, Value, Arguments], Value]:
    """Return what `@field.validator` and `@field.default` do: the method belongs to the field from there on."""

    def decorate(machine: Machine, receiver: Value, arguments: Arguments) -> Value:
        (method,) = arguments.positional
        if not (is_attribute(receiver) and isinstance(method, Function)):
            raise Unmodelled(f"what `{arguments.text}` does is not known")
        scope = machine.frame.scope.id
        for name, held in machine.members(scope).items():
            if held is receiver:
                machine.state.cells[(scope, name)] = replace(receiver, keywords=(*receiver.keywords, (kind, method)))
        return method

    return decorate


def _decided_elsewhere(node: ast.ClassDef) -> tuple[bool, set[str]]:
    """Return whether methods or settings of the class may change what any field holds, and the fields with a `@x.default`."""
    names: set[str] = set()
    everything = False
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            for decorator in statement.decorator_list:
                match decorator.func if isinstance(decorator, ast.Call) else decorator:
                    case ast.Attribute(ast.Name(name), "default"):
                        names.add(name)
                    case ast.Attribute(ast.Name(name), "validator") if name != "pydantic":
                        pass  # of attrs: it only looks
                    case called:
                        everything |= "validator" in ast.unparse(called)
        elif re.match(r"(model_config|class Config)\b", text := ast.unparse(statement)):
            everything |= re.search(r"alias|str_|strict|validate", text) is not None
    return everything, names


_UNREAD = "<unread>"
"""The attribute of a class that has something by which a model of pydantic may change any of its fields."""

_PLAIN_SETTINGS = frozenset({
    "arbitrary_types_allowed", "extra", "frozen", "from_attributes", "metaclass", "protected_namespaces", "title",
    "use_attribute_docstrings",
})  # fmt: skip
"""Settings of such a model that change no value of a field."""

_PLAIN_DECORATORS = frozenset({
    "abstractmethod", "cache", "cached_property", "classmethod", "computed_field", "lru_cache", "override", "property",
    "setter", "staticmethod",
})  # fmt: skip


def _is_unread(machine: Machine, cls: Class, node: ast.ClassDef, options: dict[str, ast.expr]) -> bool:
    """Say whether a class has settings, decorators or attributes of which it is not known what a model makes of them."""
    given = {keyword.arg for keyword in node.keywords}
    for statement in node.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                called = [each.func if isinstance(each, ast.Call) else each for each in statement.decorator_list]
                if any(ast.unparse(each).rpartition(".")[2] not in _PLAIN_DECORATORS for each in called):
                    return True
            case ast.AnnAssign(ast.Name("model_config"), _, value) | ast.Assign([ast.Name("model_config")], value):
                given |= _settings(value)
            case ast.Assign(value=ast.Call(called)) if ast.unparse(called).rpartition(".")[2] != "PrivateAttr":
                return True
            case ast.ClassDef("Config"):
                given |= {"bases"} if statement.bases else set()
                for each in statement.body:
                    given.add(
                        each.targets[0].id if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) else None
                    )
            case ast.AnnAssign() | ast.Assign() | ast.ClassDef() | ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case _:
                return True
    return not options.keys().isdisjoint({"config", "field_transformer"}) or not given <= _PLAIN_SETTINGS


def _settings(value: ast.expr | None) -> set[str | None]:
    """Return the names of the settings of a model; None among them for what is not known."""
    match value:
        case ast.Call(args=[], keywords=keywords):
            return {each.arg for each in keywords}
        case ast.Dict(keys):
            return {str(each.value) if isinstance(each, ast.Constant) else None for each in keys}
        case _:
            return {None}


def _is_known_base(base: Value) -> bool:
    match base:
        case External(path):
            return path in MODELS
        case Opaque(text=text):
            return text.startswith(("Generic[", "typing.Generic["))
        case _:
            return isinstance(base, Class)


def member(machine: Machine, cls: Class, name: str) -> Value:
    """Return an attribute of a class or of its bases, or `UNBOUND`."""
    from codemods.evaluate.objects import class_member

    return class_member(machine, cls, name)
