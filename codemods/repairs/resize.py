"""Repairs that give an axis another size, where a shape writes it down."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.findings import ProposedFix
from codemods.repairs.origins import Origins
from codemods.repairs.site import Site, rewriting
from codemods.repairs.trails import Trail
from shapecheck.rule import Applicability, Resize, Verdict


def resize(site: Site, origins: Origins, fix: Resize) -> ProposedFix | None:
    """Return the fix, which is unsafe: the arrays are others then.

    There is one only where every array of the call that has the axis is made with a literal size, in every execution.
    """
    contract = site.callee.contract
    sizes = [known.get(name) for name in contract.axes[fix.axis] for known in site.failing]
    if not site.always_fails or len(set(sizes)) != 1 or not isinstance(sizes[0], int):
        return None
    known = contract.complete(site.failing[0])
    legal = (size for size in fix.choices(known) if contract.permits(fix.axis, size, known) is Verdict.PROVEN)
    size = next(legal, None)
    trails = list(_trails(site, origins, fix.axis, sizes[0]))
    if size is None or None in trails or not origins.free(found := [trail for trail in trails if trail is not None]):
        return None
    literals = {id(trail.literal): trail.literal for trail in found}
    if not all(map(origins.tree.may_edit, literals.values())):
        return None
    edits = [rewriting(site, origins.tree, literal, str(size), Applicability.UNSAFE) for literal in literals.values()]
    return ProposedFix(Applicability.UNSAFE, edits[0].message, tuple(edit for each in edits for edit in each.edits))


def _trails(site: Site, origins: Origins, axis: str, size: int) -> Iterator[Trail | None]:
    """Yield the way of the size of the axis to each array that has it; None where it is not written down."""
    for array in site.callee.contract.arrays:
        if axis in array.positions:
            node = site.argument(array.name)
            shape = _shape(origins, node) if node is not None else None
            if shape is None or len(shape.elts) != len(array.axes):
                yield None
            else:
                yield origins.trail_of(shape.elts[array.positions[axis]], size)


def _shape(origins: Origins, node: ast.expr) -> ast.Tuple | None:
    """Return the shape with which an array is made: `jnp.zeros((2, 64, 16, 128))`, perhaps under the name of it."""
    while isinstance(node, ast.Name):
        value = origins.tree.value(node)
        if value is None:
            return None
        node = value
    if not isinstance(node, ast.Call):
        return None
    shapes = [part for part in (*node.args, *(each.value for each in node.keywords)) if isinstance(part, ast.Tuple)]
    return shapes[0] if len(shapes) == 1 else None
