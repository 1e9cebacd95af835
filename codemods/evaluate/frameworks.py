"""What test frameworks and typing decorators mean for the code around them."""

from __future__ import annotations

import ast
import re

TRANSPARENT = ("pytest.", "absl.testing.", "typing.", "unittest.", "functools.lru_cache", "functools.cache", "functools.wraps",
               "jax._src.test_util.", "hypothesis.", "contextlib.", "beartype.", "jaxtyping.", "torch.no_grad",
               "torch.inference_mode", "abc.", "atexit.")  # fmt: skip
"""Where decorators come from that leave a function's arguments and result as they are."""

MARKS = ("pytest.mark.", "unittest.skip")
"""What decorators start with that only tell of a test when it is to run, or with which cases."""

PALLAS = "jax.experimental.pallas."
"""Where the functions are that turn a function into a kernel."""

PATCHING = frozenset({"setattr", "delattr", "setitem", "delitem"})
"""Methods of `pytest.MonkeyPatch`: of an unknown object that has such a method, it is taken for one."""

_FAILURES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesWithLiteralMatch", "suppress",
                       "assertRaisesWithPredicateMatch", "assert_raises", "assert_raises_regex", "xfail",
                       "expectedFailure"})  # fmt: skip

_GOING_ON = re.compile(r"\b(?:subTest|\w*subtests?\w*\.test)\(")
"""The calls of `unittest` and pytest that make a part of a test, which goes on when the part has failed or skips the rest."""


def is_failure_expected(node: ast.expr) -> bool:
    """Say whether code under this context manager or decorator is expected to fail: `pytest.raises(...)`."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _FAILURES


def goes_on_after_failure(text: str) -> bool:
    """Say whether what follows a block under this context manager is executed though the block failed, or was left to skip."""
    return _GOING_ON.search(text) is not None
