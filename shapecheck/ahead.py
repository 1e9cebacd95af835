"""Checks ahead of time: what a call would be checked for, where its arrays are given by shape and dtype alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shapecheck.guard import Guard
from shapecheck.recall import Acceptance
from shapecheck.refusal import refused_argument
from shapecheck.scope import Scope, enter

_Found = TypeVar("_Found")


def examine_ahead(guard: Guard, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Acceptance]:
    """Return the arguments by name of a legal call of `jitted.lower` and its like, with what there is to know of such calls.

    Raises:
        ContractError: a call with such arrays is not legal.
    """
    bound = guard.bind(args, kwargs)
    given = bound.arguments
    stood_for = {name: value for name, value in given.items() if not _fits_as_it_is(guard, given, name)}

    def examine(stand_ins: dict[str, Any]) -> Acceptance:
        call = guard.signature.bind(*args, **kwargs)
        call.arguments.update(stand_ins)
        return guard.examine(call.args, call.kwargs)[1]

    return given, _traced(stood_for, examine)


def examine_outcome(guard: Guard, outcome: Any, acceptance: Acceptance, scope: Scope) -> None:
    """Check what a program returns, given what `jitted.lower` and its like return.

    Raises:
        TypeCheckError: its annotation refuses it.
    """
    stages: Any = sys.modules["jax"].stages
    result = outcome.out_info if isinstance(outcome, (stages.Traced, stages.Lowered)) else outcome
    _traced(result, lambda traced: guard.examine_result(traced, acceptance, scope))


def _fits_as_it_is(guard: Guard, arguments: dict[str, Any], name: str) -> bool:
    """Say whether an annotation takes an argument as it is: a static one may well be a `jax.ShapeDtypeStruct`."""
    scopes = enter(arguments)
    try:
        return refused_argument(guard.contract.name, guard.signature, {name: arguments[name]}) is None
    finally:
        scopes.pop()


def _traced(tree: Any, look: Callable[[Any], _Found]) -> _Found:
    """Return what `look` finds in a tree in which traced arrays stand for those of which only shape and dtype are given."""
    jax: Any = sys.modules["jax"]
    leaves, structure = jax.tree.flatten(tree)
    shapes = {index: leaf for index, leaf in enumerate(leaves) if isinstance(leaf, (jax.ShapeDtypeStruct, jax.core.ShapedArray))}
    if not shapes:
        return look(tree)
    found: list[_Found] = []
    errors: list[Exception] = []

    def trace(arrays: dict[int, Any]) -> None:
        try:
            found.append(look(jax.tree.unflatten(structure, [arrays.get(index, leaf) for index, leaf in enumerate(leaves)])))
        except Exception as error:  # is raised outside, where nothing of JAX is in its traceback
            errors.append(error)

    jax.eval_shape(trace, shapes)
    for error in errors:
        raise error.with_traceback(None)
    return found[0]
