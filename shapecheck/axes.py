"""The axis names in a jaxtyping shape string, read without jaxtyping."""

from __future__ import annotations

import re

from shapecheck.relation import RelationError

UNNAMED = "_"
"""An axis that defines no name: anonymous, of fixed size, computed, or one that may be broadcast."""

VARIADIC = "..."
"""Any number of axes."""

_MODIFIERS = "#*_?"
_COMPARISON = re.compile(r"[<>]|[!=]=")


def axes_of(shape: str) -> tuple[str, ...]:
    """Return the axes of a shape string such as `"batch_size num_q_heads head_dim"`.

    Only a plain name names an axis. `"*batch #n 3 rows=4 n+1"` has none: `("...", "_", "_", "_", "_")`.

    Raises:
        RelationError: the string holds a comparison, which jaxtyping reads as something else: to it, `n>=4` is `4`.
    """
    return tuple(_axis(element) for element in shape.split())


def _axis(element: str) -> str:
    name, equals, _ = element.partition("=")
    if _COMPARISON.search(element) or (equals and not name.lstrip(_MODIFIERS).isidentifier()):
        raise RelationError(f"{element!r} in a shape is not what jaxtyping checks; give it to @contract(...) as a relation")
    modifiers = element[: len(element) - len(element.lstrip(_MODIFIERS))]
    if element == VARIADIC or "*" in modifiers:
        return VARIADIC
    return element if element.isidentifier() and not modifiers else UNNAMED
