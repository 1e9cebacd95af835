"""What `jax.numpy` and `numpy` share: each expression is evaluated with both, and by the models."""

from __future__ import annotations

import pytest

from codemods.evaluate.library import Unmodelled

from .model_programs import Interpreter, assert_program, expressions, inputs, run_real

CONSTRUCTORS = """
xp.zeros(3)
xp.zeros((2, 3))
xp.zeros([2, 3], dtype="int8")
xp.zeros((2, 3), xp.int64)
xp.zeros(x.shape, x.dtype)
xp.ones((2, 2), int)
xp.ones((), float)
xp.empty((2, 0), xp.uint8)
xp.empty(shape=(2,), dtype=xp.float64)
xp.full((2, 3), 7)
xp.full((2, 3), 7.5)
xp.full((2, 3), True)
xp.full(3, 7, dtype=xp.int32)
xp.full((2, 3), 7, "float16")
xp.full((2, 4), row, xp.int32)
xp.zeros_like(x)
xp.zeros_like(i, dtype=xp.float32)
xp.zeros_like(i)
xp.ones_like(i)
xp.empty_like(h)
xp.ones_like(x, shape=(5,))
xp.full_like(i, 3)
xp.full_like(x, 3, dtype=xp.int32)
xp.full_like(n, 300.5)
xp.array(3)
xp.array(3.5)
xp.array(True)
xp.array([1, 2, 3])
xp.array([1, 2.5])
xp.array([True, False])
xp.array([True, 2])
xp.array([[1, 2, 3], [4, 5, 6]])
xp.array(((1, 2), (3, 4)), dtype=xp.int16)
xp.array([1, 2], dtype=xp.float32)
xp.array([])
xp.array([[], []])
xp.array([n, n])
xp.array([x, x])
xp.array([1, 2], ndmin=2)
xp.array(3, ndmin=1)
xp.array(i)
xp.array(i, dtype=xp.int8)
xp.array(i, copy=True)
xp.array([0, 3, 256], dtype=xp.int32)
xp.asarray([0, 3, 256, 513, 1023, 2048])
xp.asarray(x, dtype=xp.float16)
xp.asarray(3)
xp.arange(5)
xp.arange(2, 12, 3)
xp.arange(5, 1, -2)
xp.arange(4, 2)
xp.arange(5.0)
xp.arange(0, 1, 0.3)
xp.arange(6, dtype=xp.float32)
xp.arange(6, dtype=xp.int32).reshape(2, 3)
xp.arange(0, 6, 2, xp.int16)
xp.arange(stop=4, start=1)
xp.linspace(0, 1, 5)
xp.linspace(0, 10, num=3, dtype=xp.int32)
xp.linspace(0, 1)
xp.eye(3)
xp.eye(3, 4, dtype=xp.int32)
xp.identity(2)
xp.identity(2, xp.int8)
xp.tri(3)
xp.tri(3, 5, 1, dtype=xp.int32)
xp.tri(2, k=-1, dtype=xp.int8)
xp.diag(n)
xp.diag(n, -2)
xp.diag(m)
xp.diag(m, k=2)
xp.diag(m, 7)
xp.diagonal(x, 0, 1, 2)
xp.diagonal(m)
m.diagonal(1)
xp.meshgrid(n)
xp.meshgrid(n, i8)
xp.meshgrid(n, i8, indexing="ij")
xp.meshgrid(n, h, i8)
xp.meshgrid(n, i8, h, indexing="ij", sparse=True)
xp.int32(7)
xp.int8(i)
xp.float32(0.5)
xp.float16(x)
xp.bool_(i)
xp.int16(7)
xp.int64(7)
xp.uint8(7)
xp.uint16(7)
xp.uint32(7)
xp.uint64(7)
xp.float64(7)
xp.dtype("int8")
xp.dtype(xp.float16)
xp.dtype(float)
xp.zeros(2, xp.dtype("float16"))
"""

