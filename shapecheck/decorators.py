"""`@contract(...)` and `checked(...)`: a function behind its contract."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from shapecheck.contract import Contract
from shapecheck.rule import Rule

_Function = TypeVar("_Function", bound=Callable[..., Any])


def contract(*demands: str | Rule | Contract) -> Callable[[_Function], _Function]:
    """Enforce relations between the sizes of a function's arguments, and its jaxtyping annotations, at call time.

        @contract("num_q_heads % num_kv_heads == 0", "megacore_mode != 'kv_head' or num_kv_heads % 2 == 0")
        def attend(q: Float[Array, "batch_size num_q_heads head_dim"], ...): ...

    A relation may use the axes in the annotations, `ARRAY_AXIS` for the axis of one array, `ARRAY_rank`, `ARRAY_shape`,
    `ARRAY_dtype`, `itemsize(ARRAY)`, and the other parameters; a parameter hides the axis of the same name. A relation over what
    cannot be told is taken to hold, and so is one over symbolic sizes of `jax.export` that their constraints leave open; one that
    divides by 0, or that Python cannot evaluate for other reasons, is not. Under jit the check runs when the function is traced.

    The function may be a jit object or a `functools.partial`. Of a jit object, `lower`, `trace` and `eval_shape` check what a
    call does, also where arrays are given as `jax.ShapeDtypeStruct`; but nobody looks at the elements of arrays there. The
    contract is kept as `__contract__`. jaxtyping's `jaxtyping_disable` turns all checks off.

    Args:
        demands: relations as strings, or from `shapecheck.relation` with a name, a message and the chips that they are for; and
            at most one ready contract such as `shapecheck.contracts.PAGED_ATTENTION`, with which the signature must agree.

    Raises:
        RelationError: on decoration: a relation cannot be read, or uses a name that the signature does not define.
        TypeError: on decoration: the signature disagrees with the ready contract, or a shape is in an annotation that
            cannot be resolved.
        ContractError: on a call that breaks the contract.
    """
    for demand in demands:
        if not isinstance(demand, (str, Rule, Contract)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"@contract(...) takes relations, rules and contracts, not {demand!r}")

    def decorate(function: _Function) -> _Function:
        from shapecheck.enforce import enforce  # imports jaxtyping: only who decorates pays for it

        return enforce(function, demands)

    return decorate


def checked(function: _Function, *demands: str | Rule | Contract) -> _Function:
    """Return a function of someone else's behind a contract; the function itself stays what it is.

        attend = checked(paged_attention, PAGED_ATTENTION)

    It is as `contract(*demands)(function)`, but for two things. Of its annotations only those of jaxtyping are checked: the
    others are not yours to enforce, as JAX's `q: jax.Array` takes arrays of numpy too. And what a `functools.partial` holds fast
    takes part, also by position.

    Args:
        function: a function, a jit object, or a `functools.partial` of one.
        demands: what `contract` takes.

    Raises:
        RelationError, TypeError: as `contract` does, here.
    """
    if isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        inner = checked(partial.func, *demands)
        return cast(_Function, functools.partial(inner, *partial.args, **partial.keywords))
    from shapecheck.enforce import enforce

    contract(*demands)  # refuses what it does not take
    return enforce(function, demands, others=False)
