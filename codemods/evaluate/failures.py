"""Assertions that are not followed: what is behind one is executed only if it holds."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NoReturn

from codemods.evaluate.arguments import Arguments
from codemods.evaluate.machine import Leaves
from codemods.values import Array, Class, DictRef, DType, External, Function, ListRef, Partial, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_ASSERTS = re.compile(r"_*(?:assert|check|ensure|expect|fail|raise|require|validate|verify)(?:[_A-Z]|s?$)")
_OF_THE_PLACE = re.compile(r"avail|version|devic|tpu|gpu|package|trace|install|backend", re.IGNORECASE)
"""The names of those that ask where a program runs, and not what it is given."""

_OF_ELEMENTS = re.compile(r"close|equal|almost|less|greater|finite|nan|numerical|grad", re.IGNORECASE)
_OF_SHAPES = re.compile(r"shape|rank|ndim|axis|size|type|struct", re.IGNORECASE)


def may_fail(machine: Machine, name: str, arguments: Arguments) -> None:
    """Go on behind an assertion that is not followed, known by the name of its function.

    Where it looks at what is not known it is taken to hold, as a guard is. Where the source spells out all that it looks at, it
    may fail in every execution: that what is behind it is executed is then as uncertain as in a branch.
    """
    statement = machine.frame.statement
    if not (isinstance(statement, ast.Expr) and statement.value is arguments.node and _ASSERTS.match(name)):
        return
    of_elements = _OF_ELEMENTS.search(name) is not None and _OF_SHAPES.search(name) is None
    given = arguments.values()
    if given and not _OF_THE_PLACE.search(name) and all(_is_spelled_out(machine, each, elements=of_elements) for each in given):
        holds_or_leaves(machine, f"`{arguments.text}` holds")


def holds_or_leaves(machine: Machine, text: str) -> None:
    """Go on where something holds of which nothing is known: that the execution ends here is as likely."""
    machine.part(machine.coin(text), (lambda: None, _leave))


def _leave() -> NoReturn:
    raise Leaves


def _is_spelled_out(machine: Machine, value: Value, *, elements: bool) -> bool:
    """Say whether all of a value is known that an assertion may look at: `elements` of an array, or its shape and dtype."""
    match value:
        case Array(shape, contents=contents):
            return contents is not None if elements else all(isinstance(size, int) for size in shape)
        case tuple():
            return all(_is_spelled_out(machine, each, elements=elements) for each in value)
        case ListRef() | DictRef():
            contents = machine.contents(value)
            return contents is not None and _is_spelled_out(machine, contents, elements=elements)
        case _:
            return is_constant(value) or isinstance(value, Class | DType | External | Function | Partial)
