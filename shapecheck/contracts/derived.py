"""Contracts that demand what another one does, but for a few rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shapecheck.arguments import Parameter
from shapecheck.contract import Contract
from shapecheck.relation import Relation
from shapecheck.rule import Rule


def unless(condition: str, rule: Rule, **changes: Any) -> Rule:
    """Return the rule for calls of which the condition does not hold, with other changes to it."""

    def weakened(relation: Relation) -> Relation:
        return Relation(f"{condition} or ({relation.text})", relation.definitions)

    enough = None if rule.enough is None else weakened(rule.enough)
    return replace(rule, relation=weakened(rule.relation), enough=enough, **changes)


def amended(
    rules: Iterable[Rule], changes: Mapping[str, Mapping[str, Any]], *, without: Iterable[str] = (), also: Iterable[Rule] = ()
) -> tuple[Rule, ...]:
    """Return rules in the order of their codes, some of them with other attributes.

    Args:
        rules: the rules of another contract.
        changes: by code, the attributes that differ: `{"SC109": {"relation": Relation("q_rank == 4")}}`.
        without: the codes of those that do not apply.
        also: rules that the other contract does not have.
    """
    dropped = frozenset(without)
    kept = {rule.code: rule for rule in rules if rule.code not in dropped}
    changed = [replace(rule, **changes.get(code, {})) for code, rule in kept.items()]
    return tuple(sorted([*changed, *also], key=lambda rule: rule.code))


def switched(contract: Contract, switch: str, *, default: bool) -> Contract:
    """Return the contract of a wrapper that runs the kernel only where its parameter `switch` is true."""
    return replace(
        contract,
        parameters=(*contract.parameters, Parameter(switch, default)),
        rules=tuple(unless(f"not {switch}", rule) for rule in contract.rules),
    )
