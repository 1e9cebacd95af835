"""Where the value of a kernel's argument is written down, as far as it is only handed on from there.

A literal goes through names, imports, parameters, defaults, partials, dicts, attributes, loops and the cases of a test.
What is found is a candidate: a repair made there is checked again before it is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codemods.evaluate.machine import Arrival, Caller, Given
from codemods.nodes import nodes
from codemods.repairs.cases import cases
from codemods.repairs.displays import NotWritten, constant, differs, parts, read_from
from codemods.repairs.fields import Field, attribute_reads, classes_with, default_of, given_to, is_reflected, is_tuple, set_in
from codemods.repairs.scopes import Function, Path, Variable
from codemods.repairs.trails import LONGEST, Search, Trail, is_literal
from codemods.repairs.tree import Tree
from codemods.values import same


class Origins:
    """Finds the literals that arguments have their values from."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def trail(self, arrival: Arrival, node: ast.expr | None, parameter: str, value: Any) -> Trail | None:
        """Return the way of an argument's value in one execution; None where it is computed, or comes from elsewhere.

        Args:
            arrival: the execution.
            node: the expression of the argument, None where the call spreads a dict that holds it.
            parameter: the argument's name as the callee spells it.
            value: its value.
        """
        search = Search(value, arrival.callers, arrival.case)
        if node is not None:
            found = self._trail(node, (), search)
        else:
            spread = [keyword.value for keyword in arrival.source[1].keywords if keyword.arg is None]
            found = self._lone((self._trail(each, (parameter,), search) for each in spread), value)
        return found if found is not None and same(found.value, value) else None

    def trail_of(self, node: ast.expr, value: Any) -> Trail | None:
        """Return the way of a value that an expression has wherever it is executed."""
        found = self._trail(node, (), Search(value))
        return found if found is not None and same(found.value, value) else None

    def free(self, trails: Sequence[Trail]) -> bool:
        """Say whether nothing but these trails reads what holds a value on them, here or in another file."""
        read = {each for trail in trails for each in trail.reads}
        return all(self._free(holder, read) for holder in {each for trail in trails for each in trail.holders})

    def _free(self, holder: Variable | Field, read: set[int]) -> bool:
        if isinstance(holder, Variable):
            return self.tree.has_no_other_reads(holder, read)
        for file in self.tree.files_mentioning(holder.name, holder.file):
            if file is None or is_reflected(file, holder.name):
                return False
            if any(id(node) not in read for node in attribute_reads(file, holder.name)):
                return False
        return all(self._says_only(cls, holder.name, read) for cls in classes_with(holder.file, holder.name))

    def _says_only(self, cls: ast.ClassDef, name: str, read: set[int]) -> bool:
        """Say whether the body of a class does not read an attribute itself, and nothing unpacks its objects."""
        uses = self.tree.scopes_of(cls).uses.get(Variable(cls, name))
        own = uses is not None and any(id(node) not in read for node in uses.reads)
        return not own and not (is_tuple(cls) and self._may_be_unpacked(cls))

    def _may_be_unpacked(self, cls: ast.ClassDef) -> bool:
        """Say whether an object of a class is more than made and asked for its attributes."""
        for call in self.tree.calls_of(cls):
            file = self.tree.scopes_of(call)
            asked = {id(node.value) for node in nodes(file.tree, ast.Attribute)}
            kept = [uses.reads for uses in file.uses.values() if uses.lone_value is call]
            if id(call) not in asked and not (kept and all(id(read) in asked for read in kept[0])):
                return True
        return False

    def _trail(self, node: ast.expr | None, path: Path, search: Search) -> Trail | None:
        """Follow the part of an expression's value that a path leads to; an empty path leads to the value itself."""
        if node is None or search.left == 0 or not self.tree.holds(node):
            return None
        if not path and is_literal(node):
            return Trail(node)
        search = replace(search, left=search.left - 1)
        match node:
            case ast.Name():
                return self._of_variable(node, path, search)
            case ast.NamedExpr(target=target, value=value):
                found = self._trail(value, path, search)
                return found.via([], *self.tree.variables(target)) if found is not None else None
            case ast.Attribute():
                return self._of_variable(node, path, search) if self.tree.variables(node) else self._of_field(node, path, search)
            case ast.Subscript(value=held, slice=index):
                key = constant(index)
                if key is None and (value := self.tree.value(index)) is not None:
                    key = constant(value)
                return self._trail(held, (key, *path), search) if key is not None else None
            case ast.IfExp(body=first, orelse=second):
                return self._lone((self._trail(each, path, search) for each in (first, second)), search.value)
            case _:
                return self._of_display(node, path, search) if path else None

    def _of_display(self, node: ast.expr, path: Path, search: Search) -> Trail | None:
        """Follow an entry of a dict, `{**base, "block": 4}`, or an element of a tuple or list."""
        try:
            for part in parts(node, path[0]):
                if not part.whole:
                    return self._trail(part.node, path[1:], search)
                if not self._lacks(part.node, path[0]):
                    return self._trail(part.node, path, search)
        except NotWritten:
            pass
        return None

    def _lacks(self, node: ast.expr, key: Any, left: int = LONGEST) -> bool:
        """Say whether a dict certainly has no such key when it is made; what adds one later is another read of its name."""
        value = self.tree.value(node) if isinstance(node, ast.Name | ast.Attribute) else node
        if value is None or left == 0:
            return False
        if isinstance(value, ast.Name | ast.Attribute):
            return self._lacks(value, key, left - 1)
        try:
            return all(part.whole and self._lacks(part.node, key, left - 1) for part in parts(value, key))
        except NotWritten:
            return False

    def _of_variable(self, node: ast.expr, path: Path, search: Search) -> Trail | None:
        """Follow a name, or `module.name`, to what its variable is set to."""
        variables = self.tree.variables(node)
        if not variables:
            return None
        uses, (*_, variable) = self.tree.uses(variables[-1]), variables
        holders, scope = list(variables), variable.scope
        if isinstance(scope, ast.ClassDef) and self.tree.is_enum(scope):
            return None
        if (value := uses.lone_value) is not None:
            found = self._trail(value, path, search)
        elif uses.lone_part is not None:
            value, own = uses.lone_part
            holders += self.tree.scopes_of(scope).sharing(value, (*own, *path))
            found = self._trail(value, (*own, *path), search)
        elif uses.only_parameter and isinstance(scope, Function):
            found = self._of_parameter(scope, variable.name, path, search)
        elif uses.lone_loop is not None:
            elements, own = uses.lone_loop
            found = self._lone(self._elements(elements, (*own, *path), search), search.value)
        else:
            return None
        reads = [node, *(self._reads_of_others(variable, path) if path else ())]
        return found.via(reads, *holders, annotated=uses.annotated) if found is not None else None

    def _elements(self, node: ast.expr, path: Path, search: Search) -> Iterator[Trail | None]:
        """Yield the trail of a part of each element that a loop runs through."""
        match node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                yield from (self._trail(each, path, search) for each in elements)
            case ast.Call(func=ast.Name(id=name), args=args) if not self.tree.variables(node.func):  # a builtin
                if name == "zip" and path and path[0] < len(args):
                    yield from self._elements(args[path[0]], path[1:], search)
                elif name == "enumerate" and path[:1] == (1,) and args:
                    yield from self._elements(args[0], path[1:], search)
                elif name in ("list", "reversed", "tuple") and len(args) == 1:
                    yield from self._elements(args[0], path, search)
            case ast.Call(func=ast.Attribute(value=held, attr="values"), args=[]):
                yield from self._entries(held, path, search)
            case ast.Call(func=ast.Attribute(value=held, attr="items"), args=[]) if path[:1] == (1,):
                yield from self._entries(held, path[1:], search)
            case ast.Name() | ast.Attribute() if (value := self.tree.value(node)) is not None and search.left:
                found = self._elements(value, path, replace(search, left=search.left - 1))
                yield from (each.via([node], *self.tree.variables(node)) for each in found if each is not None)
            case _:
                pass

    def _entries(self, node: ast.expr, path: Path, search: Search) -> Iterator[Trail | None]:
        """Yield the trail of a part of each value of a dict."""
        if isinstance(node, ast.Dict) and None not in node.keys:
            yield from (self._trail(each, path, search) for each in node.values)
        elif isinstance(node, ast.Name | ast.Attribute) and (value := self.tree.value(node)) is not None and search.left:
            found = self._entries(value, path, replace(search, left=search.left - 1))
            yield from (each.via([node], *self.tree.variables(node)) for each in found if each is not None)

    def _of_parameter(self, function: Function, name: str, path: Path, search: Search) -> Trail | None:
        """Follow a parameter to what its function was called with: by a caller, by the cases of a test, or to make an object."""
        depth, caller = _caller(search.callers, function)
        if caller is None:
            return self._of_maker(function, name, path, search)
        if caller.given is None:
            rows = (row[name] for row in cases(function) if name in row and _agrees(row, search.case))
            return self._lone((self._trail(node, path, replace(search, callers=())) for node in rows), search.value)
        search = replace(search, callers=search.callers[:depth])
        if function.args.kwarg is not None and function.args.kwarg.arg == name:
            return self._trail(caller.given.get(path[0]), path[1:], search) if path else None
        return self._trail(_argument(function.args, caller.given, name), path, search)

    def _of_maker(self, function: Function, name: str, path: Path, search: Search) -> Trail | None:
        """Follow a parameter of `__init__`, which is done by the time of the call, to what objects are made with."""
        cls = self.tree.scopes_of(function).scope_of(function)
        if not isinstance(cls, ast.ClassDef):
            return None
        calls = [search.made_by] if search.made_by is not None else self.tree.calls_of(cls)
        given: list[Given] = [
            {**dict(enumerate(call.args, 1)), **{each.arg or "": each.value for each in call.keywords}} for call in calls
        ]
        found = [_argument(function.args, each, name) for each in (given if search.made_by is not None else [*given, {}])]
        values = {id(node): node for node in found if node is not None}.values()
        search = replace(search, callers=(), made_by=None)
        return self._lone((self._trail(node, path, search) for node in values), search.value)

    def _of_field(self, node: ast.Attribute, path: Path, search: Search) -> Trail | None:
        """Follow an attribute of an object to what the object is made with, what its class says, or what it is set to."""
        cls, made_by = self._class_of(node.value, search)
        field = Field(self.tree.scopes_of(cls if cls is not None else node).tree, node.attr)
        if any(self.tree.is_enum(each) for each in classes_with(field.file, field.name)):
            return None  # the value of an enum's member is what the member is called by: another one is another member
        search = replace(search, callers=(), made_by=made_by)
        given = given_to(cls, made_by, field.name) if cls is not None and made_by is not None else None
        if given is not None:
            found = self._trail(given, path, replace(search, made_by=None))
        else:
            values = [default_of(each, field.name) for each in ([cls] if cls is not None else classes_with(*field))]
            files = {id(file): file for file in (field.file, self.tree.scopes_of(node).tree)}.values()
            values += (value for file in files for value in set_in(file, field.name))
            if made_by is None:
                values += self._given_anywhere(field)
            found = self._lone((self._trail(each, path, search) for each in values), search.value)
        return found.via([node], field) if found is not None else None

    def _given_anywhere(self, field: Field) -> Iterator[ast.expr]:
        """Yield what objects of the file's classes get for an attribute when they are made."""
        for cls in nodes(field.file, ast.ClassDef):
            given = (given_to(cls, call, field.name) for call in self.tree.calls_of(cls))
            yield from (each for each in given if each is not None)

    def _class_of(self, node: ast.expr, search: Search) -> tuple[ast.ClassDef | None, ast.Call | None]:
        """Return the class of an object, or the class that an expression names, and the call that made the object."""
        if search.left == 0 or not self.tree.holds(node):
            return None, None
        search = replace(search, left=search.left - 1)
        if isinstance(node, ast.Call):
            cls = self.tree.class_of(node.func)
            return (cls, node) if cls is not None else (None, None)
        if (cls := self.tree.class_of(node)) is not None:
            return cls, None
        for variable in self.tree.variables(node)[-1:]:
            uses = self.tree.uses(variable)
            if uses.lone_value is not None:
                return self._class_of(uses.lone_value, search)
            if uses.only_parameter and isinstance(variable.scope, Function):
                depth, caller = _caller(search.callers, variable.scope)
                given = caller.given if caller is not None else None
                argument = _argument(variable.scope.args, given, variable.name) if given is not None else None
                if argument is not None:
                    return self._class_of(argument, replace(search, callers=search.callers[:depth]))
        return None, None

    def _reads_of_others(self, variable: Variable, path: Path) -> Iterator[ast.expr]:
        """Yield the reads of a variable that are for another part of its value, `options["other"]`, in all files."""
        for file in self.tree.files_with(variable):
            for each in nodes(file, ast.Subscript):
                node, other = read_from(each)
                if differs(path, other) and self.tree.variables(node)[-1:] == (variable,):
                    yield node

    def _lone(self, trails: Iterable[Trail | None], value: Any) -> Trail | None:
        """Return the only one of some trails that leads to a value."""
        found = [trail for trail in trails if trail is not None and same(trail.value, value)]
        return found[0] if len(found) == 1 else None


def _caller(callers: Sequence[Caller], function: ast.AST) -> tuple[int, Caller | None]:
    """Return the innermost execution of a function, and how many are around it."""
    for depth in reversed(range(len(callers))):
        if callers[depth].function is function:
            return depth, callers[depth]
    return 0, None


def _argument(arguments: ast.arguments, given: Given, name: str) -> ast.expr | None:
    """Return the expression of a parameter's argument, else its default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    for index, (parameter, default) in enumerate(zip(positional, defaults, strict=True)):
        if parameter.arg == name:
            return given.get(name, given.get(index, default))  # type: ignore[arg-type]
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if parameter.arg == name:
            return given.get(name, default)  # type: ignore[arg-type]
    return None


def _agrees(row: Mapping[str, ast.expr], case: Mapping[str, Any]) -> bool:
    literals = {name: node for name, node in row.items() if is_literal(node)}
    return all(name in case and same(ast.literal_eval(node), case[name]) for name, node in literals.items())
