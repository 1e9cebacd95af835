"""The sizes that jaxtyping gives to the names of axes while a function runs: found once, and put back for later calls.

A scope of jaxtyping has names of its own: what is checked inside it shares them, and has none with the outside.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from jaxtyping import _storage  # pyright: ignore[reportPrivateUsage]

Bindings: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""What jaxtyping keeps by name: the sizes of axes, the shapes of variadic ones, and the structures of trees."""

# jaxtyping has no public way to put names back. These are what its own decorator uses.
_push: Any = _storage.push_shape_memo
_top: Any = _storage.get_shape_memo
pop: Any = _storage.pop_shape_memo
"""Leave the scope that one is in."""


def push(arguments: dict[str, Any], bindings: Bindings) -> None:
    """Enter a scope in which names stand for what they stood for when the arguments were checked."""
    memo = _push(arguments)
    memo[0].update(bindings[0])
    if bindings[1] or bindings[2]:
        memo[1].update(bindings[1])
        memo[2].update(bindings[2])


@contextmanager
def scope(arguments: dict[str, Any]) -> Generator[None]:
    """Be in a scope in which no name stands for anything yet."""
    _push(arguments)
    try:
        yield
    finally:
        pop()


def present() -> Bindings:
    """Return the bindings of the scope that one is in."""
    bindings: Bindings = _top()[:3]
    return bindings
