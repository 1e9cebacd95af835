"""Adoption: call the kernel by its typed front door, and state the contract of functions that only hand on to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.findings import CallSite, Edit
from codemods.nodes import nodes
from codemods.refusals import Refusals
from codemods.repairs.imports import Imports
from codemods.repairs.scopes import bindings
from codemods.rewrite import apply
from codemods.source import Source, Span
from codemods.wrappers import Wrapper, is_name, wrappers
from shapecheck.contracts import CONTRACTS
from shapecheck.rule import Verdict

_KERNEL = "paged_attention"
_MODULE = "jax.experimental.pallas.ops.tpu.paged_attention"
_PATHS = frozenset((_MODULE, f"{_MODULE}.paged_attention_kernel"))
_CONTRACT = CONTRACTS[_KERNEL]
_STATED = ("SC101", "SC102", "SC201", "SC202")  # what no annotation says
_TYPES = {"q": "Float", "k_pages": "Real", "v_pages": "Real", "lengths": "Int", "page_indices": "Integer"}  # as in `kernel`


class Adoption(NamedTuple):
    """A file after its adoption, and what was done or left, each with the place in the file before."""

    source: Source
    notes: Sequence[tuple[Span, str]]


def adopt(source: Source, sites: Collection[CallSite], root: Path) -> Adoption:
    """Adopt the front door in one file.

    Args:
        source: the file.
        sites: its call sites.
        root: the folder from which the tree's modules are imported.
    """
    statement = _kernel_import(source.tree)
    name = _local_name(statement) if statement is not None else ""
    if (reason := _obstacle(source, name, sites)) or statement is None:
        imports = list(_imports(source.tree)) if sites else []
        return Adoption(source, [(source.span(each), f"not adopted: {reason}") for each in imports[:1]])
    before = source
    notes: list[tuple[Span, str]] = []
    found = list(wrappers(source, name, {site.span.start for site in sites}))
    if _is_foreign(root):
        notes.append((source.span(statement), "not adopted: the tree has a module `kernel` of its own"))
    else:
        notes.append((source.span(statement), "adopted: the kernel is imported from `kernel`"))
        source = _import_replaced(source, statement, name)
        notes += [(span, f"not adopted: this call does not go by the name `{name}`") for span in _others(before, name, sites)]
    refusals = Refusals(before, root)
    for wrapper in found:
        place = before.span(wrapper.function)
        if reason := wrapper.reason or refusals.reason(wrapper):
            notes.append((place, f"not adopted: `{wrapper.name}` states no contract: {reason}"))
        else:
            source = _stated(source, wrapper, _noqa(root))
            notes.append((place, f"adopted: `{wrapper.name}` states its contract"))
    return Adoption(source, notes)


def _obstacle(source: Source, name: str, sites: Collection[CallSite]) -> str:
    """Say why the kernel cannot be imported from elsewhere: its name must be its own, and all calls as they may stay."""
    if not name:
        return f"the kernel is not imported by one `from ... import {_KERNEL}` of the module"
    if sum(each == name for node in ast.walk(source.tree) for each in bindings(node)) > 1:
        return f"`{name}` is bound more than once"
    for site in sites:
        if wrong := [code for code, verdict in site.verdicts.items() if verdict is Verdict.VIOLATED]:
            return f"the call on line {site.span.line} breaks {', '.join(wrong)}"
    known = {site.span.start for site in sites}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and is_name(node.func, name) and source.span(node).start not in known:
            return f"nothing is known of the call on line {node.lineno}"
    return "" if sites else "it is not called"


def _others(source: Source, name: str, sites: Collection[CallSite]) -> Iterator[Span]:
    """Yield the call sites at which the kernel has another name, such as that of its module."""
    starts = {site.span.start for site in sites}
    for node in nodes(source.tree, ast.Call):
        span = source.span(node)
        if span.start in starts:
            starts.discard(span.start)
            if not any(is_name(part, name) for part in ast.walk(node)):
                yield span


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the statements, anywhere in a file, that import JAX's kernel or its module."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        if any(f"{module}{alias.name}".startswith(_MODULE) for alias in node.names):
            yield node


def _is_foreign(root: Path) -> bool:
    """Say whether the tree has a module `kernel` of its own, which is not ours."""
    taken = (root / "kernel").is_dir() or (root / "kernel.py").is_file()
    return taken and not (root / "shapecheck").is_dir()


def _noqa(root: Path) -> str:
    """Return the comment that axes in an annotation need, unless ruff's settings already allow for them."""
    for file in ("ruff.toml", ".ruff.toml", "pyproject.toml"):
        if (root / file).is_file() and "F722" in (root / file).read_text(errors="replace"):
            return ""
    return "  # noqa: F722"


