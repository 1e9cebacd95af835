"""One relation between the sizes of a call, parsed once and evaluated with three outcomes."""

from __future__ import annotations

import ast
import operator
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from shapecheck.outcome import (
    UNKNOWN,
    Outcome,
    Values,
    all_of,
    any_of,
    choose,
    contains,
    equal,
    first,
    has_unknown,
    last,
    negate,
    truth,
)

_Term: TypeAlias = Callable[[Values], Any]
_Condition: TypeAlias = Callable[[Values], Outcome]


class RelationError(ValueError):
    """A relation that is not written in the language of relations, or that uses a name its contract lacks."""


class Relation:
    """A Python expression over the axes and parameters of a call, e.g. `"num_q_heads % num_kv_heads == 0"`.

    The language: names, int, float, str and None literals, tuples, `+ - * // %`, comparisons, `is`, `in`,
    `and or not`, conditional expressions, calls of `min`, `max` and `abs`, and `itemsize(ARRAY)`, the bytes of one
    element. Anything else raises `RelationError` here, not when a call is judged.

    Attributes:
        text: what was written.
        definitions: what some of its names stand for: expressions in the same language, of earlier names if of such names.
        tree: the whole of it, with definitions in place of their names.
        names: the names in the tree, in the order in which they are met.
    """

    __slots__ = ("_evaluate", "_written", "definitions", "names", "text", "tree")

    text: str
    definitions: Mapping[str, str]
    tree: ast.expr
    names: tuple[str, ...]

    def __init__(self, text: str, definitions: Mapping[str, str] | None = None) -> None:
        self.text = " ".join(text.split())
        self._written = _parsed(self.text)
        self.definitions = definitions or {}
        expanded = _expanded(tuple(self.definitions.items()))
        self.tree = self._written
        if expanded or "itemsize" in self.text:
            self.tree = _Expanding(expanded).visit(_parsed(self.text))
        self._evaluate = _condition(self.tree, self.text)
        self.names = tuple(name for name in _names(self.tree) if name not in _FUNCTIONS)

    def evaluate(self, values: Values) -> Outcome:
        """Say whether the relation holds for `values`.

        Names that `values` lacks, or maps to `UNKNOWN`, are unknown; so is the result of dividing by 0, of comparing things
        Python cannot compare, and of comparing symbolic sizes where their constraints do not decide. `and`, `or` and `not` are
        Kleene's, so a relation can hold or fail although a part of it is unknown.
        """
        return self._evaluate(values)

    def undefined(self, values: Values) -> str:
        """Say why the relation has no value where all its names have one: it divides by 0, say; empty where it has a value."""
        named = {name: values.get(name, UNKNOWN) for name in self.names}
        if any(map(has_unknown, named.values())) or self.evaluate(named) is not UNKNOWN:
            return ""
        try:  # in Python's own words; no name but those of the language is there
            eval(compile(ast.Expression(self.tree), "<relation>", "eval"), {"__builtins__": _FUNCTIONS}, named)
        except ZeroDivisionError:
            return "it divides by 0"
        except (ArithmeticError, TypeError, ValueError) as error:
            return f"it cannot be evaluated: {error}"
        return ""

    @property
    def used(self) -> dict[str, str]:
        """The definitions that it uses, itself or by way of others, in their order."""
        names = _names(self._written)
        for name, definition in reversed(list(self.definitions.items())):
            if name in names:
                names |= _names(_parsed(definition))
        return {name: definition for name, definition in self.definitions.items() if name in names}

    def value(self, values: Values) -> Any:
        """Return what the expression comes to, for one that is a number and no relation; unknown like that."""
        return _compile(self.tree, self.text)(values)

    def broken(self, values: Values) -> tuple[Relation, ...]:
        """Return the parts that do not hold: of `a and b`, each of `a` and `b` that fails."""
        match self._written:
            case ast.BoolOp(ast.And(), operands):
                parts = [self._part(operand) for operand in operands]
            case _:
                parts = [self]
        return tuple(part for part in parts if part.evaluate(values) is False)

    def at_fault(self, values: Values) -> tuple[str, ...]:
        """Return the names that make the relation fail: of `a == 1 and b == 2`, those in the parts that do."""
        match self._written:
            case ast.BoolOp(ast.And()):
                parts = self.broken(values)
            case ast.BoolOp(ast.Or(), operands):
                parts = tuple(map(self._part, operands))
            case _:
                return self.names
        return tuple(dict.fromkeys(name for part in parts for name in part.at_fault(values)))

    def _part(self, node: ast.expr) -> Relation:
        return Relation(ast.unparse(node), self.definitions)

    def __repr__(self) -> str:
        return f"Relation({self.text!r})"

    def __reduce__(self) -> tuple[type[Relation], tuple[str, Mapping[str, str]]]:
        return Relation, (self.text, self.definitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relation) and (other.text, other.definitions) == (self.text, self.definitions)

    def __hash__(self) -> int:
        return hash(self.text)


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise RelationError(f"not an expression: {text!r} ({error.msg}, column {error.offset})") from None


