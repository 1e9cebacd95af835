"""The way of a value from the literal that writes it down to where it is used, and the search for one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codemods.evaluate.machine import Caller
from codemods.repairs.fields import Field
from codemods.repairs.scopes import Variable

LONGEST = 24  # names that one value is handed on through


def is_literal(node: ast.expr) -> bool:
    """Say whether an expression is a literal number, string or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and node.value is not Ellipsis


@dataclass(frozen=True)
class Trail:
    """The way of a value from its literal to the kernel.

    Attributes:
        literal: where it is written down.
        reads: the ids of the expressions that read it on the way.
        holders: the variables and attributes that hold it on the way, or hold what holds it.
        annotated: whether a variable on the way has a type annotation.
    """

    literal: ast.expr
    reads: frozenset[int] = frozenset()
    holders: frozenset[Variable | Field] = frozenset()
    annotated: bool = False

    @property
    def value(self) -> Any:
        return ast.literal_eval(self.literal)

    def via(self, reads: Iterable[ast.expr], *holders: Variable | Field, annotated: bool = False) -> Trail:
        """Return the trail that goes on through the holders, and is read from them."""
        all_reads, all_holders = self.reads | set(map(id, reads)), self.holders | set(holders)
        return replace(self, reads=all_reads, holders=all_holders, annotated=self.annotated or annotated)


@dataclass(frozen=True)
class Search:
    """One search: the value that is looked for, and what was being executed where the expression stands.

    `made_by` is the call that made the object of whose attributes one is followed.
    """

    value: Any
    callers: Sequence[Caller] = ()
    case: Mapping[str, Any] = field(default_factory=dict[str, Any])
    made_by: ast.Call | None = None
    left: int = LONGEST
