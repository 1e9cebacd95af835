"""The wrapper that `@contract` puts around a function."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from beartype.door import is_bearable
from jaxtyping import TypeCheckError, config

from shapecheck.contract import Contract
from shapecheck.demands import Demand, stated_contract
from shapecheck.error import ContractError, contract_error, violations_in
from shapecheck.observe import ANYWHERE, observed
from shapecheck.recall import Acceptance, Recall
from shapecheck.refusal import CONF, refused_argument, refused_result
from shapecheck.relation import RelationError
from shapecheck.scope import pop, present, push, scope
from shapecheck.signature import Reading, name_of, named_function, read_signature
from shapecheck.values import SETTING, examine

_Function = TypeVar("_Function", bound=Callable[..., Any])

_JIT_METHODS = ("lower", "trace", "eval_shape")


def enforce(function: _Function, demands: Sequence[Demand], *, others: bool = True) -> _Function:
    """Return `function` behind its contract, see `shapecheck.contract`; without `others` only annotations of jaxtyping count."""
    if isinstance(function, (type, staticmethod)) or not callable(function):
        kind = next((each.__name__ for each in (classmethod, staticmethod) if isinstance(function, each)), None)
        below = f"; write it below @{kind}" if kind else ""
        raise TypeError(f"@contract decorates a function, not {function!r}{below}")
    model = named_function(function)
    guard = _Guard(function, read_signature(function) if others else read_signature(function).of_arrays(), demands)
    keying: Any = guard.recall.keying  # where it is None, no call is known
    accepted = guard.recall.accepted
    about_values, asked_by = bool(guard.contract.about_values.rules), guard.contract.values_parameter
    accepts_result = guard.recall.accepts_result if guard.asks_for_result else _accepts_any

    # The attributes of a jit object are its own: copied, they would pass for those of the wrapper. What stands here instead of
    # in functions of its own does so for speed: an eager call of a kernel takes some microseconds.
    @functools.wraps(model, updated=("__dict__",) if isinstance(model, types.FunctionType) else ())
    def enforced(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        try:
            try:
                key, arguments = keying(*args, **kwargs)
                acceptance = accepted[key]
            except Exception:  # not seen before, or not to be told by such a key: of an argument anything may go wrong
                arguments, acceptance = {}, None
            if acceptance is None or (acceptance.is_conditional and not acceptance.holds()):
                arguments, acceptance = guard.examine(args, kwargs)
            if about_values and (SETTING.on or arguments.get(asked_by)):
                args, kwargs = guard.examine_values(args, kwargs, arguments)
            push(arguments, acceptance.bindings)
            try:
                result = function(*args, **kwargs)
                if not accepts_result(result, acceptance):
                    guard.examine_result(result, acceptance)
                return result
            finally:
                pop()
        except Exception as error:
            error.__traceback__ = _without_own_frames(error.__traceback__)
            raise

    enforced.__name__ = name_of(function)
    enforced.__wrapped__ = function
    vars(enforced)["__contract__"] = guard.contract
    if all(hasattr(function, method) for method in _JIT_METHODS):
        for method in _JIT_METHODS:
            setattr(enforced, method, _guarded(getattr(function, method), guard))
    return cast(_Function, enforced)


def _accepts_any(result: Any, acceptance: Acceptance) -> bool:
    """Accept every result of a function that does not annotate it."""
    return True


class _Guard:
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

    def violated(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ContractError | None:
        """Return the error of a call that breaks a relation."""
        violations = violations_in(self.contract, observed(self.contract, self._bind(args, kwargs)))
        return contract_error(self.contract, violations) if violations else None

    def examine(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Acceptance]:
        """Return the arguments of a legal call by name, with what there is to know of such calls.

        Raises:
            ContractError: it is not legal.
        """
        arguments = self._bind(args, kwargs)
        key = self.recall.key(arguments)
        if key is not None and (found := self.recall.accepted.get(key)) and found.holds():
            return arguments, found
        observations = list(observed(self.contract, arguments))
        violations = violations_in(self.contract, observations)
        if violations and not violations[0].undefined:
            raise contract_error(self.contract, violations)
        with scope(arguments):
            refusal = refused_argument(self.contract.name, self.signature, arguments)
            bindings = present()
        if refusal is not None:  # where a relation has no value, it is the cause: a value of another type
            raise ContractError(refusal, self.contract.name)
        if violations:
            raise contract_error(self.contract, violations)
        place = next((each.place for each in observations if each.place is not ANYWHERE), ANYWHERE)
        acceptance = Acceptance.of(bindings, place, key or ())
        lasts = all(self.contract.unsteady_names.isdisjoint(each.values) for each in observations)
        if key is not None and lasts:
            self.recall.accept(acceptance, key, *self.recall.quick_key(args, kwargs))
        return arguments, acceptance

    def examine_result(self, result: Any, acceptance: Acceptance) -> None:
        """Check a result.

        Raises:
            TypeCheckError: its annotation refuses it.
        """
        depends_on_body = present() != acceptance.bindings  # which has given sizes to further names
        refusal = refused_result(self.contract.name, self._result_hint, result)
        if refusal is not None:
            raise TypeCheckError(refusal)
        if not depends_on_body:
            self.recall.accept_result(result, acceptance)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = str(error)
        else:
            bound.apply_defaults()
            return bound.arguments
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


def _without_own_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames that it begins with if they are ours: it goes on where the user's code does."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__", "").startswith("shapecheck."):
        traceback = traceback.tb_next
    return traceback


def _guarded(method: Callable[..., Any], guard: _Guard) -> Callable[..., Any]:
    """Return a method of a jit object that takes the function's arguments, behind the same relations."""

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if not config.jaxtyping_disable and (error := guard.violated(args, kwargs)):
                raise error
            return method(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = _without_own_frames(error.__traceback__)
            raise

    return guarded
