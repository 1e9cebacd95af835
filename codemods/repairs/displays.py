"""Displays of tuples, lists and dicts: the expression of a part, as far as it is written down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from codemods.repairs.scopes import Path
from codemods.values import same


class Part(NamedTuple):
    """An expression in a display: the part itself, or a `whole` dict that is spread there and may have it."""

    node: ast.expr
    whole: bool = False


class NotWritten(Exception):
    """A part may be somewhere, or be computed: nobody can tell."""


def parts(node: ast.expr, key: Any) -> Iterator[Part]:
    """Yield what may be the part of a display by this index or key, that first which takes precedence.

    Raises:
        NotWritten: it cannot be told what else may be the part.
    """
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            starred = any(isinstance(each, ast.Starred) for each in elements)
            if starred or type(key) is not int or not -len(elements) <= key < len(elements):
                raise NotWritten
            yield Part(elements[key])
        case ast.Dict(keys=keys, values=values):
            for each, value in reversed(list(zip(keys, values, strict=True))):
                if each is None:
                    yield Part(value, whole=True)
                elif not isinstance(each, ast.Constant):
                    raise NotWritten
                elif same(each.value, key):
                    yield Part(value)
                    return
        case ast.Call(func=ast.Name(id="dict"), args=args, keywords=keywords) if len(args) < 2:
            for keyword in reversed(keywords):
                if keyword.arg in (None, key):
                    yield Part(keyword.value, whole=keyword.arg is None)
                if keyword.arg == key:
                    return
            yield from (Part(each, whole=True) for each in args)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield Part(right, whole=True)
            yield Part(left, whole=True)
        case _:
            raise NotWritten


def read_from(node: ast.Subscript) -> tuple[ast.expr, Path]:
    """Return the innermost expression that a chain of subscripts, `options["v5e"][0]`, reads, and the path that it reads.

    The path ends before the first key that is no constant.
    """
    keys: list[Any] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Subscript):
        keys.append(inner.slice)
        inner = inner.value
    path: list[Any] = []
    for key in reversed(keys):
        if (found := constant(key)) is None:
            break
        path.append(found)
    return inner, tuple(path)


def constant(node: ast.expr) -> Any:
    """Return the key or index that an expression spells; None for any other."""
    match node:
        case ast.Constant(value=str(value) | int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def differs(first: Path, second: Path) -> bool:
    """Say whether two paths lead to different parts: -1 and 2 may be one index, 1 and True are one key."""
    return any(
        a != b and not (isinstance(a, int) and isinstance(b, int) and (a < 0) != (b < 0))
        for a, b in zip(first, second, strict=False)
    )
