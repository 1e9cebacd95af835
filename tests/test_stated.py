from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shapecheck import Verdict, judge
from shapecheck.contracts import PAGED_ATTENTION
from shapecheck.dtypes import DTYPES, SHORT_NAMES, bits_of
from shapecheck.outcome import UNKNOWN
from shapecheck.stated import checked, no_such_name


@pytest.mark.parametrize(
    ("stated", "error", "message"),
    [
        ({"q_dtype": "bf16"}, ValueError, r"^q_dtype: 'bf16' is no dtype \(did you mean 'bfloat16'\?\); known: bool, int2"),
        ({"pages_dtype": "jnp.bfloat16"}, ValueError, r"'jnp.bfloat16' is no dtype \(did you mean 'bfloat16'\?\)"),
        ({"q_dtype": "FP32"}, ValueError, r"\(did you mean 'float32'\?\)"),
        ({"q_dtype": "bfloat"}, ValueError, r"\(did you mean 'bfloat16'"),
        ({"q_dtype": "xyz"}, ValueError, r"^q_dtype: 'xyz' is no dtype; known: bool"),
        ({"q_dtype": np.float32}, TypeError, r"the name of a dtype, not .*float32.* \(did you mean 'float32'\?\)$"),
        ({"q_dtype": np.dtype("int8")}, TypeError, r"not dtype\('int8'\) \(did you mean 'int8'\?\)$"),
        ({"q_dtype": None}, TypeError, r"^q_dtype must be the name of a dtype, not None$"),
        ({"scales_dtype": 32}, TypeError, r"the name of a dtype, or None for plain pages, not 32$"),
        ({"head_dim": -128}, ValueError, r"^head_dim is a size, it must be at least 0, not -128$"),
        ({"head_dim": 128.0}, TypeError, r"^head_dim must be an integer, not 128\.0 \(did you mean 128\?\)$"),
        ({"head_dim": 128.5}, TypeError, r"^head_dim must be an integer, not 128\.5$"),
        ({"page_size": "16"}, TypeError, r"^page_size must be an integer, not '16' \(did you mean 16\?\)$"),
        ({"page_size": "large"}, TypeError, r"^page_size must be an integer, not 'large'$"),
        ({"num_kv_heads": True}, TypeError, r"^num_kv_heads must be an integer, not True$"),
        ({"batch_size": None}, TypeError, r"^batch_size must be an integer, not None$"),
        ({"k_pages_head_dim": 1e400}, TypeError, r"^k_pages_head_dim must be an integer, not inf$"),
        ({"k_pages_scales_shape": 3}, TypeError, r"^k_pages_scales_shape must be a tuple of sizes, not 3$"),
        ({"k_pages_scales_shape": (1, "2")}, TypeError, r"^k_pages_scales_shape\[1\] must be an integer"),
        ({"lengths_max": 0.5}, TypeError, r"^lengths_max must be an integer"),
        ({"num_kv_head": 8}, TypeError, r"^paged_attention has no 'num_kv_head' \(did you mean 'num_kv_heads'"),
        ({"q_bits": 16}, TypeError, r"^paged_attention has no 'q_bits'"),
        ({"cores_per_device": 2}, TypeError, r"^paged_attention has no 'cores_per_device'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(stated: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        judge("paged_attention", **stated)


def test_the_names_there_are_are_those_a_user_would_state() -> None:
    assert no_such_name(PAGED_ATTENTION, "colour") == (
        "paged_attention has no 'colour'; it has: axes batch_size, num_q_heads, head_dim, num_kv_heads, total_num_pages, "
        "page_size, pages_per_sequence; parameters mask_value, attn_logits_soft_cap, pages_per_compute_block, megacore_mode, "
        "inline_seq_dim; dtypes q_dtype, lengths_dtype, page_indices_dtype, pages_dtype, scales_dtype"
    )


def test_the_nearest_of_the_seldom_names_is_found_too() -> None:
    assert "(did you mean 'k_pages_page_size'" in no_such_name(PAGED_ATTENTION, "k_pages_pagesize")


def test_integers_of_numpy_are_integers() -> None:
    assert checked(PAGED_ATTENTION, {"batch_size": np.int32(4), "head_dim": UNKNOWN}) == {"batch_size": 4, "head_dim": UNKNOWN}
    assert judge("paged_attention", num_q_heads=np.int64(32), num_kv_heads=np.int64(5))["SC101"] is Verdict.VIOLATED


def test_of_a_parameter_the_rules_say_what_is_legal() -> None:
    assert judge("paged_attention", pages_per_compute_block=True)["SC110"] is Verdict.VIOLATED
    assert judge("paged_attention", pages_per_compute_block="8")["SC110"] is Verdict.VIOLATED
    assert judge("paged_attention", megacore_mode="kvhead")["SC203"] is Verdict.VIOLATED


def test_a_callee_that_is_not_known_is_told_with_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"no callee 'paged_atention' \(did you mean 'paged_attention'.*are: paged_attention, "):
        judge("paged_atention")
    with pytest.raises(ValueError, match="unknown chip ''; known: v2"):
        judge("paged_attention", chip="")


def test_every_dtype_is_one_of_jax() -> None:
    import jax.numpy as jnp

    assert [name for name in DTYPES if not hasattr(jnp, name)] == []
    numbers = [name for name in DTYPES if "int" in name or name.startswith(("float", "bfloat"))]
    assert {name: bits_of(name) for name in numbers} == {
        name: (jnp.iinfo if "int" in name else jnp.finfo)(getattr(jnp, name)).bits for name in numbers
    }
    assert set(SHORT_NAMES).isdisjoint(DTYPES)
    assert set(SHORT_NAMES.values()) < set(DTYPES)
