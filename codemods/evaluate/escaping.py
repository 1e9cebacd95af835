"""Whether a function that is defined in another one may be called by somebody else than that one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_WRAPPERS = frozenset(
    {
        "functools.partial", "jax.jit", "jax.checkpoint", "jax.remat", "jax.vmap", "jax.shard_map", "jax.grad", "torch.compile",
        "jax.experimental.shard_map.shard_map", "jax.value_and_grad", "jax.experimental.pjit.pjit", "jax.named_call",
    }
)  # fmt: skip
"""What gives a function that calls the one that it is given."""

_CALLERS = frozenset(
    {
        "jax.lax.scan", "jax.lax.map", "jax.lax.cond", "jax.lax.fori_loop", "jax.eval_shape", "builtins.map", "functools.reduce",
        "jax.tree.map", "jax.tree_util.tree_map", "jax.make_jaxpr",
    }
)  # fmt: skip
"""What calls the function that it is given, and gives none."""


def escapes(outer: ast.AST, inner: Any, path_of: Callable[[ast.expr], str]) -> bool:
    """Say whether a function may outlive the one that defines it: it is used otherwise than by being called, there or by a
    library function that does nothing else with it.

    `path_of` gives the dotted path of what an expression stands for, or an empty text.
    """
    parents = {id(child): node for node in ast.walk(outer) for child in ast.iter_child_nodes(node)}
    return any(_gets_away(use, outer, parents, path_of, 4) for use in _uses(outer, inner))


def _uses(outer: ast.AST, inner: Any) -> Iterator[ast.AST]:
    """Yield the expressions that stand for a function: its name, or the lambda itself."""
    name = getattr(inner, "name", None)
    return iter((inner,)) if name is None else _loads(outer, name)


def _loads(outer: ast.AST, name: str) -> Iterator[ast.AST]:
    return (node for node in ast.walk(outer) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load))


def _gets_away(
    use: ast.AST, outer: ast.AST, parents: Mapping[int, ast.AST], path_of: Callable[[ast.expr], str], depth: int
) -> bool:
    """Say whether a function that an expression stands for gets into other hands."""
    parent = parents.get(id(use))
    match parent:
        case ast.Call(function) if function is use:
            return False
        case ast.Call(function) if path_of(function) in _CALLERS:
            return False
        case ast.Call(function) if depth and path_of(function) in _WRAPPERS:
            return _gets_away(parent, outer, parents, path_of, depth - 1)
        case ast.Attribute(attr="lower" | "trace" | "eval_shape"):
            call = parents.get(id(parent))
            return not (isinstance(call, ast.Call) and call.func is parent)
        case ast.Assign([ast.Name(name)]) if depth:
            return any(_gets_away(load, outer, parents, path_of, depth - 1) for load in _loads(outer, name))
        case _:
            return True
