"""Which names of a module may stand for one object.

A name that is assigned from another, bound by a loop over it or given it as an argument may be it, or a part of it. Names are
those of the module, `ID:NAME` for those of a function, `.NAME` for what an attribute holds, and `NAME()` for what a function
gives.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from codemods.nodes import Visitor, children, nodes, walk

_ANEW = frozenset({"len", "sum", "min", "max", "range", "int", "str", "float", "bool", "isinstance", "print", "repr", "id",
                   "type", "hasattr", "hash", "round", "abs", "divmod", "pow", "open"})  # fmt: skip
_NO_OBJECTS = (ast.Constant, ast.Compare, ast.JoinedStr, ast.Lambda)


def parameters_of(node: Any) -> list[str]:
    """Return the names of the parameters of a function, without `*args` and `**kwargs`."""
    arguments: ast.arguments = node.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def called_name(call: ast.Call) -> str:
    """Return the name of what is called, without what it is an attribute of; empty where it has none."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


class Aliases(Visitor):
    """Gathers who may be who in a module.

    Attributes:
        aliases: for each name, those whose objects it may stand for.
        functions: the functions of the module.
    """

    def __init__(self) -> None:
        self.aliases: dict[str, set[str]] = {}
        self.functions: list[Any] = []
        self._inside: list[tuple[Any, frozenset[str]]] = []
        self._named: dict[str, list[Any]] = {}

    def read(self, tree: ast.Module) -> None:
        """Read a module."""
        for function in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef):
            self._named.setdefault(function.name, []).append(function)
        self.visit(tree)

    def _defined(self, name: str) -> Sequence[Any]:
        """Return the functions that have this name."""
        return self._named.get(name, ())

    def _name(self, name: str) -> str:
        for node, bound in reversed(self._inside):
            if name in bound:
                return f"{id(node)}:{name}"
        return name

    def _function(self, node: Any) -> None:
        from codemods.evaluate.bindings import Bindings

        for part in (*getattr(node, "decorator_list", ()), *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self.functions.append(node)
        self._inside.append((node, frozenset(Bindings.of(node).bound)))
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)
        self._inside.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def _may_be(self, target: ast.expr, value: ast.expr) -> None:
        sources = self._stood_for(value)
        if isinstance(target, ast.Name):
            name = self._name(target.id)
            self.aliases.setdefault(name, set()).update(sources - {name})
            return
        for part in walk(target):
            if isinstance(part, ast.Name | ast.Attribute) and not isinstance(part.ctx, ast.Load):
                name = self._name(part.id) if isinstance(part, ast.Name) else f".{part.attr}"
                self.aliases.setdefault(name, set()).update(sources - {name})
            elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
                for name in self._stood_for(part.value):
                    self.aliases.setdefault(name, set()).update(sources - {name})

    def _stood_for(self, node: ast.expr) -> set[str]:
        """Return the names of the objects that the value of an expression may be, or be a part of, or hold."""
        found: set[str] = set()
        rest: list[ast.AST] = [node]
        while rest:
            part = rest.pop()
            if isinstance(part, ast.Name):
                found.add(self._name(part.id))
            elif isinstance(part, ast.Attribute):
                found.add(f".{part.attr}")
                rest.append(part.value)
            elif isinstance(part, ast.Call):
                if isinstance(part.func, ast.Name) and part.func.id in _ANEW:
                    continue
                found.add(f"{called_name(part)}()")
                if isinstance(part.func, ast.Attribute):
                    rest.append(part.func.value)
                rest += part.args
                rest += [keyword.value for keyword in part.keywords]
            elif isinstance(part, ast.Subscript):
                rest.append(part.value)
            elif isinstance(part, ast.IfExp):
                rest += (part.body, part.orelse)
            elif not isinstance(part, _NO_OBJECTS):
                rest += [each for each in children(part) if isinstance(each, ast.expr)]
        return found

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._may_be(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign | ast.NamedExpr) -> None:
        if node.value is not None:
            self._may_be(node.target, node.value)
        self.generic_visit(node)

    visit_NamedExpr = visit_AnnAssign

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        self._may_be(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_comprehension = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._may_be(node.optional_vars, node.context_expr)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return | ast.Yield) -> None:
        if node.value is not None and self._inside:
            name = getattr(self._inside[-1][0], "name", "<lambda>")
            self.aliases.setdefault(f"{name}()", set()).update(self._stood_for(node.value))
        self.generic_visit(node)

    visit_Yield = visit_Return

    def visit_Call(self, node: ast.Call) -> None:
        self._hand_on(node)
        self.generic_visit(node)

    def _hand_on(self, node: ast.Call) -> None:
        """Take note of what a call hands to functions of the module."""
        self._call_back(node)
        for function in self._defined(called_name(node)):
            self._give(function, node)

    def _call_back(self, node: ast.Call) -> None:
        """Take note that a function which is handed to another may be called with what that one is given besides."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for each in given:
            called = [each] if isinstance(each, ast.Lambda) else self._defined(each.id) if isinstance(each, ast.Name) else []
            for function in called:
                for parameter in parameters_of(function):
                    for other in given:
                        if other is not each:
                            names = self.aliases.setdefault(f"{id(function)}:{parameter}", set())
                            names.update(self._stood_for(other))

    def _give(self, function: Any, node: ast.Call) -> None:
        """Take note that the parameters of a function may be what a call gives it."""
        parameters = parameters_of(function)
        values: list[ast.expr] = list(node.args)
        if isinstance(node.func, ast.Attribute):  # a method or a function of a module
            values = [node.func.value, *values] if parameters[:1] in (["self"], ["cls"]) else values
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        spread = any(isinstance(each, ast.Starred) for each in values) or None in named
        for position, parameter in enumerate(parameters):
            given = values if spread else values[position : position + 1]
            for value in (*given, *([named[parameter]] if parameter in named else ())):
                sources = self._stood_for(value.value if isinstance(value, ast.Starred) else value)
                self.aliases.setdefault(f"{id(function)}:{parameter}", set()).update(sources)
        rest = [each for each in (function.args.vararg, function.args.kwarg) if each is not None]
        for parameter in rest:
            for value in (*values, *named.values()):
                self.aliases.setdefault(f"{id(function)}:{parameter.arg}", set()).update(self._stood_for(value))
