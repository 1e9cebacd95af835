"""Which objects of a module its functions may change: between two of its functions, any others may have run.

It reads the source without executing it. An object is known by the names that it has: those of the module, and `.NAME` for
what an attribute holds. A name that is assigned from another, bound by a loop over it or given it as an argument may be it, or
a part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.evaluate.relevance import MUTATORS
from codemods.nodes import Visitor, children, walk

ANYTHING = "*"
"""Stands for all names: code in a string, or a name that is computed."""

ANY_ATTRIBUTE = ".*"
"""Stands for all attributes of all objects."""

_MAKING = ("__init__", "__post_init__", "setUp")

_ANEW = frozenset({"len", "sum", "min", "max", "range", "int", "str", "float", "bool", "isinstance", "print", "repr", "id",
                   "type", "hasattr", "hash", "round", "abs", "divmod", "pow", "open"})  # fmt: skip
_CHANGING = frozenset({"shuffle", "heappush", "heappop", "heapify", "heappushpop", "heapreplace", "insort", "insort_left",
                       "insort_right", "setitem", "delitem", "iadd", "appendleft", "extendleft", "popleft", "move_to_end",
                       "__setitem__", "__delitem__", "__iadd__"})  # fmt: skip


@dataclass
class Changes:
    """What the functions of a module may change.

    Attributes:
        names: the names of the objects that they change in place, `.NAME` for what an attribute holds.
        attributes: the attributes that they set, of whatever object but the `self` of a method.
        own: those that methods set of their `self`, but for the methods that make an object.
        bound: the names that they bind by way of `globals()`.
        parameters: for each function, by its node's id, the parameters whose objects they change.
    """

    names: set[str] = field(default_factory=set[str])
    attributes: set[str] = field(default_factory=set[str])
    own: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    parameters: dict[int, set[str]] = field(default_factory=dict[int, set[str]])

    @property
    def any_attribute(self) -> bool:
        return ANY_ATTRIBUTE in self.names

    @property
    def anything(self) -> bool:
        return ANYTHING in self.names


def changes(tree: ast.AST) -> Changes:
    """Return what the functions of a module may change."""
    reader = _Reader()
    try:
        reader.visit(tree)
    except RecursionError:  # an expression that is too deep to read
        return Changes({ANYTHING})
    changed, waiting = set[str](), list(reader.changed)
    while waiting:
        name = waiting.pop()
        if name not in changed:
            changed.add(name)
            waiting += reader.aliases.get(name, ())
    found = Changes({name for name in changed if ":" not in name}, reader.attributes, reader.own, reader.bound)
    for node in reader.functions:
        found.parameters[id(node)] = {name for name in _parameters(node) if f"{id(node)}:{name}" in changed}
    return found


def _parameters(node: Any) -> list[str]:
    arguments: ast.arguments = node.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


class _Reader(Visitor):
    """Gathers who may be who, and who is changed; a name of a function is `ID:NAME`."""

    def __init__(self) -> None:
        self.aliases: dict[str, set[str]] = {}
        self.changed: set[str] = set()
        self.attributes: set[str] = set()
        self.own: set[str] = set()
        self.bound: set[str] = set()
        self.functions: list[Any] = []
        self._inside: list[tuple[Any, frozenset[str]]] = []
        self._named: dict[str, list[Any]] | None = None

    def visit(self, node: ast.AST) -> None:
        if self._named is None:  # the root
            self._named = {}
            for part in walk(node):
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._named.setdefault(part.name, []).append(part)
        super().visit(node)

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

    # Who may be who

    def _may_be(self, target: ast.expr, value: ast.expr) -> None:
        sources = set(self._stood_for(value))
        for part in walk(target):
            if isinstance(part, ast.Name | ast.Attribute) and not isinstance(part.ctx, ast.Load):
                name = self._name(part.id) if isinstance(part, ast.Name) else f".{part.attr}"
                self.aliases.setdefault(name, set()).update(sources - {name})
            elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
                for name in self._stood_for(part.value):
                    self.aliases.setdefault(name, set()).update(sources - {name})

    def _stood_for(self, node: ast.expr) -> Iterator[str]:
        """Yield the names of the objects that the value of an expression may be, or be a part of, or hold."""
        match node:
            case ast.Name(id):
                yield self._name(id)
            case ast.Attribute(value, attr):
                yield f".{attr}"
                yield from self._stood_for(value)
            case ast.Call(func=ast.Name(name)) if name in _ANEW:
                pass
            case ast.Call(func=function, args=arguments, keywords=keywords):
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                yield f"{name}()"
                if isinstance(function, ast.Attribute):
                    yield from self._stood_for(function.value)
                for each in (*arguments, *(keyword.value for keyword in keywords)):
                    yield from self._stood_for(each)
            case ast.Compare() | ast.Constant() | ast.JoinedStr() | ast.Lambda():
                pass
            case ast.Subscript(value):
                yield from self._stood_for(value)
            case ast.IfExp(_, body, orelse):
                yield from self._stood_for(body)
                yield from self._stood_for(orelse)
            case _:
                for part in children(node):
                    if isinstance(part, ast.expr):
                        yield from self._stood_for(part)

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

    # Who is changed

    def _change(self, target: ast.expr) -> None:
        """Take note that the object which `target` stands for is changed in place."""
        if not self._inside:
            return  # the module itself is executed
        while isinstance(target, ast.Subscript | ast.Starred):
            target = target.value
        match target:
            case ast.Name(name):
                self.changed.add(self._name(name))
            case ast.Attribute(attr=name):
                self.changed.add(f".{name}")
            case ast.Call(func=ast.Name("globals" | "vars" | "locals")):
                pass  # see `_set_names`
            case _:
                self.changed.update(self._stood_for(target))

    def _set_names(self, target: ast.expr, key: str | None) -> None:
        """Take note that an item is set of the dict of the names of an object or the module; `key` is None if not known."""
        if not self._inside:
            return
        match target:
            case ast.Call(func=ast.Name("globals" | "vars" | "locals"), args=[]):
                self.changed.add(ANYTHING if key is None else key)
                self.bound.update([] if key is None else [key])
            case ast.Attribute(ast.Name("self"), "__dict__") if getattr(self._inside[0][0], "name", "") in _MAKING:
                pass  # the attributes of an object that is being made
            case ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name("vars")):
                self.changed.update([ANY_ATTRIBUTE] if key is None else [])
                self.attributes.update([] if key is None else [key])
            case _:
                pass

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load) and self._inside:
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                self.attributes.add(node.attr)
            elif getattr(self._inside[0][0], "name", "") not in _MAKING:
                self.own.add(node.attr)
            if node.attr == "__dict__":
                self.changed.add(ANY_ATTRIBUTE)
        elif node.attr in MUTATORS | _CHANGING:  # called or not
            self._change(node.value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            self._set_names(node.value, key if isinstance(key, str) else None)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._change(node.target)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("exec", "eval") and isinstance(node.func, ast.Name) and self._inside:
            self.changed.add(ANYTHING)
        if name in ("setattr", "delattr", "__setattr__", "object") and len(node.args) > 1 and self._inside:
            given = next(
                (each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)), None
            )
            if given is None:
                self.changed.add(ANYTHING)
            else:
                self.attributes.add(given)
        if name in _CHANGING and node.args:
            self._change(node.args[0])
        if isinstance(node.func, ast.Attribute) and name in MUTATORS:
            for keyword in [None] if node.args or name != "update" else [keyword.arg for keyword in node.keywords]:
                self._set_names(node.func.value, keyword)
        assert self._named is not None
        if isinstance(node.func, ast.Name) and ":" in self._name(name) and name not in self._named:  # a function that it is given
            for each in node.args:
                self._change(each)
        self._call_back(node)
        for function in self._named.get(name, ()):
            self._give(function, node)
        self.generic_visit(node)

    def _call_back(self, node: ast.Call) -> None:
        """Take note that a function which is handed to another may be called with what that one is given besides."""
        assert self._named is not None
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for each in given:
            called = (
                [each] if isinstance(each, ast.Lambda) else self._named.get(each.id, []) if isinstance(each, ast.Name) else []
            )
            for function in called:
                for parameter in _parameters(function):
                    for other in given:
                        if other is not each:
                            names = self.aliases.setdefault(f"{id(function)}:{parameter}", set())
                            names.update(self._stood_for(other))

    def _give(self, function: Any, node: ast.Call) -> None:
        """Take note that the parameters of a function may be what a call gives it."""
        parameters = _parameters(function)
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
