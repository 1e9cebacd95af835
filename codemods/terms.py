"""Integers that may be unknown: polynomials over symbols and over operations (`codemods.operations`), in one normal form.

An integer is a plain `int` where it is known, else a `Term`. Two expressions that are equal by the laws of rings and of
floor division mostly have the same term: `n * b // b` is `n`, `(n + -n % b) % b` is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

MAX_BITS = 512  # an int beyond this is nobody's size; it only eats time and memory
MAX_MONOMIALS = 32
TOO_LONG = "an expression too long to reason about"


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

    @cached_property
    def body(self) -> Term:
        """The term without its constant."""
        return Term(self.monomials[1:]) if self.constant else self

    @cached_property
    def negated(self) -> Term:
        return Term(tuple((factors, -coefficient) for factors, coefficient in self.monomials))

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
        return bounded(kept[()])
    if len(kept) > MAX_MONOMIALS or max(map(len, kept)) > 8:
        raise TermError(TOO_LONG)
    if len(kept) == 1:
        return Term(tuple(kept.items()))
    return Term(tuple(sorted(kept.items(), key=lambda pair: tuple(map(str, pair[0])))))


def bounded(value: int) -> int:
    """Return a number, or raise `TermError` for one that is too large to reason about."""
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
    if isinstance(left, int):
        return bounded(left + right) if isinstance(right, int) else _plus(right, left)
    if isinstance(right, int):
        return _plus(left, right)
    total = dict(monomials(left))
    for factors, coefficient in monomials(right):
        total[factors] = total.get(factors, 0) + coefficient
    return _polynomial(total)


def _plus(term: Term, number: int) -> Term:
    constant, parts = term.constant + number, term.body.monomials
    if not constant:
        return term.body
    if len(parts) == MAX_MONOMIALS:
        raise TermError(TOO_LONG)
    return Term((((), constant), *parts))


def multiply(left: Int, right: Int) -> Int:
    if isinstance(left, int) and isinstance(right, int):
        return bounded(left * right)
    total: dict[Monomial, int] = {}
    for a, m in monomials(left):
        for b, n in monomials(right):
            factors = tuple(sorted((*a, *b), key=str)) if a and b else a or b
            total[factors] = total.get(factors, 0) + m * n
    return _polynomial(total)


def negate(value: Int) -> Int:
    return value.negated if isinstance(value, Term) else bounded(-value)


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
