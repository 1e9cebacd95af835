"""Whatever a call is given, analysis goes on: each function whose effect is known, with arguments that it does not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from codemods.analyse import analyse
from codemods.evaluate import modules
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.library import MODELS
from codemods.evaluate.machine import Dies, Exhausted, Frame, Leaves, Machine
from codemods.evaluate.methods import METHODS
from codemods.evaluate.program import Program
from codemods.evaluate.standard import INTERPRETED
from codemods.source import Source
from codemods.values import Bound, External, Value
from shapecheck import Verdict

MODULE = """
import jax, jax.numpy as jnp
class Thing:
    size = 3
def function(x=1): return x
number, text, none, real, flag = 8, "name", None, 0.5, True
pair, many, table, group = (8, 16), [8, 16], {"a": 8, 1: 2}, {1, 2}
array, thing, iterator, numbers = jnp.zeros((8, 16)), Thing(), iter([1, 2]), range(3)
unknown = input()
"""
NAMES = (
    *("number", "text", "none", "real", "flag", "pair", "many", "table", "group"),
    *("array", "thing", "iterator", "numbers", "unknown", "function", "Thing", "jnp"),
)
NODE = ast.parse("f(x)", mode="eval").body
Bench: TypeAlias = tuple[Machine, list[Value]]

KEYWORDS = ("first", "target", "iterable", "key", "axis", "shape", "dtype", "fun", "x", "a")


@pytest.fixture(name="bench", scope="module")
def prepared() -> Iterator[Bench]:
    source = Source("a.py", MODULE.encode())
    program = Program([source], Path("/nonexistent"))
    modules.run(program, source.path, 10_000_000)
    machine = program.executed[source.path]
    machine.limit = 10**12
    scope = program.scopes[program.module_scopes[source.path]]
    with machine.entered(Frame(scope)):
        yield machine, [machine.read((scope.id, name)) for name in NAMES]


def odd_arguments(given: list[Value]) -> Iterator[Arguments]:
    """Yield no argument, one, two and five of each kind, and arguments by name only."""
    yield Arguments(node=NODE)
    yield Arguments(spread=True, node=NODE)
    for index, value in enumerate(given):
        other = given[(index * 5 + 3) % len(given)]
        yield Arguments((value,), node=NODE)
        yield Arguments((value, other), node=NODE)
        yield Arguments((other, value, value, other, value), node=NODE)
        yield Arguments((), dict.fromkeys(KEYWORDS, value), node=NODE)


def tried(bench: Bench, callee: Value) -> None:
    machine, given = bench
    before = machine.state
    for arguments in odd_arguments(given):
        machine.state = before.fork()
        machine.memory.volatile.clear()
        with suppress(Dies, Leaves, Exhausted):
            call(machine, callee, arguments)
    machine.state = before


@pytest.mark.parametrize("path", sorted({*INTERPRETED, *MODELS}))
def test_a_function_of_a_library_may_be_given_anything(bench: Bench, path: str) -> None:
    tried(bench, External(path))


@pytest.mark.parametrize("name", sorted({name for _, name in METHODS} | {"setattr", "setitem"}))
def test_a_method_may_be_given_anything(bench: Bench, name: str) -> None:
    for receiver in bench[1]:
        tried(bench, Bound(receiver, name))


CALL = """
import chex, itertools, unittest
from unittest import mock
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
q, kv = jnp.zeros((8, 32, 128)), jnp.zeros((8, 192, 16, 128))
lengths, table = jnp.zeros(8, jnp.int32), jnp.zeros((8, 24), jnp.int32)
block = 8
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("n = int(input())\nchex.assert_equal(first=n, second=8)\nblock = n", Verdict.PROVEN),
        ("n = int(input())\nchex.assert_equal(first=n, second=7)\nblock = n", Verdict.VIOLATED),
        ("block = sum(itertools.accumulate(iterable=[8, 8]))", Verdict.UNPROVEN),
        (
            "class C:\n    block = 8\nmock.patch.object(target=C, attribute='block', new=7).start()\nblock = C.block",
            Verdict.UNPROVEN,
        ),
        ("class C:\n    block = 8\nsetattr(*input())\nblock = C.block", Verdict.UNPROVEN),
        ("block = getattr(C)", Verdict.UNPROVEN),
    ],
)
def test_what_is_not_followed_is_unknown(statement: str, expected: Verdict) -> None:
    call = "\npaged_attention(q, kv, kv, lengths, table, pages_per_compute_block=block)\n"
    (site,), _ = analyse([Source("a.py", (CALL + statement + call).encode())], root=Path("/nonexistent"))
    assert site.verdicts["SC102"] is expected
