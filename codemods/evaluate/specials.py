"""Special methods of the source that builtin code calls: `sorted` calls `__lt__`, `in` calls `__eq__`, a dict `__hash__`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from codemods.evaluate import havoc, objects
from codemods.values import Bound, DictRef, Function, Instance, ListRef, Value, is_constant

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


def may_run(machine: Machine, *values: Value, node: ast.AST | None = None) -> None:
    """Take note that code which is given these objects may call their special methods, any number of times."""
    for each in _objects(machine, values):
        for name in _SPECIAL:
            method = objects.class_member(machine, each.cls, name)
            if isinstance(method, Function):
                _maybe(machine, each, method, node)


def _maybe(machine: Machine, receiver: Instance, method: Function, node: ast.AST | None) -> None:
    from codemods.evaluate.calls import Arguments, call

    why = f"`{method.name}` may change it"
    havoc.maybe(machine, lambda: call(machine, Bound(receiver, method), Arguments(spread=True)), why, node)


def _objects(machine: Machine, values: Iterable[Value]) -> Iterator[Instance]:
    """Yield the objects of classes of the source among values, and among what these hold."""
    waiting, seen = list(values), set[int]()
    while waiting:
        value = waiting.pop()
        match value:
            case Instance():
                yield value
            case tuple():
                waiting += [each for each in value if not is_constant(each)]
            case ListRef(id) | DictRef(id) if id not in seen and (contents := machine.contents(value)) is not None:
                seen.add(id)
                waiting += contents
            case _:
                pass
