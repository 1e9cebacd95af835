"""Integers that may be unknown: polynomials over symbols and over operations on them, in one normal form.

An integer is a plain `int` where it is known, else a `Term`. Two expressions that are equal by the laws of rings and of
floor division mostly have the same term: `n * b // b` is `n`, `(n + -n % b) % b` is 0.
A division is only ever written down for an execution that got past it, so its divisor is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

MAX_BITS = 512  # an int beyond this is nobody's size; it only eats time and memory


class TermError(Exception):
    """An integer too large, or too long an expression, to reason about."""


@dataclass(frozen=True)
class Symbol:
    """An unknown integer.

    Attributes:
        key: what makes it this unknown: equal keys are equal numbers.
        text: the source expression it stands for, e.g. `page_indices.shape[1]`.
        at_least: a lower bound; 0 for the size of an axis, None where nothing is known.
        reason: why it is unknown.
        usual: the value that it has unless a user says otherwise, where there is one.
    """

    key: Hashable
    text: str
    at_least: int | None = None
    reason: object = field(default=None, compare=False, repr=False)
    usual: int | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Operation:
    """A function of integers that is no polynomial: `floordiv mod min max gcd abs divisor`.

    `divisor(n, m)` is the largest divisor of n that is at most m.
    """

    name: str
    operands: tuple[Int, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.operands))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        shown = [str(operand) for operand in self.operands]
        if self.name in _INFIX:
            return f" {_INFIX[self.name]} ".join(f"({each})" if " " in each else each for each in shown)
        return f"{self.name}({', '.join(shown)})"


Atom: TypeAlias = Symbol | Operation
Monomial: TypeAlias = tuple[Atom, ...]  # its factors, sorted; () is the constant 1

_INFIX = {"floordiv": "//", "mod": "%"}


@dataclass(frozen=True)
class Term:
    """A polynomial with integer coefficients that is no constant."""

    monomials: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:  # terms nest, and are keys: hash each once
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.monomials)

    @property
    def constant(self) -> int:
        factors, coefficient = self.monomials[0]  # in their order, the constant one comes first
        return 0 if factors else coefficient

    def __str__(self) -> str:
        text = ""
        for factors, coefficient in sorted(self.monomials, key=lambda pair: -len(pair[0])):
            size = "*".join([*([str(abs(coefficient))] if abs(coefficient) != 1 or not factors else []), *map(_factor, factors)])
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {size}" if text else ("-" if coefficient < 0 else "") + size
        return text


Int: TypeAlias = int | Term


def _factor(atom: Atom) -> str:
    return f"({atom})" if isinstance(atom, Operation) and atom.name in _INFIX else str(atom)


def _polynomial(coefficients: Mapping[Monomial, int]) -> Int:
    kept = {factors: coefficient for factors, coefficient in coefficients.items() if coefficient}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return _bounded(kept[()])
    if len(kept) > 32 or max(map(len, kept)) > 8:
        raise TermError("an expression too long to reason about")
    if len(kept) == 1:
        return Term(tuple(kept.items()))
    return Term(tuple(sorted(kept.items(), key=lambda pair: tuple(map(str, pair[0])))))


def _bounded(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise TermError(f"an integer of more than {MAX_BITS} bits")
    return value


def monomials(value: Int) -> tuple[tuple[Monomial, int], ...]:
    """Return the monomials of an integer, each with its coefficient."""
    return value.monomials if isinstance(value, Term) else (((), value),)


def of(atom: Atom) -> Term:
    return Term((((atom,), 1),))


def atoms(value: Int) -> Iterator[Atom]:
    """Yield the atoms of a term, each before those inside it."""
    if isinstance(value, Term):
        for factors, _ in value.monomials:
            for atom in factors:
                yield atom
                if isinstance(atom, Operation):
                    for operand in atom.operands:
                        yield from atoms(operand)


def symbols(value: Int) -> set[Symbol]:
    return {atom for atom in atoms(value) if isinstance(atom, Symbol)}


def single(value: Int) -> Atom | None:
    """Return the atom that the term is, if it is nothing but one."""
    match value:
        case Term(((((atom,), 1)),)):
            return atom
        case _:
            return None


def add(left: Int, right: Int) -> Int:
    if isinstance(left, int) and isinstance(right, int):
        return _bounded(left + right)
    total = dict(monomials(left))
    for factors, coefficient in monomials(right):
        total[factors] = total.get(factors, 0) + coefficient
    return _polynomial(total)


def multiply(left: Int, right: Int) -> Int:
    if isinstance(left, int) and isinstance(right, int):
        return _bounded(left * right)
    total: dict[Monomial, int] = {}
    for a, m in monomials(left):
        for b, n in monomials(right):
            factors = tuple(sorted((*a, *b), key=str)) if a and b else a or b
            total[factors] = total.get(factors, 0) + m * n
    return _polynomial(total)


def negate(value: Int) -> Int:
    return multiply(value, -1)


def subtract(left: Int, right: Int) -> Int:
    return add(left, negate(right))


def divide(value: Int, divisor: Int) -> tuple[Int, Int]:
    """Split `value` into `quotient * divisor + rest`, the rest as short as single monomials allow."""
    if isinstance(divisor, int):
        parts = monomials(value)
        whole = _polynomial({factors: coefficient // divisor for factors, coefficient in parts})
        return whole, _polynomial({factors: coefficient % divisor for factors, coefficient in parts})
    if len(divisor.monomials) > 1:
        if value == divisor:
            return 1, 0
        return (-1, 0) if value == negate(divisor) else (0, value)
    by, unit = next(iter(divisor.monomials))
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for factors, coefficient in monomials(value):
        left = _without(factors, by)
        if left is None or coefficient % unit:
            rest[factors] = coefficient
        else:
            quotient[left] = coefficient // unit
    return _polynomial(quotient), _polynomial(rest)


def _without(factors: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(factors)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def floordiv(value: Int, divisor: Int) -> Int:
    """Return `value // divisor`; raises ZeroDivisionError for a divisor that is 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor
    if divisor == 0:
        raise ZeroDivisionError
    quotient, rest = divide(value, divisor)
    if rest == 0 or (isinstance(rest, int) and isinstance(divisor, int)):
        return quotient  # a constant rest is smaller than a constant divisor
    return add(quotient, of(Operation("floordiv", (rest, divisor))))


