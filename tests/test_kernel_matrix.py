"""Every combination of JAX's own test of the kernel, on the XLA path, held to the resolution of the dtype."""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from kernel import paged_attention
from kernel.reference import paged_attention_xla

from .kernel_helpers import Call, Sequences, assert_resolved, attention, cast, paged, quantized, sequences_of

LENGTHS = [0, 3, 256, 513, 1023, 2048]
TOKENS = 2048
BLOCK = 512
GROUPS = (1, 4, 8)
PAGE_SIZES = (16, 32, 64)
SOFT_CAPS = (1.0, None)


class Model(NamedTuple):
    """What decides the sequences."""

    num_kv_heads: int
    head_dim: int
    dtype: str
    quantized: bool
    group: int


class Run(NamedTuple):
    """What decides how they are attended to."""

    page_size: int
    soft_cap: float | None
    megacore_mode: str | None


MODELS = [*itertools.starmap(Model, itertools.product((1, 8), (128, 256), ("float32", "bfloat16"), (False, True), GROUPS))]


def runs_of(model: Model) -> list[Run]:
    modes = ("batch", "kv_head", None) if model.num_kv_heads % 2 == 0 else ("batch", None)
    return [*itertools.starmap(Run, itertools.product(PAGE_SIZES, SOFT_CAPS, modes))]


CASES = [(model, run) for model in MODELS for run in runs_of(model)]


# Each of these is kept while the models that share it are run, which the order of `MODELS` sees to.
@functools.lru_cache(maxsize=1)
def _numbers(num_kv_heads: int, head_dim: int) -> Sequences:
    return sequences_of(LENGTHS, tokens=TOKENS, num_kv_heads=num_kv_heads, group=max(GROUPS), head_dim=head_dim)


@functools.lru_cache(maxsize=1)
def _sequences(num_kv_heads: int, head_dim: int, dtype: str, is_quantized: bool) -> Sequences:
    sequences = cast(_numbers(num_kv_heads, head_dim), dtype)
    return quantized(sequences) if is_quantized else sequences


@functools.lru_cache(maxsize=1)
def _calls(*dataset: Any) -> dict[int, Call]:
    return {page_size: paged(_sequences(*dataset), page_size) for page_size in PAGE_SIZES}


def _queries(model: Model) -> np.ndarray:
    return _sequences(*model[:-1]).q[:, : model.num_kv_heads * model.group]


@functools.lru_cache(maxsize=1)
def _outputs(model: Model) -> dict[Run, np.ndarray]:
    """Run all of a model's combinations as one program: XLA compiles, and runs, a computation that recurs in it once."""

    @jax.jit
    def attend(calls: dict[int, Call]) -> list[jax.Array]:
        return [
            paged_attention(
                *calls[run.page_size],
                pages_per_compute_block=BLOCK // run.page_size,
                attn_logits_soft_cap=run.soft_cap,
                megacore_mode=run.megacore_mode,
                implementation="xla",
            )
            for run in runs_of(model)
        ]

    calls = {page_size: call._replace(q=_queries(model)) for page_size, call in _calls(*model[:-1]).items()}
    return dict(zip(runs_of(model), map(np.asarray, attend(calls)), strict=True))


@functools.lru_cache(maxsize=len(SOFT_CAPS))
def _expected(model: Model, soft_cap: float | None) -> np.ndarray:
    return attention(_sequences(*model[:-1])._replace(q=_queries(model)), soft_cap)


def test_the_matrix_is_whole() -> None:
    assert len(CASES) == len(set(CASES)) == 720


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "run"), CASES, ids=lambda part: "-".join(map(str, part)))
def test_matrix(model: Model, run: Run) -> None:
    out = _outputs(model)[run]
    assert out.dtype == model.dtype
    # Without a cap the logits, of unscaled queries, reach 70: float32 resolves them to 8e-6, and sums to worse.
    assert_resolved(out, _expected(model, run.soft_cap), atol=1e-5 if run.soft_cap else 1e-4)
    assert not out[np.equal(LENGTHS, 0)].any()


def test_a_megacore_mode_compiles_nothing_new() -> None:
    call = paged(sequences_of([5, 16], tokens=16, num_kv_heads=2, group=1, head_dim=8), 4)

    def compiled_with(mode: Any) -> int:
        paged_attention(*call, pages_per_compute_block=2, megacore_mode=mode, implementation="xla")
        return paged_attention_xla._cache_size()

    assert compiled_with(None) == compiled_with("batch") == compiled_with("kv_head")
