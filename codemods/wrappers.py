"""Functions that hand their parameters on to the kernel, and why one of them should not state its contract."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from codemods.nodes import walk
from codemods.repairs.scopes import Scopes, Variable
from codemods.source import Source
from shapecheck.contracts import CONTRACTS

_AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_ARRAYS = [array.name for array in CONTRACTS["paged_attention"].arrays]
_PLAIN = re.compile(r"(jax\.|jnp\.|jax\.numpy\.|np\.|numpy\.|jax\.typing\.)?(Array|ndarray|ArrayLike|Any)")
_WIDE = re.compile(r"(int|str|bool|Any|typing\.Any|object)( \| None)?|Optional\[(int|str|bool)\]|None")
_JIT = re.compile(r"(functools\.)?partial\((jax\.)?jit\b.*\)|(jax\.)?jit(\(.*\))?", re.DOTALL)
_EVALUATED = (
    *(ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.With, ast.withitem),
    *(ast.Call, ast.Attribute, ast.BinOp, ast.Subscript, ast.Tuple, ast.keyword),
)
"""The kinds of nodes that always evaluate the part that a call is in."""


class Wrapper(NamedTuple):
    """A function that hands its parameters on to the kernel; `given` are those by the kernel's names.

    It states no contract where there is a `reason`.
    """

    function: _AnyFunction
    call: ast.Call
    given: Mapping[str, str]
    reason: str

    @property
    def name(self) -> str:
        return self.function.name


def wrappers(source: Source, kernel: str, valid: Collection[int]) -> Iterator[Wrapper]:
    """Yield the functions that hand on at least one parameter of theirs, as an array, to what they call `kernel`.

    Args:
        source: the file.
        kernel: the kernel's name in it.
        valid: where the calls of the kernel begin that may stay as they are.
    """
    scopes = Scopes(source.tree)
    for function in walk(source.tree):
        if not isinstance(function, _AnyFunction):
            continue
        calls = [node for node in walk(function) if isinstance(node, ast.Call) and is_name(node.func, kernel)]
        calls = [call for call in calls if scopes.scope_of(call) is function]
        for call in calls[:1]:
            given = dict(_given(function, call, scopes))
            if not given.keys().isdisjoint(_ARRAYS) and source.span(call).start in valid:
                reason = "it calls the kernel more than once" if len(calls) > 1 else _reason(source, function, call, given)
                yield Wrapper(function, call, given, reason)


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _given(function: _AnyFunction, call: ast.Call, scopes: Scopes) -> Iterator[tuple[str, str]]:
    """Yield what the call hands on of the function's parameters, which nothing else binds."""
    arguments = dict(zip(_ARRAYS, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}
    for parameter, node in arguments.items():
        own = Variable(function, node.id) if isinstance(node, ast.Name) else None
        if own is not None and scopes.uses.get(own) is not None and scopes.uses[own].only_parameter:
            yield parameter, own.name


def _reason(source: Source, function: _AnyFunction, call: ast.Call, given: Mapping[str, str]) -> str:
    """Return why a contract cannot be put above a function, or would refuse calls that are legal now."""
    arguments = function.args
    if function not in source.tree.body or not isinstance(function, ast.FunctionDef):
        return "it is a method, or inside of another function, or async"
    if not all(_JIT.fullmatch(ast.unparse(decorator)) for decorator in function.decorator_list):
        return "it has a decorator besides jit"
    if arguments.vararg or arguments.kwarg or getattr(function, "type_params", None):
        return "it takes `*args`, `**kwargs` or types as parameters"
    head = source.text[source.span(function).start : source.span(function.body[0]).start]
    if b"#" in head or function.body[0].lineno == function.lineno:
        return "there is a comment among its parameters, or its body on the same line"
    if missing := [name for name in _ARRAYS if name not in given]:
        return f"it does not hand on a parameter as it is for {listed(missing)}"
    arrays = [given[name] for name in _ARRAYS]
    if len(set(arrays)) < len(arrays):
        return "it hands on one parameter for two arrays"
    if names := [name for name in arrays if name in _optional(arguments)]:
        return f"it has a default for {listed(names)}"
    if not _always_calls(function, call):
        return "it may return without a call of the kernel"
    return _about_annotations(function, arrays)


def _about_annotations(function: ast.FunctionDef, arrays: Collection[str]) -> str:
    """A contract enforces all annotations: those that are replaced say little, and the others must admit what they say."""
    parameters = [each for each in ast.walk(function.args) if isinstance(each, ast.arg) and each.annotation is not None]
    defaults = _optional(function.args)
    for each in parameters:
        text = ast.unparse(each.annotation) if each.annotation is not None else ""
        if each.arg in arrays:
            if not _PLAIN.fullmatch(text):
                return f"`{each.arg}` is annotated as {text}"
        elif not _WIDE.fullmatch(text):
            return f"the annotation of `{each.arg}`, {text}, would be enforced"
        elif _is_none(defaults.get(each.arg)) and not _takes_none(text):
            return f"`{each.arg}` is None by default, but annotated as {text}"
    if function.returns is not None and not _PLAIN.fullmatch(ast.unparse(function.returns)):
        return f"the annotation of its result, {ast.unparse(function.returns)}, would be enforced"
    return ""


def _optional(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the defaults by parameter."""
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return {each.arg: default for each, default in zip(last, arguments.defaults, strict=True)} | {
        each.arg: default for each, default in keyword if default is not None
    }


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _takes_none(annotation: str) -> bool:
    return annotation.endswith(("None", "Any", "object")) or annotation.startswith("Optional")


def _always_calls(function: ast.FunctionDef, call: ast.Call) -> bool:
    """Say whether each execution of a function that returns makes the call: then what the kernel refuses is refused anyway."""
    body = function.body
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for statement in body for node in _own(statement)):
        return False  # a generator makes it later
    while True:
        index = next(at for at, statement in enumerate(body) if any(node is call for node in ast.walk(statement)))
        if any(isinstance(node, ast.Return) for each in body[:index] for node in _own(each)):
            return False
        statement = body[index]
        body = statement.body if isinstance(statement, ast.With) else []
        if not any(node is call for each in body for node in ast.walk(each)):
            return all(isinstance(node, _EVALUATED) for node in ast.walk(statement) if _is_around(node, call))


def _is_around(node: ast.AST, call: ast.Call) -> bool:
    return node is not call and any(each is call for each in ast.walk(node))


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that belong to the function that it is part of."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def listed(names: Collection[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
