"""A decorated jit object that is lowered, traced or asked for its shapes: the checks are those of a call."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, TypeCheckError

from shapecheck import ContractError, checked, contract


class Cache(NamedTuple):
    keys: Float[Array, "kv_heads dim"]


def attend(
    q: Float[Array, "heads dim"],
    caches: list[Cache],
    out: jax.ShapeDtypeStruct | None = None,
    mode: Literal["fast", "exact"] = "fast",
    cut: Any = 0,
) -> Float[Array, "heads dim"]:
    return q[cut:]


STATIC = ("out", "mode", "cut")
RELATION = "heads % kv_heads == 0"
FORMS: dict[str, Callable[..., Any]] = {
    "call": lambda function, *args, **kwargs: function(*_filled(args), **kwargs),
    "lower": lambda function, *args, **kwargs: function.lower(*args, **kwargs),
    "lower, arrays": lambda function, *args, **kwargs: function.lower(*_filled(args), **kwargs),
    "compile": lambda function, *args, **kwargs: function.lower(*args, **kwargs).compile(),
    "trace": lambda function, *args, **kwargs: function.trace(*args, **kwargs),
    "trace and lower": lambda function, *args, **kwargs: function.trace(*args, **kwargs).lower(),
    "eval_shape": lambda function, *args, **kwargs: function.eval_shape(*args, **kwargs),
    "jax.eval_shape": lambda function, *args, **kwargs: jax.eval_shape(lambda *each: function(*each, **kwargs), *args),
    "export": lambda function, *args, **kwargs: export.export(function)(*args, **kwargs),
}


def _filled(tree: Any) -> Any:
    return jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype) if isinstance(each, jax.ShapeDtypeStruct) else each, tree)


def struct(*shape: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


QUERY, CACHES = struct(8, 4), [Cache(struct(4, 4)), Cache(struct(4, 4))]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return FORMS[request.param]


@pytest.fixture(params=["contract", "checked"])
def decorated(request: pytest.FixtureRequest) -> Callable[..., Any]:
    jitted = jax.jit(attend, static_argnames=STATIC)
    return contract(RELATION)(jitted) if request.param == "contract" else checked(jitted, RELATION)


def test_what_is_legal_passes(form: Callable[..., Any], decorated: Callable[..., Any]) -> None:
    form(decorated, QUERY, CACHES)


def message(form: Callable[..., Any], decorated: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(TypeCheckError) as caught:
        form(decorated, *args, **kwargs)
    assert caught.value.__context__ is None
    return str(caught.value)


WRONG = {
    "relation": (struct(6, 4), CACHES),
    "relation, dtype": (struct(7, 4), CACHES),
    "rank": (struct(8), CACHES),
    "dtype": (struct(8, 4, dtype=jnp.int32), CACHES),
    "axis of a field": (QUERY, [CACHES[0], Cache(struct(4, 5))]),
    "dtype of a field": (QUERY, [CACHES[0], Cache(struct(4, 4, dtype=jnp.int8))]),
    "no array": (3.0, CACHES),
    "numpy": (np.zeros((8, 4), np.float32), CACHES),
    "no list": (QUERY, CACHES[0]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_call_refuses_is_refused_in_the_same_words(
    case: str, form: Callable[..., Any], decorated: Callable[..., Any]
) -> None:
    if case in ("numpy", "no array") and form in (FORMS["jax.eval_shape"], FORMS["export"]):
        pytest.skip("these make a traced array of it first")
    assert message(form, decorated, *WRONG[case]) == message(FORMS["call"], decorated, *WRONG[case])


@pytest.mark.parametrize("form", [form for name, form in FORMS.items() if name != "export"])
def test_static_arguments_take_part(form: Callable[..., Any]) -> None:
    decorated = contract(RELATION)(jax.jit(attend, static_argnames=STATIC))
    with pytest.raises(ContractError, match="argument 'mode' is refused"):
        form(decorated, QUERY, CACHES, mode="quick")


@pytest.mark.parametrize("form", [form for name, form in FORMS.items() if name != "export"])
def test_a_static_argument_may_be_a_shape_itself(form: Callable[..., Any]) -> None:
    form(contract(RELATION)(jax.jit(attend, static_argnames=STATIC)), QUERY, CACHES, out=struct(3))


@pytest.mark.parametrize("form", [form for name, form in FORMS.items() if name != "export"])
def test_the_result_is_checked(form: Callable[..., Any]) -> None:
    decorated = contract(RELATION)(jax.jit(attend, static_argnames=STATIC))
    with pytest.raises(TypeCheckError, match="the return value is refused"):
        form(decorated, QUERY, CACHES, cut=1)


@pytest.mark.parametrize("method", ["lower", "trace", "eval_shape"])
def test_the_traceback_ends_in_the_code_that_calls(method: str) -> None:
    decorated = contract("n % 2 == 0")(jax.jit(doubled))
    for wrong in (struct(3), struct(4, dtype=jnp.int32)):
        with pytest.raises(ContractError) as caught:
            getattr(decorated, method)(wrong)
        assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


def doubled(x: Float[Array, " n"]) -> Float[Array, " n"]:
    return x * 2


def test_what_python_says_of_wrong_arguments_is_said() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        contract("n % 2 == 0")(jax.jit(doubled)).lower()


def test_an_error_of_the_body_passes() -> None:
    @jax.jit
    def function(x: Float[Array, " n"]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        contract()(function).lower(struct(3))


def test_axes_are_in_scope_in_the_body() -> None:
    @jax.jit
    def function(x: Float[Array, " n"]) -> Array:
        assert isinstance(x[:3], Float[Array, " n"])
        return x

    contract()(function).lower(struct(3))
    with pytest.raises(AssertionError):
        contract()(function).lower(struct(4))


def test_a_symbolic_size_is_accepted() -> None:
    (size,) = export.symbolic_shape("2*n")
    decorated = contract("n % 2 == 0")(jax.jit(doubled))
    assert export.export(decorated)(struct(size)).in_avals[0].shape == (size,)
    decorated.lower(struct(size))


def test_a_sharding_takes_part_in_nothing() -> None:
    placed = NamedSharding(jax.make_mesh((2,), ("x",)), P("x"))
    decorated = contract("n % 4 == 0")(jax.jit(doubled))
    decorated.lower(jax.ShapeDtypeStruct((8,), jnp.float32, sharding=placed)).compile()
    with pytest.raises(ContractError, match="n = 6"):
        decorated.lower(jax.ShapeDtypeStruct((6,), jnp.float32, sharding=placed))


def test_what_jax_knows_of_an_array_may_be_given_as_well() -> None:
    decorated = contract("n % 2 == 0")(jax.jit(doubled))
    decorated.lower(jax.typeof(jnp.ones(4)))
    with pytest.raises(ContractError, match="argument 'x' is refused"):
        decorated.lower(jax.typeof(jnp.ones(4, jnp.int32)))


def test_a_compiled_program_runs() -> None:
    compiled = contract("n % 2 == 0")(jax.jit(doubled)).lower(struct(4)).compile()
    assert compiled(jnp.ones(4)).tolist() == [2.0] * 4


def test_nothing_is_checked_while_jaxtyping_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxtyping import config

    monkeypatch.setattr(config, "jaxtyping_disable", True)
    contract("n % 2 == 0")(jax.jit(doubled)).lower(struct(3, dtype=jnp.int32))
