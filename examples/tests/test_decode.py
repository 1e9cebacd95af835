"""Decoding, with the contract of the kernel enforced and the kernel interpreted: no TPU is needed."""

import jax.numpy as jnp

from serving.config import ModelConfig
from serving.decode import Decoder, warm_up


def test_a_step_attends_to_every_sequence():
    decoder = Decoder(ModelConfig(num_q_heads=8, num_kv_heads=2, head_dim=128, max_model_len=128), batch_size=2)
    out = decoder.step(jnp.ones((2, 8, 128), jnp.bfloat16), jnp.array([1, 128], jnp.int32))
    assert out.shape == (2, 8, 128)


def test_the_warm_up_compiles():
    assert warm_up().shape == (4, 16, 128)
