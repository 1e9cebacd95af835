"""The cases of a test, as its decorators write them down."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.repairs.scopes import Function


def cases(function: Function) -> Iterator[dict[str, ast.expr]]:
    """Yield the cases of a test, each the expressions of its arguments by name."""
    for decorator in getattr(function, "decorator_list", ()):
        yield from _rows(decorator, function)


def _rows(decorator: ast.expr, function: Function) -> Iterator[dict[str, ast.expr]]:
    """Yield the arguments that `parametrize`, or one of absl's decorators, writes down for each case."""
    if not isinstance(decorator, ast.Call):
        return
    called = ast.unparse(decorator.func).rpartition(".")[2]
    named = {keyword.arg: keyword.value for keyword in decorator.keywords}
    given = dict(zip(("argnames", "argvalues"), decorator.args, strict=False)) | named
    if called == "parametrize" and isinstance(values := given.get("argvalues"), ast.List | ast.Tuple) and "argnames" in given:
        names = _names(given["argnames"])
        for row in values.elts:
            if isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param"):
                yield dict(zip(names, row.args, strict=False))
            elif len(names) == 1:
                yield {names[0]: row}
            elif isinstance(row, ast.List | ast.Tuple):
                yield dict(zip(names, row.elts, strict=False))
    elif called == "product":
        for keyword in decorator.keywords:
            for element in keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else ():
                yield {keyword.arg or "": element}
    elif called in ("parameters", "named_parameters"):
        names = [parameter.arg for parameter in function.args.args if parameter.arg != "self"]
        for row in decorator.args:
            yield from _absl_row(row, names if called == "parameters" else ["testcase_name", *names])


def _absl_row(row: ast.expr, names: Sequence[str]) -> Iterator[dict[str, ast.expr]]:
    match row:
        case ast.Dict(keys=keys, values=values):
            named = [str(key.value) if isinstance(key, ast.Constant) else "" for key in keys]
            yield {name: value for name, value in zip(named, values, strict=True) if name != "testcase_name"}
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield {keyword.arg or "": keyword.value for keyword in keywords if keyword.arg != "testcase_name"}
        case ast.Tuple(elts=values) | ast.List(elts=values):
            yield {name: value for name, value in zip(names, values, strict=False) if name != "testcase_name"}
        case _:
            yield {names[0]: row}


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [str(each.value) for each in elements if isinstance(each, ast.Constant)]
        case _:
            return []
