"""The dicts of `collections`, which have something to say of a key that is missing."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import containers, counters, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.nodes import walk
from codemods.values import COUNTER, DictRef, External, Function, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_MADE = ("bool", "dict", "float", "int", "list", "set", "str", "tuple")
_FACTORIES = {External(f"builtins.{name}") for name in _MADE}


@interprets("builtins.dict", "collections.OrderedDict")
def _dict(machine: Machine, arguments: Arguments) -> Value:
    return containers.make_dict(machine, _items(machine, arguments, arguments.positional))


def _items(machine: Machine, arguments: Arguments, positional: Sequence[Value]) -> list[tuple[Value, Value]]:
    """Return the items of `dict(*positional, **keywords)`."""
    items: list[tuple[Value, Value]] = []
    for value in positional:
        if isinstance(value, DictRef):
            contents = machine.contents(value)
            if contents is None:
                raise Unmodelled("the contents of the dict are not known")
            items += contents
        else:
            pairs = [iteration.elements(machine, pair) for pair in iteration.elements(machine, value)]
            items += [(pair[0], pair[1]) for pair in pairs]
    if arguments.spread:
        raise Unmodelled("what is spread into the dict is not known")
    return [*items, *arguments.keywords.items()]


@interprets("collections.defaultdict")
def _defaultdict(machine: Machine, arguments: Arguments) -> Value:
    factory, *pairs = arguments.positional or (None,)
    if not (factory is None or factory in _FACTORIES or (isinstance(factory, Function) and _only_makes(factory.node))):
        raise Unmodelled("what a missing key is given is not followed")
    return containers.make_dict(machine, _items(machine, arguments, pairs), missing=factory)


def _only_makes(node: Any) -> bool:
    """Say whether a function does nothing but to make a new value: it may be called at any time, and nobody notices."""
    return (
        isinstance(node, ast.Lambda)
        and not node.args.args
        and all(
            isinstance(part.func, ast.Name) and part.func.id in (*_MADE, "defaultdict")
            for part in walk(node.body)
            if isinstance(part, ast.Call)
        )
        and not any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in walk(node.body))
    )


@interprets("collections.Counter")
def _counter(machine: Machine, arguments: Arguments) -> Value:
    made = containers.make_dict(machine, (), missing=COUNTER)
    counters.count(machine, made, arguments)
    return made
