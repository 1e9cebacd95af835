"""The wrapper that `@contract` puts around a function."""

from __future__ import annotations

import functools
import inspect
import keyword
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, config, jaxtyped  # pyright: ignore[reportUnknownVariableType]

from shapecheck.contract import Contract
from shapecheck.demands import stated_contract
from shapecheck.error import ContractError, Violation, contract_error, violations_of
from shapecheck.observe import geometry_of
from shapecheck.refusal import refuser
from shapecheck.relation import RelationError
from shapecheck.signature import Reading, name_of, named_function, read_signature

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Judge: TypeAlias = Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[Violation, ...]]

_BEARTYPE = BeartypeConf(is_pep484_tower=True)  # `float` takes an int, as it does for static type checkers
_JIT_METHODS = ("lower", "trace", "eval_shape")


def enforce(function: _Function, demands: Sequence[str | Contract]) -> _Function:
    """Return `function` behind its contract; see `shapecheck.contract`."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"@contract decorates a function, not {function!r}; write it below @classmethod")
    model = named_function(function)
    reading = read_signature(function)
    stated = _stated(name_of(function), reading, demands)
    violated = _judge(function, reading.signature, stated)
    typed = _typed(function, reading.signature)
    refused = refuser(stated.name, reading.signature, _BEARTYPE)

    # The attributes of a jit object are its own: copied, they would pass for those of the wrapper.
    @functools.wraps(model, updated=("__dict__",) if isinstance(model, types.FunctionType) else ())
    def enforced(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        if violations := violated(args, kwargs):
            if violations[0].undefined and (reason := refused(*args, **kwargs)) is not None:  # the cause: a value of another type
                raise ContractError(reason, stated.name)
            raise contract_error(stated, violations)
        try:
            return typed(*args, **kwargs)
        except TypeCheckError:
            if (reason := refused(*args, **kwargs)) is None:  # the result is at fault, or a call inside
                raise
        raise ContractError(reason, stated.name)

    enforced.__name__ = name_of(function)
    enforced.__wrapped__ = function
    enforced.__contract__ = stated  # pyright: ignore[reportAttributeAccessIssue]
    if all(hasattr(function, method) for method in _JIT_METHODS):
        for method in _JIT_METHODS:
            setattr(enforced, method, _guarded(getattr(function, method), stated, violated))
    return cast(_Function, enforced)


def _stated(name: str, reading: Reading, demands: Sequence[str | Contract]) -> Contract:
    try:
        return stated_contract(name, reading.arrays, reading.parameters, demands)
    except RelationError as error:
        if reading.unresolved:
            error.add_note(f"annotations that name what is not defined there say nothing: {', '.join(reading.unresolved)}")
        raise


def _judge(function: Callable[..., Any], signature: inspect.Signature, contract: Contract) -> _Judge:
    """Return what gives the violations for the arguments of a call."""

    def violated(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Violation, ...]:
        bound = _bind(function, signature, args, kwargs)
        bound.apply_defaults()
        return violations_of(contract, geometry_of(contract, bound.arguments))

    return violated


def _bind(
    function: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        reason = str(error)
    inspect.unwrap(function)(*args, **kwargs)  # raises what Python says of such a call
    raise TypeError(f"{name_of(function)}: {reason}")


def _typed(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Return `function` under jaxtyping and beartype, which want a `def` and annotations that are no strings."""

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return function(*args, **kwargs)

    name = name_of(function)
    call.__name__ = name if name.isidentifier() and not keyword.iskeyword(name) else "call"
    call.__qualname__ = getattr(function, "__qualname__", call.__name__)
    call.__module__ = function.__module__
    call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return jaxtyped(call, typechecker=beartype(conf=_BEARTYPE))


def _guarded(method: Callable[..., Any], contract: Contract, violated: _Judge) -> Callable[..., Any]:
    """Return a method of a jit object that takes the function's arguments, behind the same relations."""

    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not config.jaxtyping_disable and (violations := violated(args, kwargs)):
            raise contract_error(contract, violations)
        return method(*args, **kwargs)

    return guarded
