"""How many bits an element of a dtype has."""

from __future__ import annotations

import re
from typing import Any

_WIDTH = re.compile(r"[a-z]*?(\d+)")


def bits_of(dtype: Any) -> int | None:
    """Return the bits of one element of the dtype of that name; 0 for None, which is no array; None where it is not known.

    The number that follows the letters of a name is its width: `float32`, `int4`, `float8_e4m3fn`.
    """
    if dtype is None:
        return 0
    found = _WIDTH.match(dtype) if isinstance(dtype, str) else None
    return 8 if dtype == "bool" else int(found[1]) if found else None