SHAPES = """
x.shape
x.ndim
x.size
x.dtype
x.itemsize
x.nbytes
x.T
x.mT
i.T
i.shape[0] * 2
len(x)
xp.shape(x)
xp.shape([[1, 2, 3]])
xp.ndim(x)
xp.size(x)
xp.size(x, 1)
x.reshape(6, 4)
x.reshape((4, -1))
x.reshape(-1)
x.reshape(2, -1, 2)
i.reshape(2, 6)
i.reshape((2, 6), order="F")
xp.reshape(x, (3, 8))
xp.reshape(x, -1)
xp.reshape(i, shape=(4, 3))
empty.reshape(-1, 3)
x.ravel()
i.ravel()
i.flatten()
i.flatten("F")
xp.ravel(i)
one.squeeze()
one.squeeze(1)
one.squeeze((1, 3))
one.squeeze(axis=-1)
xp.squeeze(one, axis=1)
xp.squeeze(i)
xp.expand_dims(i, 0)
xp.expand_dims(i, (0, -1))
xp.expand_dims(x, axis=1)
xp.atleast_1d(scalar)
xp.atleast_2d(n)
xp.atleast_3d(n)
xp.atleast_3d(i)
xp.atleast_2d(x)
xp.atleast_3d(scalar)
x.transpose()
x.transpose(1, 0, 2)
x.transpose((2, 0, 1))
i.transpose(1, 0)
xp.transpose(x)
xp.transpose(x, (0, 2, 1))
xp.transpose(i, axes=(1, 0))
xp.permute_dims(x, (2, 1, 0))
xp.permute_dims(x, axes=(2, 0, 1))
x.swapaxes(0, 2)
xp.swapaxes(i, 0, -1)
xp.matrix_transpose(i)
xp.moveaxis(x, 0, -1)
xp.moveaxis(x, (0, 1), (2, 0))
xp.flip(x)
xp.flip(i, axis=0)
xp.fliplr(i)
xp.flipud(i)
xp.rot90(i)
xp.rot90(x, 2)
xp.rot90(x, k=-1, axes=(2, 0))
xp.roll(i, 1)
xp.roll(i, 1, axis=0)
xp.sort(i)
xp.sort(i, axis=None)
xp.sort(i, axis=0)
xp.argsort(i)
xp.argsort(n, axis=-1)
n.argsort()
xp.triu(i)
xp.tril(i, 1)
xp.broadcast_to(n, (2, 3))
xp.broadcast_to(row, (3, 4))
xp.broadcast_to(scalar, (2, 2))
xp.broadcast_arrays(n, i.T)
xp.tile(n, 2)
xp.tile(n, (2, 1))
xp.tile(i, reps=(2,))
xp.tile(i, (2, 1, 3))
xp.repeat(n, 2)
xp.repeat(i, 2)
xp.repeat(i, 2, axis=0)
xp.repeat(i, 3, 1)
n.repeat(2)
i.repeat(2, axis=1)
xp.repeat(i, np.array([1, 2, 0]), axis=0)
xp.repeat(i, 2, -1)
xp.pad(i, 1)
xp.pad(i, (1, 2))
xp.pad(i, ((1, 2), (0, 3)))
xp.pad(i, ((0, 0), (0, 4)), mode="constant", constant_values=0)
xp.pad(i, ((1, 2),))
xp.pad(n, (0, 5))
xp.pad(n, ((0, 5),))
xp.copy(i)
i.copy()
"""

JOINING = """
xp.stack([n, n])
xp.stack((i, i), axis=-1)
xp.stack([i, i], 1)
xp.stack((n, n, n))
xp.stack([x, x], axis=2)
xp.concatenate([n, n])
xp.concatenate((i, i[:1]), axis=0)
xp.concatenate([x, x], axis=-1)
xp.concatenate([i, i], axis=None)
xp.concatenate([n, h])
xp.concatenate([i8, u8])
xp.concat([n, n], axis=0)
xp.hstack([n, n])
xp.hstack((i, i))
xp.vstack([n, n])
xp.vstack((i, row[0].astype(xp.int32)))
xp.dstack([i, i])
xp.column_stack([n, n])
xp.append(n, n)
xp.append(i, i, axis=0)
xp.split(x, 2, axis=-1)
xp.split(i, 3)
xp.split(i, [1, 3], axis=1)
xp.split(n, [1])
xp.array_split(n, 2)
xp.array_split(i, [1, 2], axis=1)
xp.vsplit(i, 3)
xp.hsplit(i, 2)
xp.hsplit(n, [1])
xp.hsplit(i, [1, 2])
xp.dsplit(x, 2)
xp.block([n, n])
xp.block([[i, i[:, :1]], [row.astype(xp.int32), i8[:1]]])
xp.block([[x, x], [x, x]])
xp.block([n, h])
xp.block(i)
"""

INDEXING = """
x[0]
x[-1]
x[0, 1]
x[0, 1, 2]
x[:, 0]
x[:, None]
x[None]
x[..., 0]
x[..., None]
x[:, :2]
x[1:, ::2]
x[:, -2:]
x[:, ::-1]
x[..., 1:3, :]
x[0, ..., 1]
i[1]
i[1, 2]
i[:, 1]
i[::-1, 1:3]
i[1:, None, ::2]
i[:, :0]
i[5:]
n[0]
n[-1]
n[1:]
n[n - 1]
x[:, n[1:] - 1]
x[n[1:] - 1, :, 0]
x[0, :, n]
x[:, n - 1, 0]
x[xp.zeros((2, 3), xp.int32)]
x[n[0] - 2]
xp.take(x, n, axis=2)
xp.take(x, n)
xp.take(i, 1, axis=0)
n.take(n[:2] - 1)
xp.take_along_axis(i, i[:, :1] * 0, axis=1)
xp.take_along_axis(i, i[:1] * 0, axis=0)
xp.searchsorted(n, h)
xp.searchsorted(n, 2)
xp.digitize(h, xp.sort(n))
"""

