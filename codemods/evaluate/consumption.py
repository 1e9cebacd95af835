"""Where in the source an iterator is used up: what it evaluates is evaluated there, and not when it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from codemods.evaluate.relevance import changed
from codemods.nodes import walk

Consumption: TypeAlias = str
"""Whether an iterator is used up in the expression that makes it: `whole`, maybe in `part`, or `later`, nobody knows where."""

_WHOLE = frozenset(
    {"list", "tuple", "set", "frozenset", "dict", "sum", "min", "max", "sorted", "len", "join", "extend", "update", "fromkeys",
     "OrderedDict", "deque", "prod", "array", "asarray", "stack", "concatenate"}
)  # fmt: skip
_ANEW = frozenset({"int", "float", "str", "bool", "abs", "min", "max", "range", "tuple"})
"""Functions that give the same for the same, whenever they are called."""

_PART = frozenset({"any", "all", "next"})
_THROUGH = frozenset({"zip", "enumerate", "map", "filter", "iter", "reversed"})
"""What gives an iterator over what its own iterators give: it uses them up where it is used up itself."""


def consumptions(tree: ast.AST) -> dict[int, Consumption]:
    """Return how each expression is consumed where it stands, by the id of its node; those that are not are left out."""
    found: dict[int, Consumption] = {}
    for node in walk(tree):  # parents come before their children
        for part, how in _consumed(node, found):
            found[id(part)] = how
    return found


def _consumed(node: ast.AST, found: dict[int, Consumption]) -> Iterator[tuple[ast.expr, Consumption]]:
    whole, part = "whole", "part"
    match node:
        case ast.For(iter=iterated, body=body) if _undisturbed(iterated, body):
            yield iterated, whole
        case ast.ListComp(generators=generators) | ast.SetComp(generators=generators) | ast.DictComp(generators=generators):
            yield from ((generator.iter, whole) for generator in generators)
        case ast.GeneratorExp(generators=generators) if id(node) in found:
            yield from ((generator.iter, found[id(node)]) for generator in generators)
        case ast.Starred(value=value):
            yield value, whole
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            yield value, part
        case ast.Compare(ops=ops, comparators=comparators):
            yield from ((each, part) for op, each in zip(ops, comparators, strict=True) if isinstance(op, ast.In | ast.NotIn))
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=arguments):
            how: Consumption | None = whole if name in _WHOLE else part if name in _PART else None
            if name in _THROUGH:
                how = found.get(id(node))
                how = part if how and name == "zip" else how  # it stops where the shortest does
            if how:
                yield from ((argument, how) for argument in arguments)
        case _:
            pass


def _undisturbed(iterated: ast.expr, body: list[ast.stmt]) -> bool:
    """Say whether the body of a loop sets or changes nothing that the iterated expression mentions, and does not leave early."""
    if not isinstance(iterated, ast.GeneratorExp) and not (
        isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") == "map"
    ):
        return True  # what others give is looked at again in each round
    lazy = iterated.elt if isinstance(iterated, ast.GeneratorExp) else ast.Tuple(iterated.args[:1])
    tests = [test for part in ast.walk(iterated) if isinstance(part, ast.comprehension) for test in part.ifs]
    for part in (each for root in (lazy, *tests) for each in ast.walk(root)):
        stateful = isinstance(part, ast.Attribute | ast.Subscript | ast.NamedExpr)
        if stateful or (isinstance(part, ast.Call) and getattr(part.func, "id", "") not in _ANEW):
            return False
    if (
        isinstance(iterated, ast.Call)
        and not isinstance(iterated.args[0], ast.Lambda)
        and ast.unparse(iterated.args[0]) not in _ANEW
    ):
        return False  # a function may look at anything
    mentioned = {part.id for part in ast.walk(iterated) if isinstance(part, ast.Name)}
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Break | ast.Return) or changed(part) in mentioned:
                return False
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and part.id in mentioned:
                return False
    return True
