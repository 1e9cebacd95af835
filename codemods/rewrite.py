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
from typing import Any, Literal, NamedTuple, TypeGuard

from codemods.findings import Edit
from codemods.source import Source, SourceError, depth

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
    except SourceError as error:
        raise RewriteError(f"the result {error}") from None
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


def import_edit(source: Source, module: str, name: str) -> Edit | None:
    """Return the edit that adds `from module import name` to a file; None where it is there already.

    It becomes the last line of the imports at the top, or follows the docstring where there are none.

    Raises:
        RewriteError: `name` means something else somewhere in the file.
    """
    body = source.tree.body
    if any(_is_import_of(statement, module, name) for statement in body):
        return None
    if name in _bound_names(source.tree, module):
        raise RewriteError(f"{name!r} means something else in this file")
    statement = f"from {module} import {name}"
    anchor = _anchor(body)
    if anchor is None:
        line = min([node.lineno for node in ast.walk(body[0]) if isinstance(node, ast.expr | ast.stmt)])
        return _insertion(source, line - 1, statement + _newline(source, line))
    end = anchor.end_lineno or anchor.lineno
    for each in body:  # those after a semicolon on the same line
        end = (each.end_lineno or end) if each.lineno == end else end
    newline = _newline(source, end)
    # A docstring and the __future__ imports are sections of their own.
    gap = "" if _is_import(anchor) and not _is_future(anchor) else newline
    if end == len(source.line_starts):  # the file ends without a newline
        return _insertion(source, end, newline + gap + statement)
    return _insertion(source, end, gap + statement + newline)


def _insertion(source: Source, line: int, text: str) -> Edit:
    """Insert after a line."""
    offset = source.line_starts[line] if line < len(source.line_starts) else len(source.text)
    return Edit(offset, offset, text)


def _newline(source: Source, line: int) -> str:
    found = re.compile(rb"\r\n|\r|\n").search(source.text, source.line_starts[line - 1])
    return found[0].decode() if found else "\n"


def _anchor(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """Return the last of the imports that a file begins with, else its docstring."""
    anchor = body[0] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else None
    for statement in body[anchor is not None :]:
        if not _is_import(statement):
            break
        anchor = statement
    return anchor


def _is_import(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_import_of(node: ast.AST, module: str, name: str) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and (node.module, node.level) == (module, 0)
        and any(alias.name == name and alias.asname in (None, name) for alias in node.names)
    )


def _bound_names(tree: ast.Module, module: str) -> set[str]:
    """Return every name that some scope of the file binds, but for what it imports from `module` as it is called there."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound = ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
                names.update(each for each in bound if not _is_import_of(node, module, each))
            case _:
                pass
    return names


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


def _outline_without(ranges: Sequence[_Range], source: Source) -> list[Any]:
    """Return the outline of a file without the nodes that lie in one of the ranges, which are in order."""
    starts = [each.start for each in ranges]

    def is_inside(node: ast.AST) -> bool:
        if not hasattr(node, "lineno"):
            return False
        extent = _extent(source, node)
        index = bisect_right(starts, extent.start) - 1
        return index >= 0 and ranges[index].holds(extent)

    return _outline(source.tree, is_inside)


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