def mod(value: Int, divisor: Int) -> Int:
    """Return `value % divisor`; raises ZeroDivisionError for a divisor that is 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor
    if divisor == 0:
        raise ZeroDivisionError
    _, rest = divide(_unfold(value, divisor), divisor)
    if isinstance(rest, int) and isinstance(divisor, int):
        return rest
    if rest == 0:
        return 0
    return of(Operation("mod", (rest, divisor)))


def _unfold(value: Int, divisor: Int) -> Int:
    """Replace each `x % m` with m a multiple of `divisor` by `x`, which is the same modulo `divisor`."""

    def congruent(atom: Atom) -> Int:
        match atom:
            case Operation("mod", (inner, modulus)) if divide(modulus, divisor)[1] == 0:
                return _unfold(inner, divisor)
            case _:
                return of(atom)

    return replace_top(value, congruent)


def replace_top(value: Int, replacement: Callable[[Atom], Int]) -> Int:
    """Replace the atoms of a polynomial, but not those inside its operations."""
    if isinstance(value, int):
        return value
    total: Int = 0
    for factors, coefficient in value.monomials:
        product: Int = coefficient
        for atom in factors:
            product = multiply(product, replacement(atom))
        total = add(total, product)
    return total


def replace(value: Int, replacement: Mapping[Any, Int]) -> Int:
    """Replace atoms wherever they stand, and bring the result into normal form."""

    def rebuild(atom: Atom) -> Int:
        if atom in replacement:
            return replacement[atom]
        if isinstance(atom, Symbol):
            return of(atom)
        return FUNCTIONS[atom.name](*(replace(operand, replacement) for operand in atom.operands))

    return replace_top(value, rebuild)


def absolute(value: Int) -> Int:
    return abs(value) if isinstance(value, int) else of(Operation("abs", (value,)))


def minimum(left: Int, right: Int) -> Int:
    if left == right:
        return left
    gap = subtract(left, right)
    if isinstance(gap, int):
        return left if gap < 0 else right
    return of(Operation("min", (left, right)))


def maximum(left: Int, right: Int) -> Int:
    if left == right:
        return left
    gap = subtract(left, right)
    if isinstance(gap, int):
        return left if gap > 0 else right
    return of(Operation("max", (left, right)))


def gcd(left: Int, right: Int) -> Int:
    if isinstance(left, int) and isinstance(right, int):
        return math.gcd(left, right)
    return of(Operation("gcd", (left, right)))


def divisor(value: Int, at_most: Int) -> Int:
    """Return the largest divisor of `value` not above `at_most`, as `shapecheck.largest_divisor` does."""
    if isinstance(value, int) and isinstance(at_most, int):
        if value < 1 or at_most < 1:
            raise ZeroDivisionError
        return next(each for each in range(min(value, at_most, 1 << 16), 0, -1) if value % each == 0)
    return of(Operation("divisor", (value, at_most)))


FUNCTIONS: Mapping[str, Callable[..., Int]] = {
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
    "gcd": gcd,
    "abs": absolute,
    "divisor": divisor,
}


def evaluate(value: Int, assignment: Mapping[Symbol, int]) -> int:
    """Return the number a term is when its symbols have these values.

    Raises:
        ZeroDivisionError: a divisor is 0 there.
        TermError: a symbol has no value, or a number is too large.
    """
    if isinstance(value, int):
        return value
    total = 0
    for factors, coefficient in value.monomials:
        product = coefficient
        for atom in factors:
            product *= _number(atom, assignment)
        total += product
    return _bounded(total)


def _number(atom: Atom, assignment: Mapping[Symbol, int]) -> int:
    if isinstance(atom, Symbol):
        if atom not in assignment:
            raise TermError(f"{atom} has no value")
        return assignment[atom]
    number = FUNCTIONS[atom.name](*(evaluate(operand, assignment) for operand in atom.operands))
    assert isinstance(number, int), "a function of known integers"
    return number
