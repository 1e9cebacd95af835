"""Dtypes: how source names them, what each library makes of that, and which of them hold integers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from codemods.values import DType, External, Value

DEFAULT_INT: Mapping[str, str] = {"jax": "int32", "numpy": "int64", "torch": "int64"}
DEFAULT_FLOAT: Mapping[str, str] = {"jax": "float32", "numpy": "float64", "torch": "float32"}

NARROWED: Mapping[str, str] = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
"""What JAX makes of 64-bit dtypes unless `jax_enable_x64` is on."""

_NAME = re.compile(r"bool|u?int(2|4|8|16|32|64)|b?float(16|32|64)|float8_\w+|float4_\w+|complex(64|128)")
_COMMON = {"bool_": "bool", "half": "float16", "double": "float64", "short": "int16"}
_NUMPY = {
    **_COMMON,
    "int": "int64", "int_": "int64", "long": "int64", "longlong": "int64", "intp": "int64", "uint": "uint64",
    "byte": "int8", "intc": "int32", "uintp": "uint64", "uintc": "uint32", "ubyte": "uint8", "ushort": "uint16",
    "float": "float64", "float_": "float64", "single": "float32", "complex": "complex128", "complex_": "complex128",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
    "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "?": "bool", "i": "int32", "f": "float32", "d": "float64",
}  # fmt: skip
_TORCH = {**_COMMON, "int": "int32", "long": "int64", "float": "float32", "cfloat": "complex64", "cdouble": "complex128"}
_PYTHON = {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128"}


def dtype_of(value: Value) -> DType | None:
    """Return the dtype that an expression such as `jnp.int32`, `torch.long`, `"f4"` or `float` names; None if unknown."""
    match value:
        case DType():
            return value
        case str():
            return _named(value.lstrip("<=|"), _NUMPY)
        case External(path):
            owner, _, name = path.rpartition(".")
            if owner in ("", "builtins"):
                return _named(name, _PYTHON) if name in _PYTHON else None
            return _named(name, _TORCH if owner.partition(".")[0] == "torch" else _NUMPY)
        case _:
            return None


def _named(name: str, aliases: Mapping[str, str]) -> DType | None:
    name = aliases.get(name, name)
    return DType(name) if _NAME.fullmatch(name) else None


def canonical(dtype: DType | None, library: str) -> DType | None:
    """Return the dtype that an array of a library gets when it is asked for `dtype`."""
    if dtype is None or library != "jax":
        return dtype
    return DType(NARROWED.get(dtype.name, dtype.name))


def chosen(value: Value, library: str, default: DType | None) -> DType | None:
    """Return what the argument `dtype=value` asks for, where None asks for the default."""
    return default if value is None else canonical(dtype_of(value), library)


def default_float(library: str) -> DType | None:
    return DType(DEFAULT_FLOAT[library]) if library in DEFAULT_FLOAT else None


def default_int(library: str) -> DType | None:
    return DType(DEFAULT_INT[library]) if library in DEFAULT_INT else None


@lru_cache(maxsize=256)
def kind(dtype: DType | None) -> str | None:
    """Return `bool`, `int`, `float` or `complex`; None for an unknown dtype and for that of a random key."""
    found = re.match(r"(?:u|b(?=float))?(bool|int|float|complex)", dtype.name) if dtype else None
    return found[1] if found else None


@lru_cache(maxsize=256)
def bits(dtype: DType) -> int:
    """Return the width of a number, e.g. 16 for `bfloat16`."""
    found = re.search(r"\d+", dtype.name)
    return int(found[0]) if found else 8


def itemsize(dtype: DType) -> int:
    """Return the bytes that an element takes in memory."""
    return max(1, bits(dtype) // 8)


def holds(dtype: DType | None, number: int) -> bool:
    """Say whether a dtype is an integer one that has this number."""
    if dtype is None or kind(dtype) != "int":
        return False
    if dtype.name.startswith("u"):
        return 0 <= number < 1 << bits(dtype)
    return -(1 << bits(dtype) - 1) <= number < 1 << bits(dtype) - 1
