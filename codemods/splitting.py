"""Deciding case by case what does not follow at once: `Facts` sees what holds, but not what holds either way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from codemods import formulas
from codemods.facts import Facts
from codemods.formulas import And, Formula, Not, conjuncts, invert

# What is asked is kept: the rules at a call ask the same of its path, and so do the cases of a test.

MAX_SPLITS = 4  # conditions that are tried both ways
_MAX_SIZE = 48  # comparisons among what is known and has to do with the question, for it to be worth while


def follows(formula: Formula, known: Iterable[Formula]) -> bool | None:
    """Return True if the formula follows from what is known, False if its opposite does, else None."""
    return _follows(formula, tuple(known))


@lru_cache(maxsize=4096)
def _follows(formula: Formula, known: tuple[Formula, ...]) -> bool | None:
    outcome = Facts(known).decide(formula)
    if outcome is not None:
        return outcome
    related = _related(formula, known)
    if sum(map(formulas.size, (formula, *related))) > _MAX_SIZE:
        return None
    found = _outcomes(formula, related, MAX_SPLITS)
    return next(iter(found)) if len(found) == 1 else None


def consistent(known: Iterable[Formula]) -> bool:
    """Say whether conditions may hold together, as far as can be told."""
    return _consistent(tuple(known))


@lru_cache(maxsize=4096)
def _consistent(known: tuple[Formula, ...], splits: int = MAX_SPLITS) -> bool:
    settled = _settled(known)
    if settled is None:
        return False
    either = [formula for formula in settled if _is_disjunction(formula)]
    if not splits or len(either) < 2 or sum(map(formulas.size, settled)) > _MAX_SIZE:  # one alone contradicts nothing
        return True
    condition = next((leaf for leaf in formulas.leaves(either[0]) if Facts(settled).decide(leaf) is None), None)
    if condition is None:
        return True
    return any(_consistent((*settled, each), splits - 1) for each in (condition, invert(condition)))


def _compatible(known: Iterable[Formula]) -> bool:
    held: list[Formula] = []
    for formula in known:
        if Facts(held).decide(formula) is False:
            return False
        held.append(formula)
    return True


def _outcomes(formula: Formula, known: Sequence[Formula], splits: int) -> set[bool]:
    """Return the truth values that a formula may have; none where what is known contradicts itself."""
    settled = _settled(known)
    if settled is None:
        return set()
    outcome = Facts(settled).decide(formula)
    if outcome is not None:
        return {outcome}
    condition = _condition(formula, settled) if splits else None
    if condition is None:
        return {True, False}
    found = _outcomes(formula, [*settled, condition], splits - 1)
    return found if len(found) == 2 else found | _outcomes(formula, [*settled, invert(condition)], splits - 1)


def _settled(known: Iterable[Formula]) -> list[Formula] | None:
    """Return what is known with what follows from it by elimination; None where it contradicts itself."""
    simple: list[Formula] = []
    either: list[Formula] = []
    for part in (part for formula in known for part in conjuncts(formula)):
        (either if _is_disjunction(part) else simple).append(part)
    if not _compatible(simple):
        return None
    while either:
        facts = Facts(simple)
        left = [reduced for formula in either if (reduced := _reduced(formula, facts)) is not True]
        found = [part for reduced in left if not _is_disjunction(reduced) for part in conjuncts(reduced)]
        either = [reduced for reduced in left if _is_disjunction(reduced)]
        if not found:
            break
        simple += found
        if False in found or not _compatible(simple):
            return None
    return [*simple, *either]


def _is_disjunction(formula: Formula) -> bool:
    return isinstance(formula, Not) and isinstance(formula.operand, And)


def _reduced(formula: Formula, facts: Facts) -> Formula:
    """Return a formula without the parts that facts decide."""
    match formula:
        case Not(operand):
            return invert(_reduced(operand, facts))
        case And(operands):
            return formulas.both(*(_reduced(operand, facts) for operand in operands))
        case _:
            outcome = facts.decide(formula)
            return formula if outcome is None else outcome


def _condition(formula: Formula, known: Iterable[Formula]) -> Formula | None:
    """Return a condition that parts the cases: of a disjunction that holds, or of the formula itself."""
    facts = Facts(known)
    for each in (*filter(_is_disjunction, facts.known), formula):
        for leaf in formulas.leaves(each):
            if leaf != formula and facts.decide(leaf) is None:
                return leaf
    return None


def _related(formula: Formula, known: Iterable[Formula]) -> list[Formula]:
    """Return the conditions that have to do with a formula, by the unknowns that they speak of."""
    subjects = formulas.subjects(formula)
    left = [part for each in known for part in conjuncts(each)]
    related: list[Formula] = []
    while near := [each for each in left if formulas.subjects(each) & subjects]:
        related += near
        left = [each for each in left if each not in near]
        subjects = subjects.union(*map(formulas.subjects, near))
    return related
