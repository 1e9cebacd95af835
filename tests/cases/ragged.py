"""Calls of `ragged_paged_attention`: JAX's, and our front door."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu import ragged_paged_attention as rpa
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
from jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel import ragged_paged_attention as kernel_of_jax

from kernel import ragged_paged_attention as front_door

q = jnp.zeros((64, 8, 128), jnp.bfloat16)
kv = jnp.zeros((32, 16, 4, 128), jnp.bfloat16)
lens = jnp.zeros((8,), jnp.int32)
table = jnp.zeros((8, 16), jnp.int32)
starts = jnp.zeros((9,), jnp.int32)
count = jnp.array([8], jnp.int32)

ragged_paged_attention(q, kv, lens, table, starts, count)  #: proven SC101 SC104 SC105 SC109 SC121 SC122 SC123 SC125 SC127 SC131
rpa.ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=16, num_queries_per_block=32)  #: proven SC110 SC127
kernel_of_jax(q, kv, lens, table, starts, count, num_kv_pages_per_block=17, num_queries_per_block=32)  #: SC127 violated
ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=0, num_queries_per_block=8)  #: SC110 violated
ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=1, num_queries_per_block=0)  #: SC131 violated
ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=5)  #: SC506 violated
ragged_paged_attention(q[:, :6], kv, lens, table, starts, count)  #: proven SC101
ragged_paged_attention(q[:, :5], jnp.zeros((32, 16, 4, 128), jnp.bfloat16), lens, table, starts, count)  #: SC101 violated
ragged_paged_attention(q, kv[:, :, :3], lens, table, starts, count)  #: SC121 violated
ragged_paged_attention(q[:, :6], jnp.zeros((32, 16, 6, 128), jnp.bfloat16), lens, table, starts, count)  #: SC122 violated
ragged_paged_attention(q[:, :6], jnp.zeros((32, 16, 2, 128), jnp.int8), lens, table, starts, count)  #: SC122 violated
ragged_paged_attention(q[..., :64], kv, lens, table, starts, count)  #: SC104 violated
ragged_paged_attention(q[..., :64], kv[..., :64], lens, table, starts, count)  #: SC301 violated
ragged_paged_attention(q, kv, lens[:7], table, starts, count)  #: SC105 violated
ragged_paged_attention(q, kv, lens, table, starts[:8], count)  #: SC123 violated
ragged_paged_attention(q, kv, lens, table, starts, count[0])  #: SC109 violated
ragged_paged_attention(q, kv, lens, table, starts, jnp.array([8, 8], jnp.int32))  #: SC125 violated
ragged_paged_attention(q, kv, lens.astype(jnp.uint32), table, starts, count)  #: SC107 violated
ragged_paged_attention(q, kv, lens, table.astype(jnp.uint32), starts, count)  #: SC108 violated
ragged_paged_attention(q, kv, lens, table, starts.astype(jnp.float32), count)  #: SC124 violated
ragged_paged_attention(q, kv, lens, table, starts, count.astype(jnp.float32))  #: SC126 violated
ragged_paged_attention(q, kv, lens, table, starts, count.astype(jnp.int16))  #: SC126 unproven
ragged_paged_attention(q, kv, np.zeros((8,), np.int64), table, starts, count)  #: proven SC107
ragged_paged_attention(q.astype(jnp.float16), kv, lens, table, starts, count)  #: SC115 violated
ragged_paged_attention(q, kv, lens, table, starts, count, soft_cap=0.0)  #: SC113 violated
ragged_paged_attention(q, kv, lens, table, starts, count, soft_cap=None, mask_value=None)  #: proven SC113 SC114
ragged_paged_attention(q, kv, lens, table, starts, count, mask_value=0.0)  #: SC114 violated
ragged_paged_attention(q, kv, lens, table, starts, count, mask_value=-1.0)  #: SC507 violated
ragged_paged_attention(q, kv, lens, table, starts, count, mask_value=-1e30)  #: proven SC114
ragged_paged_attention(q, kv, lens, table, starts, count, mask_value=float("-inf"))  #: SC114 unproven
ragged_paged_attention(q, kv, lens, table, starts, count, sliding_window=0)  #: SC128 violated
ragged_paged_attention(q, kv, lens, table, starts, count, sliding_window=4096)  #: proven SC128
ragged_paged_attention(q, kv, lens, table, starts, count, k_scale=1, v_scale=1)  #: SC129 violated
ragged_paged_attention(q, kv, lens, table, starts, count, k_scale=0.5, v_scale=0.5)  #: proven SC129 SC130
ragged_paged_attention(q, kv, lens, table, starts, count, k_scale=0.5)  #: proven SC130
ragged_paged_attention(q, kv.astype(jnp.int8), lens, table, starts, count, k_scale=0.5)  #: SC130 violated
ragged_paged_attention(q, kv, lens, table, starts, count, vmem_limit_bytes=0)  #: SC132 violated
ragged_paged_attention(q, kv, kv, lens, table, starts, count)  #: SC116 violated
ragged_paged_attention(q[0], kv, lens, table, starts, count)  #: SC109 violated


def serve(q, kv, lens, table, starts, count, pages: int):
    block = min(pages, table.shape[1])
    clamped = ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=block, num_queries_per_block=8)  #: proven SC127
    ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=pages, num_queries_per_block=8)  #: SC127 unproven
    ragged_paged_attention(q, kv, lens, table, starts, count)  #: SC121 unproven
    return clamped


def optional(q, kv, lens, table, starts, count, pages, queries):
    if (pages is None) == (queries is None):
        ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=pages, num_queries_per_block=queries)  #: proven SC506
    if (pages is None) is False:
        ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=pages, num_queries_per_block=8)  #: proven SC506
    ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=pages, num_queries_per_block=8)  #: SC506 unproven


@jax.jit
def guarded(q, kv, lens, table, starts, count):
    assert kv.shape[2] % 2 == 0
    assert starts.shape[0] == table.shape[0] + 1
    return ragged_paged_attention(q, kv, lens, table, starts, count)  #: proven SC121 SC123


# What the compiler refuses beyond that.
wide = jnp.zeros((64, 8, 256), jnp.bfloat16)
ragged_paged_attention(wide, jnp.zeros((32, 16, 4, 256), jnp.bfloat16), lens, table, starts, count)  #: SC312 violated
ragged_paged_attention(wide, jnp.zeros((32, 16, 2, 256), jnp.bfloat16), lens, table, starts, count)  #: proven SC312
ragged_paged_attention(q, kv.astype(jnp.float16), lens, table, starts, count)  #: SC302 violated
ragged_paged_attention(q, jnp.zeros((32, 16, 16, 128), jnp.float32), lens, table, starts, count)  #: SC313 violated
ragged_paged_attention(q, kv[:, :1], lens, table, starts, count, num_kv_pages_per_block=1, num_queries_per_block=8)  #: SC304 violated

# The elements, where the source spells them out.
some = jnp.array([1, 17], jnp.int32)
two = jnp.array([2], jnp.int32)
ids = jnp.array([[0, 1], [2, 3]], jnp.int32)
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 2], jnp.int32), two)  #: proven SC401 SC402 SC403 SC404 SC405 SC406 SC408
ragged_paged_attention(q, kv, some, ids[:, :1], jnp.array([0, 1, 2], jnp.int32), two)  #: SC401 violated
ragged_paged_attention(q, kv, some, ids[:, :1], jnp.array([0, 1, 2], jnp.int32), jnp.array([1], jnp.int32))  #: proven SC401
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 2], jnp.int32), jnp.array([3], jnp.int32))  #: SC403 violated
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 65], jnp.int32), two)  #: SC404 SC405 violated
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 65], jnp.int32), jnp.array([1], jnp.int32))  #: proven SC404 SC405
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 18], jnp.int32), two)  #: proven SC405
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 19], jnp.int32), two)  #: SC405 violated
ragged_paged_attention(q, kv, some + 15, ids, jnp.array([0, 16, 8], jnp.int32), two)  #: SC408 violated
ragged_paged_attention(q, kv, some + 15, ids, jnp.array([1, 2, 3], jnp.int32), two)  #: SC408 violated
ragged_paged_attention(q, kv, some + 15, ids, jnp.array([0, 16, 8], jnp.int32), jnp.array([1], jnp.int32))  #: proven SC408
ragged_paged_attention(q, kv, some - 1, ids, jnp.array([0, 0, 2], jnp.int32), two)  #: SC406 violated
ragged_paged_attention(q, kv, some - 1, ids, jnp.array([0, 0, 2], jnp.int32), jnp.array([1], jnp.int32))  #: SC406 unproven
ragged_paged_attention(q, kv, some, ids, jnp.array([0, 1, 2], jnp.int32), two - 2)  #: SC406 unproven
ragged_paged_attention(q, kv, some - 1, ids, jnp.array([0, 0, 0], jnp.int32), two)  #: SC406 unproven
front_door(q, kv, some - 1, ids, jnp.array([0, 0, 2], jnp.int32), two, implementation="xla")  #: proven SC401
ragged_paged_attention(q, kv, some + 15, ids + 30, jnp.array([0, 1, 2], jnp.int32), two)  #: SC402 violated
ragged_paged_attention(q, kv, jnp.array([17, 16], jnp.int32), jnp.array([[0, 1], [2, 32]], jnp.int32), jnp.array([0, 1, 2], jnp.int32), two)  #: proven SC402
ragged_paged_attention(q, kv, jnp.array([17, 17], jnp.int32), jnp.array([[0, 1], [2, 32]], jnp.int32), jnp.array([0, 1, 2], jnp.int32), two)  #: SC402 violated
ragged_paged_attention(q, kv, jnp.array([17, 32], jnp.int32), ids + 30, jnp.array([0, 1, 2], jnp.int32), two)  #: SC402 violated

# The front door takes what runs without a TPU.
front_door(q[..., :64].astype(jnp.float16), kv[..., :64], lens, table, starts, count, k_scale=1)  #: proven SC101 SC115
front_door(q, jnp.zeros((32, 16, 6, 128), jnp.bfloat16)[:, :, :4], lens, table, starts, count, implementation="xla")  #: proven SC121
front_door(q, kv, lens, table, starts, count, num_kv_pages_per_block=17, num_queries_per_block=8)  #: SC127 violated
front_door(q, kv[:, :, :3], lens, table, starts, count)  #: SC121 violated
