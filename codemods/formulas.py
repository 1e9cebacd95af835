"""Conditions on unknown values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from codemods import substitution, terms
from codemods.terms import Int, Symbol, Term


class _Formula:
    """What the kinds of formulas share. They are looked up and inverted over and over: each computes that once."""

    @cached_property
    def inverse(self) -> Formula:
        return Not(self)  # type: ignore[arg-type]  # a subclass


@dataclass(frozen=True)
class Compare(_Formula):
    """`term == 0` or `term <= 0`."""

    op: str
    term: Term

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.term))

    @cached_property
    def inverse(self) -> Formula:
        return at_most(1, self.term) if self.op == "<=" else Not(self)

    def __str__(self) -> str:
        constant = self.term.constant
        body = self.term.body
        if any(coefficient > 0 for _, coefficient in terms.monomials(body)):
            return f"{body} {self.op} {-constant}"
        return f"{terms.negate(body)} {'>=' if self.op == '<=' else self.op} {constant}"


@dataclass(frozen=True)
class Equals(_Formula):
    """An unknown value is this constant (a str, None, ...), as Python's `==` says."""

    key: Hashable
    text: str
    constant: Any

    def __str__(self) -> str:
        return f"{self.text} == {self.constant!r}"


@dataclass(frozen=True)
class Truthy(_Formula):
    """An unknown value counts as true."""

    key: Hashable
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Not(_Formula):
    operand: Formula

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(("not", self.operand))

    @cached_property
    def inverse(self) -> Formula:
        return self.operand

    @cached_property
    def excluded(self) -> frozenset[Formula]:
        """The conditions that do not all hold."""
        return frozenset(self.operand.operands) if isinstance(self.operand, And) else frozenset()

    def __str__(self) -> str:
        return f"not ({self.operand})"


@dataclass(frozen=True)
class And(_Formula):
    operands: tuple[Formula, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(("and", self.operands))

    @cached_property
    def size(self) -> int:
        return sum(map(size, self.operands))

    def __str__(self) -> str:
        return " and ".join(f"({each})" for each in self.operands)


Formula: TypeAlias = bool | Compare | Equals | Truthy | Not | And
Assignment: TypeAlias = Mapping[Symbol, int]


def equal(left: Int, right: Int) -> Formula:
    gap = terms.subtract(left, right)
    if isinstance(gap, int):
        return gap == 0
    if (rest := _halved(gap)) is not None:
        return invert(equal(rest, 0))
    (first, *_) = gap.monomials
    return Compare("==", gap if first[1] > 0 else terms.negate(gap))  # type: ignore[arg-type]  # no constant


def _halved(gap: Term) -> Int | None:
    """Return `n % 2` of `n % 2 - 1`, in which case that is 0 where `n % 2` is not; None for any other term."""
    match gap.monomials:
        case (((), -1 | 1 as constant), ((terms.Operation("mod", (_, 2)) as rest,), coefficient)) if constant == -coefficient:
            return terms.of(rest)
        case _:
            return None


def at_most(left: Int, right: Int) -> Formula:
    gap = terms.subtract(left, right)
    return gap <= 0 if isinstance(gap, int) else Compare("<=", gap)


def less(left: Int, right: Int) -> Formula:
    return at_most(terms.add(left, 1), right)


def invert(formula: Formula) -> Formula:
    return not formula if isinstance(formula, bool) else formula.inverse


def both(*formulas: Formula) -> Formula:
    parts: dict[Formula, None] = {}
    for formula in formulas:
        if formula is False or (formula is not True and formula.inverse in parts):
            return False
        for part in conjuncts(formula):
            if invert(part) in parts or (isinstance(part, Not) and part.excluded and part.excluded <= parts.keys()):
                return False
            parts[part] = None
    if len(parts) < 2:
        return next(iter(parts), True)
    return And(tuple(parts))


def either(*formulas: Formula) -> Formula:
    return invert(both(*map(invert, formulas)))


def size(formula: Formula) -> int:
    """Count the comparisons in a formula."""
    if isinstance(formula, Not):
        return size(formula.operand)
    return formula.size if isinstance(formula, And) else 1


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    if formula is True:
        return ()
    return formula.operands if isinstance(formula, And) else (formula,)


def leaves(formula: Formula) -> Iterator[Formula]:
    match formula:
        case Not(operand):
            yield from leaves(operand)
        case And(operands):
            for operand in operands:
                yield from leaves(operand)
        case _:
            yield formula


def subjects(formula: Formula) -> set[Any]:
    """Return the unknowns that a formula speaks of."""
    keys = {leaf.key for leaf in leaves(formula) if isinstance(leaf, Equals | Truthy)}
    return keys | integers(formula)


def integers(formula: Formula) -> set[Symbol]:
    """Return the unknown integers that a formula speaks of."""
    found: set[Symbol] = set()
    for leaf in leaves(formula):
        if isinstance(leaf, Compare):
            found |= terms.symbols(leaf.term)
    return found


def evaluate(formula: Formula, assignment: Assignment) -> bool | None:
    """Say whether a formula holds for these integers; None where it rests on something else, or is undefined."""
    match formula:
        case bool():
            return formula
        case Compare(op, term):
            try:
                value = substitution.evaluate(term, assignment)
            except (ZeroDivisionError, terms.TermError, AssertionError):
                return None
            return value == 0 if op == "==" else value <= 0
        case Not(operand):
            outcome = evaluate(operand, assignment)
            return None if outcome is None else not outcome
        case And(operands):
            return kleene_and(evaluate(operand, assignment) for operand in operands)
        case Equals() | Truthy():
            return None


def kleene_and(outcomes: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for outcome in outcomes:
        if outcome is False:
            return False
        if outcome is None:
            result = None
    return result
