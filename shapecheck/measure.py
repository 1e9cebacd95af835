"""Numbers that stand for the elements of arrays, for rules about what is in an array: its least, its greatest, or another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

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
        read_off: finds it in arrays whose elements a source spells out: they have a `shape`, and give an element by its index.
            None where that cannot be done.
    """

    name: str
    origin: str
    arrays: tuple[str, ...]
    find: Callable[[Any, Arrays, Mapping[str, Any]], tuple[Any, ...]]
    place: Callable[..., str]
    needs: tuple[str, ...] = ()
    read_off: Callable[[Arrays, Mapping[str, Any]], int] | None = None


@dataclass(frozen=True)
class Numbers:
    """Integers, one for each element of an array, of which those count that the callee looks at.

    Both functions take the arrays by name, what `needs` names, and the index of the element: one of integers, or arrays of
    indices. So they serve a program that computes them, and what a source spells out.

    Attributes:
        arrays: the arrays that they are computed from; the first is the one whose elements they belong to.
        number: computes one.
        counts: says whether it counts.
        needs: the names of sizes that it takes.
    """

    arrays: tuple[str, ...]
    number: Callable[..., Any]
    counts: Callable[..., Any]
    needs: tuple[str, ...] = ()

    def extreme(
        self,
        which: Literal["min", "max"],
        name: str,
        origin: str,
        *,
        of: str | None = None,
        shown: Callable[..., Any] | None = None,
        place: Callable[..., str] | None = None,
        otherwise: int = 0,
    ) -> Measure:
        """Return the measure that is the least or the greatest of those that count.

        Args:
            which: whether the least or the greatest.
            name: its name, and `origin` the expression.
            of: the array that it is told of, where that is not the first.
            shown: computes what stands for it, of the same element; None: the number itself.
            place: as that of `Measure`; None: the element.
            otherwise: what it is where none counts.
        """
        first, worst = self.arrays[0], {"min": 2**31 - 1, "max": -(2**31)}[which]
        arrays = tuple(dict.fromkeys((of or first, *self.arrays)))
        shown = shown or self.number

        def find(xp: Any, given: Arrays, values: Mapping[str, Any]) -> tuple[Any, ...]:
            given = {each: xp.asarray(given[each]) for each in arrays}
            index = xp.indices(given[first].shape)
            counts = self.counts(given, values, *index)
            at = getattr(xp, f"arg{which}")(xp.where(counts, self.number(given, values, *index), worst))
            number = xp.where(counts, shown(given, values, *index), otherwise)
            return xp.ravel(number)[at], *xp.unravel_index(at, number.shape)

        def read_off(given: Arrays, values: Mapping[str, Any]) -> int:
            places = [each for each in product(*map(range, given[first].shape)) if self.counts(given, values, *each)]
            best = {"min": min, "max": max}[which]
            if not places:
                return otherwise
            return shown(given, values, *best(places, key=lambda each: self.number(given, values, *each)))

        return Measure(name, origin, arrays, find, place or _indexed, self.needs, read_off)


def extremes(array: str, expression: str) -> tuple[Measure, Measure]:
    """Return the least and the greatest element of an array argument, `ARRAY_min` and `ARRAY_max`."""

    def extreme(which: str) -> Measure:
        def find(xp: Any, arrays: Arrays, values: Mapping[str, Any]) -> tuple[Any, ...]:
            flat = xp.ravel(arrays[array])
            at = getattr(xp, f"arg{which}")(flat)
            return flat[at], at

        def read_off(arrays: Arrays, values: Mapping[str, Any]) -> int:
            return {"min": min, "max": max}[which](_elements(arrays[array]))

        return Measure(f"{array}_{which}", f"{expression}.{which}()", (array,), find, _element, read_off=read_off)

    return extreme("min"), extreme("max")


def _elements(array: Any) -> Iterator[int]:
    return (array[index] for index in product(*map(range, array.shape)))


def _indexed(expression: str, array: Any, *index: int) -> str:
    return f"{expression}[{', '.join(map(str, index))}]"


def _element(expression: str, array: Any, at: int) -> str:
    index: list[int] = []
    for size in reversed(array.shape):
        at, rest = divmod(at, size)
        index.insert(0, rest)
    return _indexed(expression, array, *index)
