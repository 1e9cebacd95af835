"""What the models say, and do not say, where something is unknown; and that every model is held against its library."""

from __future__ import annotations

import pytest

from codemods import formulas, terms
from codemods.evaluate import arrays
from codemods.evaluate.library import MODELS, Call, Unmodelled
from codemods.terms import Symbol
from codemods.values import Array, Choice, DType, Opaque, Reason, Value

from . import test_models_einops, test_models_jax, test_models_jax_numpy, test_models_numpy, torch_expressions
from .model_programs import INPUTS, Interpreter, as_tuples, inputs, recorded

NOT_RUN = {
    "torch.Tensor.cuda",
    "torch.Tensor.pin_memory",
    "torch_xla.device",
    "torch_xla.core.xla_model.xla_device",
}
"""What needs a device that is not here."""


def size(name: str, at_least: int | None = 0) -> Value:
    return terms.of(Symbol(name, name, at_least))


def unknown(name: str, at_least: int | None = None) -> Opaque:
    return Opaque((name,), name, Reason("it is a parameter"), at_least)


FLOAT = DType("float32")
NAMES: dict[str, Value] = {
    "n": size("n"),
    "m": size("m"),
    "some": terms.add(size("n"), 1),
    "any": size("any", None),
    "thing": unknown("thing"),
    "x": Array((size("n"), 1, 4), FLOAT),
    "y": Array((size("m"), 4), FLOAT),
    "t": Array((2, 3), FLOAT, "torch"),
    "either": Array((2, 3), None, "unknown"),
    "mask": Array((4,), DType("bool")),
    "untyped": Array((4,), None),
    "lens": Array((3,), DType("int32"), contents=(5, 9, 2)),
}


def shape_of(source: str) -> str:
    """Return the shape that the models say an expression has, in words."""
    made = Interpreter(NAMES).run(source)
    assert isinstance(made, Array)
    return ", ".join(map(str, made.shape))


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("jnp.zeros((n, 4))", "n, 4"),
        ("jnp.zeros((thing, 4))", "thing, 4"),
        ("jnp.zeros(n * 2)", "2*n"),
        ("jnp.arange(n)", "n"),
        ("jnp.arange(any)", "max(any, 0)"),
        ("jnp.arange(n * m).reshape(n, m)", "n, m"),
        ("jnp.arange(n * 4).reshape(-1, 4)", "n, 4"),
        ("jnp.arange(n * 4).reshape(n, -1)", "n, 4"),
        ("jnp.zeros((n, 8)).reshape(-1, 2, 4)", "n, 2, 4"),
        ("jnp.zeros((4, 6)).reshape(any, 8)", "3, 8"),
        ("jnp.zeros((n, 4)).reshape(-1)", "4*n"),
        ("jnp.zeros((n, 4)).reshape(-1, 8)", "(4*n // 8), 8"),
        ("jnp.reshape(thing, (2, 3))", "2, 3"),
        ("thing.reshape(n, 3)", "n, 3"),
        ("thing.reshape(n, -1)", "n, thing.reshape(...)"),
        ("x.squeeze(1)", "n, 4"),
        ("x[:, 0]", "n, 4"),
        ("x[:2]", "min(2, n), 1, 4"),
        ("x[:n]", "n, 1, 4"),
        ("x[1:]", "-min(1, n) + n, 1, 4"),
        ("jnp.zeros((some, 4))[1:]", "n, 4"),
        ("jnp.zeros((some, 4))[:-1]", "n, 4"),
        ("x[::2]", "n - (n // 2), 1, 4"),
        ("x[:any]", "len(range(n)[:any:]), 1, 4"),
        ("x[:, thing:]", "n, len(range(1)[thing::]), 4"),
        ("x + jnp.zeros((n, 1, 1))", "n, 1, 4"),
        ("x + jnp.zeros((8, 1, 1))", "8, 1, 4"),
        ("jnp.zeros((8, 1, 1)) + x", "8, 1, 4"),
        ("jnp.zeros((some + 1, 1)) + jnp.zeros((n, 1))", "n + 2, 1"),
        ("x + jnp.zeros((m, 1, 1))", "broadcast(n, m), 1, 4"),
        ("jnp.zeros((some, 1)) + jnp.zeros((m, 1))", "broadcast(n + 1, m), 1"),
        ("jnp.concatenate([y, y])", "2*m, 4"),
        ("jnp.concatenate([y, jnp.zeros((3, n))])", "m + 3, 4"),
        ("jnp.stack([y, jnp.zeros((3, 4))])", "2, 3, 4"),
        ("jnp.tile(y, (2, n))", "2*m, 4*n"),
        ("jnp.pad(y, ((0, n), (0, 0)))", "m + n, 4"),
        ("jnp.repeat(y, n, axis=1)", "m, 4*n"),
        ("jnp.broadcast_to(y, (n, m, 4))", "n, m, 4"),
        ("y.T @ y", "4, 4"),
        ("jax.random.split(jax.random.key(0), n)", "n"),
        ("jax.random.normal(thing, (n, 2))", "n, 2"),
        ("torch.zeros(n, 4)", "n, 4"),
        ("t.repeat(n, 1)", "2*n, 3"),
        ("either.reshape(6)", "6"),
        ("either + 1", "2, 3"),
        ("either.sum(0)", "3"),
        ("either.permute(1, 0)", "3, 2"),
        ("jnp.transpose(thing, (1, 0))", "thing.shape[1], thing.shape[0]"),
        ("thing.view(2, 3, 4)", "2, 3, 4"),
        ("jnp.einsum('ij,jk->ik', thing, y)", "thing.shape[0], 4"),
        ("jnp.pad(thing, ((0, 0), (0, n)))", "thing.shape[0], n + thing.shape[1]"),
        ("jnp.concatenate([thing, y], axis=1)", "m, thing.shape[1] + 4"),
    ],
)
def test_sizes_are_as_certain_as_they_can_be(source: str, shape: str) -> None:
    assert shape_of(source) == shape


