"""Whatever the source does, a check ends soon, and says that it gave up."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.evaluate.sharing import changes
from codemods.source import Source

PROLOGUE = """\
import itertools
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
def call(block):
    return paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=block)
"""

BOMBS = {
    "a huge power": "call(9**9**9)",
    "a huge string": "call(len('x' * 10**9))",
    "a loop without end": "b = 2\nwhile True:\n    b += 1\ncall(b)",
    "a loop whose end is unknown": "def f(n):\n    b = 1\n    while b < n:\n        b = b * 3 + 1\n    call(b)",
    "recursion without end": "def f(n):\n    return f(n + 1)\ncall(f(1))",
    "mutual recursion": "def f(n):\n    return g(n) + g(n + 1)\ndef g(n):\n    return f(n) + f(n - 1)\ncall(f(1))",
    "ten thousand cases": "for a, b, c, d in itertools.product(range(10), repeat=4):\n    call(a + b + c + d)",
    "forty conditions": "def f(*c):\n    b = 1\n"
    + "".join(f"    if c[{i}]:\n        b += {i}\n" for i in range(40))
    + "    call(b)",
    "functions in annotations": "def f(n: (lambda: 0)) -> (lambda: 1):\n    b: (lambda: 2) = n\n    call(b)",
    "nested lists": "x = [1]\n" + "x = [x, x]\n" * 200 + "call(len(x))",
    "a doubled tuple": "x = (1,)\n" + "x = x + x\n" * 60 + "call(len(x))",
    "a long sum": "call(" + " + ".join(["1"] * 2000) + ")",
    "deep brackets": "call(" + "(" * 150 + "2" + ")" * 150 + ")",
    "a registry of functions that a function changes": "SEEN, REGISTRY = {}, []\n"
    + "".join(f"def f{i}():\n    SEEN[{i}] = 1\nREGISTRY.append(f{i})\n" for i in range(70))
    + "def register(f):\n    REGISTRY.append(f)",
    "growing terms": "def f(n):\n" + "    n = n * n + 1\n" * 30 + "    call(n)",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_it_ends(bomb: str) -> None:
    source = Source("bomb.py", f"{PROLOGUE}{bomb}\n".encode())
    started = time.process_time()
    sites, _ = analyse([source], root=Path("does-not-exist"))
    assert [site.span.line for site in sites] == [7]
    assert time.process_time() - started < 20  # seconds, where a hang would take for ever; it takes less than one


def test_what_takes_too_long_is_not_proven() -> None:
    loops = "def test():\n    for i in range(1000):\n        for j in range(1000):\n"
    call = "            paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3)\n"
    sites, findings = analyse([Source("bomb.py", (PROLOGUE + loops + call).encode())], root=Path("does-not-exist"))
    assert {str(site.verdicts["SC102"]) for site in sites} == {"unproven"}
    assert all(finding.reason.startswith("budget") for finding in findings if finding.call.line > 8)


def test_calls_behind_the_budget_are_listed() -> None:
    loops = "def test():\n    for i in range(1000):\n        for j in range(1000):\n            pass\n"
    late = "    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)\n"
    sites, findings = analyse([Source("bomb.py", (PROLOGUE + loops + late).encode())], root=Path("does-not-exist"))
    assert [site.span.line for site in sites] == [7, 12]
    assert {finding.reason for finding in findings if finding.call.line == 12} == {"budget: it takes too many steps to follow"}


def test_a_call_that_is_never_reached_is_listed_and_not_judged() -> None:
    text = PROLOGUE + "if False:\n    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)\n"
    sites, _ = analyse([Source("dead.py", text.encode())], root=Path("does-not-exist"))
    assert {str(verdict) for site in sites if site.span.line == 9 for verdict in site.verdicts.values()} == {"unproven"}


@pytest.mark.parametrize(
    ("comment", "asked", "told"),
    [
        ("", True, "with reasons"),
        ("", False, "nothing"),
        ("  # shapecheck: ignore[SC102]", False, "places"),  # whether the comment is of use depends on them
        ("  # noqa: F401", False, "places"),
    ],
)
def test_of_what_is_unproven_no_more_is_sought_than_somebody_asks_for(comment: str, asked: bool, told: str) -> None:
    text = f"{PROLOGUE}import os{comment}\n"
    sites, findings = analyse([Source("a.py", text.encode())], root=Path("does-not-exist"), unproven=asked)
    assert {str(verdict) for site in sites for verdict in site.verdicts.values()} == {"proven", "unproven"}
    assert {str(finding.verdict) for finding in findings} == ({"unproven"} if told != "nothing" else set())
    assert any(finding.reason for finding in findings) is (told == "with reasons")


def test_what_the_functions_of_a_module_change_is_read_once() -> None:
    tree = ast.parse("CACHE = []\ndef f():\n    CACHE.append(1)\n")
    assert changes(tree).names == {"CACHE"}
    assert changes(tree) is changes(tree)
