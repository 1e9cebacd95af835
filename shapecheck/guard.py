"""What stands between a function and its callers: the verdict on a call's arguments, and on its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from beartype.door import is_bearable
from jaxtyping import TypeCheckError

from shapecheck.contract import Contract
from shapecheck.demands import Demand, stated_contract
from shapecheck.error import ContractError, contract_error, violations_in
from shapecheck.observe import ANYWHERE, observed
from shapecheck.recall import Acceptance, Recall
from shapecheck.refusal import CONF, refused_argument, refused_result
from shapecheck.relation import RelationError
from shapecheck.scope import Scope, enter
from shapecheck.signature import Reading, name_of, named_function
from shapecheck.values import examine


class Guard:
    """What stands between a function and its callers."""

    def __init__(self, function: Callable[..., Any], reading: Reading, demands: Sequence[Demand]) -> None:
        self.function = function
        self.signature = reading.signature
        self.contract = _stated(name_of(function), reading, demands)
        self.recall = Recall(reading.signature, self.contract)
        self._result_hint = _result_hint(function, reading.signature)
        self.asks_for_result = self._result_hint is not Any
        for parameter in reading.signature.parameters.values():
            if parameter.annotation is not parameter.empty:
                is_bearable(None, parameter.annotation, conf=CONF)  # what beartype cannot read fails here, not in a call

    def examine_values(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Look at the elements of arrays; return what to call the function with.

        Raises:
            ContractError: an array holds what it must not.
        """
        stand_ins = examine(self.contract, arguments)
        if not stand_ins:
            return args, kwargs
        bound = self.signature.bind(*args, **kwargs)
        bound.arguments.update(stand_ins)
        return bound.args, bound.kwargs

    def examine(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Acceptance]:
        """Return the arguments of a legal call by name, with what there is to know of such calls.

        Raises:
            ContractError: it is not legal.
        """
        arguments = self.bind(args, kwargs).arguments
        key = self.recall.key(arguments)
        if key is not None and (found := self.recall.accepted.get(key)) and found.holds():
            return arguments, found
        observations = list(observed(self.contract, arguments))
        violations = violations_in(self.contract, observations)
        if violations and not violations[0].undefined:
            raise contract_error(self.contract, violations)
        scopes = enter(arguments)
        try:
            refusal = refused_argument(self.contract.name, self.signature, arguments)
            bindings = scopes[-1][:3]
        finally:
            scopes.pop()
        if refusal is not None:  # where a relation has no value, it is the cause: a value of another type
            raise ContractError(refusal, self.contract.name)
        if violations:
            raise contract_error(self.contract, violations)
        place = next((each.place for each in observations if each.place is not ANYWHERE), ANYWHERE)
        acceptance = Acceptance.of(bindings, place, key or ())
        lasts = all(self.contract.unsteady_names.isdisjoint(each.values) for each in observations)
        if key is not None and lasts:
            self.recall.accept(acceptance, key, *self.recall.quick_keys(args, kwargs))
        return arguments, acceptance

    def examine_result(self, result: Any, acceptance: Acceptance, scope: Scope) -> None:
        """Check a result in the scope that one is in.

        Raises:
            TypeCheckError: its annotation refuses it.
        """
        depends_on_body = scope[:3] != acceptance.bindings  # which has given sizes to further names
        refusal = refused_result(self.contract.name, self._result_hint, result)
        if refusal is not None:
            raise TypeCheckError(refusal)
        if not depends_on_body:
            self.recall.accept_result(result, acceptance)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """Return a call's arguments with the defaults of those that it leaves out.

        Raises:
            TypeError: it cannot be made.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = str(error)
        else:
            bound.apply_defaults()
            return bound
        inspect.unwrap(self.function)(*args, **kwargs)  # raises what Python says of such a call
        raise TypeError(f"{name_of(self.function)}: {reason}")


def _stated(name: str, reading: Reading, demands: Sequence[Demand]) -> Contract:
    try:
        return stated_contract(name, reading.arrays, reading.parameters, demands)
    except RelationError as error:
        if reading.unresolved:
            error.add_note(f"annotations that name what is not defined there say nothing: {', '.join(reading.unresolved)}")
        raise


def _result_hint(function: Callable[..., Any], signature: inspect.Signature) -> Any:
    """Return the annotation of what a call gives; `Any` where it has none, or speaks of what comes later."""
    body = inspect.unwrap(named_function(function))
    later = inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body)
    hint = signature.return_annotation
    return Any if later or hint in (signature.empty, object) else hint