@lru_cache(maxsize=64)
def _expanded(definitions: tuple[tuple[str, str], ...]) -> Mapping[str, ast.expr]:
    """Return what each of the names stands for, with the earlier ones in it replaced: many relations share their definitions."""
    expanded: dict[str, ast.expr] = {}
    for name, definition in definitions:
        expanded[name] = _Expanding(expanded).visit(_parsed(definition))
    return expanded


def _names(tree: ast.expr) -> dict[str, None]:
    """Return the names in an expression, in the order in which they are met."""
    names: dict[str, None] = {}
    pending: deque[ast.AST] = deque([tree])
    seen: set[int] = set()  # what a definition stands for is the same node wherever it is used
    while pending:
        node = pending.popleft()
        if type(node) is ast.Name:
            names[node.id] = None
        elif type(node) is not ast.Constant and id(node) not in seen:
            seen.add(id(node))
            pending.extend(ast.iter_child_nodes(node))
    return names


class _Expanding(ast.NodeTransformer):
    """Puts expressions in the place of names, and of `itemsize(ARRAY)`."""

    def __init__(self, definitions: Mapping[str, ast.expr]) -> None:
        self.definitions = definitions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.definitions.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("itemsize"), [ast.Name(array)], []):
                return _parsed(f"({array}_bits + 7) // 8")  # an array of int4 takes a byte for each element
            case _:
                return self.generic_visit(node)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: operator.mod,
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda left, right: equal(left, right),
    ast.NotEq: lambda left, right: negate(equal(left, right)),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: contains(right, left),
    ast.NotIn: lambda left, right: negate(contains(right, left)),
}


def _condition(node: ast.expr, text: str) -> _Condition:
    """Turn a node into a function of the values that tells its truth, which may be known where its value is not."""
    match node:
        case ast.BoolOp(op, operands):
            combine = all_of if isinstance(op, ast.And) else any_of
            conditions = [_condition(operand, text) for operand in operands]
            return lambda values: combine(condition(values) for condition in conditions)
        case ast.UnaryOp(ast.Not(), operand):
            condition = _condition(operand, text)
            return lambda values: negate(condition(values))
        case ast.IfExp(test, body, orelse):
            condition, yes, no = (_condition(part, text) for part in (test, body, orelse))
            return lambda values: choose(condition(values), yes(values), no(values))
        case _:
            term = _compile(node, text)
            return lambda values: truth(term(values))


def _compile(node: ast.expr, text: str) -> _Term:
    """Turn a node into a function of the values, or raise `RelationError` at its column."""
    match node:
        case ast.Name(name):
            return lambda values: values.get(name, UNKNOWN)
        case ast.Constant(value) if value is None or type(value) in (bool, int, float, str):
            return lambda values: value
        case ast.Tuple(items):
            terms = [_compile(item, text) for item in items]
            return lambda values: tuple(term(values) for term in terms)
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            return _strict(_ARITHMETIC[type(op)], [_compile(left, text), _compile(right, text)])
        case ast.UnaryOp(ast.USub(), operand):
            return _strict(operator.neg, [_compile(operand, text)])
        case ast.UnaryOp(ast.Not()):
            return _condition(node, text)
        case ast.BoolOp(op, operands):
            return _strict(last if isinstance(op, ast.And) else first, [_compile(operand, text) for operand in operands])
        case ast.Compare(left, ops, comparators):
            terms = [_compile(operand, text) for operand in (left, *comparators)]
            links = [_strict(_COMPARISONS[type(op)], [terms[i], terms[i + 1]]) for i, op in enumerate(ops)]
            return lambda values: all_of(truth(link(values)) for link in links)
        case ast.IfExp(test, body, orelse):
            condition, yes, no = _condition(test, text), _compile(body, text), _compile(orelse, text)
            return lambda values: choose(condition(values), yes(values), no(values))
        case ast.Call(ast.Name(function), arguments, []) if function in _FUNCTIONS and arguments:
            return _strict(_FUNCTIONS[function], [_compile(argument, text) for argument in arguments])
        case _:
            column = node.col_offset + 1
            shown = ast.get_source_segment(text, node) or type(node).__name__
            raise RelationError(f"{shown!r} is not allowed in a relation: {text!r}, column {column}")


def _strict(function: Callable[..., Any], terms: list[_Term]) -> _Term:
    """Apply `function` where every operand is known; unknown otherwise, and where it is undefined."""

    def evaluate(values: Values) -> Any:
        operands = [term(values) for term in terms]
        if any(operand is UNKNOWN for operand in operands):
            return UNKNOWN
        try:
            return function(*operands)
        except (ArithmeticError, TypeError, ValueError):
            return UNKNOWN

    return evaluate
