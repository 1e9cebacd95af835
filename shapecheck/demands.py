"""The contract that a decorated function states: relations of its own, a ready contract, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import chip_of
from shapecheck.contract import Contract
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import Relation
from shapecheck.rule import Rule, constantly, no_advice

_Arrays: TypeAlias = Mapping[str, ArrayArgument]
_Parameters: TypeAlias = Mapping[str, Parameter]

_MESSAGE = "this relation must hold"

OWN_CODE = "SC001"
"""The code of every relation that a user states; its text is its name where it is given none."""

Demand: TypeAlias = str | Rule | Contract
"""What `@contract` takes: a relation, one with a name and words of its own, or a ready contract."""

ON_ANY_CHIP = "tpu"
"""What `when` says of a relation that must hold on every TPU, and nowhere else."""


def relation(text: str, *, name: str = "", message: str = "", when: str | Iterable[str] = ()) -> Rule:
    """Return a relation for `@contract` that has a name, says why it is there, or holds on some chips only.

        @contract(relation("m % block_m == 0", name="whole-blocks", message="the grid has no ragged last block"))

    Args:
        text: the relation, as `@contract` takes it.
        name: what messages call it; its text by default.
        message: the demand in words, one line.
        when: the chips on which it must hold, e.g. `"v5e"` or `("v5e", "v6e")`, or `"tpu"` for all of them; by default it must
            hold everywhere. Of another device nothing is demanded.

    Raises:
        RelationError: the relation cannot be read.
        ValueError: there is no such chip.
    """
    stated = Relation(text)
    everywhere = when == ON_ANY_CHIP
    named = () if everywhere else (when,) if isinstance(when, str) else tuple(when)
    return Rule(
        OWN_CODE,
        name or stated.text,
        stated,
        message or _MESSAGE,
        explanation="",
        argument="",
        advice=constantly(message) if message else no_advice,
        on_tpu=bool(when),
        chips=tuple(chip_of(each).name for each in named),
    )


def stated_contract(
    name: str,
    arrays: tuple[ArrayArgument, ...],
    parameters: tuple[Parameter, ...],
    demands: Sequence[Demand],
) -> Contract:
    """Return the contract of a function with these arguments.

    Args:
        name: the function's name; a ready contract keeps its own.
        arrays: its array arguments, as annotated.
        parameters: its other arguments.
        demands: relations, rules, and at most one ready contract, to which these are added.

    Raises:
        RelationError: a relation cannot be read, or uses a name that no argument defines.
        TypeError: the signature disagrees with the ready contract, or there are two.
    """
    ready = [demand for demand in demands if isinstance(demand, Contract)]
    rules = [relation(demand) if isinstance(demand, str) else demand for demand in demands if not isinstance(demand, Contract)]
    if len(ready) > 1:
        raise TypeError(f"{name}: one contract at most, not {len(ready)}")
    if ready:
        contract = _agreed(ready[0], arrays, parameters)
    else:
        contract = Contract(name, arrays, parameters, rules=())
    return replace(contract, rules=(*contract.rules, *(_placed(rule, contract) for rule in rules)))


def _placed(rule: Rule, contract: Contract) -> Rule:
    """Point at a parameter where the relation has one, for that is what a caller can change; else at its last array."""
    if rule.argument:
        return rule
    arguments = [contract.owners[name] for name in rule.names if name in contract.owners]
    chosen = {parameter.name for parameter in contract.parameters}
    return replace(rule, argument=next((name for name in arguments if name in chosen), arguments[-1] if arguments else ""))


def _agreed(contract: Contract, arrays: tuple[ArrayArgument, ...], parameters: tuple[Parameter, ...]) -> Contract:
    """Return the contract with the signature's further arguments, for relations to speak of."""
    annotated = {array.name: array for array in arrays}
    others = {parameter.name: parameter for parameter in parameters}
    for complaint in (*_array_complaints(contract, annotated, others), *_parameter_complaints(contract, annotated, others)):
        raise TypeError(f"the signature disagrees with the contract of {contract.name}: {complaint}")
    known = {each.name for each in contract.arrays} | {each.name for each in contract.parameters}
    return replace(
        contract,
        arrays=(*contract.arrays, *(array for array in arrays if array.name not in known)),
        parameters=(*contract.parameters, *(parameter for parameter in parameters if parameter.name not in known)),
    )


def _array_complaints(contract: Contract, annotated: _Arrays, others: _Parameters) -> Iterator[str]:
    for array in contract.arrays:
        if array.name in annotated:
            if annotated[array.name].axes != array.axes:
                yield f"{array.name!r} has the axes {' '.join(annotated[array.name].axes)!r}, not {' '.join(array.axes)!r}"
        elif array.name not in others:
            yield f"it has no argument {array.name!r}"
    order = [array.name for array in contract.arrays if array.name in annotated]
    if order != [name for name in annotated if name in order]:
        yield f"its arrays stand in another order than {', '.join(order)}"


def _parameter_complaints(contract: Contract, annotated: _Arrays, others: _Parameters) -> Iterator[str]:
    for parameter in contract.parameters:
        if parameter.name in annotated:
            yield f"{parameter.name!r} is annotated as an array"
        elif parameter.name not in others:
            yield f"it has no argument {parameter.name!r}"
        elif parameter.default not in (UNKNOWN, default := others[parameter.name].default):
            stated = "no default" if default is UNKNOWN else f"the default {default!r}"
            yield f"{parameter.name!r} has {stated} instead of {parameter.default!r}"
