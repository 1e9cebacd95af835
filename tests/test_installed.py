"""JAX's own kernel with its contract put on, for every way to have imported it."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.experimental.pallas.ops.tpu.paged_attention as package
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention_kernel as module
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

import shapecheck
from shapecheck import ContractError, installed, observe
from shapecheck.chip import chip_of
from shapecheck.contracts import PAGED_ATTENTION


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    shapecheck.uninstall()
    assert not installed._installed


def arrays(pages: int = 8) -> tuple[jax.ShapeDtypeStruct, ...]:
    cache = jax.ShapeDtypeStruct((2, 16, 4, 128), jnp.bfloat16)
    shapes = [((2, 8, 128), jnp.bfloat16), cache, cache, ((2,), jnp.int32), ((2, pages), jnp.int32)]
    return tuple(each if isinstance(each, jax.ShapeDtypeStruct) else jax.ShapeDtypeStruct(*each) for each in shapes)


def run(kernel: Callable[..., Any], pages: int = 8, **options: Any) -> Any:
    return jax.eval_shape(lambda *arrays: kernel(*arrays, **{"pages_per_compute_block": 4, **options}), *arrays(pages))


def closure() -> Callable[..., Any]:
    kernel = paged_attention
    return lambda *args, **kwargs: kernel(*args, **kwargs)


def by_default(*args: Any, kernel: Any = paged_attention, **kwargs: Any) -> Any:
    return kernel(*args, **kwargs)


FORMS: dict[str, Callable[..., Any]] = {
    "from import": paged_attention,
    "attribute of the package": lambda *args, **kwargs: package.paged_attention(*args, **kwargs),
    "attribute of the module": lambda *args, **kwargs: module.paged_attention(*args, **kwargs),
    "partial": functools.partial(paged_attention, megacore_mode=None),
    "closure": closure(),
    "default": by_default,
    "in a dict": {"kernel": paged_attention}["kernel"],
    "in an object": SimpleNamespace(kernel=paged_attention).kernel,
    "jit": jax.jit(paged_attention, static_argnames=("pages_per_compute_block", "megacore_mode", "attn_logits_soft_cap")),
    "unwrapped": paged_attention.__wrapped__,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_checked_however_the_kernel_was_imported(form: str) -> None:
    with shapecheck.install():
        assert run(FORMS[form]).shape == (2, 8, 128)
        with pytest.raises(ContractError, match="SC102 block-not-dividing"):
            run(FORMS[form], pages=6)
    with pytest.raises(ValueError, match="must be divisible by pages per sequence") as caught:
        run(FORMS[form], pages=6)
    assert not isinstance(caught.value, ContractError)


def test_what_jax_takes_without_a_word_is_refused_also_if_it_was_traced_before() -> None:
    assert run(paged_attention, attn_logits_soft_cap=0.0).shape == (2, 8, 128)
    with shapecheck.install(), pytest.raises(ContractError, match="SC113 soft-cap"):
        run(paged_attention, attn_logits_soft_cap=0.0)
    assert run(paged_attention, attn_logits_soft_cap=0.0).shape == (2, 8, 128)


def test_a_mode_that_would_hang_is_refused_on_a_chip_with_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5e"))
    with shapecheck.install():
        with pytest.raises(ContractError, match="SC204 megacore-chip"):
            run(paged_attention, megacore_mode="kv_head")
        with pltpu.force_tpu_interpret_mode():
            run(paged_attention, megacore_mode="kv_head")
        monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5p"))
        run(paged_attention, megacore_mode="kv_head")


def test_the_result_is_that_of_the_kernel() -> None:
    random = np.random.default_rng(0)
    q = jnp.asarray(random.normal(size=(2, 2, 128)), jnp.float32)
    k, v = (jnp.asarray(random.normal(size=(1, 4, 16, 128)), jnp.float32) for _ in range(2))
    lengths, table = np.array([10, 20], np.int32), np.arange(4, dtype=np.int32).reshape(2, 2)

    def attend() -> Any:
        with pltpu.force_tpu_interpret_mode():
            return np.asarray(paged_attention(q, k, v, lengths, table, pages_per_compute_block=1))

    before = attend()
    with shapecheck.install():
        np.testing.assert_array_equal(attend(), before)


@pytest.mark.parametrize("method", ["lower", "trace", "eval_shape"])
def test_the_methods_of_the_jit_object_are_checked(method: str) -> None:
    with shapecheck.install(), pytest.raises(ContractError, match="SC102"):
        getattr(paged_attention, method)(*arrays(6), pages_per_compute_block=4)


def test_who_looks_at_the_kernel_sees_what_it_was() -> None:
    code, signature = paged_attention.__wrapped__.__code__, inspect.signature(paged_attention)
    with shapecheck.install():
        assert inspect.signature(paged_attention) == signature
        assert (paged_attention.__name__, package.paged_attention) == ("paged_attention", paged_attention)
    assert paged_attention.__wrapped__.__code__ is code
    assert not hasattr(paged_attention.__wrapped__, "__signature__")


def test_a_call_with_the_wrong_arguments_fails_in_pythons_words() -> None:
    with pytest.raises(TypeError) as expected:
        paged_attention(1)
    with shapecheck.install(), pytest.raises(TypeError) as caught:
        paged_attention(1)
    assert str(caught.value) == str(expected.value)


def test_contracts_stay_until_the_last_installation_is_released() -> None:
    outer, inner = shapecheck.install(), shapecheck.install()
    inner.uninstall()
    inner.uninstall()
    with pytest.raises(ContractError):
        run(paged_attention, pages=6)
    outer.uninstall()
    with pytest.raises(ValueError, match="must be divisible"):
        run(paged_attention, pages=6)


def test_everything_can_be_taken_off_at_once_and_put_on_again() -> None:
    shapecheck.install()
    shapecheck.install()
    shapecheck.uninstall()
    shapecheck.uninstall()
    with pytest.raises(ValueError, match="must be divisible"):
        run(paged_attention, pages=6)
    with shapecheck.install(), pytest.raises(ContractError):
        run(paged_attention, pages=6)


def test_threads_may_put_on_and_take_off_at_the_same_time() -> None:
    code = paged_attention.__wrapped__.__code__
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                with shapecheck.install(), pytest.raises(ContractError):
                    run(paged_attention, pages=6)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert paged_attention.__wrapped__.__code__ is code


def test_what_is_no_plain_function_is_refused_and_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "KERNELS", {**installed.KERNELS, "builtins.len": PAGED_ATTENTION})
    with pytest.raises(TypeError, match=r"builtins\.len is no plain function"):
        shapecheck.install()
    assert not installed._installed


def test_the_ragged_kernel_is_checked_as_well() -> None:
    shapes = ((16, 8, 128), jnp.bfloat16), ((64, 16, 4, 128), jnp.bfloat16), *(((n,), jnp.int32) for n in (4, 8, 5, 1))
    q, kv_pages, kv_lens, row, cu_q_lens, num_seqs = (jax.ShapeDtypeStruct(*each) for each in shapes)
    page_indices = jax.ShapeDtypeStruct((4, *row.shape), jnp.int32)
    with shapecheck.install(), pytest.raises(ContractError, match="SC113 soft-cap"):
        jax.eval_shape(
            lambda *arrays: ragged_paged_attention(*arrays, soft_cap=float("nan")),
            *(q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs),
        )
