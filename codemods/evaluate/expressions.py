"""Expressions: from a node to a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import (
    arrays,
    comprehensions,
    containers,
    definitions,
    generators,
    havoc,
    iteration,
    names,
    objects,
    operators,
    specials,
)
from codemods.evaluate.calls import evaluate_call
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.nodes import excerpt
from codemods.values import COUNTER, Array, Choice, DictRef, Instance, ListRef, SetRef, Slice, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def evaluate(machine: Machine, node: ast.expr) -> Value:
    """Return the value of an expression; raises `Dies` where evaluating it raises."""
    machine.step()
    evaluator = _EVALUATORS.get(type(node))
    if evaluator is None:
        return machine.unknown(type(node).__name__, "this kind of expression is not followed", node)
    return evaluator(machine, node)


def _constant(machine: Machine, node: ast.Constant) -> Value:
    if is_constant(node.value):
        return node.value
    return machine.unknown(repr(node.value), "a complex number", node)


def _attribute(machine: Machine, node: ast.Attribute) -> Value:
    receiver = machine.evaluate(node.value)
    return machine.spread(lambda each: objects.attribute(machine, each, node.attr, node), receiver, text=node)


def _subscript(machine: Machine, node: ast.Subscript) -> Value:
    receiver, index = machine.evaluate(node.value), machine.evaluate(node.slice)
    return containers.item_of_any(machine, receiver, index, node)


def _slice(machine: Machine, node: ast.Slice) -> Value:
    bounds = (machine.evaluate(part) if part else None for part in (node.lower, node.upper, node.step))
    return machine.spread(Slice, *bounds, text="a slice")


def _binary(machine: Machine, node: ast.BinOp) -> Value:
    left, right = (_number(machine.evaluate(side)) for side in (node.left, node.right))
    return machine.spread(lambda a, b: arithmetic(machine, node.op, a, b), left, right, text=node)


def _number(value: Value) -> Value:
    """Return a condition as what it counts for in arithmetic: True or False."""
    if isinstance(value, formulas.Compare | formulas.Equals | formulas.Truthy | formulas.Not | formulas.And):
        return Choice(((value, True), (formulas.invert(value), False)))
    return value


def augmented(machine: Machine, op: ast.operator, left: Value, right: Value) -> Value:
    """Apply an operator in place: an array of numpy or torch keeps its shape and dtype."""
    if isinstance(left, Array):
        return arrays.inplace(operators.NAMES[type(op)], left, right)
    return arithmetic(machine, op, left, right)


def arithmetic(machine: Machine, op: ast.operator, left: Value, right: Value) -> Value:
    """Apply a binary operator, to lists as well, which make a new list."""
    name = operators.DUNDERS[type(op)]
    for side, other, method in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
        if isinstance(side, Instance) and (found := objects.special(machine, side, method, other)) is not UNBOUND:
            return found
    specials.may_run(machine, right)  # `%` formats it
    if isinstance(left, ListRef) or isinstance(right, ListRef):
        sides = [iteration.elements(machine, each) if isinstance(each, ListRef) else each for each in (left, right)]
        result = operators.binary(operators.NAMES[type(op)], *sides)
        return containers.make_list(machine, result) if isinstance(result, tuple) else result
    if isinstance(op, ast.BitOr) and isinstance(left, DictRef) and isinstance(right, DictRef):
        items = [machine.contents(each) for each in (left, right)]
        if None in items:
            raise Unmodelled("the contents of the dict are not known")
        if COUNTER in (left.missing, right.missing):
            raise Unmodelled("which of two counts is greater is not followed")
        missing = left.missing if left.missing is not None else right.missing
        return containers.make_dict(machine, [pair for each in items for pair in each], missing)
    return operators.binary(operators.NAMES[type(op)], left, right)


def _unary(machine: Machine, node: ast.UnaryOp) -> Value:
    operand = machine.evaluate(node.operand)
    if isinstance(node.op, ast.Not):
        return formulas.invert(machine.truth(operand))
    return machine.spread(lambda value: operators.unary(node.op, value), operand, text=node)


def _boolean(machine: Machine, node: ast.BoolOp) -> Value:
    """`and` and `or` give one of their operands, and evaluate those behind it only if need be."""

    def rest(position: int) -> Value:
        value = machine.evaluate(node.values[position])
        if position == len(node.values) - 1:
            return value
        arms: tuple[Callable[[], Value], Callable[[], Value]] = (lambda: rest(position + 1), lambda: value)
        return machine.part(machine.truth(value), arms if isinstance(node.op, ast.And) else arms[::-1])

    return rest(0)


def _compare(machine: Machine, node: ast.Compare) -> Value:
    """A chain of comparisons; each operand is evaluated once, and those behind a link only if it holds."""

    def rest(position: int, left: Value) -> Value:
        right = machine.evaluate(node.comparators[position])
        op = node.ops[position]
        link = machine.spread(lambda a, b: compare(machine, op, a, b), left, right, text=node)
        if position == len(node.ops) - 1:
            return link
        if isinstance(node.comparators[position + 1], ast.Constant | ast.Name):  # which is the same to evaluate or not
            return formulas.both(machine.truth(link), machine.truth(rest(position + 1, right)))
        return machine.part(machine.truth(link), (lambda: rest(position + 1, right), lambda: False))

    return rest(0, machine.evaluate(node.left))


def compare(machine: Machine, op: ast.cmpop, left: Value, right: Value) -> Value:
    """Apply one comparison operator."""
    container = right if isinstance(op, ast.In | ast.NotIn) else left
    if isinstance(container, Instance) and not isinstance(op, ast.Is | ast.IsNot):
        name = operators.DUNDERS[ast.In if container is right else type(op)]
        found = objects.special(machine, container, f"__{name}__", left if container is right else right)
        if found is UNBOUND and isinstance(op, ast.NotEq):
            equal = objects.special(machine, container, "__eq__", right)
            found = UNBOUND if equal is UNBOUND else formulas.invert(machine.truth(equal))
        if found is not UNBOUND:
            return formulas.invert(machine.truth(found)) if isinstance(op, ast.NotIn) else found
    match op:
        case ast.Is():
            return operators.identical(left, right)
        case ast.IsNot():
            return formulas.invert(operators.identical(left, right))
        case ast.In() | ast.NotIn():
            outcome = _contains(machine, left, right)
            return outcome if isinstance(op, ast.In) else formulas.invert(outcome)
        case _:
            specials.may_run(machine, left, right)
            sides = [_plain(machine, each) for each in (left, right)]
            return operators.compare(operators.NAMES[type(op)], *sides)


def _plain(machine: Machine, value: Value) -> Value:
    """A list compares by its elements, as a tuple does (to another list; a list never equals a tuple)."""
    if isinstance(value, SetRef):
        raise Unmodelled("a comparison of sets")
    if isinstance(value, ListRef):
        return ("list", *iteration.elements(machine, value))
    return value


def _contains(machine: Machine, member: Value, container: Value) -> formulas.Formula:
    if isinstance(member, str) and isinstance(container, str):
        return member in container
    specials.may_run(machine, member, container)
    parts = iteration.in_any_order(machine, container)
    return formulas.either(*(operators.equals(member, part) for part in parts))


def _conditional(machine: Machine, node: ast.IfExp) -> Value:
    condition = machine.truth(machine.evaluate(node.test))
    return machine.part(condition, (lambda: machine.evaluate(node.body), lambda: machine.evaluate(node.orelse)))


def _walrus(machine: Machine, node: ast.NamedExpr) -> Value:
    value = machine.evaluate(node.value)
    scope = machine.frame.scope
    if scope.kind == "comprehension":  # binds in the scope around it
        with machine.entered(machine.frames[-2]):
            names.bind(machine, node.target.id, value)
    else:
        names.bind(machine, node.target.id, value)
    return value


def _display(machine: Machine, node: ast.Tuple | ast.List | ast.Set) -> Value:
    parts: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            try:
                parts += iteration.elements(machine, machine.evaluate(element.value))
            except Unmodelled as why:
                return machine.unknown(excerpt(node), str(why), element)
        else:
            parts.append(machine.evaluate(element))
    if isinstance(node, ast.Tuple):
        return tuple(parts)
    if isinstance(node, ast.List):
        return containers.make_list(machine, parts)
    specials.may_run(machine, *parts, node=node)
    return containers.make_set(machine, parts)


def _dict(machine: Machine, node: ast.Dict) -> Value:
    items: list[tuple[Value, Value]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        known = machine.evaluate(key) if key is not None else None  # before its value
        held = machine.evaluate(value)
        if key is not None:
            items.append((known, held))
        elif isinstance(held, DictRef) and (contents := machine.contents(held)) is not None:
            items += contents
        else:
            return machine.unknown(excerpt(node), "what is unpacked into the dict is not known", value)
    specials.may_run(machine, *(key for key, _ in items), node=node)
    try:
        return containers.make_dict(machine, items)
    except Unmodelled as why:
        return machine.unknown(excerpt(node), str(why), node)


def _format(machine: Machine, node: ast.JoinedStr) -> Value:
    parts = [machine.evaluate(part) for part in node.values]
    if all(isinstance(part, str) for part in parts) and sum(map(len, parts)) < 10_000:
        return "".join(parts)
    return machine.unknown(excerpt(node), "a formatted string", node, pure=True)


def _formatted(machine: Machine, node: ast.FormattedValue) -> Value:
    value = machine.evaluate(node.value)
    if isinstance(value, Instance):
        for name in ("__format__", "__str__", "__repr__"):
            objects.special(machine, value, name, *[""] * (name == "__format__"))
    plain = isinstance(value, str | int) and node.format_spec is None and node.conversion == -1
    return str(value) if plain else machine.unknown(excerpt(node.value), "a formatted string", node, pure=True)


def _lambda(machine: Machine, node: ast.Lambda) -> Value:
    return definitions.make_function(machine, node, "<lambda>")


def _starred(machine: Machine, node: ast.Starred) -> Value:
    return machine.evaluate(node.value)


def _await(machine: Machine, node: ast.Await) -> Value:
    havoc.leak(machine, machine.evaluate(node.value))
    return machine.unknown(excerpt(node), "what is awaited is not followed", node)


_EVALUATORS: Mapping[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: names.lookup,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.NamedExpr: _walrus,
    ast.Yield: generators.give,
    ast.YieldFrom: generators.give,
    ast.Call: evaluate_call,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.JoinedStr: _format,
    ast.FormattedValue: _formatted,
    ast.Lambda: _lambda,
    ast.ListComp: comprehensions.evaluate,
    ast.SetComp: comprehensions.evaluate,
    ast.GeneratorExp: comprehensions.evaluate_generator,
    ast.DictComp: comprehensions.evaluate_dict,
    ast.Starred: _starred,
    ast.Await: _await,
}