def _kernel_import(tree: ast.Module) -> ast.ImportFrom | None:
    found = [
        each for each in tree.body
        if isinstance(each, ast.ImportFrom) and each.module in _PATHS and any(alias.name == _KERNEL for alias in each.names)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _local_name(statement: ast.ImportFrom) -> str:
    (alias,) = (each for each in statement.names if each.name == _KERNEL)
    return alias.asname or alias.name


def _import_replaced(source: Source, statement: ast.ImportFrom, name: str) -> Source:
    """Take the kernel out of JAX's import, and add one from `kernel` where it belongs."""
    rest = [alias for alias in statement.names if alias.name != _KERNEL]
    span = source.span(statement)
    if not rest and not any(isinstance(each, ast.Import | ast.ImportFrom) for each in source.tree.body if each is not statement):
        renamed = f" as {name}" if name != _KERNEL else ""
        return apply(source, [Edit(span.start, span.end, f"from kernel import {_KERNEL}{renamed}")])
    if rest:
        names = ", ".join(ast.unparse(alias) for alias in rest)
        removal = Edit(span.start, span.end, f"from {statement.module} import {names}")
    else:
        line = statement.end_lineno or statement.lineno
        removal = Edit(source.line_starts[statement.lineno - 1], source.line_starts[line], "")
    use = next(node for node in source.tree.body if node is not statement and node.lineno > statement.lineno)
    index = source.tree.body.index(use) - (0 if rest else 1)
    source = apply(source, [removal])
    imports = Imports(source)
    return apply(source, imports.added("kernel", _KERNEL, name, source.tree.body[index]))


def _stated(source: Source, wrapper: Wrapper, noqa: str) -> Source:
    """Annotate the parameters of a function, one on each line, and put its contract above it."""
    newline = "\r\n" if b"\r\n" in source.text else "\n"
    indent = " " * wrapper.function.body[0].col_offset
    types: dict[str, str] = {}
    for kind in dict.fromkeys(_TYPES.values()):
        source, types[kind] = _named(source, wrapper.name, "jaxtyping", kind)
    source, contract = _named(source, wrapper.name, "shapecheck", "contract")
    source, array = _array_like(source, wrapper.name)
    source, quantized = _quantized(source, wrapper.name)
    annotations: dict[str, str] = {}
    for each in _CONTRACT.arrays:
        axes = f"{' ' * (len(each.axes) == 1)}{' '.join(each.axes)}"
        either = f"{quantized}{newline}{indent}| " if each.quantizable else ""
        annotations[wrapper.given[each.name]] = f'{either}{types[_TYPES[each.name]]}[{array}, "{axes}"]'
    function = _function(source, wrapper.name)
    start = source.line_starts[function.lineno - 1]
    demands = [f'"{relation}"' for relation in _relations(wrapper)]
    listed = demands[0] if len(demands) == 1 else newline + "".join(f"{indent}{each},{newline}" for each in demands)
    decorator = Edit(start, start, f"@{contract}({listed}){newline}")
    return apply(source, [decorator, _parameters(source, function, annotations, noqa, newline)])


def _array_like(source: Source, function: str) -> tuple[Source, str]:
    """Name the type of all that the kernel takes for an array, which may be numpy's, shortly if that can be."""
    use = _function(source, function)
    found = Imports(source).existing("jax.typing", "ArrayLike", use)
    if (found is None or "." in found) and b"ArrayLike" not in source.text:
        return apply(source, Imports(source).added("jax.typing", "ArrayLike", "ArrayLike", use)), "ArrayLike"
    return _named(source, function, "jax.typing", "ArrayLike")


def _quantized(source: Source, function: str) -> tuple[Source, str]:
    """Name the type of quantized pages."""
    found = Imports(source).existing(f"{_MODULE}.quantization_utils", "QuantizedTensor", _function(source, function))
    if found is not None:
        return source, found
    source, module = _named(source, function, _MODULE, "quantization_utils")
    return source, f"{module}.QuantizedTensor"


def _named(source: Source, function: str, module: str, name: str) -> tuple[Source, str]:
    reference = Imports(source).function(module, name, _function(source, function))
    return (apply(source, reference.edits) if reference.edits else source), reference.text


def _function(source: Source, name: str) -> ast.FunctionDef:
    return next(node for node in source.tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _relations(wrapper: Wrapper) -> Iterator[str]:
    """Yield the relations whose names the function defines, in its own words."""
    axes = set(_CONTRACT.axes)
    for rule in _CONTRACT.rules:
        names = rule.relation.names
        if rule.code in _STATED and all(name in axes or name in wrapper.given for name in names):
            text = rule.relation.text
            for name in names:
                text = text if name in axes else re.sub(rf"\b{name}\b", wrapper.given[name], text)
            yield text


def _parameters(source: Source, function: ast.FunctionDef, annotations: Mapping[str, str], noqa: str, newline: str) -> Edit:
    """Write the parameters of a function one on each line, some with another annotation."""
    indent = " " * function.body[0].col_offset
    arguments = function.args
    lines: list[str] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for index, (parameter, default) in enumerate(pairs):
        if index == len(positional):
            lines.append(f"{indent}*,")
        own = source.segment(parameter.annotation) if parameter.annotation is not None else None
        annotation = annotations.get(parameter.arg, own)
        text = f"{parameter.arg}: {annotation}" if annotation else parameter.arg
        spaced = " = " if annotation else "="
        text += f"{spaced}{source.segment(default)}" if default is not None else ""
        lines.append(f"{indent}{text},{noqa if parameter.arg in annotations else ''}")
        if arguments.posonlyargs and parameter is arguments.posonlyargs[-1]:
            lines.append(f"{indent}/,")
    first, last = pairs[0][0], pairs[-1]
    start = source.text.index(b"(", source.span(function).start) + 1
    assert start <= source.span(first).start  # type: ignore[arg-type]
    end = source.text.index(b")", source.span(last[1] or last[0]).end)  # type: ignore[arg-type]
    return Edit(start, end, f"{newline}{newline.join(lines)}{newline}")
