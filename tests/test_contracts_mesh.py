"""The rules about a mesh in source: proven where there is none, unknown where its sizes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.explain import explain
from codemods.source import Source
from shapecheck import Verdict
from shapecheck.contracts.mesh import MESH_RULES
from shapecheck.rule import Rule

CALL = """
import jax.numpy as jnp
from kernel import paged_attention
q, pages = jnp.zeros((8, 32, 128)), jnp.zeros((8, 64, 16, 128))
lengths, table = jnp.zeros(8, jnp.int32), jnp.zeros((8, 24), jnp.int32)
paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=8{options})
"""
CODES = [rule.code for rule in MESH_RULES]


def verdicts(options: str) -> dict[str, Verdict]:
    source = Source("a.py", CALL.format(options=options).encode())
    (site,), _ = analyse([source], root=Path("/nonexistent"))
    return dict(site.verdicts)


def test_without_a_mesh_all_is_proven() -> None:
    assert set(verdicts("").values()) == {Verdict.PROVEN}


def test_over_a_mesh_that_is_not_known_it_cannot_be_told() -> None:
    found = verdicts(", mesh=mesh_of_this_machine(), heads_axis='model', batch_axis='data'")
    assert {code for code in CODES if found[code] is Verdict.UNPROVEN} == {"SC205", "SC206", "SC207"}
    assert found["SC101"] is Verdict.PROVEN


def test_axes_that_cannot_be_are_told_without_a_mesh() -> None:
    assert verdicts(", mesh=mesh(), heads_axis='model', batch_axis='model'")["SC205"] is Verdict.VIOLATED
    assert verdicts(", mesh=mesh(), batch_axis='data', pages_axis='model'")["SC205"] is Verdict.VIOLATED


def test_what_one_device_gets_is_not_judged_by_the_whole() -> None:
    """Half of an even batch may be odd."""
    assert verdicts(", megacore_mode='batch'")["SC202"] is Verdict.PROVEN
    assert "SC202" not in verdicts(", megacore_mode='batch', mesh=mesh(), batch_axis='data'")


def test_page_ids_are_held_against_the_pages_of_one_device_where_the_pool_is_split() -> None:
    """The table holds zeros alone, the pool has 64 pages: they are ids of a part of it if that is not empty."""
    split = ", mesh=mesh(), batch_axis='data', pages_axis='data'"
    assert verdicts(", mesh=mesh(), batch_axis='data'")["SC402"] is Verdict.PROVEN
    assert verdicts(split)["SC402"] is Verdict.UNPROVEN


@pytest.mark.parametrize("rule", MESH_RULES, ids=lambda rule: rule.code)
def test_a_code_can_be_explained(rule: Rule) -> None:
    assert rule.message in " ".join(explain(rule.code).split())
