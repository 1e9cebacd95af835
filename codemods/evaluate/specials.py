"""Special methods of the source that builtin code calls: `sorted` calls `__lt__`, `in` calls `__eq__`, a dict `__hash__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.evaluate import havoc, objects
from codemods.values import Bound, DictRef, Function, Instance, ListRef, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_SPECIAL = tuple(
    f"__{name}__"
    for name in (
        *("hash", "eq", "ne", "lt", "le", "gt", "ge", "bool", "len", "format", "str", "repr", "iter", "next", "contains"),
        *("getitem", "getattr", "int", "index", "float", "radd", "rsub", "rmul", "rfloordiv", "rmod", "ror", "rand", "reversed"),
        *("abs", "round", "divmod", "neg", "length_hint", "missing", "copy", "deepcopy", "fspath", "bytes", "complex"),
    )
)
MAX_DEPTH = 3


def may_run(machine: Machine, *values: Value, node: ast.AST | None = None) -> None:
    """Take note that code which is given these objects may call their special methods, any number of times."""
    for each in _objects(machine, values, MAX_DEPTH):
        for name in _SPECIAL:
            method = objects.class_member(machine, each.cls, name)
            if isinstance(method, Function):
                _maybe(machine, each, method, node)


def _maybe(machine: Machine, receiver: Instance, method: Function, node: ast.AST | None) -> None:
    from codemods.evaluate.calls import Arguments, call

    why = f"`{method.name}` may change it"
    havoc.maybe(machine, lambda: call(machine, Bound(receiver, method), Arguments(spread=True)), why, node)


def _objects(machine: Machine, values: tuple[Value, ...], depth: int) -> Iterator[Instance]:
    for value in values:
        match value:
            case Instance():
                yield value
            case tuple() if depth:
                yield from _objects(machine, value, depth - 1)
            case ListRef() | DictRef() if depth and (contents := machine.contents(value)) is not None:
                yield from _objects(machine, contents, depth)
            case _:
                pass
