"""Where the value of a kernel's argument is written down, as far as it is only handed on from there.

A literal goes through names, imports, parameters, defaults, partials, dicts, attributes, loops and the cases of a test.
What is found is a candidate: a repair made there is checked again before it is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from codemods.evaluate.machine import Arrival, Caller, Given
from codemods.nodes import nodes
from codemods.repairs.cases import cases
from codemods.repairs.scopes import Function, Variable
from codemods.repairs.tree import Tree
from codemods.values import same

_LONGEST = 24  # names that one value is handed on through
_GETTERS = frozenset(("getattr", "attrgetter"))
_REFLECTION = frozenset(("vars", "__dict__", "asdict", "astuple", "_asdict"))


def is_literal(node: ast.expr) -> bool:
    """Say whether an expression is a literal number, string or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and node.value is not Ellipsis


class Field(NamedTuple):
    """The attributes of one name, of any object, in a file."""

    file: ast.Module
    name: str

    def __hash__(self) -> int:
        return hash((id(self.file), self.name))


@dataclass(frozen=True)
class Trail:
    """The way of a value from its literal to the kernel.

    Attributes:
        literal: where it is written down.
        reads: the ids of the expressions that read it on the way.
        holders: the variables and attributes that hold it on the way, or hold what holds it.
        annotated: whether a variable on the way has a type annotation.
    """

    literal: ast.expr
    reads: frozenset[int] = frozenset()
    holders: frozenset[Variable | Field] = frozenset()
    annotated: bool = False

    @property
    def value(self) -> Any:
        return ast.literal_eval(self.literal)

    def via(self, reads: Iterable[ast.expr], *holders: Variable | Field, annotated: bool = False) -> Trail:
        """Return the trail that goes on through the holders, and is read from them."""
        all_reads, all_holders = self.reads | set(map(id, reads)), self.holders | set(holders)
        return replace(self, reads=all_reads, holders=all_holders, annotated=self.annotated or annotated)


