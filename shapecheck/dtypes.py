"""The names of dtypes, and how many bits an element has."""

from __future__ import annotations

import re
from typing import Any

DTYPES = (
    *("bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float4_e2m1fn"),
)
"""Those that JAX has."""

SHORT_NAMES = {
    name: dtype
    for dtype, names in {
        "bfloat16": "bf16 bfp16",
        "float16": "f16 fp16 half",
        "float32": "f32 fp32 float single",
        "float64": "f64 fp64 double",
        "float8_e4m3fn": "f8 fp8 float8",
        "int4": "i4 s4",
        "int8": "i8 s8",
        "int16": "i16 s16 short",
        "int32": "i32 s32 int",
        "int64": "i64 s64 long",
        "uint8": "u8",
        "uint32": "u32",
    }.items()
    for name in names.split()
}
"""What a dtype is often called instead."""

_WIDTH = re.compile(r"[a-z]*?(\d+)")


def bits_of(dtype: Any) -> int | None:
    """Return the bits of one element of the dtype of that name; 0 for None, which is no array; None where it is not known.

    The number that follows the letters of a name is its width: `float32`, `int4`, `float8_e4m3fn`.
    """
    if dtype is None:
        return 0
    found = _WIDTH.match(dtype) if isinstance(dtype, str) else None
    return 8 if dtype == "bool" else int(found[1]) if found else None
