"""What only JAX has: `jax.random`, `jax.lax`, `jax.nn`, `x.at`, devices, quantized pages."""

from __future__ import annotations

from typing import Any

import jax
import jax.ad_checkpoint
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils

from codemods.evaluate.arrays.quantized import UTILS
from codemods.values import External, Value

from .model_programs import Interpreter, assert_program, expressions, inputs

RANDOM = """
jax.random.key(0)
jax.random.PRNGKey(0)
jax.random.split(jax.random.key(0))
jax.random.split(jax.random.key(0), 3)
jax.random.split(jax.random.PRNGKey(0), num=4)
jax.random.split(jax.random.key(0), (2, 3))
jax.random.split(jax.random.key(0), 3)[1]
jax.random.fold_in(jax.random.key(0), 7)
jax.random.fold_in(jax.random.PRNGKey(0), data=7)
jax.random.normal(key)
jax.random.normal(key, (2, 3))
jax.random.normal(key, (2, 3), dtype=jnp.bfloat16)
jax.random.normal(key, shape=(2,), dtype=jnp.float64)
jax.random.gumbel(key, (2,))
jax.random.exponential(key, (2, 1))
jax.random.laplace(key, (2,), jnp.float16)
jax.random.cauchy(key)
jax.random.logistic(key, (3,))
jax.random.uniform(key, (2, 3))
jax.random.uniform(key, (2, 3), jnp.float32, minval=-1, maxval=1)
jax.random.truncated_normal(key, -2, 2, (3, 4))
jax.random.truncated_normal(key, -2, x)
jax.random.randint(key, (2, 3), 0, 10)
jax.random.randint(key, (4,), minval=1, maxval=9, dtype=jnp.int32)
jax.random.randint(key, shape=(4,), minval=0, maxval=9, dtype=jnp.int64)
jax.random.bits(key, (2,))
jax.random.bits(key, (2,), jnp.uint8)
jax.random.bernoulli(key)
jax.random.bernoulli(key, 0.3, (2, 3))
jax.random.bernoulli(key, x)
jax.random.categorical(key, x)
jax.random.categorical(key, x, axis=1)
jax.random.categorical(key, m, shape=(7, 4))
jax.random.permutation(key, 8)
jax.random.permutation(key, i, independent=True)
jax.random.permutation(key, i, axis=1).reshape(2, -1)
jax.random.choice(key, 9, (2, 3))
jax.random.choice(key, i, shape=(5,))
jax.random.choice(key, i, (3,), replace=False, axis=1)
jax.random.choice(key, n)
"""