@dataclass(frozen=True)
class _Search:
    """One search: the value that is looked for, and what was being executed where the expression stands."""

    value: Any
    callers: Sequence[Caller] = ()
    case: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left: int = _LONGEST


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
        search = _Search(value, arrival.callers, arrival.case)
        found = self._spread(arrival.source[1], parameter, search) if node is None else self._trail(node, search)
        return found if found is not None and same(found.value, value) else None

    def trail_of(self, node: ast.expr, value: Any) -> Trail | None:
        """Return the way of a value that an expression has wherever it is executed."""
        found = self._trail(node, _Search(value))
        return found if found is not None and same(found.value, value) else None

    def free(self, trails: Sequence[Trail]) -> bool:
        """Say whether nothing but these trails reads what holds a value on them, here or in another file."""
        read = {each for trail in trails for each in trail.reads}
        return all(self._free(holder, read) for holder in {each for trail in trails for each in trail.holders})

    def _free(self, holder: Variable | Field, read: set[int]) -> bool:
        if isinstance(holder, Variable):
            return self.tree.has_no_other_reads(holder, read)
        if self.tree.is_mentioned(holder.name, holder.file) or _is_reflected(holder):
            return False
        return all(id(node) in read for node in _attribute_reads(holder))

    def _trail(self, node: ast.expr | None, search: _Search) -> Trail | None:
        if node is None or search.left == 0 or not self.tree.holds(node):
            return None
        if is_literal(node):
            return Trail(node)
        search = replace(search, left=search.left - 1)
        match node:
            case ast.Name():
                return self._of_variable(node, search)
            case ast.NamedExpr(target=target, value=value):
                found = self._trail(value, search)
                return found.via([], *self.tree.variables(target)) if found is not None else None
            case ast.Attribute(attr=name):
                if self.tree.variables(node):
                    return self._of_variable(node, search)
                field = Field(self.tree.scopes_of(node).tree, name)
                if any(self.tree.is_enum(cls) for cls in _classes_with(field)):
                    return None  # the value of an enum's member is what the member is called by: another one is another member
                values = self._lone(_attribute_values(field), search)
                return values.via([node], field) if values is not None else None
            case ast.Subscript(value=held, slice=ast.Constant(value=key)):
                return self._of_entry(held, key, search)
            case _:
                return None

    def _of_variable(self, node: ast.expr, search: _Search) -> Trail | None:
        """Follow a name, or `module.name`, to what its variable is set to."""
        variables = self.tree.variables(node)
        if not variables:
            return None
        uses, (*_, variable) = self.tree.uses(variables[-1]), variables
        if isinstance(variable.scope, ast.ClassDef) and self.tree.is_enum(variable.scope):
            return None
        if (value := uses.lone_value) is not None:
            found = self._trail(value, search)
        elif uses.only_parameter and isinstance(variable.scope, Function):
            found = self._of_parameter(variable.scope, variable.name, search)
        elif uses.lone_loop is not None:
            found = self._of_loop(*uses.lone_loop, search)
        else:
            return None
        return found.via([node], *variables, annotated=uses.annotated) if found is not None else None

    def _of_loop(self, elements: ast.expr, position: int | None, search: _Search) -> Trail | None:
        """Follow the variable of a loop to the only one of the elements that has the value, each as the display writes it."""
        names: list[ast.expr] = []
        while (value := self.tree.value(elements)) is not None and len(names) < _LONGEST:
            names.append(elements)
            elements = value
        if not isinstance(elements, ast.Tuple | ast.List):
            return None
        parts: list[ast.expr] = elements.elts
        if position is not None:
            parts = [
                each.elts[position] for each in parts if isinstance(each, ast.Tuple | ast.List) and position < len(each.elts)
            ]
        found = [each for each in parts if is_literal(each) and same(ast.literal_eval(each), search.value)]
        return Trail(found[0]).via(names, *self._all_variables(names)) if len(found) == 1 else None

    def _all_variables(self, names: Iterable[ast.expr]) -> Iterator[Variable]:
        for name in names:
            yield from self.tree.variables(name)

    def _of_parameter(self, function: Function, name: str, search: _Search) -> Trail | None:
        """Follow a parameter to what its function was called with: by a caller, by the cases of a test, or to make an object."""
        depth, caller = _caller(search.callers, function)
        if caller is None:
            return self._of_maker(function, name, search)
        if caller.given is None:
            literal = _of_case(function, name, search.case)
            return Trail(literal) if literal is not None else None
        return self._trail(_argument(function.args, caller.given, name), replace(search, callers=search.callers[:depth]))

    def _of_maker(self, function: Function, name: str, search: _Search) -> Trail | None:
        """Follow a parameter of `__init__`, which is done by the time of the call, to what objects of the file are made with."""
        scopes = self.tree.scopes_of(function)
        maker = scopes.scope_of(function)
        if not isinstance(maker, ast.ClassDef):
            return None
        given: list[Given] = [
            {**dict(enumerate(call.args, 1)), **{each.arg or "": each.value for each in call.keywords}}
            for call in _calls(scopes.tree, maker.name)
        ]
        found = [_argument(function.args, each, name) for each in (*given, {})]
        return self._lone({id(node): node for node in found if node is not None}.values(), search)

    def _of_entry(self, holder: ast.expr, key: Any, search: _Search) -> Trail | None:
        """Follow an entry of a dict, `options["block"]`."""
        names: list[ast.expr] = []
        reads: list[ast.expr] = []
        found = self._trail(self._entry(holder, key, names, reads), search)
        return found.via([*names, *reads], *self._all_variables(names)) if found is not None else None

    def _spread(self, call: ast.Call, parameter: str, search: _Search) -> Trail | None:
        """Follow an argument that a call has from a dict, `f(**options)`."""
        spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
        if len(spread) != 1 or not self.tree.holds(spread[0]):
            return None
        variables = self.tree.variables(spread[0])
        scope = variables[-1].scope if variables else None
        if isinstance(scope, Function) and scope.args.kwarg is not None and variables[-1].name == scope.args.kwarg.arg:
            depth, caller = _caller(search.callers, scope)
            passed = caller.given.get(parameter) if caller is not None and caller.given is not None else None
            found = self._trail(passed, replace(search, callers=search.callers[:depth]))
            return found.via(spread, *variables) if found is not None else None
        return self._of_entry(spread[0], parameter, search)

    def _entry(self, node: ast.expr | None, key: Any, names: list[ast.expr], reads: list[ast.expr]) -> ast.expr | None:
        """Return the value of a dict's entry as its display writes it.

        Add the names through which the dict is reached, and the reads of these names that are for another entry only.
        """
        match node:
            case ast.Dict(keys=keys, values=values):
                entries = zip(keys, values, strict=True)
                found = [value for each, value in entries if isinstance(each, ast.Constant) and same(each.value, key)]
                return found[0] if len(found) == 1 and None not in keys else None
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                found = [keyword.value for keyword in keywords if keyword.arg == key]
                return found[0] if found and all(keyword.arg for keyword in keywords) else None
            case ast.Name() | ast.Attribute() if len(names) < _LONGEST and (value := self.tree.value(node)) is not None:
                names.append(node)
                reads += self._reads_of_others(node, key)
                return self._entry(value, key, names, reads)
            case ast.Subscript(value=outer, slice=ast.Constant(value=outer_key)):
                return self._entry(self._entry(outer, outer_key, names, reads), key, names, reads)
            case _:
                return None

    def _reads_of_others(self, node: ast.expr, key: Any) -> Iterator[ast.expr]:
        """Yield the reads of a dict that are for another entry, `options["other"]`, in all files."""
        *_, variable = self.tree.variables(node)
        for file in self.tree.files_with(variable):
            for each in nodes(file, ast.Subscript):
                other = isinstance(each.slice, ast.Constant) and each.slice.value != key  # 1 and True are one key
                if other and self.tree.variables(each.value)[-1:] == (variable,):
                    yield each.value

    def _lone(self, nodes: Iterable[ast.expr], search: _Search) -> Trail | None:
        """Return the trail of the only one of some expressions that has the value."""
        trails = [trail for node in nodes if (trail := self._trail(node, replace(search, callers=()))) is not None]
        found = [trail for trail in trails if same(trail.value, search.value)]
        return found[0] if len(found) == 1 else None


