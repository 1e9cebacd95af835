"""Other integers in place of the atoms of a term: numbers, or terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codemods.operations import FUNCTIONS
from codemods.terms import Atom, Int, Symbol, TermError, bounded, of, replace_top


def replace(value: Int, replacement: Mapping[Any, Int]) -> Int:
    """Replace atoms wherever they stand, and bring the result into normal form."""

    def rebuild(atom: Atom) -> Int:
        if atom in replacement:
            return replacement[atom]
        if isinstance(atom, Symbol):
            return of(atom)
        return FUNCTIONS[atom.name](*(replace(operand, replacement) for operand in atom.operands))

    return replace_top(value, rebuild)


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
    return bounded(total)


def _number(atom: Atom, assignment: Mapping[Symbol, int]) -> int:
    if isinstance(atom, Symbol):
        if atom not in assignment:
            raise TermError(f"{atom} has no value")
        return assignment[atom]
    number = FUNCTIONS[atom.name](*(evaluate(operand, assignment) for operand in atom.operands))
    assert isinstance(number, int), "a function of known integers"
    return number
