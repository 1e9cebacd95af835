"""What there is to say of a kernel so that calls of it can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from shapecheck.outcome import Values

Geometry: TypeAlias = dict[str, Any]
"""A call stated by the names of its axes, parameters and dtypes, as `shapecheck.judge` takes it."""

Change: TypeAlias = Callable[[st.DrawFn, Geometry], Geometry | None]
"""Returns what to change of a legal call to break a rule; None where it cannot be done."""


@dataclass(frozen=True)
class Drawing:
    """How calls of one kernel are drawn.

    Attributes:
        legal: given about how large sizes get, a strategy for calls that are legal where there is no TPU.
        breaks: by code of a rule, what to change to break it.
        elements: what is in the arrays of integers, legal where anything is, given the names of a geometry.
    """

    legal: Callable[[int], st.SearchStrategy[Geometry]]
    breaks: Mapping[str, Change]
    elements: Callable[[np.random.Generator, Values], Mapping[str, Any]]


def drawn(name: str, *values: Any) -> Change:
    """Give a parameter, an axis or a dtype one of these values."""
    return lambda draw, legal: {name: draw(st.sampled_from(values))}


def larger(name: str, axis: str) -> Change:
    """Give one array another size than the others have."""
    return lambda draw, legal: {name: legal[axis] + draw(st.integers(1, 4))}


def other_head_dim(draw: st.DrawFn, legal: Geometry) -> Geometry:
    """Give q another head_dim than the pages have."""
    return {"q_head_dim": 384 - legal["head_dim"]}


def one_more_than_a_multiple(draw: st.DrawFn, legal: Geometry, kv_heads: int) -> Geometry | None:
    """Give q a number of heads that the KV heads do not divide."""
    return {"num_q_heads": legal["num_q_heads"] + draw(st.integers(1, kv_heads - 1))} if kv_heads > 1 else None
