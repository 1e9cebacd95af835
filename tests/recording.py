"""A pytest plugin that puts recorders in the place of the kernels: what the tests call them with is written to a file.

It runs in a process of its own, as `pytest -p recording`, and writes to the file that `SHAPECHECK_RECORD` names.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import pickle
import sys
import unittest.case
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

from shapecheck.contract import Contract
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.observe import geometry_of

KERNELS = {
    "jax.experimental.pallas.ops.tpu.paged_attention": "jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel",
    "kernel": "kernel.paged_attention",
}
"""The modules that hold a kernel called `paged_attention`: the package that exports it, and where it is defined."""

Position = tuple[str, int | None, int | None, int | None, int | None]
"""The file of a frame, and the expression that it is at: line, column in bytes, and those of its end."""


class Record(NamedTuple):
    """One call of a kernel: what is on the stack, the values of the contract's names, and whether a failure is expected."""

    stack: list[Position]
    values: dict[str, Any]
    expected: bool


RECORDS: list[Record] = []
_expecting: list[Any] = []


def _stack(frame: FrameType | None) -> Iterator[Position]:
    while frame is not None:
        at = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
        line, end_line, column, end_column = next(at)
        yield frame.f_code.co_filename, line, column, end_line, end_column
        frame = frame.f_back


def _elements(contract: Contract, arguments: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the smallest and the largest element of each array of integers whose elements are there."""
    for array in contract.arrays:
        value = arguments.get(array.name)
        try:
            held = np.asarray(value)
        except Exception:  # an array of a trace
            continue
        if held.size and np.issubdtype(held.dtype, np.integer):
            yield f"{array.name}_min", int(held.min())
            yield f"{array.name}_max", int(held.max())


def recorder(kernel: Callable[..., Any], contract: Contract = PAGED_ATTENTION) -> Callable[..., Any]:
    """Return a function that takes what `kernel` takes, records it, and returns an array of the right shape."""
    signature = inspect.signature(kernel)

    def paged_attention(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = geometry_of(contract, bound.arguments) | dict(_elements(contract, bound.arguments))
        known = {name: value for name, value in values.items() if _is_plain(value)}
        RECORDS.append(Record(list(_stack(sys._getframe(1))), known, bool(_expecting)))
        return bound.arguments["q"]

    return paged_attention


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else value is None or isinstance(value, bool | int | float | str)


def _watch(context: type[Any]) -> None:
    """Remember, within a `with` of this context manager, that a failure is expected."""
    enter, leave = context.__enter__, context.__exit__

    def entered(self: Any) -> Any:
        _expecting.append(self)
        return enter(self)

    def left(self: Any, *why: Any) -> Any:
        _expecting.remove(self)
        return leave(self, *why)

    context.__enter__, context.__exit__ = entered, left


def pytest_configure() -> None:
    _watch(pytest.RaisesExc)
    _watch(vars(unittest.case)["_AssertRaisesContext"])
    for exported, defined in KERNELS.items():
        package, module = importlib.import_module(exported), importlib.import_module(defined)
        package.paged_attention = module.paged_attention = recorder(module.paged_attention)


def pytest_unconfigure() -> None:
    Path(os.environ["SHAPECHECK_RECORD"]).write_bytes(pickle.dumps([tuple(each) for each in RECORDS]))