LAX = """
lax.reshape(x, (4, 6))
lax.squeeze(one, (1,))
lax.squeeze(one, dimensions=(1, 3))
lax.expand_dims(i, (0, 2))
lax.transpose(x, (2, 0, 1))
lax.transpose(i, permutation=(1, 0))
lax.broadcast(i, (2, 5))
lax.broadcast_in_dim(i, (2, 3, 4), (1, 2))
lax.broadcast_in_dim(row, (3, 4), (0, 1))
lax.rev(i, (0,))
lax.concatenate([i, i], 0)
lax.concatenate((i, i), dimension=1)
lax.full((2, 3), 7)
lax.full((2, 3), 7, jnp.int8)
lax.full_like(i, 3)
lax.iota(jnp.int32, 5)
lax.iota(jnp.float32, 5)
lax.broadcasted_iota(jnp.int32, (2, 3), 1)
lax.broadcasted_iota(jnp.int64, (2, 3), dimension=0)
lax.slice(i, (0, 1), (2, 4))
lax.slice(x, (0, 0, 0), (2, 3, 4), (1, 1, 2))
lax.slice_in_dim(i, 1, 3)
lax.slice_in_dim(i, 0, None, stride=2, axis=1)
lax.dynamic_slice(i, (0, 1), (2, 3))
lax.dynamic_slice_in_dim(i, 1, 2, axis=1)
lax.dynamic_slice_in_dim(i, 0, 2)
lax.dynamic_index_in_dim(i, 1)
lax.dynamic_index_in_dim(i, 1, axis=1, keepdims=False)
lax.index_in_dim(x, 0, axis=1)
lax.dynamic_update_slice(i, i[:1], (0, 0))
lax.dynamic_update_slice_in_dim(i, i[:1], 2, axis=0)
lax.dynamic_update_index_in_dim(i, i[0], 2, 0)
lax.top_k(x, 2)
lax.select(i > 0, i, -i)
lax.abs(i)
lax.neg(i)
lax.exp(x)
lax.log(x)
lax.log1p(x)
lax.expm1(x)
lax.sqrt(x)
lax.rsqrt(bf)
lax.sin(x)
lax.cos(x)
lax.tanh(x)
lax.logistic(x)
lax.erf(x)
lax.sign(i)
lax.square(i)
lax.add(i, i)
lax.sub(i, i)
lax.mul(x, x)
lax.div(x, x)
lax.div(n, n)
lax.max(n, n)
lax.min(n, n)
lax.rem(n, n)
lax.pow(x, x)
lax.eq(i, i)
lax.ne(i, i)
lax.lt(x, x)
lax.le(x, x)
lax.gt(x, x)
lax.ge(x, x)
lax.cumsum(i, axis=1)
lax.cumsum(n)
lax.cumprod(n)
lax.cummax(n, reverse=True)
lax.cummin(n)
lax.convert_element_type(i, jnp.float32)
lax.convert_element_type(i, jnp.int64)
lax.bitcast_convert_type(x, jnp.int32)
lax.bitcast_convert_type(x, jnp.int16)
lax.bitcast_convert_type(bf[:, :2], jnp.uint32)
lax.stop_gradient(x)
lax.stop_gradient((x, i))
lax.optimization_barrier(x)
lax.reduce_precision(x, 8, 7)
lax.dot_general(m, m, (((0,), (0,)), ((), ())))
lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,))), preferred_element_type=jnp.float32)
lax.dot_general(bf, bf, (([1], [1]), ([], [])), preferred_element_type=jnp.float32)
jnp.matmul(bf, bf.T, preferred_element_type=jnp.float32)
jnp.einsum("ij,kj->ik", bf, bf, preferred_element_type=jnp.float32)
jnp.dot(bf, bf.T, preferred_element_type=jnp.float32)
"""

NN = """
jnp.reciprocal(x)
jnp.zeros_like(x, jnp.int32, (2, 5))
jnp.ones_like(n, None, (4,))
jnp.floor(jnp.asarray(2.0))
jnp.reciprocal(i)
jax.nn.relu(x)
jax.nn.relu(i)
jax.nn.relu6(x)
jax.nn.gelu(bf)
jax.nn.silu(x)
jax.nn.swish(x)
jax.nn.sigmoid(bf)
jax.nn.softplus(x)
jax.nn.log_sigmoid(x)
jax.nn.tanh(x)
jax.nn.softmax(x)
jax.nn.softmax(x, axis=1)
jax.nn.log_softmax(x, axis=-1)
jax.nn.logsumexp(x, axis=-1)
jax.scipy.special.logsumexp(x, axis=0, keepdims=True)
jax.nn.one_hot(n, 4)
jax.nn.one_hot(i, 5, dtype=jnp.int32, axis=0)
"""

