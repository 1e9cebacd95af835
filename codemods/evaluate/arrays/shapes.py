"""The algebra of shapes: what broadcasting, reshaping, slicing and joining do to sizes that may be unknown.

Every function describes a call that succeeds, so sizes that must agree for that do agree. Where it is certain that the
call raises, the functions raise `Unmodelled`: nothing comes out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce as fold
from typing import NoReturn, TypeAlias

from codemods import operations, terms
from codemods.evaluate.library import Impossible
from codemods.facts import Facts
from codemods.terms import Int, Symbol

Shape: TypeAlias = tuple[Int, ...]

_NO_FACTS = Facts()


def fails(what: str) -> NoReturn:
    raise Impossible(f"the call would fail: {what}")


def at_least(value: Int, bound: int) -> bool:
    """Say whether it is certain that `value >= bound`."""
    return _NO_FACTS.bounds(value).low >= bound


def unknown(key: tuple[object, ...], text: str) -> Int:
    """Return a size that is known only to be the same wherever `key` is."""
    return terms.of(Symbol(key, text, 0))


def total(shape: Iterable[Int]) -> Int:
    """Return the number of elements."""
    return fold(terms.multiply, shape, 1)


def not_negative(value: Int) -> Int:
    """Return `max(value, 0)`."""
    return value if at_least(value, 0) else operations.maximum(value, 0)


def ceil_divide(value: Int, divisor: Int) -> Int:
    return terms.negate(operations.floordiv(terms.negate(value), divisor))


def agree(left: Int, right: Int) -> Int:
    """Return the size that two sizes are which must be equal."""
    gap = terms.subtract(left, right)
    if isinstance(gap, int) and gap != 0:
        fails(f"sizes {left} and {right} differ")
    return left if isinstance(left, int) else right


def axis_of(rank: int, axis: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        fails(f"no axis {axis} in an array of rank {rank}")
    return axis % rank


def axes_of(rank: int, axes: Iterable[int]) -> tuple[int, ...]:
    found = tuple(axis_of(rank, axis) for axis in axes)
    if len(set(found)) < len(found):
        fails("an axis is named twice")
    return found


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that arrays of these shapes are broadcast to."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(fold(_broadcast_size, sizes) for sizes in zip(*padded, strict=True))


def _broadcast_size(left: Int, right: Int) -> Int:
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        fails(f"sizes {left} and {right} do not broadcast")
    if isinstance(left, int) or at_least(left, 2):
        return left  # the other is 1 or the same
    if isinstance(right, int) or at_least(right, 2):
        return right
    return unknown(("broadcast", frozenset((left, right))), f"broadcast({left}, {right})")


def broadcast_to(shape: Shape, target: Shape) -> Shape:
    """Return `target`, to which an array of this shape is broadcast."""
    if len(shape) > len(target):
        fails("broadcasting cannot drop an axis")
    for size, wanted in zip(reversed(shape), reversed(target), strict=False):
        if size != 1:
            agree(size, wanted)
    return target


def reshape(shape: Shape, sizes: Shape) -> Shape:
    """Return the shape after `reshape(*sizes)`, of which one may be -1.

    An unknown number among the sizes is taken not to be -1, unless it is the only one: then both come to the same.
    """
    count = total(shape)
    if any(isinstance(size, int) and size < -1 for size in sizes) or sizes.count(-1) > 1:
        fails(f"{sizes} is no shape")
    unknowns = [position for position, size in enumerate(sizes) if not isinstance(size, int)]
    if -1 in sizes:
        inferred = sizes.index(-1)
    elif len(unknowns) == 1 and isinstance(count, int) and 0 not in sizes:
        (inferred,) = unknowns
    else:
        agree(total(sizes), count)
        return sizes
    before, after = sizes[:inferred], sizes[inferred + 1 :]
    known = total((*before, *after))
    if known == 0 or (isinstance(count, int) and isinstance(known, int) and count % known):
        fails(f"{count} elements cannot be reshaped to {', '.join(map(str, sizes))}")
    return (*before, operations.floordiv(count, known), *after)


def merge(shape: Shape, start: int, stop: int) -> Shape:
    """Flatten the axes from `start` up to `stop`."""
    return (*shape[:start], total(shape[start:stop]), *shape[stop:])


def reduce(shape: Shape, axes: Sequence[int] | None, keepdims: bool = False) -> Shape:
    """Return the shape after a reduction over some axes, None: over all."""
    gone = set(range(len(shape)) if axes is None else axes_of(len(shape), axes))
    if keepdims:
        return tuple(1 if axis in gone else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def expand(shape: Shape, axes: Sequence[int]) -> Shape:
    """Insert axes of size 1 so that they stand at these positions of the result."""
    added = axes_of(len(shape) + len(axes), axes)
    sizes = iter(shape)
    return tuple(1 if axis in added else next(sizes) for axis in range(len(shape) + len(axes)))


def concatenate(shapes: Sequence[Shape], axis: int) -> Shape:
    if not shapes or len({len(shape) for shape in shapes}) > 1:
        fails("arrays of different ranks cannot be joined")
    axis = axis_of(len(shapes[0]), axis)
    return tuple(
        fold(terms.add if position == axis else agree, sizes) for position, sizes in enumerate(zip(*shapes, strict=True))
    )


def same(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that arrays have which must all be of one shape."""
    if not shapes or len({len(shape) for shape in shapes}) > 1:
        fails("the arrays have different ranks")
    return tuple(fold(agree, sizes) for sizes in zip(*shapes, strict=True))


