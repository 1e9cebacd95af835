"""What a user states of a geometry by name: which names a contract takes, and what may be said of each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from shapecheck.dtypes import DTYPES, SHORT_NAMES
from shapecheck.outcome import UNKNOWN

if TYPE_CHECKING:
    from shapecheck.contract import Contract


def checked(contract: Contract, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return a geometry as it is stated, numpy's integers as Python's.

    Of a parameter anything may be stated, as in a call: its rules say what is legal.

    Raises:
        TypeError: a name that the contract does not have, or a value of another type than its name calls for.
        ValueError: a size that is negative, or no name of a dtype.
    """
    reads = _readers(contract)
    if unknown := [name for name in stated if name not in reads]:
        raise TypeError(no_such_name(contract, unknown[0]))
    return {name: value if value is UNKNOWN else reads[name](name, value) for name, value in stated.items()}


def no_such_name(contract: Contract, name: str) -> str:
    """Say that a contract has no such name, what comes near to it, and the names there are: axes, parameters and dtypes."""
    arrays = [array.name for array in contract.arrays]
    dtypes = [f"{array}_dtype" for array in arrays if not any(f"{array}_dtype" in names for names in contract.aliases.values())]
    kinds = {
        "axes": list(contract.axes),
        "parameters": [parameter.name for parameter in contract.parameters],
        "dtypes": [*dtypes, *contract.aliases],
    }
    listed = "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names)
    return f"{contract.name} has no {name!r}{nearest(name, _readers(contract))}; it has: {listed}"


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ` (did you mean ...?)`, the nearest of the words first; empty where none comes near."""
    return _meant(*get_close_matches(word.lower(), list(words), n=2))


def _meant(*words: Any) -> str:
    return f" (did you mean {' or '.join(map(repr, words))}?)" if words else ""


def _readers(contract: Contract) -> dict[str, Callable[[str, Any], Any]]:
    """Return what reads the value of each name that may be stated; what follows from others, such as widths, is none."""
    reads: dict[str, Callable[[str, Any], Any]] = {}
    for array in contract.arrays:
        reads |= dict.fromkeys((f"{array.name}_{axis}" for axis in array.positions), _size)
        reads |= {f"{array.name}_rank": _size, f"{array.name}_shape": _shape, f"{array.name}_dtype": _dtype}
        reads |= {f"{array.name}_min": _integer, f"{array.name}_max": _integer}
        if array.quantizable:
            reads |= {f"{array.name}_scales_shape": _shape, f"{array.name}_scales_dtype": partial(_dtype, optional=True)}
    for alias, names in contract.aliases.items():
        reads[alias] = reads[names[0]]
    reads |= {measure.name: _anything for measure in contract.others if measure.name not in reads}
    reads |= dict.fromkeys(contract.axes, _size)
    return reads | {parameter.name: _anything for parameter in contract.parameters}


def _anything(name: str, value: Any) -> Any:
    return value


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}{_as_integer(value)}") from None


def _as_integer(value: Any) -> str:
    """Return a hint where an integer is written as something else."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    return _meant(number) if isinstance(value, str) or number == value else ""


def _size(name: str, value: Any) -> int:
    size = _integer(name, value)
    if size < 0:
        raise ValueError(f"{name} is a size, it must be at least 0, not {size}")
    return size


def _shape(name: str, value: Any) -> tuple[Any, ...] | None:
    if value is None and name.endswith("_scales_shape"):
        return None
    if not isinstance(value, tuple | list):
        raise TypeError(f"{name} must be a tuple of sizes, not {value!r}")
    sizes: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return tuple(size if size is UNKNOWN else _size(f"{name}[{index}]", size) for index, size in enumerate(sizes))


def _dtype(name: str, value: Any, *, optional: bool = False) -> str | None:
    if value is None and optional:
        return None
    if not isinstance(value, str):
        none = ", or None for plain pages," if optional else ","
        own = getattr(value, "name", None) or getattr(value, "__name__", None)
        raise TypeError(f"{name} must be the name of a dtype{none} not {value!r}{_meant(own) if own in DTYPES else ''}")
    if value in DTYPES:
        return value
    word = value.rpartition(".")[2]  # of `jnp.bfloat16`
    word = SHORT_NAMES.get(word.lower(), word)
    hint = _meant(word) if word in DTYPES else nearest(word, DTYPES)
    raise ValueError(f"{name}: {value!r} is no dtype{hint}; known: {', '.join(DTYPES)}")