ELEMENTWISE = """
x + 1
x * 2.0
x / 3
x + row
x - h
i + 1
i - n[:, None]
1 - n
2.0 * i
i / 2
i // 2
i % 3
i ** 2
i8 + u8
i8 * 2
i8 / u8
i8 + 1.5
u8 - i[:, :2]
b + i[0]
b & b
i & 3
i | i
i ^ 1
i << 1
i >> 1
i == 3
x < h
x >= 1
x != row
i <= n[:, None]
i > 0
-x
-i
+i
~i
~b
n * n
n + True
x + scalar
i + scalar
h * scalar
bf * 2
bf + 0.5
bf + bf
x @ m
i @ i.T
n @ n
m[0] @ m.T
xp.abs(i)
xp.absolute(x)
xp.negative(i)
xp.positive(i)
xp.square(i)
xp.square(h)
xp.sign(i)
xp.floor(x)
xp.ceil(i)
xp.trunc(h)
xp.exp(x)
xp.exp(i)
xp.exp2(i8)
xp.expm1(h)
xp.log(u8)
xp.log1p(x)
xp.log2(i)
xp.log10(i)
xp.sqrt(i)
xp.sqrt(h)
xp.sqrt(4)
xp.sqrt(2.0)
xp.cbrt(i)
xp.sin(x)
xp.cos(i8)
xp.tan(i)
xp.sinh(x)
xp.cosh(x)
xp.tanh(i)
xp.arcsin(x)
xp.arccos(x)
xp.arctan(i)
xp.isnan(x)
xp.isinf(x)
xp.isfinite(i)
xp.logical_not(i)
xp.bitwise_not(i)
xp.invert(b)
xp.nan_to_num(x)
xp.round(x)
xp.round(x, 2)
x.round()
xp.around(h, decimals=1)
xp.add(i, n[0])
xp.subtract(x, row)
xp.multiply(i, h)
xp.divide(i, 2)
xp.true_divide(n, n)
xp.floor_divide(i, 4)
xp.remainder(i, 4)
xp.mod(n, 2)
xp.fmod(x, 2)
xp.power(i, 2)
xp.power(x, 2)
xp.minimum(n, 2)
xp.maximum(i, n[:, None])
xp.maximum(x, 0)
xp.logical_and(i, True)
xp.logical_or(b, b)
xp.logical_xor(b, i)
xp.bitwise_and(i, 3)
xp.bitwise_or(b, b)
xp.bitwise_xor(i, i8[0])
xp.left_shift(i, 1)
xp.right_shift(i8, 1)
xp.equal(i, 1)
xp.not_equal(i, 1)
xp.less(x, 1)
xp.less_equal(x, h)
xp.greater(n, n)
xp.greater_equal(n, 2)
xp.arctan2(x, row)
xp.logaddexp(x, h)
xp.isclose(x, row)
xp.where(b, x, 0)
xp.where(i < 0, 0, i)
xp.where(b, 1, 0)
xp.where(b, 1.0, 0)
xp.where(b, h, 1)
xp.where(i > 0, i8[0], u8[0])
xp.clip(x, 0, 1)
xp.clip(i, 0, 3)
xp.clip(i, 0, n[:, None])
xp.clip(x, min=0)
xp.clip(i8, None, 5)
x.clip(0, 1)
n.clip(max=2)
x.astype(xp.float16)
x.astype("int32")
i.astype(xp.int8)
i.astype(xp.float32)
i.astype(bool)
n.astype(dtype=xp.int64)
xp.astype(i, xp.uint8)
x.view(xp.int32)
x.view(xp.int8)
x.view(dtype=xp.int16)
i8.view(xp.int16)
"""

