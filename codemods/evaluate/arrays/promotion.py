"""Which dtype comes out where several go in: JAX's lattice, NumPy's NEP 50 and torch's categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from codemods.evaluate.arrays.dtypes import bits, canonical, default_float, default_int, kind
from codemods.values import Array, DType

# For each dtype the next ones that hold what it holds, in an order in which none stands before those it is made from.
# `int*` and `float*` are those of JAX's Python scalars. https://docs.jax.dev/en/latest/type_promotion.html
_JAX = MappingProxyType({
    "bool": ("int*",), "int*": ("uint8", "int8"),
    "uint8": ("uint16", "int16"), "int8": ("int16",),
    "uint16": ("uint32", "int32"), "int16": ("int32",),
    "uint32": ("uint64", "int64"), "int32": ("int64",),
    "uint64": ("float*",), "int64": ("float*",), "float*": ("bfloat16", "float16"),
    "bfloat16": ("float32",), "float16": ("float32",), "float32": ("float64",), "float64": (),
})  # fmt: skip
_NUMPY = MappingProxyType({
    "bool": ("uint8", "int8"),
    "uint8": ("uint16", "int16", "float16"), "int8": ("int16", "float16"),
    "uint16": ("uint32", "int32", "float32"), "int16": ("int32", "float32"),
    "uint32": ("uint64", "int64"), "int32": ("int64",),
    "uint64": ("float64",), "int64": ("float64",),
    "float16": ("float32",), "float32": ("float64",), "float64": (),
})  # fmt: skip
_TORCH = MappingProxyType({
    "bool": ("uint8", "int8"), "uint8": ("int16",), "int8": ("int16",), "int16": ("int32",), "int32": ("int64",),
    "int64": ("bfloat16", "float16"),
    "bfloat16": ("float32",), "float16": ("float32",), "float32": ("float64",), "float64": (),
})  # fmt: skip
_TABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {"jax": _JAX, "numpy": _NUMPY, "torch": _TORCH}
_KINDS = ("bool", "int", "float")


def promote(library: str, operands: Sequence[Array]) -> tuple[DType | None, bool]:
    """Return the dtype that the operands are computed in, and whether it is a weak one.

    A Python scalar among them is a weak array of rank 0.
    """
    if library not in _TABLES or any(operand.dtype is None for operand in operands):
        return None, False
    if library == "jax":
        return _promote_jax(operands)
    return (_promote_numpy if library == "numpy" else _promote_torch)(operands), False


def _promote_jax(operands: Sequence[Array]) -> tuple[DType | None, bool]:
    names = {f"{kind(each.dtype)}*" if each.weak and kind(each.dtype) in ("int", "float") else _name(each) for each in operands}
    name = _join("jax", names)
    if name is None or not name.endswith("*"):
        return canonical(DType(name), "jax") if name else None, False
    return (default_int if name == "int*" else default_float)("jax"), True


def _promote_numpy(operands: Sequence[Array]) -> DType | None:
    firm, weak = ([each for each in operands if each.weak is weakly] for weakly in (False, True))
    name = _join("numpy", {_name(operand) for operand in firm}) if firm else "bool"
    if name is None or (weak and name not in _NUMPY):
        return None
    return _at_least(DType(name), weak, "numpy")


def _promote_torch(operands: Sequence[Array]) -> DType | None:
    """The dtype of the arrays; one of rank 0, and then a Python scalar, only counts if it is of a higher kind."""
    groups = (
        [each for each in operands if each.shape],
        [each for each in operands if not each.shape and not each.weak],
        [each for each in operands if each.weak],
    )
    names = [_join("torch", {_name(each) for each in group}) for group in groups if group]
    if None in names:
        return None
    result, *others = (DType(name) for name in names if name is not None)
    for other in others:
        if _rank(other) > _rank(result):
            result = other
    return result


def _at_least(dtype: DType, weak: Iterable[Array], library: str) -> DType | None:
    """Return a dtype, or the default one of a Python scalar that is of a higher kind."""
    highest = max((_rank(each.dtype) for each in weak), default=0)
    if highest <= _rank(dtype):
        return dtype
    return default_int(library) if _KINDS[highest] == "int" else default_float(library)


def _rank(dtype: DType | None) -> int:
    found = kind(dtype)
    return _KINDS.index(found) if found in _KINDS else len(_KINDS)


def _name(array: Array) -> str:
    assert array.dtype is not None
    return array.dtype.name


def _join(library: str, names: Iterable[str]) -> str | None:
    """Return the first dtype that holds what all of these hold; None where the library has no rule."""
    names = set(names)
    table = _TABLES[library]
    if len(names) > 1 and not names <= table.keys():
        firm = {name for name in names if not name.endswith("*")}
        # an unusual dtype, say float8, only meets Python scalars
        return firm.pop() if len(firm) == 1 and kind(DType(*firm)) == "float" else None
    if len(names) == 1:
        return next(iter(names))
    common = set.intersection(*(set(_above(library, name)) for name in names))
    return next((name for name in table if name in common), None)


@cache
def _above(library: str, name: str) -> frozenset[str]:
    return frozenset({name}).union(*(_above(library, parent) for parent in _TABLES[library][name]))


def inexact_numpy(dtype: DType | None) -> DType | None:
    """Return the dtype in which NumPy computes a square root, say: for 8 bits half precision is enough."""
    if dtype is None or kind(dtype) not in ("bool", "int"):
        return dtype
    return DType({8: "float16", 16: "float32"}.get(bits(dtype), "float64"))
