"""Why a function should not state the kernel's contract: it takes more than arrays of the kernel's."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

from codemods.callers import Neighbours
from codemods.nodes import nodes, walk
from codemods.source import Source
from codemods.wrappers import Wrapper, listed

_ASKING = frozenset(("isinstance", "hasattr", "getattr", "type"))


class Refusals:
    """What one file and those that may call its functions show of their parameters.

    Args:
        source: the file.
        root: the folder from which the tree's modules are imported.
    """

    def __init__(self, source: Source, root: Path) -> None:
        self._source = source
        self._root = root

    def reason(self, wrapper: Wrapper) -> str:
        """Return why annotations of arrays would refuse calls that are right; empty if nothing speaks against them."""
        function, given = wrapper.function, wrapper.given
        parameters = set(given.values())
        if names := sorted(parameters & set(_asked(function))):
            return f"it asks what {listed(names)} is"
        for source in self._callers:
            for node in nodes(source.tree, ast.Call):
                if _called(node) == function.name and (names := sorted(parameters & set(_none(function, node)))):
                    return f"{source.path}:{node.lineno} gives it None for {listed(names)}"
        return ""

    @cached_property
    def _callers(self) -> list[Source]:
        return [self._source, *Neighbours([self._source], self._root).callers([self._source]).sources]


def _asked(function: ast.AST) -> Iterator[str]:
    """Yield the names whose kind the function asks for: `x is None`, `isinstance(x, ...)`, `if x`, `x or y`."""
    for node in walk(function):
        match node:
            case ast.Compare(left=ast.Name(id=name), comparators=[ast.Constant(value=None)]):
                yield name
            case ast.Call(func=ast.Name(id=asking), args=[ast.Name(id=name), *_]) if asking in _ASKING:
                yield name
            case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                yield from _bare([test])
            case ast.BoolOp(values=values):
                yield from _bare(values)
            case ast.Match(subject=subject):
                yield from _bare([subject])
            case _:
                pass


def _bare(tests: Collection[ast.expr]) -> Iterator[str]:
    yield from (test.id for test in tests if isinstance(test, ast.Name))


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _none(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> Iterator[str]:
    """Yield the parameters for which a call writes None, or a choice of which one is None."""
    arguments = function.args
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    for name, node in (*zip(positional, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)):
        values = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        if name is not None and any(isinstance(each, ast.Constant) and each.value is None for each in values):
            yield name
