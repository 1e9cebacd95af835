"""Repairs that compute a legal value at run time, where the sizes are not known before."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from codemods.findings import ProposedFix
from codemods.repairs.imports import Imports
from codemods.repairs.literal import divides
from codemods.repairs.site import Site, replacing, shown
from codemods.repairs.trails import is_literal
from codemods.repairs.tree import Tree
from codemods.source import Source
from codemods.values import Quantized
from codemods.verdicts import Judge
from shapecheck.chip import CHIP_FACTS
from shapecheck.rule import Applicability, Computed, Fix


class Clamp(NamedTuple):
    """What an expression that clamps a size says: the size, None where it has none, and the limit."""

    size: str | None
    limit: str


class Computations:
    """Proposes calls of the functions that `Fix.computed` names, and of `max`, in one file.

    Args:
        source: the file.
        imports: those of the file.
        tree: the variables of all files.
        judges: what is known of the calls of all files.
    """

    def __init__(self, source: Source, imports: Imports, tree: Tree, judges: Sequence[Judge]) -> None:
        self._source = source
        self._imports = imports
        self._tree = tree
        self._scopes = tree.scopes_of(source.tree)
        self._judges = judges

    def propose(self, site: Site, fix: Fix) -> ProposedFix | None:
        """Return the fix, which is unsafe: it may change what the call costs. Without a place to write it, it is advice."""
        node = site.written(fix.parameter)
        if node is None or not self._scopes.holds(node):
            return None
        if fix.at_least is not None:
            place = self._place(site, fix.parameter, node)
            return self._raised(place, fix.at_least) if divides(place) else None
        node = site.argument(fix.parameter)
        if node is None or fix.computed is None or not self._may_compute(site, node, fix.computed):
            return None
        if fix.computed.limit:
            return self._limited(site, node, fix, fix.computed)
        return self._called(node, fix.computed, [self._size(site, name) for name in fix.computed.sizes])

    def _may_compute(self, site: Site, node: ast.expr, computed: Computed) -> bool:
        """Without a limit nothing stays of the present value: only a literal, or a choice of some, may go.

        A function that asks JAX for the device is not for a program of torch, which holds the device; and what it answers on
        a chip that is declared, nobody could check.
        """
        if computed.imports_jax and not CHIP_FACTS.isdisjoint(site.rule.names):
            return False
        if computed.limit:
            return True
        if isinstance(node, ast.Name):
            node = self._tree.value(node) or node
        chosen = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        return all(map(is_literal, chosen)) and not (computed.imports_jax and self._imports.has("torch"))

    def _raised(self, place: ast.expr, least: int) -> ProposedFix:
        return replacing(self._source, place, f"max({least}, {self._source.segment(place)})", Applicability.UNSAFE)

    def _limited(self, site: Site, node: ast.expr, fix: Fix, computed: Computed) -> ProposedFix | None:
        """Keep the present value as the limit; of a clamp, only what it clamps to."""
        (name,) = computed.sizes
        if any(not isinstance(value, int) or value < 1 for value in site.known(fix.parameter)):
            return None
        size, place = self._size(site, name), self._place(site, fix.parameter, node, _array_with(site, name))
        clamp = self._clamp(place, size)
        if place is not node and (clamp.size is None or not self._stays(site, name)):
            place, clamp = node, Clamp(None, self._source.segment(node))
        return self._called(place, computed, [clamp.size or size], f"{computed.limit}={clamp.limit}")

    def _called(self, place: ast.expr, computed: Computed, sizes: list[str | None], *more: str) -> ProposedFix:
        if None in sizes:
            advice = ", ".join([*(size or name for size, name in zip(sizes, computed.sizes, strict=True)), *map(shown, more)])
            return ProposedFix(Applicability.DISPLAY, f"shapecheck.{computed.function}({advice}) is legal")
        function = self._imports.function("shapecheck", computed.function, place)
        text = f"{function.text}({', '.join([*map(str, sizes), *more])})"
        note = f"; {computed.note}" if computed.note else ""
        return replacing(self._source, place, text, Applicability.UNSAFE, *function.edits, note=note)

    def _size(self, site: Site, name: str) -> str | None:
        """Return the expression of an axis, `page_indices.shape[1]`, where the call names the array."""
        parameter = _array_with(site, name)
        node = site.argument(parameter)
        if node is None or not _is_dotted(node):
            return None
        quantized = any(isinstance(judge.arguments.get(parameter), Quantized) for judge, _ in site.outcomes)
        path = site.callee.contract.origins[name].removeprefix(parameter)
        return f"{self._source.segment(node)}{'.weight' * quantized}{path}"

    def _stays(self, site: Site, name: str) -> bool:
        """Say whether the array of an axis is bound only once, so that it is the same wherever its name is written."""
        node = site.argument(_array_with(site, name))
        if not isinstance(node, ast.Name):
            return True
        variable = self._scopes.variable(node)
        uses = self._scopes.uses[variable] if variable is not None else None
        return uses is not None and (uses.only_parameter or uses.lone_value is not None)

    def _place(self, site: Site, parameter: str, node: ast.expr, array: str | None = None) -> ast.expr:
        """Return the expression that computes an argument: itself, or what the only name for it is set to.

        That one serves all that read the name, which must be calls of the kernel that have it for the same argument, beside the
        same `array` if its size matters.
        """
        variable = self._scopes.variable(node) if isinstance(node, ast.Name) else None
        uses = self._scopes.uses[variable] if variable is not None else None
        if uses is None or uses.lone_value is None or is_literal(uses.lone_value):
            return node
        ours = self._beside(site.argument(array)) if array else None
        for read in uses.reads:
            served = [judge for judge in self._judges if judge.nodes.get(parameter) is read]
            if not served or (array and any(self._beside(judge.nodes.get(array)) != ours for judge in served)):
                return node
        return uses.lone_value

    def _beside(self, node: ast.expr | None) -> tuple[object, str]:
        """Return what tells an array from others: which variable it is, and how it is written."""
        name = node
        while isinstance(name, ast.Attribute):
            name = name.value
        variable = self._scopes.variable(name) if isinstance(name, ast.Name) and self._scopes.holds(name) else None
        return variable, ast.dump(node) if node is not None else ""

    def _clamp(self, node: ast.expr, size: str | None) -> Clamp:
        """Read `min(16, n)`, `n if n < 16 else 16`, `max(1, n // 2)`; of what clamps nothing, all is the limit."""
        whole = self._source.segment(node)
        match node:
            case ast.Call(func=ast.Name(id="min"), args=[left, right], keywords=[]):
                return self._least(left, right, size) or Clamp(None, whole)
            case ast.IfExp(test=ast.Compare(left=first, ops=[operator], comparators=[second]), body=left, orelse=right):
                smaller, larger = (first, second) if isinstance(operator, ast.Lt | ast.LtE) else (second, first)
                ordered = isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
                if ordered and ast.dump(smaller) == ast.dump(left) and ast.dump(larger) == ast.dump(right):
                    return self._least(left, right, size) or Clamp(None, whole)
                return Clamp(None, whole)
            case ast.Call(func=ast.Name(id="max"), args=[left, right], keywords=[]) if is_literal(left) or is_literal(right):
                inner = self._clamp(right if is_literal(left) else left, size)
                return Clamp(inner.size, inner.limit if not inner.limit.startswith("max(") and inner.size else whole)
            case ast.BinOp(left=left, op=ast.FloorDiv()):
                return Clamp(self._source.segment(left) if self._is_size(left, size) else None, f"max(1, {whole})")
            case _:
                return Clamp(None, whole)

    def _least(self, left: ast.expr, right: ast.expr, size: str | None) -> Clamp | None:
        """Tell the size from the limit: it is the one that is the size, else the one that is not written down."""
        for one, other in ((left, right), (right, left)):
            if self._is_size(one, size):
                return Clamp(self._source.segment(one), self._source.segment(other))
        for one, other in ((left, right), (right, left)):
            named = isinstance(one, ast.Name | ast.Attribute | ast.Subscript) and not self._is_constant(one)
            if named and self._is_constant(other):
                return Clamp(self._source.segment(one), self._source.segment(other))
        return None

    def _is_size(self, node: ast.expr, size: str | None) -> bool:
        if size is None:
            return False
        if shown(self._source.segment(node)) == shown(size):
            return True
        variable = self._scopes.variable(node) if isinstance(node, ast.Name) else None
        value = self._scopes.uses[variable].lone_value if variable is not None else None
        return value is not None and self._is_size(value, size) and not isinstance(value, ast.Name)

    def _is_constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            value = self._tree.value(node)
            return value is not None and is_literal(value)
        return is_literal(node)


def _array_with(site: Site, axis: str) -> str:
    """Return the first array that has an axis."""
    return next(array.name for array in site.callee.contract.arrays if axis in array.positions)


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))
