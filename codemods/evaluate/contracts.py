"""Contracts that the scanned source states itself, with `@shapecheck.contract(...)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codemods import geometry
from codemods.callees import Callee, signature_of
from codemods.evaluate.annotations import described
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.relations import formula_of
from codemods.values import Contracted, External, Function, Partial, Value, is_constant
from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.axes import axes_of
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.demands import Demand, relation, stated_contract
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import RelationError
from shapecheck.rule import Rule

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_DECORATOR = "shapecheck.contract(...)"
_RELATION = "shapecheck.relation(...)"


@interprets("shapecheck.contract", "shapecheck.decorators.contract")
def _contract(machine: Machine, arguments: Arguments) -> Value:
    """`contract("...")` gives a decorator."""
    if arguments.spread or arguments.keywords:
        raise Unmodelled("what the contract demands is not known")
    return Partial(External(_DECORATOR), arguments.positional, ())


@interprets(_DECORATOR)
def _decorate(machine: Machine, arguments: Arguments) -> Value:
    """Put a contract on a function; one that cannot be read leaves the function as it is."""
    *demands, function = arguments.positional
    if not isinstance(function, Function):
        return function
    try:
        callee = _callee(machine, function, [_demand(demand) for demand in demands])
    except (RelationError, TypeError, ValueError):  # at run time the decoration itself fails
        return function
    return Contracted(function, callee)


@interprets("shapecheck.checked", "shapecheck.decorators.checked")
def _checked(machine: Machine, arguments: Arguments) -> Value:
    """`checked(function, "...")` gives the function with a contract; a kernel has its own."""
    if arguments.spread or arguments.keywords or not arguments.positional:
        raise Unmodelled("what the contract demands is not known")
    function, *demands = arguments.positional
    return _decorate(machine, replace(arguments, positional=(*demands, function)))


_STATED = ("text", "name", "message", "when")


@interprets("shapecheck.relation", "shapecheck.demands.relation")
def _relation(machine: Machine, arguments: Arguments) -> Value:
    """`relation("...", name="...")` gives a rule; how it is written is kept."""
    return Partial(External(_RELATION), arguments.positional, tuple(arguments.keywords.items()))


def _demand(demand: Value) -> Demand:
    if isinstance(demand, str):
        return demand
    if isinstance(demand, Partial) and demand.function == External(_RELATION) and len(demand.positional) <= 1:
        stated: dict[str, Any] = {**dict(zip(_STATED, demand.positional, strict=False)), **dict(demand.keywords)}
        if "text" in stated and set(stated) <= set(_STATED) and all(map(_is_spelled_out, stated.values())):
            return relation(**stated)
    if isinstance(demand, External) and (ready := CONTRACTS.get(demand.path.rpartition(".")[2].lower())) is not None:
        return ready
    raise Unmodelled("what the contract demands is not known")


def _is_spelled_out(value: Value) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(each, str) for each in value))


def _callee(machine: Machine, function: Function, demands: list[Demand]) -> Callee:
    """Return the function as a callee: array arguments by their annotations, the others as parameters.

    A name that these do not define may be one of what is inside an argument, in a list or a record: its value is not known.
    """
    unread: list[str] = []
    declared: ast.arguments = function.node.args
    defaults = dict(function.defaults)
    arrays: list[ArrayArgument] = []
    parameters: list[Parameter] = []
    for parameter in (*declared.posonlyargs, *declared.args, *declared.kwonlyargs):
        found = described(machine, parameter.annotation) if parameter.annotation is not None else None
        if found is not None:
            arrays.append(ArrayArgument(parameter.arg, axes_of(found[2])))
        else:
            default = defaults.get(parameter.arg, UNKNOWN)
            parameters.append(Parameter(parameter.arg, default if is_constant(default) else UNKNOWN))
            if isinstance(parameter.annotation, ast.Subscript | ast.Name | ast.Attribute | ast.BinOp | ast.Constant):
                unread.append(parameter.arg)
    try:
        contract = stated_contract(function.name, tuple(arrays), tuple(parameters), demands)
    except RelationError:
        if not unread:
            raise
        known = stated_contract(function.name, tuple(arrays), tuple(parameters), []).origins
        inside = dict.fromkeys(name for rule in _rules(demands) for name in rule.names if name not in known)
        parameters += (Parameter(name, path=unread[0]) for name in inside)
        contract = stated_contract(function.name, tuple(arrays), tuple(parameters), demands)
    return Callee(function.name, contract, signature_of(declared))


def _rules(demands: list[Demand]) -> Iterator[Rule]:
    for demand in demands:
        if not isinstance(demand, Contract):
            yield relation(demand) if isinstance(demand, str) else demand


def assume(machine: Machine, callee: Callee, arguments: Mapping[str, Value]) -> None:
    """Go on with an execution in which the relations of a contract hold: it checked them before it got here."""
    held: dict[str, Any] = geometry.values_of(callee, arguments)
    for rule in callee.contract.rules:
        if rule.on_tpu or rule.is_hint:  # the one is checked on a TPU only, the other never
            continue
        named = {name: held.get(callee.contract.axes.get(name, (name,))[0], UNKNOWN) for name in rule.relation.names}
        formula = None if UNKNOWN in named.values() else formula_of(machine, rule.relation, named)
        if formula is not None:
            assumed = machine.state.assume(formula, branch=False)
            if assumed is None:
                raise Dies
            machine.state = assumed
