"""What a constructor of attrs or pydantic demands of the fields that it sets."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from codemods import formulas, operations
from codemods.evaluate import havoc
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.failures import holds_or_leaves
from codemods.evaluate.fields import VALIDATOR, Field, is_attribute, is_specifier
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.state import UNBOUND
from codemods.formulas import Formula
from codemods.values import External, Function, Instance, Opaque, Partial, Value, as_int, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

VALIDATORS = ("attr.validators.", "attrs.validators.")
"""Where the functions are that make a validator; their calls are kept as partials."""

KEPT = ("instance_of", "ge", "gt", "le", "lt", "in_", "optional", "and_")
"""Those of which it is known what they demand."""

_COMPARISONS: Mapping[str, ast.cmpop] = {"ge": ast.GtE(), "gt": ast.Gt(), "le": ast.LtE(), "lt": ast.Lt(), "in_": ast.In()}


def validate(machine: Machine, made: Instance, each: Field, *, given: bool) -> None:
    """Go on where a field that has been set passes its validators; pydantic looks at what is given only."""
    if not isinstance(each.default, Partial):
        return
    value = machine.read((made.id, each.name))
    if value is UNBOUND:
        return
    if is_attribute(each.default):
        for word, validator in each.default.keywords:
            if word in ("validator", VALIDATOR):
                _apply(machine, made, each, value, validator)
    elif is_specifier(each.default) and given:
        for word, bound in each.default.keywords:
            if word in _COMPARISONS and not isinstance(value, Opaque):
                _demand(machine, _COMPARISONS[word], value, bound)
            elif word == "multiple_of" and (number := as_int(value)) is not None and type(bound) is int and bound > 0:
                _hold(machine, formulas.equal(operations.mod(number, bound), 0))


def _hold(machine: Machine, formula: Formula) -> None:
    from codemods.evaluate.standard.assertions import demand

    demand(machine, formula)


def _demand(machine: Machine, op: ast.cmpop, value: Value, bound: Value) -> None:
    from codemods.evaluate.standard.assertions import compared

    try:
        _hold(machine, compared(machine, op, value, bound, Arguments()))
    except Unmodelled:
        _may_refuse(machine, value)


def _may_refuse(machine: Machine, value: Value) -> None:
    """Where the value is spelled out, a validator that is not followed may refuse it every time."""
    if is_constant(value):
        holds_or_leaves(machine, f"{value!r} is valid")


def _apply(machine: Machine, made: Instance, each: Field, value: Value, validator: Value) -> None:
    """Call a validator of attrs with the object, the definition of the field, and the value."""
    from codemods.evaluate.calls import call
    from codemods.evaluate.standard.objects import is_instance

    inside = partial(_apply, machine, made, each, value)
    off = machine.program.tree.disables_assertions(machine.frame.scope.path)
    match validator:
        case Function() | Instance():
            attribute = machine.unknown(each.name, "the definition of a field")
            run: Any = partial(call, machine, validator, Arguments((made, attribute, value)))
            if off:
                havoc.maybe(machine, run, f"the validator of `{each.name}` may change it")
            else:
                run()
        case tuple():
            for inner in validator:
                inside(inner)
        case Partial(External(path), positional):
            match path.rpartition(".")[2], positional:
                case "and_", _:
                    inside(positional)
                case "optional", (inner,):
                    empty = (
                        formulas.Truthy((machine.new_id(),), f"`{each.name}` is None")
                        if isinstance(value, Opaque)
                        else value is None
                    )
                    machine.part(empty, (lambda: None, lambda: inside(inner)))
                case "instance_of", (kinds,) if not off:
                    _hold(machine, is_instance(machine, value, kinds, f"`{each.name}` is of its type"))
                case word, (bound,) if word in _COMPARISONS and not off:
                    _demand(machine, _COMPARISONS[word], value, bound)
                case _:
                    _may_refuse(machine, value)
        case None:
            pass
        case _:
            _may_refuse(machine, value)
