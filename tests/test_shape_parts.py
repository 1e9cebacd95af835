"""Parts of the shape of an unknown array, held against those of every rank up to 8."""

from __future__ import annotations

import itertools

import pytest

from codemods import formulas
from codemods.evaluate.shape_parts import Part, part_of
from codemods.values import Opaque, Reason, Slice

BOUNDS = (None, -3, -2, -1, 0, 1, 2, 3)
ARRAY = Opaque("x", "x", Reason("it is a parameter"))


def part(lower: int | None, upper: int | None) -> Part:
    found = part_of(ARRAY.shape.item(Slice(lower, upper, None)))
    assert found is not None
    return found


def place(size: Opaque) -> int | None:
    """Return which size of the shape one is, None where that is not told."""
    return next((index for index in range(-8, 9) if ARRAY.shape.item(index) == size), None)


def wrapped(size: Opaque, rank: int) -> int:
    """Return which size of a shape of this rank one is, from the front."""
    index = place(size)
    assert index is not None
    return range(rank)[index]


@pytest.mark.parametrize(("lower", "upper"), [*itertools.product(BOUNDS, BOUNDS)])
def test_a_part_of_so_many_sizes_is_where_the_rank_says_so(lower: int | None, upper: int | None) -> None:
    for count in range(4):
        found = part(lower, upper).sizes(count)
        if found is None:
            continue
        condition, sizes = found
        for rank in range(9):
            shape = tuple(range(100, 100 + rank))
            real = shape[lower:upper]
            assert formulas.evaluate(condition, {ARRAY.rank.symbol(): rank}) == (len(real) == count)
            if len(real) == count:
                assert [shape.index(size) for size in real] == [wrapped(size, rank) for size in sizes]


@pytest.mark.parametrize(("lower", "upper"), [*itertools.product(BOUNDS, BOUNDS)])
def test_a_size_of_a_part_is_that_of_the_shape(lower: int | None, upper: int | None) -> None:
    for index in range(-3, 4):
        where = place(part(lower, upper).item(index))
        for rank in range(9):
            shape = tuple(range(100, 100 + rank))
            real = shape[lower:upper]
            if where is not None and -len(real) <= index < len(real):
                assert shape[where] == real[index]


@pytest.mark.parametrize(
    ("lower", "upper", "count"), [(1, None, 1), (None, 2, 2), (-2, None, 2), (1, -1, 2), (None, None, 3), (2, 4, 2), (2, None, 0)]
)
def test_the_parts_that_people_compare_are_told(lower: int | None, upper: int | None, count: int) -> None:
    assert part(lower, upper).sizes(count) is not None


def test_a_part_of_a_shape_is_no_number() -> None:
    assert ARRAY.shape.item(Slice(1, None, None)).at_least is None
    assert part_of(ARRAY.shape.item(1)) is None
    assert part_of(ARRAY) is None
    assert part_of(ARRAY.shape.item(Slice(1, None, 2))) is None


@pytest.mark.parametrize(
    ("lower", "upper", "index", "wanted"), [(1, None, 0, 1), (None, 2, 1, 1), (-2, None, -1, -1), (None, -1, -1, -2)]
)
def test_the_sizes_that_people_take_are_told(lower: int | None, upper: int | None, index: int, wanted: int) -> None:
    assert place(part(lower, upper).item(index)) == wanted
