"""The sizes that jaxtyping gives to the names of axes while a function runs: found once, and put back for later calls.

A scope of jaxtyping has names of its own: what is checked inside it shares them, and has none with the outside.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxtyping import _storage  # pyright: ignore[reportPrivateUsage]

Bindings: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""What jaxtyping keeps by name: the sizes of axes, the shapes of variadic ones, and the structures of trees."""
Scope: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]
"""That, and the arguments."""

# jaxtyping has no public way to put names back. This is where its own decorator keeps the scopes of each thread; its functions
# to enter one and to look at it take several times as long as it takes to do so here.
_storage_of_thread: Any = _storage._shape_storage  # pyright: ignore[reportPrivateUsage]


def enter(arguments: dict[str, Any], bindings: Bindings = ({}, {}, {})) -> list[Scope]:
    """Enter a scope in which names stand for what they stood for when the arguments were checked; to leave it, `pop()` it.

    Return the scopes that one is in, innermost last. It is not the scope itself, as jaxtyping replaces that by another.
    """
    try:
        scopes: list[Scope] = _storage_of_thread.memo_stack
    except AttributeError:
        scopes = _storage_of_thread.memo_stack = []
    sizes, shapes, structures = bindings
    scopes.append((sizes.copy(), shapes.copy(), structures.copy(), arguments))
    return scopes
