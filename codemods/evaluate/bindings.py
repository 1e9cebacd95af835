"""The names that a function binds."""

from __future__ import annotations

import ast
from typing import Any
from weakref import WeakKeyDictionary

from codemods.nodes import Visitor

_known: WeakKeyDictionary[ast.AST, Bindings] = WeakKeyDictionary()


class Bindings(Visitor):
    """The names that a function binds itself, and those that it declares global or nonlocal."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.foreign: set[str] = set()
        self.inner = False
        self.attributes: set[str] = set()  # of objects that it sets
        self.yields = False

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store):
            self.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self.yields = True
        self.generic_visit(node)

    visit_YieldFrom = visit_Yield

    @classmethod
    def of(cls, node: Any) -> Bindings:
        """Return the bindings of a function or lambda."""
        if (known := _known.get(node)) is not None:
            return known
        found = _known[node] = cls()
        for part in node.body if isinstance(node.body, list) else [node.body]:
            found.visit(part)
        arguments: ast.arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        found.bound.update(parameter.arg for parameter in named if parameter is not None)
        found.bound -= found.foreign
        return found

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def _define(self, node: Any) -> None:
        self.bound.add(node.name)
        self.inner = True
        for part in (*node.decorator_list, *getattr(node, "bases", ())):
            self.visit(part)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _define

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.inner = True

    def _scope(self, node: Any) -> None:
        self.inner = True
        for part in ast.walk(node):  # a walrus in a comprehension binds outside of it
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                self.bound.add(part.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound.update((alias.asname or alias.name.partition(".")[0]) for alias in node.names)

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.foreign.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bound.add(node.rest)
        self.generic_visit(node)
