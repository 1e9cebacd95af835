"""Trees of arrays: tuples, lists and dicts of them, as `jax.tree` sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codemods.evaluate import containers, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.values import Choice, DictRef, Instance, ListRef, Opaque, Quantized, Value, describe

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map", "torch.utils._pytree.tree_map")
def _tree_map(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("f", "tree"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if arguments.spread or "is_leaf" in given:
        raise Unmodelled("which parts of the tree are leaves is not known")
    trees = (given["tree"], *arguments.positional[2:])
    return _mapped(machine, lambda leaves: call(machine, given["f"], Arguments(tuple(leaves), node=arguments.node)), trees)


@interprets("jax.tree.leaves", "jax.tree_util.tree_leaves")
def _tree_leaves(machine: Machine, arguments: Arguments) -> Value:
    found: list[Value] = []
    _mapped(machine, lambda leaves: found.append(leaves[0]), arguments.positional[:1])
    return containers.make_list(machine, found)


def _mapped(machine: Machine, function: Callable[[Sequence[Value]], Value], trees: Sequence[Value]) -> Value:
    """Apply a function to the leaves of trees that are alike."""
    first = trees[0]
    match first:
        case None:  # a tree without leaves
            return None
        case Opaque() | Instance() | Choice():
            raise Unmodelled(f"what `{describe(first)}` is a tree of is not known")
        case Quantized():
            parts = [(each.weight, each.scales) for each in trees if isinstance(each, Quantized)]
            return Quantized(*_side_by_side(machine, function, parts, len(trees)))
        case DictRef():
            keys = sorted(iteration.elements(machine, first), key=str)
            rows = [[containers.item(machine, each, key) for key in keys] for each in trees]
            return containers.make_dict(machine, list(zip(keys, _side_by_side(machine, function, rows, len(trees)), strict=True)))
        case tuple() | ListRef():
            parts = [iteration.elements(machine, each) for each in trees]
            made = _side_by_side(machine, function, parts, len(trees))
            return tuple(made) if isinstance(first, tuple) else containers.make_list(machine, made)
        case _:
            return function(trees)


def _side_by_side(
    machine: Machine, function: Callable[[Sequence[Value]], Value], rows: Sequence[Sequence[Value]], count: int
) -> list[Value]:
    if len(rows) != count or len({len(row) for row in rows}) > 1:
        raise Dies
    return [_mapped(machine, function, column) for column in zip(*rows, strict=True)]
