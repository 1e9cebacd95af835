"""Patterns of `match` statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate import containers, havoc, iteration, names, objects, operators
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.library import Unmodelled
from codemods.values import Class, DictRef, External, Instance, ListRef, Term, Value, is_constant, lineage, same

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_PLAIN = {"int": int, "float": float, "str": str, "bool": bool, "bytes": bytes}
"""Classes whose pattern captures the subject itself: `int(x)`."""


def match(machine: Machine, pattern: ast.pattern, subject: Value) -> formulas.Formula:
    """Return the condition under which a pattern matches, and bind the names that it captures."""
    match pattern:
        case ast.MatchAs(None, name):
            return _bound(machine, name, subject)
        case ast.MatchAs(ast.pattern() as inner, name):
            matches = match(machine, inner, subject)
            _bound(machine, name, subject)
            return matches
        case ast.MatchValue(expected):
            return _equals(machine, subject, machine.evaluate(expected))
        case ast.MatchSingleton(constant):
            return _equals(machine, subject, constant)
        case ast.MatchOr(parts) if not any(map(captured, parts)):
            return formulas.either(*(match(machine, part, subject) for part in parts))
        case ast.MatchSequence(parts) if isinstance(subject, tuple | ListRef):
            return _sequence(machine, parts, subject, pattern)
        case ast.MatchMapping() if isinstance(subject, DictRef) and machine.contents(subject) is not None:
            return _mapping(machine, pattern, subject)
        case ast.MatchClass(kind):
            return _of_class(machine, pattern, machine.evaluate(kind), subject)
        case _:
            return _unknown(machine, pattern, subject)


def _bound(machine: Machine, name: str | None, value: Value) -> bool:
    if name is not None:
        names.bind(machine, name, value)
    return True


def _unknown(machine: Machine, pattern: ast.pattern, subject: Value) -> formulas.Formula:
    """The pattern may match or not, and what it captures is not known."""
    havoc.leak(machine, subject)  # what is captured may be a part of it
    if isinstance(subject, Instance) and _looks(machine, subject):
        havoc.everything(machine, "a pattern reads a property", pattern)
    for name in captured(pattern):
        names.bind(machine, name, machine.unknown(name, "what a pattern captures of an unknown value is not known", pattern))
    return machine.coin("a pattern matches")


def _every(machine: Machine, parts: Sequence[ast.pattern], subjects: Sequence[Value]) -> formulas.Formula:
    return formulas.both(*(match(machine, part, subject) for part, subject in zip(parts, subjects, strict=True)))


def _sequence(machine: Machine, parts: list[ast.pattern], subject: Value, pattern: ast.pattern) -> formulas.Formula:
    try:
        elements = iteration.elements(machine, subject)
    except Unmodelled:
        return _unknown(machine, pattern, subject)
    star = next((place for place, part in enumerate(parts) if isinstance(part, ast.MatchStar)), None)
    if star is None:
        return len(parts) == len(elements) and _every(machine, parts, elements)
    after = len(parts) - star - 1
    if len(elements) < len(parts) - 1:
        return False
    rest = elements[star : len(elements) - after]
    _bound(machine, getattr(parts[star], "name", None), containers.make_list(machine, rest))
    ends = (*elements[:star], *elements[len(elements) - after :])
    return _every(machine, [*parts[:star], *parts[star + 1 :]], ends)


def _mapping(machine: Machine, pattern: ast.MatchMapping, subject: DictRef) -> formulas.Formula:
    contents = machine.contents(subject)
    keys = [machine.evaluate(key) for key in pattern.keys]
    values = [next((held for known, held in contents if same(known, key)), _unknown) for key in keys]
    if _unknown in values:
        return False
    rest = [(known, held) for known, held in contents if not any(same(known, key) for key in keys)]
    _bound(machine, pattern.rest, containers.make_dict(machine, rest) if pattern.rest else None)
    return _every(machine, pattern.patterns, values)


def _of_class(machine: Machine, pattern: ast.MatchClass, kind: Value, subject: Value) -> formulas.Formula:
    match kind, subject:
        case External(path), _ if (plain := _PLAIN.get(path.removeprefix("builtins."))) and not pattern.kwd_patterns:
            if not (is_constant(subject) or isinstance(subject, Term)):
                return _unknown(machine, pattern, subject)
            fits = plain is int if isinstance(subject, Term) else isinstance(subject, plain)
            return fits and _every(machine, pattern.patterns, [subject] * len(pattern.patterns))
        case Class(scope=scope), Instance(cls=cls) if any(each.scope == scope for each in lineage(cls)):
            fields = kind.positional[: len(pattern.patterns)]
            if len(fields) < len(pattern.patterns) or kind.kind not in ("dataclass", "namedtuple", "plain"):
                return _unknown(machine, pattern, subject)
            parts = [objects.attribute(machine, subject, name, pattern) for name in (*fields, *pattern.kwd_attrs)]
            return _every(machine, [*pattern.patterns, *pattern.kwd_patterns], parts)
        case Class(), Instance(cls=cls) if all(each.kind != "open" for each in lineage(cls)):
            return False
        case _:
            return _unknown(machine, pattern, subject)


def _looks(machine: Machine, subject: Instance) -> bool:
    """Say whether reading an attribute of an object may run code of its class."""
    members = [held for cls in objects.lineage(subject.cls) for held in machine.members(cls.scope).items()]
    return any(getattr(held, "kind", "") in ("property", "cached") or name in ("__getattr__", "__getattribute__")
               for name, held in members)  # fmt: skip


def captured(pattern: ast.pattern) -> list[str]:
    """Return the names that a pattern binds."""
    found = Bindings()
    found.visit(pattern)
    return sorted(found.bound)


def _equals(machine: Machine, subject: Value, expected: Value) -> formulas.Formula:
    try:
        return machine.truth(machine.spread(operators.equals, subject, expected, text="a match"))
    except Unmodelled:
        return machine.coin("a pattern matches")
