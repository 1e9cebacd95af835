"""No proof that an execution contradicts: programs are judged, and executed."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings

from codemods.analyse import analyse
from codemods.source import Source
from shapecheck.contract import ON_TPU
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.rule import Verdict

from .programs import HEADER, PATH, Ran, programs, run

EXAMPLES = int(os.environ.get("SHAPECHECK_SOUNDNESS_EXAMPLES", "25"))
_VERDICTS: dict[str, dict[str, Verdict]] = {}


def judge(values: dict[str, Any]) -> dict[str, Verdict]:
    """Return the verdicts of one recorded geometry."""
    key = repr(sorted(values.items(), key=str))
    if key not in _VERDICTS:
        _VERDICTS[key] = PAGED_ATTENTION.judge({**values, ON_TPU: True})  # as the source says
    return _VERDICTS[key]


def disagreements(source: str, ran: Ran | None = None) -> list[str]:
    """Return each verdict of a program that its executions contradict."""
    ran = ran or run(source)
    with tempfile.TemporaryDirectory() as root:
        sites, _ = analyse([Source(str(Path(root, PATH)), source.encode())], root=Path(root))
    recorded: dict[int, list[dict[str, Verdict]]] = {}
    for line, values in ran.records:
        recorded.setdefault(line, []).append(judge(values))
    wrong: list[str] = []
    for site in sites:
        seen = recorded.get(site.span.line, [])
        for code, verdict in site.verdicts.items():
            broken = any(each.get(code) is Verdict.VIOLATED for each in seen)
            contradicted = (
                broken
                if verdict is Verdict.PROVEN
                else verdict is Verdict.VIOLATED and not broken and bool(seen or not ran.raised)
            )
            if contradicted:
                wrong.append(
                    f"line {site.span.line}: {code} {verdict.value}, {'' if broken else 'not '}broken in {len(seen)} runs"
                )
    return wrong


@settings(
    max_examples=EXAMPLES,
    derandomize="SHAPECHECK_SOUNDNESS_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(programs())
def test_programs(source: str) -> None:
    try:
        compile(source, PATH, "exec")
    except SyntaxError:
        assume(False)
    note("\n".join(source.splitlines()[len(HEADER.splitlines()) :]))
    assert not disagreements(source), source


SITE = (
    "paged_attention(jnp.zeros((2, 4, 8)), K, K, jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32), "
    "pages_per_compute_block=b)"
)


@pytest.mark.parametrize(
    "body",
    [
        f"b = 4\ntry:\n    if n % 2:\n        b = 3\n        return 1\nfinally:\n    {SITE}",
        f"b = 4\ntry:\n    if n % 2:\n        b = 3\n        raise ValueError\nfinally:\n    {SITE}",
        f"x = [4]\ntry:\n    if n:\n        x.append(3)\n        raise ValueError\nexcept Exception: pass\nb = x[-1]\n{SITE}",
        f"x = [4, 3]\ny = x\ny *= 2\ny[2] = 5\nb = x[-2]\n{SITE}",
    ],
)
def test_ways_out_of_a_block_and_changes_in_place(body: str) -> None:
    assert not disagreements(f"{HEADER}def f0(n):\n{indent(body, '    ')}\n")


def hard_programs() -> Iterator[Any]:
    """Yield each program of `hard_programs.txt`."""
    text = Path(__file__).with_name("hard_programs.txt").read_text()
    for block in text.split("\n## ")[1:]:
        name, _, body = block.partition("\n")
        yield pytest.param(HARD_HEADER + with_calls(body), id=name)


def with_calls(body: str) -> str:
    """Return a source in which each `S(x)` is a call of the kernel."""
    call = r"paged_attention(Q, PAGES, PAGES, LENGTHS, TABLE, pages_per_compute_block=\1)"
    return re.sub(r"(?<!\w)S\((.*)\)", call, body)


HARD_HEADER = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
Q, PAGES = jnp.zeros((2, 4, 128)), jnp.zeros((4, 64, 16, 128))
LENGTHS, TABLE = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32)
"""


@pytest.mark.parametrize("source", list(hard_programs()))
def test_hard_programs(source: str) -> None:
    ran = run(source, values=(0, 1, 2, 3, True, False))
    assert ran.records, "it reaches no kernel call"
    assert not disagreements(source, ran)
