"""Random numbers: `jax.random`, `numpy.random` and torch's."""

from __future__ import annotations

from dataclasses import replace

from codemods.evaluate.arrays import arguments as args
from codemods.evaluate.arrays import shapes
from codemods.evaluate.arrays.dtypes import chosen, default_float, default_int
from codemods.evaluate.arrays.signatures import model
from codemods.evaluate.library import Call, Unmodelled
from codemods.values import Array, DType, External, Value

GENERATOR, RANDOM_STATE = "numpy.random.default_rng()", "numpy.random.RandomState()"
_NUMPY = ("numpy.random", GENERATOR, RANDOM_STATE)


@model("jax.random", "key")
def key(call: Call, seed: Value) -> Array:
    return Array((), DType("key<fry>"), "jax")


@model("jax.random", "PRNGKey")
def raw_key(call: Call, seed: Value) -> Array:
    return Array((2,), DType("uint32"), "jax")


@model("jax.random", "split")
def split(call: Call, key: Value, num: Value = 2) -> Array:
    one = args.array(call, key)
    return replace(one, shape=(*args.new_shape(call, num), *one.shape), contents=None)


@model("jax.random", "fold_in")
def fold_in(call: Call, key: Value, a: Value) -> Array:
    return replace(args.array(call, key), contents=None)


@model("jax.random", "normal", "gumbel", "exponential", "laplace", "cauchy", "logistic")
def normal(call: Call, key: Value, shape: Value = (), dtype: Value = None) -> Array:
    return Array(args.new_shape(call, shape), chosen(dtype, "jax", default_float("jax")), "jax")


@model("jax.random", "uniform")
def uniform(call: Call, key: Value, shape: Value = (), dtype: Value = None, minval: Value = 0.0, maxval: Value = 1.0) -> Array:
    return Array(args.new_shape(call, shape), chosen(dtype, "jax", default_float("jax")), "jax")


@model("jax.random", "truncated_normal")
def truncated_normal(call: Call, key: Value, lower: Value, upper: Value, shape: Value = None, dtype: Value = None) -> Array:
    return Array(_given(call, shape, lower, upper), chosen(dtype, "jax", default_float("jax")), "jax")


@model("jax.random", "randint")
def randint(call: Call, key: Value, shape: Value, minval: Value, maxval: Value, dtype: Value = None) -> Array:
    return Array(args.new_shape(call, shape), chosen(dtype, "jax", default_int("jax")), "jax")


@model("jax.random", "bits")
def bits(call: Call, key: Value, shape: Value = (), dtype: Value = None) -> Array:
    return Array(args.new_shape(call, shape), chosen(dtype, "jax", DType("uint32")), "jax")


@model("jax.random", "bernoulli")
def bernoulli(call: Call, key: Value, p: Value = 0.5, shape: Value = None) -> Array:
    return Array(_given(call, shape, p), DType("bool"), "jax")


def _given(call: Call, shape: Value, *parameters: Value) -> shapes.Shape:
    """Return the shape asked for, else that of the parameters."""
    if shape is not None:
        return args.new_shape(call, shape)
    return shapes.broadcast(*(args.array(call, parameter).shape for parameter in parameters))


@model("jax.random", "categorical")
def categorical(call: Call, key: Value, logits: Value, axis: Value = -1, shape: Value = None) -> Array:
    scores = args.array(call, logits)
    drawn = shapes.reduce(scores.shape, (args.integer(axis),))
    return Array(drawn if shape is None else args.new_shape(call, shape), default_int("jax"), "jax")


@model("jax.random", "permutation")
def permutation(call: Call, key: Value, a: Value, axis: Value = 0, independent: Value = False) -> Array:
    return _shuffled(call, a)


@model("jax.random", "choice")
def choice(call: Call, key: Value, a: Value, shape: Value = (), replace: Value = True, p: Value = None, axis: Value = 0) -> Array:
    return _drawn(call, a, args.new_shape(call, shape), axis)


def _shuffled(call: Call, a: Value) -> Array:
    """Return an array shuffled, or the shuffled numbers below a number."""
    array = args.array(call, a)
    if array.shape:
        return replace(array, contents=None)
    return Array(args.new_shape(call, a), default_int(call.library), call.library)