def matmul(left: Shape, right: Shape) -> Shape:
    if not left or not right:
        fails("a scalar in a matrix product")
    rows, columns = left if len(left) > 1 else (1, *left), right if len(right) > 1 else (*right, 1)
    agree(rows[-1], columns[-2])
    batch = broadcast(rows[:-2], columns[:-2])
    return (*batch, *(rows[-2:-1] if len(left) > 1 else ()), *(columns[-1:] if len(right) > 1 else ()))


def steps(start: Int, stop: Int, step: Int) -> Int:
    """Return the length of `range(start, stop, step)`."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        if step == 0:
            fails("a step of 0")
        return len(range(start, stop, step))
    if not isinstance(step, int) or step == 0:
        return unknown(("steps", start, stop, step), f"len(range({start}, {stop}, {step}))")
    length = terms.subtract(stop, start) if step > 0 else terms.subtract(start, stop)
    return not_negative(ceil_divide(length, abs(step)))


def slice_size(size: Int, start: Int | None, stop: Int | None, step: Int | None) -> Int:
    """Return the size of an axis after `[start:stop:step]`."""
    if step == 0:
        fails("a step of 0")
    parts = (start, stop, step)
    if isinstance(size, int) and all(part is None or isinstance(part, int) for part in parts):
        return len(range(size)[start:stop:step])  # type: ignore[misc]  # no part of it is a term
    if start is None and stop is None and isinstance(step, int):
        return ceil_divide(size, abs(step))
    first = _bound(size, 0 if start is None else start)
    last = _bound(size, size if stop is None else stop)
    if first is None or last is None or not (step is None or (isinstance(step, int) and step > 0)):
        shown = ":".join("" if part is None else str(part) for part in parts)
        return unknown(("slice", size, *parts), f"len(range({size})[{shown}])")
    length = terms.subtract(last, first)
    return ceil_divide(length if first == 0 or last == size else not_negative(length), step or 1)


def _bound(size: Int, bound: Int) -> Int | None:
    """Return a bound of a slice as a position from 0 to `size`; None where it is not known from which end it counts."""
    if at_least(terms.subtract(bound, size), 0):
        return size
    if at_least(bound, 0):
        return bound if at_least(terms.subtract(size, bound), 0) else operations.minimum(bound, size)
    if at_least(terms.subtract(-1, bound), 0):
        return not_negative(terms.add(bound, size))
    return None