@pytest.mark.parametrize(
    "source",
    [
        "jnp.zeros(thing)",
        "jnp.array([thing, thing])",
        "jnp.squeeze(thing)",
        "jnp.squeeze(jnp.zeros((n, m)))",
        "x * thing",
        "x[thing]",
        "x[mask]",
        "y[untyped]",
        "y.sum(thing)",
        "y.transpose(thing)",
        "jnp.where(mask)",
        "either.transpose(0, 1)",
        "t + lens",
        "np.sum(t)",
        "jnp.linspace(thing, 1)",
        "jnp.sum(y, keepdims=thing)",
        "thing.squeeze()",
        "jnp.zeros((2, 'a'))",
        "jnp.zeros((2, 3), dtypes=4)",
    ],
)
def test_nothing_is_claimed_where_it_depends_on_the_unknown(source: str) -> None:
    with pytest.raises(Unmodelled):
        Interpreter(NAMES).run(source)


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        ("thing.astype(jnp.int32)", "int32"),
        ("thing.to(torch.int32)", "int32"),
        ("thing.to('xla')", None),
        ("thing.int()", "int32"),
        ("jnp.asarray(thing)", None),
        ("jnp.asarray(thing, jnp.int64)", "int32"),
    ],
)
def test_a_conversion_keeps_a_shape_that_is_not_known(source: str, dtype: str | None) -> None:
    made = Interpreter(NAMES).run(source)
    assert isinstance(made, Opaque)
    assert made.shape == NAMES["thing"].shape
    assert made.dtype == (DType(dtype) if dtype else None)


@pytest.mark.parametrize("source", ["jnp.squeeze(jnp.zeros((n, 4)))", "torch.squeeze(torch.zeros(n, 4), 0)"])
def test_squeeze_drops_an_axis_that_may_be_of_size_1(source: str) -> None:
    made = Interpreter(NAMES).run(source)
    assert isinstance(made, Choice)
    one = formulas.equal(NAMES["n"], 1)
    assert [(formula, each.shape) for formula, each in made.alternatives] == [
        (one, (4,)),
        (formulas.invert(one), (NAMES["n"], 4)),
    ]