def _drawn(call: Call, a: Value, shape: shapes.Shape, axis: Value) -> Array:
    """Return elements drawn along an axis of an array, or numbers drawn below a number."""
    array = args.array(call, a)
    if not array.shape:
        return Array(shape, default_int(call.library), call.library)
    along = shapes.axis_of(len(array.shape), args.integer(axis))
    return replace(array, shape=(*array.shape[:along], *shape, *array.shape[along + 1 :]), contents=None, weak=False)


@model("numpy.random", "default_rng")
def default_rng(call: Call, seed: Value = None) -> External:
    return External(GENERATOR)


@model("numpy.random", "RandomState")
def random_state(call: Call, seed: Value = None) -> External:
    return External(RANDOM_STATE)


@model(("numpy.random", RANDOM_STATE), "rand", "randn")
def rand(call: Call, *sizes: Value) -> Array:
    return _floats(args.new_shape(call, sizes))


@model(_NUMPY, "random", "standard_normal")
@model(("numpy.random", RANDOM_STATE), "random_sample")
def random(call: Call, shape: Value = None, dtype: Value = None) -> Array:
    return _floats(() if shape is None else args.new_shape(call, shape), dtype, python=shape is None)


@model(_NUMPY, "normal", "uniform")
def numpy_normal(
    call: Call, loc: Value = 0.0, scale: Value = 1.0, shape: Value = None, *, low: Value = 0.0, high: Value = 1.0
) -> Array:
    given = _given(call, shape, loc, scale, low, high)
    return _floats(given, python=shape is None and not given)


def _floats(shape: shapes.Shape, dtype: Value = None, python: bool = False) -> Array:
    """Return floats; without a shape, NumPy draws one Python float."""
    return Array(shape, chosen(dtype, "numpy", default_float("numpy")), "numpy", weak=python or not shape)


@model(("numpy.random", RANDOM_STATE), "randint")
@model(GENERATOR, "integers")
def integers(
    call: Call, low: Value, high: Value = None, shape: Value = None, dtype: Value = None, endpoint: Value = False
) -> Value:
    bounds = (low,) if high is None else (low, high)
    shape = _given(call, shape, *bounds)
    if shape:
        return Array(shape, chosen(dtype, "numpy", default_int("numpy")), "numpy")
    least = 0 if high is None else low if isinstance(low, int) else None
    return args.unknown_int(call, f"{call.path}(...)", least)


@model(_NUMPY, "permutation")
def numpy_permutation(call: Call, a: Value, axis: Value = 0) -> Array:
    return _shuffled(call, a)


@model(_NUMPY, "choice")
def numpy_choice(call: Call, a: Value, shape: Value = None, replace: Value = True, p: Value = None, axis: Value = 0) -> Value:
    if shape is None:
        raise Unmodelled("one element drawn at random")
    return _drawn(call, a, args.new_shape(call, shape), axis)


@model("torch", "randint")
def torch_randint(
    call: Call, *bounds: Value, low: Value = None, high: Value = None, shape: Value = None, dtype: Value = None
) -> Array:
    """`randint(high, size)` or `randint(low, high, size)`."""
    if shape is None:
        shape = bounds[-1] if len(bounds) > 1 else None
    return Array(args.new_shape(call, shape), chosen(dtype, "torch", default_int("torch")), "torch")


@model("torch", "randint_like")
def torch_randint_like(call: Call, a: Value, low: Value = 0, high: Value = None, *, dtype: Value = None) -> Array:
    like = args.array(call, a)
    return Array(like.shape, chosen(dtype, "torch", like.dtype), "torch")


@model("torch", "randperm")
def torch_randperm(call: Call, n: Value, *, dtype: Value = None) -> Array:
    return Array(args.new_shape(call, n), chosen(dtype, "torch", default_int("torch")), "torch")


@model("torch", "normal")
def torch_normal(call: Call, mean: Value, std: Value = 1.0, shape: Value = None, *, dtype: Value = None) -> Array:
    found = _given(call, shape, mean, std)
    means, deviations = args.array(call, mean), args.array(call, std)
    floats = [each.dtype for each in (means, deviations) if each.shape]
    return Array(found, chosen(dtype, "torch", floats[0] if floats else default_float("torch")), "torch")


@model("torch", "bernoulli")
def torch_bernoulli(call: Call, a: Value) -> Array:
    return replace(args.array(call, a), contents=None)
