"""Legal calls of the kernels, in source: the examples of rules are edits to them, and each edit makes one rule fail."""

from __future__ import annotations

from shapecheck.rule import Example

_PAGES = """\
k_pages = jnp.ones((4, 64, 32, 128), jnp.bfloat16)  # KV heads, pages, tokens of a page, head_dim
v_pages = jnp.ones((4, 64, 32, 128), jnp.bfloat16)
lengths = jnp.full((4,), 300, jnp.int32)
page_indices = jnp.zeros((4, 24), jnp.int32)  # rows, pages of a row
"""
_ARRAYS = f"""\
q = jnp.ones((4, 32, 128), jnp.bfloat16)  # rows, query heads, head_dim
{_PAGES}"""
_QUERIES = f"""\
q = jnp.ones((4, 8, 32, 128), jnp.bfloat16)  # rows, queries of a row, query heads, head_dim
{_PAGES}"""

PAGED = f"""\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

{_ARRAYS}
out = paged_attention(
    q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=12
)
"""

ON_A_MESH = f"""\
import jax
import jax.numpy as jnp
from kernel import paged_attention

mesh = jax.make_mesh((2, 4), ("rows", "heads"))
{_ARRAYS}
out = paged_attention(
    q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=12,
    mesh=mesh, heads_axis="heads", batch_axis="rows",
)
"""

MULTI_QUERIES = f"""\
import jax.numpy as jnp
from torch_xla.experimental.pallas_kernels.multi_queries_paged_attention_kernel import paged_attention

{_QUERIES}effective_q_lens = jnp.full((4,), 8, jnp.int32)

out = paged_attention(
    q, k_pages, v_pages, lengths, page_indices, effective_q_lens,
    num_kv_pages_per_compute_block=12, num_queries_per_compute_block=8,
)
"""

EXTENDED = f"""\
import jax.numpy as jnp
from torch_xla.experimental.custom_kernel import extended_paged_attention

{_QUERIES}
out = extended_paged_attention(
    q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=12, use_pallas=True
)
"""

PAGE = f"""\
import jax.numpy as jnp
from ejkernel.kernels._pallas.tpu.page_attention import page_attention

{_ARRAYS}
out = page_attention(
    q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=12
)
"""

RAGGED = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

q = jnp.ones((64, 32, 128), jnp.bfloat16)  # tokens, query heads, head_dim
kv_pages = jnp.ones((64, 32, 8, 128), jnp.bfloat16)  # pages, tokens of a page, keys and values, head_dim
kv_lens = jnp.full((4,), 300, jnp.int32)
page_indices = jnp.zeros((4, 24), jnp.int32)  # sequences, pages of a sequence
cu_q_lens = jnp.array([0, 16, 32, 48, 64], jnp.int32)
num_seqs = jnp.array([4], jnp.int32)

out = ragged_paged_attention(
    q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs,
    num_kv_pages_per_block=8, num_queries_per_block=32,
)
"""


def narrow(argument: str, literal: str, dtype: str = "int16") -> Example:
    """Return the example of an array of another dtype than int32: its literal in the sample, and the cast that repairs it."""
    failing = {f"{literal}, jnp.int32": f"{literal}, jnp.{dtype}"}
    return Example(failing, {**failing, f" {argument},": f" {argument}.astype(jnp.int32),"})


ONE_QUANTIZED = Example(
    {
        "import jax.numpy as jnp\n": (
            "import jax.numpy as jnp\n"
            "from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor\n"
        ),
        "lengths = jnp": "k_pages = QuantizedTensor(k_pages.astype(jnp.int8), jnp.ones((4, 64, 32, 1)))\nlengths = jnp",
    }
)
"""Quantized keys beside plain values."""
