"""What the error of each rule of `paged_attention` says, at call time. `python -m tests.test_messages` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor

from shapecheck import ContractError, checked, observe
from shapecheck.chip import chip_of
from shapecheck.contracts import PAGED_ATTENTION

MESSAGES = Path(__file__).parent / "messages" / "paged_attention.txt"
ABOUT_ELEMENTS = {"SC401", "SC402", "SC407"}  # see test_values.py

Array = jax.ShapeDtypeStruct


def kernel(
    q, k_pages, v_pages, lengths, page_indices, *, mask_value=PAGED_ATTENTION.parameters[0].default, attn_logits_soft_cap=None,
    pages_per_compute_block, megacore_mode=None, inline_seq_dim=True,
) -> None: ...  # fmt: skip


def call(
    chip: str = "v5p",
    *,
    batch: int = 2,
    q_heads: int = 8,
    kv_heads: int = 2,
    head_dim: int = 128,
    pages: int = 16,
    page_size: int = 16,
    width: int = 8,
    q_dtype: Any = jnp.bfloat16,
    pages_dtype: Any = jnp.bfloat16,
    block: Any = 4,
    options: dict[str, Any] | None = None,
    **arrays: Any,
) -> str:
    """Return what the error of a call says that is legal but for what is given."""
    cache = Array((kv_heads, pages, page_size, head_dim), pages_dtype)
    given = {
        "q": Array((batch, q_heads, head_dim), q_dtype),
        "k_pages": cache,
        "v_pages": cache,
        "lengths": Array((batch,), jnp.int32),
        "page_indices": Array((batch, width), jnp.int32),
        **arrays,
    }
    with mock.patch.object(observe, "local_chip", return_value=chip_of(chip)), pytest.raises(ContractError) as caught:
        checked(kernel, PAGED_ATTENTION)(**given, pages_per_compute_block=block, **(options or {}))
    return str(caught.value)


QUANTIZED = QuantizedTensor(Array((2, 16, 16, 128), jnp.int8), Array((2, 16, 16, 1), jnp.float32))

CALLS: dict[str, dict[str, Any]] = {
    "SC101": {"q_heads": 7},
    "SC102": {"block": 3},
    "SC103": {"v_pages": Array((2, 8, 16, 128), jnp.bfloat16)},
    "SC104": {"q": Array((2, 8, 256), jnp.bfloat16)},
    "SC105": {"lengths": Array((3,), jnp.int32)},
    "SC106": {"page_indices": Array((3, 8), jnp.int32)},
    "SC107": {"lengths": Array((2,), jnp.int16)},
    "SC108": {"page_indices": Array((2, 8), jnp.int16)},
    "SC109": {"q": Array((2, 1, 8, 128), jnp.bfloat16)},
    "SC110": {"block": 0},
    "SC111": {"pages": 0},
    "SC112": {"k_pages": QUANTIZED},
    "SC113": {"options": {"attn_logits_soft_cap": 0.0}},
    "SC114": {"options": {"mask_value": 0.0}},
    "SC115": {"q_dtype": jnp.int32},
    "SC201": {"kv_heads": 1, "options": {"megacore_mode": "kv_head"}},
    "SC202": {"batch": 3, "options": {"megacore_mode": "batch"}},
    "SC203": {"options": {"megacore_mode": "heads"}},
    "SC204": {"chip": "v5e", "options": {"megacore_mode": "batch"}},
    "SC301": {"head_dim": 64},
    "SC302": {"pages_dtype": jnp.float16},
    "SC303": {"q_heads": 16, "q_dtype": jnp.float16},
    "SC304": {"page_size": 1, "block": 1},
    "SC305": {"batch": 1024, "width": 1024},
    "SC306": {"page_size": 1024, "block": 8, "head_dim": 1024},
    "SC308": {"chip": "v3", "head_dim": 64},
    "SC309": {"pages": 2**24},
    "SC310": {"pages_dtype": jnp.float8_e4m3},
    "SC311": {"q_heads": 16, "q_dtype": jnp.float8_e4m3fn},
}


def written() -> str:
    return "".join(f"# {code}\n{call(**changes)}\n\n" for code, changes in CALLS.items())


def test_every_rule_that_speaks_at_call_time_has_a_message_here() -> None:
    assert set(CALLS) == {rule.code for rule in PAGED_ATTENTION.rules if not rule.is_hint} - ABOUT_ELEMENTS


@pytest.mark.parametrize("code", CALLS)
def test_the_message_is_what_it_was(code: str) -> None:
    message = call(**CALLS[code])
    assert f"\n  {code} " in message
    assert f"# {code}\n{message}\n\n" in MESSAGES.read_text()


if __name__ == "__main__":
    MESSAGES.write_text(written())
