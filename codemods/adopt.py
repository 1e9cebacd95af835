"""Adoption: call the kernel by its typed front door, and state the contract of functions that only hand on to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.findings import CallSite, Edit
from codemods.refusals import Refusals
from codemods.repairs.imports import Imports
from codemods.repairs.scopes import Scopes, Variable, bindings
from codemods.rewrite import apply
from codemods.source import Source, Span
from shapecheck.contracts import CONTRACTS
from shapecheck.rule import Verdict

_KERNEL = "paged_attention"
_PATHS = frozenset(f"jax.experimental.pallas.ops.tpu.paged_attention{inner}" for inner in ("", ".paged_attention_kernel"))
_CONTRACT = CONTRACTS[_KERNEL]
_STATED = ("SC101", "SC102", "SC201", "SC202")  # what no annotation says
_TYPES = {"q": "Float", "k_pages": "Real", "v_pages": "Real", "lengths": "Int32", "page_indices": "Integer"}
_PLAIN = re.compile(r"(jax\.|jnp\.|jax\.numpy\.)?(Array|ndarray)")
_JIT = re.compile(r"(functools\.)?partial\((jax\.)?jit\b.*\)|(jax\.)?jit(\(.*\))?", re.DOTALL)


class Adoption(NamedTuple):
    """A file after its adoption, and what was done or left, each with the place in the file before."""

    source: Source
    notes: Sequence[tuple[Span, str]]


class _Wrapper(NamedTuple):
    """A function that hands its parameters on to the kernel; `given` are those by the kernel's names."""

    function: ast.FunctionDef
    call: ast.Call
    given: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.function.name


def adopt(source: Source, sites: Collection[CallSite], root: Path) -> Adoption:
    """Adopt the front door in one file.

    Args:
        source: the file.
        sites: its call sites.
        root: the folder from which the tree's modules are imported.
    """
    valid = {site.span.start for site in sites if Verdict.VIOLATED not in site.verdicts.values()}
    statement = _kernel_import(source.tree)
    name = _local_name(statement) if statement is not None else ""
    if statement is None or not name or not _all_valid(source, name, valid, sites):
        return Adoption(source, ())
    before = source
    notes: list[tuple[Span, str]] = []
    wrappers = list(_wrappers(source, name, valid))
    if not _is_foreign(root):
        notes.append((source.span(statement), "adopted: the kernel is imported from `kernel`"))
        source = _import_replaced(source, statement, name)
    refusals = Refusals(before, root, sites)
    for wrapper in wrappers:
        place = before.span(wrapper.function)
        if reason := refusals.reason(wrapper.function, wrapper.call, wrapper.given):
            notes.append((place, f"not adopted: `{wrapper.name}` states no contract: {reason}"))
        else:
            source = _stated(source, wrapper, _noqa(root))
            notes.append((place, f"adopted: `{wrapper.name}` states its contract"))
    return Adoption(source, notes)


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


def _all_valid(source: Source, name: str, valid: Collection[int], sites: Collection[CallSite]) -> bool:
    """Say whether the name is the kernel's everywhere, and every call of it that is known may stay as it is."""
    bound = sum(each == name for node in ast.walk(source.tree) for each in bindings(node))
    called = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _is_name(node.func, name)]
    return bound == 1 and bool(sites) and len(valid) == len(sites) and all(source.span(node).start in valid for node in called)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


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


def _wrappers(source: Source, name: str, valid: Collection[int]) -> Iterator[_Wrapper]:
    """Yield the functions of the module that hand their own parameters on to the kernel as its arrays."""
    scopes = Scopes(source.tree)
    for function in source.tree.body:
        if not isinstance(function, ast.FunctionDef) or not _is_plain(source, function):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _is_name(node.func, name)]
        if len(calls) != 1 or source.span(calls[0]).start not in valid:
            continue
        handed = {parameter: node for parameter, node in _arguments(calls[0]).items() if isinstance(node, ast.Name)}
        given = {
            parameter: node.id for parameter, node in handed.items()
            if scopes.variable(node) == Variable(function, node.id) and scopes.uses[Variable(function, node.id)].only_parameter
        }  # fmt: skip
        arrays = [given.get(array.name) for array in _CONTRACT.arrays]
        if None not in arrays and len(set(arrays)) == len(arrays) and _can_be_annotated(function, arrays):
            yield _Wrapper(function, calls[0], given)