def _calls(file: ast.Module, name: str) -> list[ast.Call]:
    return [call for call in nodes(file, ast.Call) if isinstance(call.func, ast.Name) and call.func.id == name]


def _attribute_reads(field: Field) -> Iterator[ast.Attribute]:
    for node in nodes(field.file, ast.Attribute):
        if node.attr == field.name and isinstance(node.ctx, ast.Load):
            yield node


def _is_reflected(field: Field) -> bool:
    """Say whether the file may read the attribute by another way: `getattr(x, "name")`, `vars(x)`."""
    calls = (node for node in nodes(field.file, ast.Call) if ast.unparse(node.func).rpartition(".")[2] in _GETTERS)
    named = any(isinstance(each, ast.Constant) and each.value == field.name for call in calls for each in call.args)
    read = (node.id if isinstance(node, ast.Name) else node.attr for node in nodes(field.file, ast.Name, ast.Attribute))
    return named or not _REFLECTION.isdisjoint(read)


def _classes_with(field: Field) -> Iterator[ast.ClassDef]:
    """Yield the classes that set an attribute of this name."""
    for node in nodes(field.file, ast.ClassDef):
        if any(_assigned(statement, field.name) is not None for statement in node.body):
            yield node


def _attribute_values(field: Field) -> Iterator[ast.expr]:
    """Yield what an attribute of this name is set to: by a class, by a statement, or by the fields of an object made."""
    for node in nodes(field.file, ast.ClassDef, ast.Assign, ast.AnnAssign):
        match node:
            case ast.ClassDef(name=maker, body=body):
                values = [_assigned(statement, field.name) for statement in body]
                yield from (value for value in values if value is not None)
                keywords = [keyword for call in _calls(field.file, maker) for keyword in call.keywords]
                if not any(isinstance(each, ast.FunctionDef) and each.name == "__init__" for each in body):
                    yield from (keyword.value for keyword in keywords if keyword.arg == field.name)
            case ast.Assign(targets=[ast.Attribute(attr=found)], value=value) if found == field.name:
                yield value
            case ast.AnnAssign(target=ast.Attribute(attr=found), value=ast.expr() as value) if found == field.name:
                yield value
            case _:
                pass


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=found), value=value) if found == name:
            return value
        case _:
            return None


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


def _of_case(function: Function, name: str, case: Mapping[str, Any]) -> ast.expr | None:
    """Return the literal that a test's decorators give a parameter, in the only row that has all values of the case."""
    found = [row[name] for row in cases(function) if name in row and is_literal(row[name]) and _agrees(row, case)]
    return found[0] if len(found) == 1 else None


def _agrees(row: Mapping[str, ast.expr], case: Mapping[str, Any]) -> bool:
    literals = {name: node for name, node in row.items() if is_literal(node)}
    return all(name in case and same(ast.literal_eval(node), case[name]) for name, node in literals.items())