ARRAYS = """
x.at[0].set(1)
x.at[:, 0].add(row[0])
i.at[0, 1].set(7)
i.at[n[1:] - 1].multiply(2)
i.at[0].subtract(1)
x.at[0].divide(2)
x.at[0].power(2)
i.at[0].min(3)
i.at[0].max(3, mode="drop")
x.at[0].apply(jnp.sqrt)
i[9]
i[:, 7]
n[jnp.int32(1)]
i.sort()
i.sort(axis=0)
i.block_until_ready()
jax.block_until_ready((x, i))
jax.device_put(i)
jax.device_put(np.zeros((2, 3)))
jax.device_put((np.zeros(3, np.int64), i))
jax.device_get(i)
jax.ad_checkpoint.checkpoint_name(x, "saved")
lax.with_sharding_constraint(x, sharding)
n[0].item()
n.tolist()
jnp.bfloat16(x)
jnp.bfloat16(2)
jnp.asarray(3) + 1
jnp.asarray(3) * 1.5
jnp.zeros_like(jnp.asarray(3))
jnp.full_like(jnp.asarray(3.0), 2)
jnp.array(jnp.asarray(3))
jnp.asarray(jnp.asarray(3.0))
jnp.sum(jnp.asarray(3))
jnp.max(jnp.asarray(3))
jnp.mean(jnp.asarray(3.0))
jnp.stack((jnp.asarray(3), jnp.asarray(4)))
jnp.concatenate((jnp.asarray(3)[None], n))
jnp.cumsum(jnp.asarray(3)[None])
jnp.asarray(3)[None].astype(jnp.int32)
jnp.sqrt(jnp.asarray(3))
jnp.clip(jnp.asarray(3), 0, 5)
jnp.asarray(3).reshape(1, 1)
jnp.asarray(3).sum()
jnp.argmax(jnp.asarray(3)[None])
jnp.repeat(jnp.asarray(3), 2)
jnp.tile(jnp.asarray(3), 2)
jnp.asarray(3)[None] @ jnp.asarray(3)[None]
jnp.dot(n, jnp.asarray(3.0))
jnp.where(b, jnp.asarray(3), jnp.asarray(4.0))
jnp.repeat(i, jnp.asarray([1, 2, 0]), axis=0, total_repeat_length=5)
jnp.asarray(np.arange(3))
jnp.asarray(np.zeros(3))
jnp.array(np.array([1, 2]), dtype=jnp.int64)
jnp.zeros(4, jnp.int64)
jnp.arange(4, dtype=np.int64)
np.arange(3) + n
x * np.sqrt(4)
bf * np.sqrt(4)
bf / np.float32(2)
bf * 128 ** -0.5
np.asarray(i)
np.array(bf)
np.sum(i)
np.stack((n, n))
jax.ShapeDtypeStruct((2, 3), jnp.bfloat16)
jax.ShapeDtypeStruct(x.shape, x.dtype).shape
jax.ShapeDtypeStruct(shape=(4,), dtype=jnp.int64).dtype
"""

QUANTIZED = """
utils.quantize_to_int8(x)
utils.quantize_to_int8(bf).weight
utils.quantize_to_int8(bf).scales
utils.get_quantization_scales(x)
utils.to_int8(x, utils.get_quantization_scales(x))
utils.from_int8(utils.quantize_to_int8(x).weight, utils.quantize_to_int8(x).scales)
utils.from_int8(utils.quantize_to_int8(x).weight, utils.quantize_to_int8(bf[:1, :1]).scales, jnp.bfloat16)
utils.unquantize_from_int8(utils.quantize_to_int8(x))
utils.unquantize_from_int8(utils.quantize_to_int8(bf), dtype=jnp.float32)
utils.QuantizedTensor(weight=x.astype(jnp.int8), scales=x[..., :1])
utils.QuantizedTensor(x, x).weight
"""


def names() -> dict[str, tuple[Value, Any]]:
    key = (Interpreter().run("jax.random.key(0)"), jax.random.key(0))
    sharding = jax.sharding.NamedSharding(jax.make_mesh((1,), ("a",)), jax.sharding.PartitionSpec())
    others = {"utils": (External(UTILS), quantization_utils), "sharding": (External("a sharding"), sharding)}
    return {**inputs("jax"), **others, "key": key}


EVERYWHERE = expressions(RANDOM, LAX, NN, ARRAYS, QUANTIZED)


@pytest.mark.parametrize("expression", EVERYWHERE)
def test_the_model_agrees_with_jax(expression: str) -> None:
    assert_program(expression, names())