def _is_plain(source: Source, function: ast.FunctionDef) -> bool:
    """Say whether a contract can be put right above a function, and its parameters be written anew without loss."""
    arguments = function.args
    others = arguments.vararg or arguments.kwarg or getattr(function, "type_params", None)
    jitted = all(_JIT.fullmatch(ast.unparse(decorator)) for decorator in function.decorator_list)
    head = source.text[source.span(function).start : source.span(function.body[0]).start]
    return jitted and not others and b"#" not in head and function.body[0].lineno > function.lineno


def _arguments(call: ast.Call) -> dict[str, ast.expr]:
    names = [array.name for array in _CONTRACT.arrays]
    return dict(zip(names, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}


def _can_be_annotated(function: ast.FunctionDef, arrays: Sequence[str | None]) -> bool:
    """Say whether the parameters have no annotation, or none that says more than that it is an array; and no default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    optional = {each.arg for each in positional[len(positional) - len(arguments.defaults) :]}
    optional |= {each.arg for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default}
    return not optional & set(arrays) and all(
        each.annotation is None or _PLAIN.fullmatch(ast.unparse(each.annotation))
        for each in (*positional, *arguments.kwonlyargs)
        if each.arg in arrays
    )


def _stated(source: Source, wrapper: _Wrapper, noqa: str) -> Source:
    """Annotate the parameters of a function, one on each line, and put its contract above it."""
    types: dict[str, str] = {}
    for kind in dict.fromkeys(_TYPES.values()):
        source, types[kind] = _named(source, wrapper.name, "jaxtyping", kind)
    source, contract = _named(source, wrapper.name, "shapecheck", "contract")
    arguments = ast.walk(_function(source, wrapper.name).args)
    annotated = {each.arg for each in arguments if isinstance(each, ast.arg) and each.annotation is not None}
    arrays: dict[str, str] = {}
    if annotated:
        array = Imports(source).existing("jax", "Array", _function(source, wrapper.name))
        if array is None:
            source, array = _named(source, wrapper.name, "jaxtyping", "Array")
        arrays = dict.fromkeys(annotated, array)
    if not annotated >= set(wrapper.given.values()):  # who calls it may give it arrays of numpy, as the kernel takes them
        use = _function(source, wrapper.name)
        either = Imports(source).existing("jax.typing", "ArrayLike", use)
        if either is None or "." in either:
            source, either = apply(source, Imports(source).added("jax.typing", "ArrayLike", "ArrayLike", use)), "ArrayLike"
        arrays |= dict.fromkeys(set(wrapper.given.values()) - annotated, either)
    annotations = {
        (name := wrapper.given[each.name]): (
            f'{types[_TYPES[each.name]]}[{arrays[name]}, "{" " * (len(each.axes) == 1)}{" ".join(each.axes)}"]'
        )
        for each in _CONTRACT.arrays
    }
    function = _function(source, wrapper.name)
    start, newline = source.line_starts[function.lineno - 1], "\r\n" if b"\r\n" in source.text else "\n"
    demands = [f'"{relation}"' for relation in _relations(wrapper)]
    indent = " " * function.body[0].col_offset
    listed = demands[0] if len(demands) == 1 else newline + "".join(f"{indent}{each},{newline}" for each in demands)
    decorator = Edit(start, start, f"@{contract}({listed}){newline}")
    return apply(source, [decorator, _parameters(source, function, annotations, noqa, newline)])


def _named(source: Source, function: str, module: str, name: str) -> tuple[Source, str]:
    reference = Imports(source).function(module, name, _function(source, function))
    return (apply(source, reference.edits) if reference.edits else source), reference.text


def _function(source: Source, name: str) -> ast.FunctionDef:
    return next(node for node in source.tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _relations(wrapper: _Wrapper) -> Iterator[str]:
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
