"""What follows from conditions that are known to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from math import gcd, inf

from codemods import operations, substitution, terms
from codemods.formulas import And, Compare, Equals, Formula, Not, Truthy, conjuncts, invert, kleene_and
from codemods.intervals import Interval
from codemods.terms import Atom, Int, Operation, Symbol, Term, TermError

_MOST_CLAMPS = 3  # in one sum: each is replaced by each of its operands


class Facts:
    """Formulas that hold. What they say of others is sound but not complete: `decide` may answer None."""

    def __init__(self, known: Iterable[Formula] = ()) -> None:
        self.known = tuple(dict.fromkeys(part for formula in known for part in conjuncts(formula)))
        self._index = frozenset(self.known)
        self._decided: dict[Formula, bool | None] = {}
        self._allowed: dict[Formula, bool] = {}
        self._ranges: dict[Atom, Interval] = {}

    def given(self, formula: Formula) -> Facts:
        """Return the facts together with one more."""
        return self if formula in self._index else Facts((*self.known, formula))

    def allow(self, formula: Formula) -> bool:
        """Say whether a formula may hold, as far as can be told: each part of it together with those before."""
        if formula not in self._allowed:
            self._allowed[formula] = self._allow(formula)
        return self._allowed[formula]

    def _allow(self, formula: Formula) -> bool:
        facts = self
        for part in conjuncts(formula):
            if facts.decide(part) is False:
                return False
            facts = facts.given(part)
        return formula is not False

    def decide(self, formula: Formula) -> bool | None:
        """Return True if the formula follows, False if its opposite does, else None."""
        if isinstance(formula, bool):
            return formula
        if formula in self._index:
            return True
        if invert(formula) in self._index:
            return False
        match formula:
            case Not(operand):
                outcome = self.decide(operand)
                return None if outcome is None else not outcome
            case And() | Compare():
                if formula not in self._decided:
                    self._decided[formula] = self._decide(formula)
                return self._decided[formula]
            case Equals(key, _, constant):
                others = (fact for fact in self.known if isinstance(fact, Equals) and fact.key == key)
                return False if any(fact.constant != constant for fact in others) else None
            case Truthy():
                return None

    def _decide(self, formula: And | Compare) -> bool | None:
        if isinstance(formula, And):
            return kleene_and(map(self.decide, formula.operands))
        try:
            return self._decide_comparison(formula)
        except (ZeroDivisionError, TermError):  # the facts contradict each other, or lead too far
            return None

    def _decide_comparison(self, formula: Compare) -> bool | None:
        term = self._simplify(formula.term)
        low, high = self.bounds(term)
        if formula.op == "<=":
            return True if high <= 0 else False if low > 0 else None
        if low > 0 or high < 0:
            return False
        if low == high == 0 or substitution.replace(term, self._factored) == 0:
            return True
        match terms.single(term) or terms.single(terms.negate(term)):
            case Operation("mod", (value, divisor)) if self.divides(divisor, value):
                return True
            case _:
                return None

    # Equations and divisibility

    @cached_property
    def _equations(self) -> dict[Atom, Int]:
        """The known equations, each solved for a symbol of it."""
        return _solve(fact.term for fact in self.known if isinstance(fact, Compare) and fact.op == "==")

    def _simplify(self, value: Int) -> Int:
        return substitution.replace(value, self._equations) if self._equations else value

    @cached_property
    def _multiples(self) -> list[tuple[Int, Int]]:
        """The pairs (d, e) of which the facts say that d divides e: `e % d == 0`, or `e // d * d == e`."""
        pairs: list[tuple[Int, Int]] = []
        for fact in self.known:
            if isinstance(fact, Compare) and fact.op == "==":
                for atom in terms.atoms(fact.term):
                    if isinstance(atom, Operation) and atom.name in ("mod", "floordiv"):
                        value, divisor = atom.operands
                        rest = terms.subtract(value, terms.multiply(divisor, operations.floordiv(value, divisor)))
                        stated = terms.of(atom) if atom.name == "mod" else rest
                        if fact.term in (stated, terms.negate(stated)):
                            pairs.append((divisor, value))
        return [(self._simplify(divisor), self._simplify(value)) for divisor, value in pairs]

    @cached_property
    def _factored(self) -> dict[Atom, Int]:
        """Multiples written as products with an unknown quotient, so that divisibility is a matter of normal form."""
        quotients = (
            terms.subtract(terms.multiply(divisor, terms.of(Symbol(("quotient", divisor, value), "quotient"))), value)
            for divisor, value in self._multiples
        )
        return _solve((each for each in quotients if isinstance(each, Term)), new="quotient") | self._shares

    @cached_property
    def _shares(self) -> dict[Atom, Int]:
        """Known numbers that one unknown divides, such as `32 // n` and `8 // n`, as multiples of one share."""
        numbers: dict[Int, list[int]] = {}
        for divisor, value in self._multiples:
            if isinstance(value, int) and not isinstance(divisor, int):
                numbers.setdefault(divisor, []).append(value)
        shares: dict[Atom, Int] = {}
        for divisor, values in numbers.items():
            whole = gcd(*values)
            share = operations.floordiv(whole, divisor)
            for value in values:
                shares[Operation("floordiv", (value, divisor))] = terms.multiply(value // whole, share) if whole else 0
        return shares

    def divides(self, divisor: Int, value: Int, depth: int = 4) -> bool:
        """Say whether it is certain that `divisor` divides `value`, if it is not 0."""
        divisor, value = (substitution.replace(self._simplify(each), self._factored) for each in (divisor, value))
        if divisor == 0:
            return False
        if operations.mod(value, divisor) == 0:
            return True
        if isinstance(terms.single(divisor), Symbol) and self.bounds(divisor) == Interval(1, 1):
            return True
        if depth == 0:
            return False
        match terms.single(divisor):
            case Operation("min" | "max", operands) if all(self.divides(each, value, depth - 1) for each in operands):
                return True
            case _:
                pass
        for smaller, larger in (*self._multiples, *_by_meaning(divisor), *_by_meaning(value)):
            rest = _modulo(value, larger)
            if rest != value and self.divides(divisor, rest, depth - 1) and self.divides(divisor, smaller, depth - 1):
                return True
        return False

    @cached_property
    def _not_dividing(self) -> set[Int]:
        """The numbers of which the facts say that there is something that they do not divide."""
        return {
            divisor
            for fact in self.known
            if isinstance(fact, Not) and isinstance(fact.operand, Compare) and fact.operand.op == "=="
            if isinstance(rest := terms.single(fact.operand.term), Operation) and rest.name == "mod"
            for divisor in rest.operands[1:]
        }

    # Bounds

    def bounds(self, value: Int) -> Interval:
        """Return the range of a term."""
        if isinstance(value, int):
            return Interval(value, value)
        total = Interval(0, 0)
        for factors, coefficient in value.monomials:
            product = Interval(coefficient, coefficient)
            for atom in factors:
                product *= self._atom_bounds(atom)
            total += product
        return total & self._stated_bounds(value) & self._clamped_bounds(value)

    def _clamped_bounds(self, value: Term) -> Interval:
        """The range of a sum with a minimum in it, which no operand is below, or a maximum, which none is above."""
        clamps = list(_clamps(value)) if len(value.monomials) > 1 else []
        range_ = Interval()
        if len(clamps) <= _MOST_CLAMPS:
            for clamp, times in clamps:
                for operand in clamp.operands:
                    beyond = self.bounds(terms.add(value, terms.multiply(terms.subtract(operand, terms.of(clamp)), times)))
                    below = (clamp.name == "min") == (times > 0)
                    range_ &= Interval(-inf, beyond.high) if below else Interval(beyond.low, inf)
        return range_

    @cached_property
    def _stated(self) -> dict[Int, Interval]:
        """The ranges that the facts state, each of a term without a constant part."""
        stated: dict[Int, Interval] = {}
        for fact in self.known:
            if isinstance(fact, Compare) and fact.op == "<=":  # body + constant <= 0
                constant = fact.term.constant
                body = fact.term.body
                for term, interval in ((body, Interval(-inf, -constant)), (body.negated, Interval(constant, inf))):
                    stated[term] = stated.get(term, Interval()) & interval
        return stated

    def _stated_bounds(self, value: Term) -> Interval:
        """The range that facts of this very term, or of it plus a constant, state."""
        if not self._stated:
            return Interval()
        return self._stated.get(value.body, Interval()) + Interval(value.constant, value.constant)

    def _atom_bounds(self, atom: Atom) -> Interval:
        if atom not in self._ranges:
            self._ranges[atom] = self._range(atom) & self._stated_bounds(terms.of(atom))
        return self._ranges[atom]

    def _range(self, atom: Atom) -> Interval:
        """The range of an atom by what it is."""
        match atom:
            case Symbol(_, _, int(at_least)):
                above = Not(Compare("==", terms.subtract(terms.of(atom), at_least))) in self._index  # type: ignore[arg-type]
                above |= at_least == 1 and terms.of(atom) in self._not_dividing  # 1 divides everything
                return Interval(at_least + above, inf)
            case Operation("mod", (_, divisor)) if (most := self.bounds(divisor)).low >= 0:
                return Interval(0, most.high - 1)
            case Operation("floordiv", (value, int(divisor))) if divisor > 0:
                return self.bounds(value) // divisor
            case Operation("floordiv", (value, divisor)) if min(self.bounds(value).low, self.bounds(divisor).low) >= 0:
                least = int(self.bounds(value).low >= 1 and self.divides(divisor, value))
                return Interval(least, self.bounds(value).high)
            case Operation("min" | "max" as name, operands):
                pick = min if name == "min" else max
                ranges = [self.bounds(operand) for operand in operands]
                return Interval(pick(each.low for each in ranges), pick(each.high for each in ranges))
            case Operation("gcd", operands):
                return Interval(int(any(isinstance(each, int) and each for each in operands)), inf)
            case Operation("divisor", (_, at_most)):
                return Interval(1, self.bounds(at_most).high)
            case Operation("abs", _):
                return Interval(0, inf)
            case _:
                return Interval()


def _solve(equations: Iterable[Int], new: str = "") -> dict[Atom, Int]:
    """Solve each `term == 0` for a symbol that stands alone in it, as far as possible in a triangular way.

    `new` marks the symbols that were made up for the purpose, which are not solved for.
    """
    solved: dict[Atom, Int] = {}
    for equation in equations:
        term = substitution.replace(equation, solved)
        for symbol, coefficient in _lone_symbols(term):
            if symbol.text == new:
                continue
            rest = terms.subtract(terms.of(symbol), terms.multiply(term, coefficient))
            if symbol not in terms.symbols(rest):
                solved = {atom: substitution.replace(value, {symbol: rest}) for atom, value in solved.items()}
                solved[symbol] = rest
                break
    return solved


def _lone_symbols(term: Int) -> Iterator[tuple[Symbol, int]]:
    for factors, coefficient in terms.monomials(term):
        if len(factors) == 1 and isinstance(factors[0], Symbol) and coefficient in (1, -1):
            yield factors[0], coefficient


def _clamps(value: Term) -> Iterator[tuple[Operation, int]]:
    """Yield each minimum and maximum that stands alone in a sum, with its coefficient."""
    for factors, times in value.monomials:
        match factors:
            case (Operation("min" | "max") as clamp,):
                yield clamp, times
            case _:
                pass


def _by_meaning(value: Int) -> Iterator[tuple[Int, Int]]:
    """Pairs (d, e) of which d divides e because of what the operations in `value` are."""
    for atom in terms.atoms(value):
        match atom:
            case Operation("gcd", operands):
                yield from ((terms.of(atom), operand) for operand in operands)
            case Operation("divisor", (whole, _)):
                yield terms.of(atom), whole
            case _:
                pass


def _modulo(value: Int, multiple: Int) -> Int:
    """Return `value` less a multiple of `multiple`, where that makes it simpler; else `value`."""
    if len(terms.monomials(multiple)) == 1:
        return terms.divide(value, multiple)[1] if multiple != 0 else value
    for symbol, coefficient in _lone_symbols(multiple):
        if symbol in terms.symbols(value):
            alone = terms.subtract(terms.of(symbol), terms.multiply(multiple, coefficient))
            return terms.replace_top(value, lambda atom, symbol=symbol, alone=alone: alone if atom == symbol else terms.of(atom))
    return value
