"""Arrays that are changed in place: those of numpy and torch, whose views share their elements."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.values import Array, Choice, Partial, Quantized, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_RESHAPING = frozenset(
    {"resize", "squeeze_", "unsqueeze_", "resize_", "transpose_", "t_", "swapaxes_", "swapdims_", "set_", "shape"}
)
"""Methods and attributes through which an array gets another shape."""


def may_change(value: Value) -> bool:
    """Say whether code that is given this value may change elements of an array in place: those of JAX it cannot."""
    match value:
        case Array(library=library, contents=contents):
            return library != "jax" and contents is not None
        case tuple():
            return any(map(may_change, value))
        case _:
            return False


def elements_change(machine: Machine) -> None:
    """Forget the elements of all arrays that may share memory with one that is changed: who shares it is not followed."""
    held = {**machine.program.arrays, **machine.state.cells}
    machine.step(len(held) // 16)
    for cell, value in held.items():
        changed = _without_elements(value)
        if changed is not value:
            machine.state.cells[cell] = changed


def _without_elements(value: Value) -> Value:
    match value:
        case Array():
            return replace(value, contents=None) if may_change(value) else value
        case tuple():
            parts = tuple(map(_without_elements, value))
            return value if all(map(_is, parts, value)) else parts
        case Quantized(weight, scales):
            return Quantized(_without_elements(weight), _without_elements(scales)) if may_change((weight, scales)) else value
        case Choice(alternatives):
            parts = [_without_elements(each) for _, each in alternatives]
            if all(part is each for part, (_, each) in zip(parts, alternatives, strict=True)):
                return value
            return Choice(tuple((formula, part) for part, (formula, _) in zip(parts, alternatives, strict=True)))
        case Partial():
            held = (value.positional, value.keywords)
            parts = _without_elements(held)
            return value if parts is held else replace(value, positional=parts[0], keywords=parts[1])
        case _:
            return value


def _is(left: Value, right: Value) -> bool:
    return left is right


def method_changes(machine: Machine, array: Array, name: str, node: ast.AST | None) -> None:
    """Take note that a method of an array is called of which nothing is known: it may change the array in place."""
    if name in _RESHAPING:
        shape_changes(machine, array, node)
    if array.library != "jax":
        elements_change(machine)


def shape_changes(machine: Machine, array: Array, node: ast.AST | None) -> None:
    """Forget an array under all its names: it gets another shape in place."""
    held = {**machine.program.arrays, **machine.state.cells}
    for cell, value in held.items():
        if value is array or (isinstance(value, tuple) and any(part is array for part in value)):
            machine.state.cells[cell] = machine.unknown(cell[1], "its shape is changed in place", node)
