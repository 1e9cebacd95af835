"""Values that a user may set, of which a default is known: what they may be, not what they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods import formulas
from codemods.evaluate import operators
from codemods.evaluate.state import choose
from codemods.values import Opaque, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def option(
    machine: Machine, text: str, default: Value, node: ast.AST | None, choices: Sequence[Value] = (), kind: str = "an option"
) -> Value:
    """Return the value of an option: one of its choices, or unknown."""
    why = f"`{text}` is {kind}"
    if is_constant(default) and default is not None:
        why += f", {default!r} by default"
    made = replace(machine.unknown(text, why, node, pure=True), default=default if is_constant(default) else None)
    if not choices or not all(each is None or isinstance(each, str | int) for each in choices):
        return made
    return choose((_is(made, each), each) for each in choices)


def _is(value: Opaque, choice: Value) -> formulas.Formula:
    if isinstance(choice, bool):
        held = formulas.Truthy(value.key, value.text)
        return held if choice else formulas.invert(held)
    return operators.identical(value, None) if choice is None else operators.equals(value, choice)


def looked_up(machine: Machine, text: str, default: Value, node: ast.AST | None) -> Value:
    """Return what `getattr(x, name, default)` or `x.get(key, default)` gives for an unknown `x`."""
    return option(machine, text, default, node, kind="not set where the scanned source shows it")
