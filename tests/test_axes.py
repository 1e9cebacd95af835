from __future__ import annotations

import pytest

from shapecheck.axes import axes_of
from shapecheck.relation import RelationError


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ("batch_size num_q_heads head_dim", ("batch_size", "num_q_heads", "head_dim")),
        ("", ()),
        ("...", ("...",)),
        ("*batch seq dim", ("...", "seq", "dim")),
        ("*#batch dim", ("...", "dim")),
        ("dim ...", ("dim", "...")),
        ("_ _named #broadcast ?tree dim", ("_", "_", "_", "_", "dim")),
        ("3 rows=4 n+1 min(a,b) {self.size} n", ("_", "_", "_", "_", "_", "n")),
        ("n n", ("n", "n")),
    ],
)
def test_only_plain_names_name_an_axis(shape: str, axes: tuple[str, ...]) -> None:
    assert axes_of(shape) == axes


@pytest.mark.parametrize("element", ["n>=4", "n<=4", "n!=4", "n==4", "n<4", "n%2=0"])
def test_a_comparison_is_refused_for_jaxtyping_misreads_it(element: str) -> None:
    with pytest.raises(RelationError, match=r"give it to @contract\(\.\.\.\) as a relation"):
        axes_of(f"batch {element}")
