"""Sizes of `jax.export` that are no integers: what is known of them follows from the constraints of their scope."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class Undecided(ValueError):
    """A comparison of symbolic sizes that holds for some values of their symbols only."""


class Symbolic:
    """A symbolic size, for relations: of JAX's own type `==` and `!=` say that what may be equal is not.

    Arithmetic with integers and other sizes gives an integer where the symbols cancel, and comparison raises `Undecided` where
    the constraints do not decide. Equality as Python has it, which is for keys of dictionaries, is that of the expressions.
    """

    __slots__ = ("size",)

    def __init__(self, size: Any) -> None:
        self.size = size

    def equals(self, other: Any) -> bool:
        """Say whether it is equal to another size, for every value of the symbols.

        Raises:
            Undecided: it is for some.
        """
        return bool(self <= other and self >= other)

    def __add__(self, other: Any) -> Any:
        return _applied(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _applied(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _applied(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _applied(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _applied(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _applied(operator.mul, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _applied(_floor, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _applied(_floor, other, self)

    def __mod__(self, other: Any) -> Any:
        return _applied(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _applied(operator.mod, other, self)

    def __neg__(self) -> Any:
        return -1 * self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __le__(self, other: Any) -> bool:
        return bool(_applied(operator.le, self, other))

    def __lt__(self, other: Any) -> bool:
        return bool(_applied(operator.lt, self, other))

    def __ge__(self, other: Any) -> bool:
        return bool(_applied(operator.ge, self, other))

    def __gt__(self, other: Any) -> bool:
        return bool(_applied(operator.gt, self, other))

    def __bool__(self) -> bool:
        return not self.equals(0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbolic) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return str(self.size)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # of an error that was pickled, only what it says


def _floor(left: Any, right: Any) -> Any:
    return left // right


def _applied(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    from jax.errors import InconclusiveDimensionOperation  # where there is such a size, there is JAX

    try:
        result = function(*(each.size if isinstance(each, Symbolic) else each for each in (left, right)))
    except InconclusiveDimensionOperation as error:
        raise Undecided(str(error)) from None
    return Symbolic(result) if hasattr(result, "__jax_array__") else result