def test_size_is_a_number_or_a_method() -> None:
    assert arrays.attribute(NAMES["either"], "size") is None
    assert arrays.attribute(NAMES["t"], "size") is None
    assert arrays.attribute(NAMES["lens"], "size") == 3


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        ("jnp.zeros(2, thing)", None),
        ("jnp.full(2, thing)", None),
        ("jnp.arange(thing)", None),
        ("jnp.arange(n)", "int32"),
        ("jnp.full(2, n)", "int32"),
        ("untyped + 1", None),
        ("untyped < 1", "bool"),
        ("untyped.astype(jnp.int32)", "int32"),
        ("lens.astype(thing)", None),
        ("t.to(thing)", None),
        ("t.to('xla')", "float32"),
        ("either.reshape(6)", None),
        ("thing.reshape(2, 3)", None),
        ("np.asarray(thing.reshape(2, 3), np.int32)", "int32"),
    ],
)
def test_a_dtype_is_known_or_none(source: str, dtype: str | None) -> None:
    made = Interpreter(NAMES).run(source)
    assert isinstance(made, Array)
    assert made.dtype == (DType(dtype) if dtype else None)


@pytest.mark.parametrize(
    ("source", "contents"),
    [
        ("lens + 1", (6, 10, 3)),
        ("lens[lens - lens]", None),
        ("jnp.zeros(5000, jnp.int32)", None),
        ("jnp.full((2, 2), 300, jnp.int8)", None),
        ("lens.at[0].set(7)", None),
        ("lens.astype(jnp.float32)", None),
        ("jnp.arange(n)", None),
        ("lens // 0", None),
        ("jnp.zeros(2, jnp.int32)", (0, 0)),
        ("np.zeros(2, np.int32)", None),
        ("np.full(2, -1)", None),
        ("torch.ones(2, dtype=torch.int32)", None),
        ("jnp.sum(lens, where=mask[:3])", None),
    ],
)
def test_elements_are_known_or_forgotten(source: str, contents: tuple[int, ...] | None) -> None:
    made = Interpreter(NAMES).run(source)
    assert isinstance(made, Array)
    assert made.contents == contents


def test_in_place_operators_keep_what_numpy_and_torch_keep() -> None:
    numbers = Array((3,), DType("int32"), "numpy", (1, 2, 3))
    assert arrays.inplace("+", numbers, 1) == Array((3,), DType("int32"), "numpy", (2, 3, 4))
    assert arrays.inplace("*", Array((3,), DType("float16"), "torch"), 2.5) == Array((3,), DType("float16"), "torch")
    assert arrays.inplace("+", NAMES["lens"], 1.5) == Array((3,), FLOAT, weak=True)
    with pytest.raises(Unmodelled, match="in place"):
        arrays.inplace("+", NAMES["either"], 1)


@pytest.mark.parametrize("path", ["torch.device", "torch_xla.device", "torch_xla.core.xla_model.xla_device"])
def test_a_device_is_no_dtype(path: str) -> None:
    device = MODELS[path](Call(path, ()))
    assert Interpreter({**NAMES, "device": device}).run("t.to(device).cuda().pin_memory()") == NAMES["t"]


def test_every_model_is_held_against_its_library() -> None:
    torch_names: dict[str, Value] = {
        name: Array(
            array.shape, DType(array.dtype.name), "torch", as_tuples(array.tolist()) if array.dtype.kind in "iu" else None
        )
        for name, array in INPUTS.items()
    }
    torch_names["bf"] = Array((2, 4), DType("bfloat16"), "torch")
    with recorded() as asked:
        for library, name in (("jax", "jnp"), ("numpy", "np")):
            for expression in test_models_jax_numpy.EVERYWHERE:
                _run(expression.replace("xp.", f"{name}."), {each: pair[0] for each, pair in inputs(library).items()})
        for expression in test_models_numpy.EVERYWHERE:
            _run(expression, {each: pair[0] for each, pair in inputs("numpy").items()})
        for expression in test_models_jax.EVERYWHERE:
            _run(expression, {each: pair[0] for each, pair in test_models_jax.names().items()})
        for expression in test_models_einops.SHAPES:
            _run(expression, {each: pair[0] for each, pair in inputs("numpy").items()})
        for expression in torch_expressions.EVERYWHERE:
            _run(expression, torch_names)
    unasked = MODELS.keys() - asked
    assert {path for path in unasked if not path.startswith("array.") and path in _modelled()} == NOT_RUN


def _run(expression: str, names: dict[str, Value]) -> None:
    Interpreter(names).run(expression)


def _modelled() -> set[str]:
    """Return the paths whose models are of this package; others are registered elsewhere."""
    return {path for path, model in MODELS.items() if model.__module__.startswith(arrays.__name__)}
