"""The models of torch; runs where torch is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codemods.evaluate.library import Unmodelled
from codemods.values import Array, DType, Value

from . import torch_expressions
from .model_programs import INPUTS, Interpreter, as_tuples, assert_program, expressions, run_real

torch = pytest.importorskip("torch")


def names() -> dict[str, tuple[Value, Any]]:
    """Return each input as the models and as torch have it."""
    made: dict[str, tuple[Value, Any]] = {
        name: (abstract(array.shape, array.dtype.name, array), torch.tensor(array)) for name, array in INPUTS.items()
    }
    made["bf"] = (abstract((2, 4), "bfloat16"), torch.zeros((2, 4), dtype=torch.bfloat16))
    return {**made, "torch": (Interpreter().names["torch"], torch), "F": (Interpreter().names["F"], torch.nn.functional)}


def abstract(shape: tuple[int, ...], dtype: str, array: np.ndarray | None = None) -> Array:
    contents = as_tuples(array.tolist()) if array is not None and array.dtype.kind in "iu" else None
    return Array(shape, DType(dtype), "torch", contents)


@pytest.mark.parametrize("expression", torch_expressions.EVERYWHERE)
def test_the_model_agrees_with_torch(expression: str) -> None:
    assert_program(expression, names())


@pytest.mark.parametrize("expression", expressions(torch_expressions.FAILS))
def test_of_a_call_that_fails_nothing_is_claimed(expression: str) -> None:
    given = names()
    with pytest.raises(Unmodelled, match="fail"):
        Interpreter({name: pair[0] for name, pair in given.items()}).run(expression)
    with pytest.raises((RuntimeError, IndexError, TypeError)):
        run_real(expression, {name: pair[1] for name, pair in given.items()})
