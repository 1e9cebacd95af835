"""A pytest plugin that puts recorders in the place of the kernels: what real code calls them with is written to a file.

It runs in a process of its own, as `pytest -p recording`, on tests and on programs (`SHAPECHECK_PROGRAM`: a path and its
arguments), and writes to the file that `SHAPECHECK_RECORD` names. Of each test function at most `SHAPECHECK_RECORD_CASES` cases
run. Code for TPUs is told that it has one.
"""

from __future__ import annotations

import importlib
import itertools
import os
import pickle
import runpy
import shlex
import sys
import types
import unittest.case
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

from codemods.callees import CALLEES, Callee
from shapecheck.contract import Contract
from shapecheck.observe import geometry_of

PRETENDED = "ejkernel.kernels"
"""A package that is not installed, and of which there is nothing here but its kernels."""

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


def recorder(callee: Callee) -> Callable[..., Any]:
    """Return a function that records what it is called with, and returns an array of the right shape."""
    contract = callee.contract

    def kernel(*args: Any, **kwargs: Any) -> Any:
        arguments: dict[str, Any] = {parameter.name: parameter.default for parameter in contract.parameters}
        given = dict(zip(callee.positional, args, strict=False)) | kwargs
        arguments |= {callee.contract_name(name): value for name, value in given.items()}
        values = geometry_of(contract, arguments) | dict(_elements(contract, arguments))
        known = {name: value for name, value in values.items() if _is_plain(value)}
        RECORDS.append(Record(list(_stack(sys._getframe(1))), known, bool(_expecting)))
        return arguments["q"]

    return kernel


def _is_plain(value: Any) -> bool:
    return (
        all(map(_is_plain, value)) if isinstance(value, tuple) else value is None or isinstance(value, bool | int | float | str)
    )


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


def _install() -> None:
    """Replace each kernel that can be imported; make the modules of those that are pretended."""
    for path, callee in CALLEES.items():
        module, _, name = path.rpartition(".")
        if path.startswith(PRETENDED):
            for end in range(1, module.count(".") + 2):
                package = ".".join(module.split(".")[:end])
                sys.modules.setdefault(package, types.ModuleType(package)).__path__ = []
            setattr(sys.modules[module], name, recorder(callee))
        elif path.startswith(("jax.", "kernel.")):
            # `kernel.paged_attention` is a function, and the module that it comes from.
            setattr(importlib.import_module(module), name, recorder(callee))


def _pretend_a_tpu() -> None:
    """Let the tests of JAX take this for a v5p, and those of ejkernel find the reference that they compare with."""
    with suppress(ModuleNotFoundError):  # absl
        from jax._src import test_util

        test_util.get_tpu_version = lambda: 6
        test_util.is_device_tpu_at_least = lambda version: version <= 5
        test_util.is_device_tpu = lambda version=None, variant="": version in (None, 5) and variant in ("", "p")
    reference: Any = types.ModuleType(f"{PRETENDED}._xla.page_attention")
    reference.page_attention = lambda query, **arguments: query
    sys.modules[f"{PRETENDED}._xla"] = types.ModuleType(f"{PRETENDED}._xla")
    sys.modules[reference.__name__] = reference


def pytest_configure() -> None:
    _watch(pytest.RaisesExc)
    _watch(vars(unittest.case)["_AssertRaisesContext"])
    np.testing.assert_allclose = lambda *args, **kwargs: None  # results are of no interest
    _install()
    _pretend_a_tpu()
    sys.argv[1:] = []  # tests of JAX parse it
    if program := os.environ.get("SHAPECHECK_PROGRAM"):
        sys.argv = shlex.split(program)
        runpy.run_path(sys.argv[0], run_name="__main__")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep some cases of each test function, evenly spread."""
    limit = int(os.environ.get("SHAPECHECK_RECORD_CASES", "2"))
    function = [f"{item.nodeid.partition('[')[0].rstrip('0123456789')}" for item in items]
    total, seen = Counter(function), Counter[str]()
    kept = []
    for item, name in zip(items, function, strict=True):
        if seen[name] * limit // total[name] != (seen[name] - 1) * limit // total[name] or total[name] <= limit:
            kept.append(item)
        seen[name] += 1
    items[:] = kept


def pytest_unconfigure() -> None:
    Path(os.environ["SHAPECHECK_RECORD"]).write_bytes(pickle.dumps([tuple(each) for each in RECORDS]))
