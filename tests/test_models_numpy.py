"""What only NumPy has, and where it differs from `jax.numpy`."""

from __future__ import annotations

import pytest

from .model_programs import assert_program, expressions, inputs

RANDOM = """
np.random.rand(2, 3)
np.random.rand()
np.random.randn(4, 5)
np.random.random((2, 3))
np.random.random_sample(4)
np.random.standard_normal((2,))
np.random.standard_normal()
np.random.normal(size=(2, 3))
np.random.normal(0.0, 1.0, (2,))
np.random.normal(x, 1.0)
np.random.normal()
np.random.uniform(-1, 1, size=4)
np.random.uniform(low=0.0, high=row)
np.random.randint(0, 10, (2, 3))
np.random.randint(10, size=4)
np.random.randint(0, 10, size=(4,), dtype=np.int32)
np.random.randint(3, 9)
np.random.permutation(8)
np.random.permutation(i)
np.random.choice(9, (2, 3))
np.random.choice(n, size=2, replace=False)
np.random.RandomState(0).rand(2, 3)
np.random.RandomState(0).randn(2)
np.random.RandomState(0).random((2,))
np.random.RandomState(0).random_sample(2)
np.random.RandomState(0).standard_normal((2,))
np.random.RandomState(0).normal(size=(2,))
np.random.RandomState(0).uniform(size=(2,))
np.random.RandomState(0).randint(5, size=(2,))
np.random.RandomState(0).permutation(4)
np.random.RandomState(0).choice(4, 2)
np.random.default_rng(0).integers(0, 10, size=(2, 3))
np.random.default_rng(0).integers(10, size=4, dtype=np.int32)
np.random.default_rng(0).integers(10)
np.random.default_rng(0).integers(0, n)
np.random.default_rng(0).standard_normal((2, 3), dtype=np.float32)
np.random.default_rng(0).normal(size=(2, 3))
np.random.default_rng(0).uniform(0, 1, 3)
np.random.default_rng(0).random((2, 3))
np.random.default_rng(0).random()
np.random.default_rng(0).permutation(6)
np.random.default_rng(0).permutation(i)
np.random.default_rng(0).choice(9, size=(2, 3))
np.random.default_rng(0).choice(i, 2, axis=1)
"""

NUMBERS = """
np.prod((2, 3, 4))
np.prod(x.shape)
np.sum([1, 2, 3])
np.max([1, 5, 3])
np.min((4, 2))
np.amax([1, 2])
np.amin([1, 2])
np.int32(4)
np.int64(4)
np.array([3, 1, 2])[0]
np.array([3, 1, 2])[1:].sum()
np.array([3, 1, 2]).max()
np.zeros(np.int64(3), np.int32)
np.zeros(n[0])
np.zeros(np.array([2, 3]))
np.float32(2) * x
np.ceil(7 / 2)
np.floor(3.5)
np.trunc(-2.5)
np.zeros_like(x, np.int8, "C", shape=(3,))
np.sqrt(np.int64(9))
np.mean([1, 2, 3])
np.array([7]).item()
np.arange(3).tolist()
np.array(7).item()
"""

LISTS = """
i[[0, 2]]
i[:, [0, 1, 1]]
i[[0, 2], [1, 1]]
x[[0, 1], :, [0, 1]]
np.concatenate([[1, 2], [3]])
np.stack([[1, 2], [3, 4]])
np.stack([n, [4, 5, 6]])
np.add([1, 2], 3)
np.transpose([[1, 2], [3, 4]])
n + (1, 2, 3)
np.append(i8, 5)
np.append(h, 5)
np.where(b, i8[0], u8[0])
np.concatenate([i8, i8[:1] + 1])
np.asanyarray([1, 2])
np.ascontiguousarray(i)
np.ascontiguousarray(5)
i8 / i8
np.float16(1) * i8
x.astype(np.float64) @ m
bf * 2
bf.astype(np.float32)
np.zeros((2, 3), "f4")
np.zeros((2, 3), "<i8")
np.zeros(3, np.uint)
np.zeros(3, "double")
np.zeros(3, np.single)
np.zeros(3, np.intp)
np.zeros(3, bool)
"""

EVERYWHERE = expressions(RANDOM, NUMBERS, LISTS)


@pytest.mark.parametrize("expression", EVERYWHERE)
def test_the_model_agrees_with_numpy(expression: str) -> None:
    assert_program(expression, inputs("numpy"))
