"""The arguments of a call: their values, with the expressions that they were written as."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codemods.evaluate import iteration
from codemods.evaluate.library import Unmodelled
from codemods.nodes import excerpt
from codemods.values import DictRef, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        positional, keywords: their values.
        nodes: the expressions they were written as, by position or keyword.
        spread: whether there may be others, behind a `*` or `**` whose contents are unknown.
        node: the call expression.
    """

    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])
    nodes: Mapping[int | str, ast.expr] = field(default_factory=dict[int | str, ast.expr])
    spread: bool = False
    node: ast.expr | None = None

    def after(self, *first: Value) -> Arguments:
        """Return the arguments with others put in front of them."""
        moved = {key + len(first) if isinstance(key, int) else key: node for key, node in self.nodes.items()}
        return replace(self, positional=(*first, *self.positional), nodes=moved)

    def without_first(self) -> Arguments:
        moved = {key - 1 if isinstance(key, int) else key: node for key, node in self.nodes.items() if key != 0}
        return replace(self, positional=self.positional[1:], nodes=moved)

    def values(self) -> tuple[Value, ...]:
        return (*self.positional, *self.keywords.values())

    @property
    def text(self) -> str:
        """The call, for a message."""
        return excerpt(self.node) if self.node is not None else "a call"


def arguments_of(machine: Machine, node: ast.Call) -> Arguments:
    """Evaluate the arguments of a call expression."""
    positional: list[Value] = []
    keywords: dict[str, Value] = {}
    nodes: dict[int | str, ast.expr] = {}
    spread = False
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            parts = _elements(machine, machine.evaluate(argument.value))
            spread = spread or parts is None
            positional += parts or ()
        elif not spread:
            nodes[len(positional)] = argument
            positional.append(machine.evaluate(argument))
        else:
            machine.evaluate(argument)  # its position is not known
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            nodes[keyword.arg] = keyword.value
        elif isinstance(value, DictRef) and (contents := machine.contents(value)) is not None:
            keywords |= {key: held for key, held in contents if isinstance(key, str)}
        else:
            spread = True
    return Arguments(tuple(positional), keywords, nodes, spread, node)


def _elements(machine: Machine, value: Value) -> tuple[Value, ...] | None:
    try:
        return iteration.elements(machine, value)
    except Unmodelled:
        return None
