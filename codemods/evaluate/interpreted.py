"""The table of functions that the machine interprets itself: they call what they are given, or need its state.

Functions that only make or reshape arrays are models (`codemods.evaluate.library`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, TypeAlias

from codemods import terms
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.library import Unmodelled
from codemods.values import Value, as_int, describe

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

Interpreted: TypeAlias = "Callable[[Machine, Arguments], Value]"

INTERPRETED: dict[str, Interpreted] = {}


def interprets(*paths: str) -> Callable[[Interpreted], Interpreted]:
    """Register what a function does by its dotted paths."""

    def register(function: Interpreted) -> Interpreted:
        INTERPRETED.update(dict.fromkeys(paths, function))
        return function

    return register


def computes(*paths: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function of the values of its positional arguments, none of which is a `Choice`."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        takes = signature(function)

        def spread(machine: Machine, arguments: Arguments) -> Value:
            try:
                takes.bind(machine, *arguments.positional)
            except TypeError:
                raise Unmodelled(unfollowed(arguments)) from None
            if arguments.keywords or arguments.spread:
                raise Unmodelled(unfollowed(arguments))
            return machine.spread(lambda *values: function(machine, *values), *arguments.positional, text=text_of(arguments))

        interprets(*paths)(spread)
        return function

    return register


def text_of(arguments: Arguments) -> str:
    return ast.unparse(arguments.node)[:60] if arguments.node is not None else "a call"


def unfollowed(arguments: Arguments) -> str:
    """Say that a function is called in a way that is not followed."""
    return f"the arguments of `{text_of(arguments)}` are not followed"


def integer(value: Value) -> terms.Int:
    """Return a value as an integer, or raise `Unmodelled`."""
    number = as_int(value)
    if number is None:
        raise Unmodelled(f"`{describe(value)}` is not known to be an integer")
    return number
