"""Numbers that stand for the elements of arrays, for rules about what is in an array: its least, its greatest, or another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Arrays: TypeAlias = Mapping[str, Any]
"""Array arguments by name: of numpy or jax, also traced, or kept as `weight` and `scales`."""


@dataclass(frozen=True)
class Measure:
    """One element that stands for many.

    Attributes:
        name: what relations call it.
        origin: the expression that a user would write for it.
        arrays: the array arguments that it takes to find it; the first is the one that it is of.
        find: finds it, given `jax.numpy` or `numpy`, the arrays, and what is known of the call by name. What it returns is the
            number, then integers that say where it is.
        place: says where it is, given the expression that the array comes from, the array, and these integers.
        needs: the names of sizes and parameters that `find` looks up.
    """

    name: str
    origin: str
    arrays: tuple[str, ...]
    find: Callable[[Any, Arrays, Mapping[str, Any]], tuple[Any, ...]]
    place: Callable[..., str]
    needs: tuple[str, ...] = ()


def extremes(array: str, expression: str) -> tuple[Measure, Measure]:
    """Return the least and the greatest element of an array argument, `ARRAY_min` and `ARRAY_max`."""

    def extreme(which: str) -> Measure:
        def find(xp: Any, arrays: Arrays, values: Mapping[str, Any]) -> tuple[Any, ...]:
            flat = xp.ravel(arrays[array])
            at = getattr(xp, f"arg{which}")(flat)
            return flat[at], at

        return Measure(f"{array}_{which}", f"{expression}.{which}()", (array,), find, _element)

    return extreme("min"), extreme("max")


def _element(expression: str, array: Any, at: int) -> str:
    index: list[int] = []
    for size in reversed(array.shape):
        at, rest = divmod(at, size)
        index.insert(0, rest)
    return f"{expression}[{', '.join(map(str, index))}]"
