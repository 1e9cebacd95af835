"""Generators: what one gives is known where its body only computes, from what nothing can change in the meantime.

Its body is executed when it is called, though Python executes it as far as somebody asks for elements: of a body that sees and
changes nothing outside, nobody can tell the difference.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codemods.evaluate import containers, havoc, iteration
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Frame
from codemods.evaluate.memory import Cell
from codemods.evaluate.objects import class_member
from codemods.evaluate.state import UNBOUND
from codemods.nodes import walk
from codemods.values import (
    Array,
    DictRef,
    DType,
    External,
    Function,
    Instance,
    Iterator,
    ListRef,
    Opaque,
    Term,
    Value,
    is_constant,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

MAX_ELEMENTS = 64

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.For, ast.While, ast.If, ast.Return, ast.Pass, ast.Break,
               ast.Continue)  # fmt: skip
_FUNCTIONS = frozenset({"abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "len", "list", "max", "min",
                        "range", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"})  # fmt: skip
_MODULES = ("math.", "itertools.", "jax.numpy.", "operator.")
_METHODS = frozenset({"append", "items", "keys", "values"})


class _NotFollowed(Exception):
    """What a generator gives is not known."""


def called(machine: Machine, function: Function, values: Mapping[str, Value], frame: Frame) -> Iterator | None:
    """Return what a call of a generator function gives, if that is known; `frame` is a new one for its body."""
    node: Any = function.node
    if isinstance(node, ast.AsyncFunctionDef) or not all(map(_is_plain, node.body)):
        return None
    used = {part.id for statement in node.body for part in walk(statement) if isinstance(part, ast.Name)}
    objects = {name: value for name, value in values.items() if name in used and isinstance(value, Instance)}
    if not all(is_fixed(value) for name, value in values.items() if name in used and name not in objects):
        return None
    seen, attributes = _seen(machine, function), _seen_of_objects(machine, node, objects)
    if seen is None or attributes is None:
        return None
    base, arrivals = machine.state, len(machine.arrivals)
    machine.state = base.fork()
    machine.state.cells.bind(frame.scope.id, values.items())
    frame.yields, frame.start = [], len(base.path)
    try:
        with machine.entered(frame):
            try:
                machine.execute(node.body)
            except Dies:
                if len(frame.returns) != 1:
                    return None
        if len(machine.arrivals) > arrivals or len(machine.state.path) > len(base.path):
            return None
        held = [machine.contents(each) if isinstance(each, ListRef | DictRef) else None for each in frame.yields]
    except _NotFollowed:
        return None
    finally:
        machine.state = base
        del machine.arrivals[arrivals:]
    made = Iterator(machine.new_id(), (*seen, *attributes))
    given = tuple(_again(machine, *pair) for pair in zip(frame.yields, held, strict=True))
    machine.state.cells[(made.id, "contents")] = given
    return made


def _again(machine: Machine, value: Value, contents: Any) -> Value:
    """Make a list or a dict that a generator has made and given anew, where its execution is no more than a glimpse."""
    match value:
        case ListRef():
            return containers.make_list(machine, contents)
        case DictRef():
            return containers.make_dict(machine, contents)
        case _:
            return value


def give(machine: Machine, node: ast.Yield | ast.YieldFrom) -> Value:
    """Evaluate `yield`: take note of what is given, where that is asked for."""
    value = machine.evaluate(node.value) if node.value is not None else None
    frame = machine.frame
    if frame.yields is None:
        havoc.leak(machine, value)
    else:
        try:
            given = iteration.elements(machine, value) if isinstance(node, ast.YieldFrom) else (value,)
        except Unmodelled:
            raise _NotFollowed from None
        frame.yields += given
        many = len(frame.yields) > MAX_ELEMENTS
        if (
            many
            or len(machine.state.path) > frame.start
            or not (all(map(is_fixed, given)) or _is_new(machine, node.value, value))
        ):
            raise _NotFollowed
    return machine.unknown("yield", "what is sent to a generator is not known", node)


def _is_new(machine: Machine, node: ast.expr | None, value: Value) -> bool:
    """Say whether an expression makes a list or a dict that nothing else holds, of what nothing can change."""
    match node:
        case ast.List() | ast.Dict() | ast.ListComp() | ast.DictComp() | ast.BinOp():
            pass
        case ast.Call(ast.Name("dict" | "list")):
            pass
        case _:
            return False
    plain = type(value) is ListRef or (isinstance(value, DictRef) and value.missing is None)
    contents = machine.contents(value) if plain else None
    return contents is not None and is_fixed(contents)


def _is_plain(statement: ast.stmt) -> bool:
    """Say whether a statement does no more than to compute and to give elements."""
    return all(map(_computes, walk(statement)))


def _computes(node: ast.AST) -> bool:
    match node:
        case ast.stmt():
            return isinstance(node, _STATEMENTS)
        case ast.Attribute(attr=name):
            return isinstance(node.ctx, ast.Load) and not name.startswith("_")
        case ast.Subscript():
            return isinstance(node.ctx, ast.Load)
        case ast.Call(ast.Name(name)):
            return name in _FUNCTIONS
        case ast.Call(ast.Attribute(ast.Name(), name)):
            return True  # see `_seen`
        case ast.Call() | ast.Lambda() | ast.Await() | ast.GeneratorExp():
            return False
        case _:
            return True


def _seen(machine: Machine, function: Function) -> tuple[tuple[Cell, Value], ...] | None:
    """Return the cells outside that a generator reads, with what they hold; None where it may do more than to read them."""
    local = Bindings.of(function.node).bound
    found: dict[Cell, Value] = {}
    methods = {
        id(node.func.value): node.func.attr
        for node in walk(function.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    for node in (part for statement in function.node.body for part in walk(statement)):  # type: ignore[union-attr]
        if not isinstance(node, ast.Name):
            continue
        method = methods.get(id(node))
        if node.id in local:
            if method is not None and method not in _METHODS:
                return None
            continue
        cell = _cell(machine, function, node.id)
        held = machine.state.read(cell) if cell is not None else External(f"builtins.{node.id}")
        if cell is not None:
            found[cell] = held
        elif node.id not in _FUNCTIONS | {"True", "False", "None"} or not hasattr(builtins, node.id):
            return None
        if isinstance(held, External):
            if method is not None and not f"{held.path}.".startswith(_MODULES):
                return None
        elif method is not None or not is_fixed(held):
            return None
    return tuple(found.items())


def _seen_of_objects(machine: Machine, node: Any, objects: Mapping[str, Instance]) -> tuple[tuple[Cell, Value], ...] | None:
    """Return the attributes that a generator reads of the objects it is given; None where it may do more with them."""
    names = [part for statement in node.body for part in walk(statement) if isinstance(part, ast.Name) and part.id in objects]
    parts = [part for statement in node.body for part in walk(statement) if isinstance(part, ast.Attribute)]
    read = {id(part.value): part.attr for part in parts}
    found: dict[Cell, Value] = {}
    for name in names:
        made, attribute = objects[name.id], read.get(id(name))
        if attribute is None or any(
            class_member(machine, made.cls, each) is not UNBOUND for each in (attribute, "__getattribute__")
        ):
            return None
        held = machine.state.read((made.id, attribute))
        if not is_fixed(held):
            return None
        found[(made.id, attribute)] = held
    return tuple(found.items())


def _cell(machine: Machine, function: Function, name: str) -> Cell | None:
    """Return the cell in which a free name of a function is found."""
    scope = machine.program.scopes[function.scope]
    while True:
        if scope.kind != "class" and machine.state.read((scope.id, name)) is not UNBOUND:
            return scope.id, name
        if scope.parent is None:
            return None
        scope = machine.program.scopes[scope.parent]


def is_fixed(value: Value) -> bool:
    """Say whether nothing can change a value."""
    match value:
        case tuple():
            return all(map(is_fixed, value))
        case Opaque(kind=kind):
            return bool(kind)
        case Array(library=library, contents=contents):
            return library == "jax" or contents is None
        case _:
            return is_constant(value) or isinstance(value, Term | DType | range | External)
