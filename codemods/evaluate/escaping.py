"""Whether a function that is defined in another one may be called by somebody else than that one."""

from __future__ import annotations

import ast
from collections.abc import Callable
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
        "jax.tree.map", "jax.tree_util.tree_map", "jax.make_jaxpr", "jax.lax.while_loop", "jax.lax.switch",
    }
)  # fmt: skip
"""What calls the function that it is given, and gives none."""


def escapes(outer: ast.AST, inner: Any, path_of: Callable[[ast.expr], str]) -> bool:
    """Say whether a function may outlive the one that defines it: it is used otherwise than by being called, there or by a
    library function that does nothing else with it.

    `path_of` gives the dotted path of what an expression stands for, or an empty text.
    """
    name = getattr(inner, "name", None)
    uses = _Uses(outer, path_of)
    return uses.get_away(inner) if name is None else uses.name_gets_away(name)


class _Uses:
    """What becomes of the expressions in a function that stand for one that it defines."""

    def __init__(self, outer: ast.AST, path_of: Callable[[ast.expr], str]) -> None:
        nodes = list(ast.walk(outer))
        self._path_of = path_of
        self._parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
        self._names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self._foreign = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        self._followed: set[str] = set()

    def name_gets_away(self, name: str) -> bool:
        if name in self._foreign:
            return True
        if name in self._followed:
            return False
        self._followed.add(name)
        return any(self.get_away(node) for node in self._names if node.id == name)

    def get_away(self, use: ast.AST) -> bool:
        """Say whether a function that an expression stands for gets into other hands."""
        parent = self._parents.get(id(use))
        match parent:
            case ast.Call(function) if function is use:
                return False
            case ast.Call(function) if self._path_of(function) in _CALLERS:
                return False
            case ast.Call(function) if self._path_of(function) in _WRAPPERS:
                return self.get_away(parent)
            case ast.Attribute(attr="lower" | "trace" | "eval_shape"):
                call = self._parents.get(id(parent))
                return not (isinstance(call, ast.Call) and call.func is parent)
            case ast.Assign([ast.Name(name)]):
                return self.name_gets_away(name)
            case _:
                return True