REDUCTIONS = """
x.sum()
x.sum(0)
x.sum(axis=(0, 2))
x.sum(axis=-1, keepdims=True)
i.sum()
i.sum(axis=0)
i.sum(1, keepdims=True)
i8.sum()
u8.sum()
b.sum()
h.sum()
xp.sum(i)
xp.sum(x, 1)
xp.sum(i, dtype=xp.float32)
xp.sum(i, where=i > 0)
xp.prod(n)
xp.prod(i8)
n.prod()
xp.max(i)
xp.max(n)
xp.max(x, axis=-1)
xp.min(i, axis=1)
xp.amax(i, axis=0)
xp.amin(x)
i.max()
i.min(axis=0, keepdims=True)
xp.max(n, initial=9)
xp.mean(x)
xp.mean(i)
xp.mean(i8, axis=0)
x.mean(-1)
h.mean()
x.mean(-1, keepdims=True)
xp.std(x, axis=0)
x.std()
xp.var(i)
x.var(axis=1, ddof=1)
xp.median(x, axis=0)
xp.median(i)
xp.linalg.norm(x)
xp.linalg.norm(x, axis=-1, keepdims=True)
xp.linalg.norm(i, ord=1, axis=0)
xp.linalg.norm(x[0], 2)
xp.linalg.norm(x, 1, -1)
xp.argmax(x)
xp.argmax(x, axis=1)
x.argmin(-1)
x.argmax(1, keepdims=True)
xp.argmin(i, axis=0)
xp.any(b)
xp.all(i, axis=0)
b.all()
i.any(axis=1, keepdims=True)
xp.count_nonzero(i)
xp.count_nonzero(i, axis=1)
xp.cumsum(n)
xp.cumsum(i, axis=1)
xp.cumsum(i8)
xp.cumsum(b)
xp.cumsum(x)
n.cumsum()
xp.cumsum(n, dtype=xp.float32)
xp.cumprod(i, axis=0)
n.cumprod()
xp.diff(n)
xp.diff(i, n=2, axis=0)
"""

PRODUCTS = """
xp.matmul(x, m)
xp.matmul(i, i.T)
xp.dot(x, m)
xp.dot(n, n)
xp.dot(m, 2)
m.dot(m.T)
xp.vdot(n, n)
xp.inner(x, row)
xp.inner(n, n)
xp.inner(x, 2)
xp.outer(n, i)
xp.tensordot(x, m, 1)
xp.tensordot(x, x[0], axes=2)
xp.tensordot(x, m, axes=([2], [0]))
xp.tensordot(x, x, ((0, 1), (0, 1)))
xp.tensordot(x, m, axes=(2, 0))
xp.tensordot(n, n, 0)
xp.isin(i, n)
xp.einsum("bij,jk->bik", x, m)
xp.einsum("bij,jk", x, m)
xp.einsum("bij->jb", x)
xp.einsum("ij,ij->", i, i)
xp.einsum("b i j, b j k -> b i k", x, x.swapaxes(1, 2))
"""

FAILS = """
xp.zeros((2, -1))
xp.array([[1, 2], [3]])
x + xp.zeros((2, 2))
x.reshape(5, -1)
x.reshape(7)
x.reshape(-1, -1)
x.reshape(2, -2, -6)
x.reshape(0, -1)
x.squeeze(0)
x.transpose(0, 1)
x.transpose(0, 0, 1)
x.sum(axis=3)
x.sum(axis=(0, 0))
x[0, 0, 0, 0]
x[..., ...]
xp.expand_dims(x, 5)
xp.stack([n, h])
xp.concatenate([n, i])
xp.concatenate([i, i.T])
xp.split(x, 2, axis=1)
xp.broadcast_to(n, (2, 2))
x @ x
xp.einsum("ij->i", x)
xp.einsum("ij,jk->ik", i, i)
xp.moveaxis(x, (0, 1), (0,))
xp.dsplit(i, 1)
xp.hsplit(i, 3)
xp.diag(x)
xp.diag(scalar)
xp.block([[n, n], n])
xp.block([[i], [n]])
xp.tensordot(x, m, axes=([1], [0]))
xp.tensordot(x, m, axes=([1, 2], [0]))
xp.tensordot(x, m, 3)
xp.rot90(n)
scalar[0]
scalar.mT
len(scalar)
"""


EVERYWHERE = expressions(CONSTRUCTORS, SHAPES, JOINING, INDEXING, ELEMENTWISE, REDUCTIONS, PRODUCTS)


@pytest.mark.parametrize("expression", EVERYWHERE)
@pytest.mark.parametrize(("library", "name"), [("jax", "jnp"), ("numpy", "np")])
def test_the_model_agrees_with_the_library(library: str, name: str, expression: str) -> None:
    assert_program(expression.replace("xp.", f"{name}."), inputs(library))


@pytest.mark.parametrize("expression", expressions(FAILS))
@pytest.mark.parametrize(("library", "name"), [("jax", "jnp"), ("numpy", "np")])
def test_of_a_call_that_fails_nothing_is_claimed(library: str, name: str, expression: str) -> None:
    names = inputs(library)
    with pytest.raises(Unmodelled, match="fail"):
        Interpreter({each: pair[0] for each, pair in names.items()}).run(expression.replace("xp.", f"{name}."))
    with pytest.raises((ValueError, TypeError, IndexError, ZeroDivisionError)):
        run_real(expression.replace("xp.", f"{name}."), {each: pair[1] for each, pair in names.items()})
