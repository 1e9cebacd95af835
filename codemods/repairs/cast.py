"""Repairs that give an array argument another dtype."""

from __future__ import annotations

import ast

from codemods.findings import ProposedFix
from codemods.repairs.imports import Imports, Reference
from codemods.repairs.site import Site, replacing
from codemods.values import Array
from shapecheck.rule import Applicability, Cast

_UNCHANGED = ("int", "uint")  # dtypes whose values, as far as they make sense, stay what they are


def cast(site: Site, imports: Imports, fix: Cast) -> ProposedFix | None:
    """Return the fix that casts an argument where the call writes it down; integers keep their values, so it is safe."""
    node = site.argument(fix.argument)
    if node is None or isinstance(node, ast.Starred) or b"ShapeDtypeStruct" in site.source.text:  # which has no `astype`
        return None
    values = [judge.arguments.get(fix.argument) for judge, _ in site.outcomes]
    torch = any(isinstance(value, Array) and value.library == "torch" for value in values)
    dtype = _torch(imports, fix.dtype, node) if torch else _jax(imports, fix.dtype, node)
    method = "to" if torch else "astype"
    kept = all(str(dtype).startswith(_UNCHANGED) for dtype in site.known(f"{fix.argument}_dtype"))
    trusted = site.always_fails and kept and not any(judge.arrival.spread for judge, _ in site.outcomes)
    applicability = Applicability.SAFE if trusted else Applicability.UNSAFE
    match node:
        case ast.Call(func=ast.Attribute(attr=found), args=[present], keywords=[]) if found == method and _is_dtype(present):
            return replacing(site.source, present, dtype.text, applicability, *dtype.edits)
        case _:
            pass
    text = site.source.segment(node)
    receiver = text if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})"
    return _appending(site, node, f"{receiver}.{method}({dtype.text})", applicability, dtype)


def _appending(site: Site, node: ast.expr, text: str, applicability: Applicability, dtype: Reference) -> ProposedFix:
    """All of the old text is in the new one, so no comment is lost."""
    proposed = replacing(site.source, node, text, Applicability.UNSAFE, *dtype.edits)
    return ProposedFix(applicability, proposed.message, proposed.edits)


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Constant)


def _jax(imports: Imports, dtype: str, use: ast.AST) -> Reference:
    """Name a dtype by the alias of `jax.numpy`, else of numpy; where the file has neither, import the former."""
    present = imports.existing("jax.numpy", dtype, use) or imports.existing("numpy", dtype, use)
    return Reference(present) if present else imports.member("jax.numpy", dtype, "jnp", use)


def _torch(imports: Imports, dtype: str, use: ast.AST) -> Reference:
    present = imports.existing("torch", dtype, use)
    return Reference(present) if present else imports.function("torch", dtype, use)
