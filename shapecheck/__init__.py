"""Legal calls of TPU paged-attention kernels: the contracts, and what enforces them at call time.

Importing this package imports no jax, and neither jaxtyping nor beartype before a function is decorated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shapecheck.chip import chip_of
from shapecheck.contracts import CONTRACTS
from shapecheck.decorators import checked, contract
from shapecheck.demands import relation
from shapecheck.installed import install, uninstall
from shapecheck.plan import largest_divisor, megacore_mode_for
from shapecheck.relation import RelationError
from shapecheck.rule import Rule, Verdict

if TYPE_CHECKING:
    from shapecheck.error import ContractError

__all__ = [
    "ContractError",
    "RelationError",
    "Rule",
    "Verdict",
    "checked",
    "contract",
    "install",
    "judge",
    "largest_divisor",
    "megacore_mode_for",
    "relation",
    "uninstall",
]


def judge(callee: str, *, chip: str | None = None, **geometry: Any) -> dict[str, Verdict]:
    """Return the verdict of every rule on one call, stated by the names of its axes, parameters and dtypes.

    Args:
        callee: a key of `shapecheck.contracts.CONTRACTS`, e.g. `"paged_attention"`.
        chip: the TPU it is to run on, e.g. `"v5e"`; rules that depend on the chip are left out without one.
        **geometry: sizes of axes (`batch_size=8`), values of parameters (`megacore_mode="batch"`; left out: the default),
            names of dtypes (`q_dtype="bfloat16"`; `scales_dtype=None`: plain pages). What is left out is unknown.

    Returns:
        The verdict of each rule by its code.

    Raises:
        KeyError: no such callee.
        TypeError: the callee has no such axis, parameter or dtype; or a size is no integer, or a dtype no string.
        ValueError: no such chip or dtype, or a negative size.
    """
    from shapecheck.stated import checked, nearest

    if callee not in CONTRACTS:
        raise KeyError(f"no callee {callee!r}{nearest(str(callee), CONTRACTS)}; there are: {', '.join(CONTRACTS)}")
    demands = CONTRACTS[callee]
    return demands.judge(demands.geometry(chip=None if chip is None else chip_of(chip), **checked(demands, geometry)))


def __getattr__(name: str) -> Any:
    if name == "ContractError":  # a subclass of jaxtyping's error: importing jaxtyping takes longer than a check
        from shapecheck.error import ContractError

        return ContractError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
