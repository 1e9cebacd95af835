"""The attributes of objects, as classes, assignments and the calls that make objects write them down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from codemods.nodes import nodes

_REFLECTION = frozenset(
    ("vars", "__dict__", "__dataclass_fields__", "asdict", "astuple", "fields", "_asdict", "model_dump", "model_dump_json")
)
_FIELD_MAKERS = frozenset(("field", "Field", "ib", "attrib"))  # of dataclasses, attrs and pydantic
_COPIERS = frozenset(("SimpleNamespace", "replace", "_replace", "evolve"))  # take attributes as keywords


class Field(NamedTuple):
    """The attributes of one name, of the objects whose classes a file defines, or else of all that it reads."""

    file: ast.Module
    name: str

    def __hash__(self) -> int:
        return hash((id(self.file), self.name))


def attribute_reads(file: ast.Module, name: str) -> Iterator[ast.Attribute]:
    """Yield where an attribute is read by its name; `x.name += 1` reads it as well."""
    for node in nodes(file, ast.Attribute):
        if node.attr == name and isinstance(node.ctx, ast.Load):
            yield node
    for node in nodes(file, ast.AugAssign):
        if isinstance(node.target, ast.Attribute) and node.target.attr == name:
            yield node.target


def is_reflected(file: ast.Module, name: str) -> bool:
    """Say whether a file may read an attribute by another way: `getattr(x, "name")`, `vars(x)`, `case Config(name=4)`."""
    if any(name in node.kwd_attrs or node.patterns for node in nodes(file, ast.MatchClass)):
        return True
    calls = list(nodes(file, ast.Call))
    texts = (each.value for call in calls if not _names_parameters(call) for each in call.args if isinstance(each, ast.Constant))
    named = any(isinstance(text, str) and text.rpartition(".")[2] == name for text in texts) or any(map(_gets_any, calls))
    read = (node.id if isinstance(node, ast.Name) else node.attr for node in nodes(file, ast.Name, ast.Attribute))
    return named or not _REFLECTION.isdisjoint(read)


def _names_parameters(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "parametrize"


def _gets_any(call: ast.Call) -> bool:
    """Say whether a call reads an attribute whose name is computed: `getattr(x, name)`."""
    getter = isinstance(call.func, ast.Name) and call.func.id == "getattr"
    return getter and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant)


def is_tuple(cls: ast.ClassDef) -> bool:
    """Say whether objects of a class are tuples, which are read by position as well."""
    return any(ast.unparse(base).endswith("NamedTuple") for base in cls.bases)


def classes_with(file: ast.Module, name: str) -> Iterator[ast.ClassDef]:
    """Yield the classes that set an attribute of this name."""
    for node in nodes(file, ast.ClassDef):
        if default_of(node, name) is not None:
            yield node


def default_of(cls: ast.ClassDef, name: str) -> ast.expr | None:
    """Return what a class sets an attribute to for all its objects, or for those that are made without it."""
    for statement in cls.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return _default(value)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
                return _default(value)
            case _:
                pass
    return None


def given_to(cls: ast.ClassDef, call: ast.Call, name: str) -> ast.expr | None:
    """Return what an object gets for an attribute when it is made by the fields of its class; None if it is the default."""
    if any(isinstance(each, ast.FunctionDef) and each.name == "__init__" for each in cls.body):
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    fields = [each.target.id for each in cls.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    plain = not any(isinstance(each, ast.Starred) for each in call.args)
    plain = plain and (not cls.bases or is_tuple(cls))  # a base may have fields that come first
    if plain and name in fields and fields.index(name) < len(call.args):
        return call.args[fields.index(name)]
    return None


def set_in(file: ast.Module, name: str) -> Iterator[ast.expr]:
    """Yield what the statements of a file set attributes of this name to, and what objects are made or copied with."""
    for node in nodes(file, ast.Assign, ast.AnnAssign, ast.Call):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=found)], value=value) if found == name:
                yield value
            case ast.AnnAssign(target=ast.Attribute(attr=found), value=ast.expr() as value) if found == name:
                yield value
            case ast.Call(keywords=keywords) if ast.unparse(node.func).rpartition(".")[2] in _COPIERS:
                yield from (keyword.value for keyword in keywords if keyword.arg == name)
            case _:
                pass


def _default(value: ast.expr) -> ast.expr:
    """Return the default that `field(default=4)` stands for; any other expression as it is."""
    match value:
        case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)) if maker in _FIELD_MAKERS:
            stated = [keyword.value for keyword in value.keywords if keyword.arg == "default"]
            found = stated or (value.args[:1] if maker == "Field" else [])
            return found[0] if found else value
        case _:
            return value
