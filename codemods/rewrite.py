"""Apply edits to a file so that nothing but what they cover can change.

The bytes outside the edits stay because they are never touched: a replacement is spliced between them. LibCST parses what
is taken out and what is put in, so that neither loses a comment, a bracket or a newline; and the syntax trees of the old
and the new file must be equal but for what the edits cover.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from codemods.findings import Edit
from codemods.nodes import depth
from codemods.source import Source, SourceError

_DEEPEST = 100  # LibCST overflows the stack of the process at about 2000 brackets, and is slow long before


class RewriteError(Exception):
    """An edit that is refused; the file stays as it was."""


class _Range(NamedTuple):
    start: int
    end: int

    def holds(self, other: _Range) -> bool:
        return self.start <= other.start and other.end <= self.end


def apply(source: Source, edits: Iterable[Edit]) -> Source:
    """Return the file with all of the edits made.

    Raises:
        RewriteError: the edits overlap, the result is no Python, or more would change than what they cover.
    """
    edits = sorted(edits, key=lambda edit: edit.start)
    if any(overlap(first, second) for first, second in pairwise(edits)):
        raise RewriteError("its edits overlap")
    text, move = splice(source.text, edits), displacement(edits)
    taken = [_Range(edit.start, edit.end) for edit in edits]
    put = [_Range(move(edit.end) - len(edit.replacement.encode()), move(edit.end)) for edit in edits]
    try:
        result = type(source)(source.path, source.restore(text))
        intact = result.text == text and _outline_without(taken, source) == _outline_without(put, result)
        result.release()  # it has its turn with all others
    except SourceError as error:
        raise RewriteError(f"the result {error}") from None
    finally:
        source.release()
    if not intact:
        raise RewriteError("more would change than the fix says")
    return result


def splice(text: bytes, edits: Sequence[Edit]) -> bytes:
    """Return `text` with the edits made, which are sorted and do not overlap."""
    pieces: list[bytes] = []
    position = 0
    for edit in edits:
        pieces += [text[position : edit.start], edit.replacement.encode()]
        position = edit.end
    return b"".join([*pieces, text[position:]])


def overlap(first: Edit, second: Edit) -> bool:
    """Say whether two edits cannot both be made; two insertions at one place have no order, so they cannot."""
    return first.start == second.start or (first.start < second.end and second.start < first.end)


def displacement(edits: Iterable[Edit]) -> Callable[[int], int]:
    """Return the function that says where a byte is once the edits are made; what is inserted there comes before it."""
    edits = sorted(edits, key=lambda edit: edit.start)
    ends = [edit.end for edit in edits]
    shifts = [0, *accumulate(len(edit.replacement.encode()) - (edit.end - edit.start) for edit in edits)]
    return lambda position: position + shifts[bisect_right(ends, position)]


def origin(text: bytes, edits: Iterable[Edit]) -> Callable[[int], int]:
    """Return the function that says where a byte was in `text` before the edits; what is put in was where it begins."""
    edits = sorted((_trimmed(text, edit) for edit in edits), key=lambda edit: edit.start)
    move = displacement(edits)
    ends = [move(edit.end) for edit in edits]
    starts = [end - len(edit.replacement.encode()) for end, edit in zip(ends, edits, strict=True)]

    def back(position: int) -> int:
        index = bisect_right(starts, position) - 1
        if index < 0:
            return position
        return edits[index].start if position < ends[index] else position - ends[index] + edits[index].end

    return back


def _trimmed(text: bytes, edit: Edit) -> Edit:
    """Return an edit without what it puts back as it was, at its beginning and at its end."""
    old, new = text[edit.start : edit.end].decode(), edit.replacement
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    start, end = edit.start + len(old[:first].encode()), edit.end - len(old[len(old) - last :].encode())
    return Edit(start, end, new[first : len(new) - last])


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def inspect(source: Source, edit: Edit) -> None:
    """Check one edit by itself: what it takes out and what it puts in must each be whole.

    Raises:
        RewriteError: it cuts through an expression, or LibCST cannot reproduce the one around it.
    """
    place = _Range(edit.start, edit.end)
    node = _enclosing(source, place)
    if node is None:
        for statements in (source.text[place.start : place.end].decode(), edit.replacement):
            _round_trip(statements.strip("\r\n"), "parse_module")
        return
    extent = _extent(source, node)
    before = source.text[extent.start : extent.end]
    after = splice(before, [Edit(place.start - extent.start, place.end - extent.start, edit.replacement)])
    old, new = _expression(before), _expression(after)
    if _outline(old) != _outline(node):
        raise RewriteError("where the expression stands is not certain")  # Python 3.11, inside an f-string
    if lost := _assigned(old) - _assigned(new):
        raise RewriteError(f"{', '.join(sorted(lost))} would no longer be assigned there")
    for snippet in (before, after):
        _round_trip(f"({snippet.decode()})", "parse_expression")


def _enclosing(source: Source, place: _Range) -> ast.expr | None:
    """Return the smallest expression that holds a place; None between statements."""
    found, smallest = None, None
    pending: list[ast.AST] = [source.tree]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if not isinstance(node, ast.expr):
                has_extent = isinstance(node, ast.stmt) and not hasattr(node, "decorator_list")  # decorators stand outside
                if not has_extent or _extent(source, node).holds(place):
                    pending.append(node)
                continue
            extent = _extent(source, node)
            if extent.holds(place) if place.start < place.end else extent.start < place.start < extent.end:
                pending.append(node)
                if extent != smallest:  # before Python 3.12, parts of an f-string claim to extend over all of it
                    found, smallest = node, extent
    return found


def _extent(source: Source, node: Any) -> _Range:
    starts = source.line_starts
    return _Range(starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)


def _outline_without(ranges: Sequence[_Range], source: Source) -> tuple[list[bytes], list[Any]]:
    """Return what to compare of a file but for the nodes that lie in one of the ranges, which are in order.

    Of the statements of its top level that no range touches, that is the text, which says all; of the others, the outline.
    """
    starts = [each.start for each in ranges]

    def is_inside(node: ast.AST) -> bool:
        if not hasattr(node, "lineno"):
            return False
        extent = _extent(source, node)
        index = bisect_right(starts, extent.start) - 1
        return index >= 0 and ranges[index].holds(extent)

    same: list[bytes] = []
    touched: list[Any] = []
    for statement in source.tree.body:
        first = min([statement, *getattr(statement, "decorator_list", ())], key=lambda node: node.lineno)
        start, end = _extent(source, first).start, _extent(source, statement).end
        if any(each.start <= end and start <= each.end for each in ranges):
            touched += _outline(statement, is_inside)
        else:
            same.append(source.text[start:end])
    return same, touched


def _outline(tree: ast.AST, skip: Callable[[ast.AST], bool] = lambda node: False) -> list[Any]:
    """Return a syntax tree as a flat list, to compare; `ast.dump` would recurse."""
    outline: list[Any] = []
    pending: list[Any] = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += ["]", *reversed(item), "["]  # pyright: ignore[reportUnknownArgumentType]
        elif not isinstance(item, ast.AST):
            outline.append((type(item), item))  # 1 is not True
        elif not skip(item):
            outline.append(type(item))
            for name, value in ast.iter_fields(item):
                pending += [value, name]
    return outline


def _expression(snippet: bytes) -> ast.expr:
    """Parse an expression that may go over several lines, as between the brackets it was found in."""
    try:
        node = ast.parse(b"(" + snippet + b")", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise RewriteError(f"{snippet.decode()!r} is no expression: {reason}") from None
    if depth(node)[0] > _DEEPEST:
        raise RewriteError("the expression is nested too deeply")
    return node


def _assigned(node: ast.AST) -> set[str]:
    """Return the names that `:=` binds."""
    return {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}


def _round_trip(snippet: str, parser: Literal["parse_module", "parse_expression"]) -> None:
    """Have LibCST parse a snippet and write it again; it must be the same."""
    import libcst

    newline = re.search("\r\n|\r|\n", snippet)
    try:
        node = getattr(libcst, parser)(snippet)
        code = libcst.Module([], default_newline=newline[0] if newline else "\n").code_for_node(node)
    except Exception as error:  # besides its syntax errors: TypeError on some valid code, RecursionError
        raise RewriteError(f"LibCST does not parse {snippet!r}: {error}") from None
    if code != snippet:
        raise RewriteError(f"LibCST does not reproduce {snippet!r}")
