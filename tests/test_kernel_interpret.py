"""JAX's kernel itself, in Pallas' interpreter: every pair of settings of JAX's own test, megacore modes included."""

import itertools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from kernel import paged_attention

from .kernel_helpers import Sequences, assert_resolved, attention, cast, paged, quantized, sequences_of

SETTINGS: dict[str, tuple[Any, ...]] = {
    "page_size": (16, 32, 64),
    "group": (1, 4, 8),
    "megacore_mode": ("batch", "kv_head", None),
    "dtype": ("float32", "bfloat16"),
    "num_kv_heads": (1, 4),
    "head_dim": (128, 256),
    "soft_cap": (1.0, None),
    "quantized": (False, True),
    "inline_seq_dim": (True, False),
}
LENGTHS = [0, 3, 129, 256]  # none, within a block, past one, and all: JAX's by 8, for the interpreter is slow
TOKENS = 256
BLOCK = 64


def _combinations() -> Iterator[dict[str, Any]]:
    for values in itertools.product(*SETTINGS.values()):
        combination = dict(zip(SETTINGS, values, strict=True))
        if combination["megacore_mode"] != "kv_head" or combination["num_kv_heads"] % 2 == 0:
            yield combination


def _pairs(combination: dict[str, Any]) -> set[Any]:
    return set(itertools.combinations(combination.items(), 2))


def _covering() -> list[dict[str, Any]]:
    """Take the combination with the most pairs that no earlier one has, until no pair is missing."""
    candidates = list(_combinations())
    missing = set().union(*map(_pairs, candidates))
    chosen = []
    while missing:
        chosen.append(max(candidates, key=lambda candidate: len(_pairs(candidate) & missing)))
        missing -= _pairs(chosen[-1])
    return chosen


def _as_the_kernel_reads(sequences: Sequences) -> Sequences:
    """Round plain pages to bfloat16, as the kernel does."""
    rounded = cast(cast(sequences, jnp.bfloat16), np.float32)
    return sequences._replace(k=rounded.k, v=rounded.v)


def _some_at_once() -> list[Any]:
    """Return them all: those that bring most pairs in any run of the tests, the others in a thorough one."""
    first, others = _covering()[:5], _covering()[5:]
    return [*first, *(pytest.param(each, marks=pytest.mark.thorough) for each in others)]


@pytest.mark.parametrize("settings", _some_at_once(), ids=lambda settings: "-".join(map(str, settings.values())))
def test_kernel_interpreted(settings: dict[str, Any]) -> None:
    sequences = cast(
        sequences_of(LENGTHS, tokens=TOKENS, **{name: settings[name] for name in ("num_kv_heads", "group", "head_dim")}),
        settings["dtype"],
    )
    sequences = quantized(sequences) if settings["quantized"] else sequences
    out = paged_attention(
        *paged(sequences, settings["page_size"]),
        pages_per_compute_block=BLOCK // settings["page_size"],
        attn_logits_soft_cap=settings["soft_cap"],
        megacore_mode=settings["megacore_mode"],
        inline_seq_dim=settings["inline_seq_dim"],
        implementation="interpret",
    )
    assert out.dtype == settings["dtype"]
    seen = sequences if settings["quantized"] else _as_the_kernel_reads(sequences)
    used = np.not_equal(LENGTHS, 0)
    # With bfloat16 queries in groups of 8 the kernel rounds its sums to bfloat16 after every block: JAX's tolerances.
    tolerance = {"rtol": 2e-2, "atol": 1e-2} if settings["dtype"] == "bfloat16" else {"atol": 2e-4}
    assert_resolved(out[used], attention(seen, settings["soft_cap"])[used], **tolerance)
    if settings["inline_seq_dim"]:  # without it the kernel leaves these rows undefined
        assert not np.any(out[~used])
