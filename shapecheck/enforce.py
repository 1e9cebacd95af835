"""The wrapper that `@contract` puts around a function."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from jaxtyping import config

from shapecheck.ahead import examine_ahead, examine_outcome
from shapecheck.demands import Demand
from shapecheck.frames import without_own_frames
from shapecheck.guard import Guard
from shapecheck.recall import Acceptance
from shapecheck.scope import Scope, enter
from shapecheck.signature import name_of, named_function, read_signature
from shapecheck.values import SETTING

_Function = TypeVar("_Function", bound=Callable[..., Any])

_JIT_METHODS = ("lower", "trace", "eval_shape")


def enforce(function: _Function, demands: Sequence[Demand], *, others: bool = True) -> _Function:
    """Return `function` behind its contract, see `shapecheck.contract`; without `others` only annotations of jaxtyping count."""
    if isinstance(function, (type, staticmethod)) or not callable(function):
        kind = next((each.__name__ for each in (classmethod, staticmethod) if isinstance(function, each)), None)
        below = f"; write it below @{kind}" if kind else ""
        raise TypeError(f"@contract decorates a function, not {function!r}{below}")
    model = named_function(function)
    guard = Guard(function, read_signature(function) if others else read_signature(function).of_arrays(), demands)
    keying, accepted, found = next(iter(guard.recall.keyings), None), guard.recall.accepted, guard.recall.found
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
                key, arguments = keying(*args, **kwargs)  # pyright: ignore[reportOptionalCall]
                acceptance = accepted[key]
            except Exception:  # see `found`
                arguments, acceptance = found(args, kwargs)
            if acceptance is None or (acceptance.is_conditional and not acceptance.holds()):
                arguments, acceptance = guard.examine(args, kwargs)
            if about_values and (SETTING.on or arguments.get(asked_by)):
                args, kwargs = guard.examine_values(args, kwargs, arguments)
            scopes = enter(arguments, acceptance.bindings)
            try:
                result = function(*args, **kwargs)
                if not accepts_result(result, acceptance, scopes[-1]):
                    guard.examine_result(result, acceptance, scopes[-1])
                return result
            finally:
                scopes.pop()
        except Exception as error:
            error.__traceback__ = without_own_frames(error.__traceback__)
            raise

    enforced.__name__ = name_of(function)
    enforced.__wrapped__ = function
    enforced.__contract__ = guard.contract  # pyright: ignore[reportAttributeAccessIssue]
    if all(hasattr(function, method) for method in _JIT_METHODS):
        for method in _JIT_METHODS:
            setattr(enforced, method, _ahead_of_time(getattr(function, method), guard))
    return cast(_Function, enforced)


def _accepts_any(result: Any, acceptance: Acceptance, scope: Scope) -> bool:
    """Accept every result of a function that does not annotate it."""
    return True


def _ahead_of_time(method: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """Return a method of a jit object that takes the function's arguments, behind the checks of a call.

    The elements of arrays take no part in what it does, so that nobody looks at them.
    """

    @functools.wraps(method)
    def enforced(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if config.jaxtyping_disable:
            return method(*args, **kwargs)
        try:
            arguments, acceptance = examine_ahead(guard, args, kwargs)
            scopes = enter(arguments, acceptance.bindings)
            try:
                outcome = method(*args, **kwargs)
                if guard.asks_for_result:
                    examine_outcome(guard, outcome, acceptance, scopes[-1])
                return outcome
            finally:
                scopes.pop()
        except Exception as error:
            error.__traceback__ = without_own_frames(error.__traceback__)
            raise

    return enforced
