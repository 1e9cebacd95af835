from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from jax import export
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Float, Int, Shaped, TypeCheckError, config, jaxtyped

from shapecheck import ContractError, RelationError, checked, contract, observe, relation
from shapecheck.arguments import Parameter
from shapecheck.chip import chip_of
from shapecheck.contracts import PAGED_ATTENTION


@contract("heads % kv_heads == 0", "kv_heads >= block")
def attend(
    q: Float[Array, "batch heads dim"], k: Float[Array, "kv_heads dim"] | None = None, *, block: int = 1
) -> Float[Array, "batch heads dim"]:
    """Attend."""
    return q * block


def query(heads: int) -> jax.Array:
    return jnp.ones((2, heads, 8))


KEYS = jnp.ones((4, 8))


def test_a_legal_call_returns_what_the_function_does() -> None:
    np.testing.assert_array_equal(attend(query(8), KEYS, block=3), 3 * query(8))


def test_every_relation_that_fails_is_reported_at_once() -> None:
    with pytest.raises(ContractError) as caught:
        attend(query(6), KEYS, block=5)
    assert [violation.rule.name for violation in caught.value.violations] == ["heads % kv_heads == 0", "kv_heads >= block"]


def test_defaults_take_part() -> None:
    with pytest.raises(ContractError, match="kv_heads >= block"):
        attend(query(6), jnp.ones((0, 8)))


def test_a_relation_is_told_by_its_name_and_in_its_words() -> None:
    @contract(relation("heads % block == 0", name="whole-blocks", message="pad the heads"))
    def blocked(q: Float[Array, "batch heads dim"], block: int) -> None: ...

    blocked(query(6), 3)
    with pytest.raises(ContractError) as caught:
        blocked(query(6), 4)
    assert str(caught.value) == (
        "blocked: 1 relation does not hold\n"
        "  SC001 whole-blocks: heads % block == 0\n"
        "        heads = 6   (q.shape[1])\n"
        "        block = 4\n"
        "        pad the heads"
    )


def test_a_relation_for_a_chip_is_judged_on_that_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    @contract(relation("heads % 8 == 0", when="v5e"))
    def function(q: Float[Array, "batch heads dim"]) -> None: ...

    function(query(6))
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5p"))
    function(query(6))
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5e"))
    with pytest.raises(ContractError, match="heads % 8 == 0"):
        function(query(6))


@contract("heads % block == 0", "window is None or heads // window < 8")
def divided(q: Float[Array, "batch heads dim"], block: int | None = 1, window: int | None = None) -> None: ...


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"block": 0}, ["SC001 heads % block == 0", "heads = 6   (q.shape[1])", "block = 0", "it divides by 0"]),
        ({"window": 0}, ["SC001 window is None or heads // window < 8", "heads = 6", "window = 0", "it divides by 0"]),
        ({"block": None}, ["SC001 heads % block == 0", "block = None", "it cannot be evaluated: unsupported operand type"]),
    ],
)
def test_a_relation_that_has_no_value_does_not_hold(arguments: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ContractError, match="1 relation does not hold") as caught:
        divided(query(6), **arguments)
    for word in words:
        assert word in str(caught.value)


def test_where_another_relation_tells_why_a_division_by_0_is_not_mentioned() -> None:
    @contract("heads % block == 0", "block >= 1")
    def guarded(q: Float[Array, "batch heads dim"], block: int) -> None: ...

    with pytest.raises(ContractError) as caught:
        guarded(query(6), 0)
    assert [violation.rule.name for violation in caught.value.violations] == ["block >= 1"]


def test_where_an_annotation_tells_why_a_relation_has_no_value_it_has_its_say() -> None:
    with pytest.raises(ContractError, match="argument 'block' is refused"):
        divided(query(6), block=(1,))  # type: ignore[arg-type]


def test_a_relation_over_what_is_traced_is_taken_to_hold() -> None:
    @contract("heads % block == 0")
    def traced(q: Float[Array, "batch heads dim"], block: Any) -> Array:
        return q

    jax.jit(traced)(query(6), 0)


def test_a_relation_over_an_array_that_is_none_holds() -> None:
    attend(query(6), None)


def judged(q: Array) -> Array:
    return attend(q, KEYS)


@pytest.mark.parametrize(
    "apply",
    [
        jax.jit(judged),
        lambda q: jax.vmap(judged)(q[None]),
        functools.partial(jax.eval_shape, judged),
        jax.grad(lambda q: judged(q).sum()),
        lambda q: jax.lax.scan(lambda carry, each: (carry, judged(each)), 0, q[None]),
        jax.value_and_grad(lambda q: judged(q).sum()),
        lambda q: jax.jvp(judged, (q,), (q,)),
        jax.grad(lambda q: jax.checkpoint(judged)(q).sum()),
        lambda q: jax.lax.map(judged, q[None]),
        lambda q: jax.lax.cond(True, judged, lambda q: q, q),
        lambda q: jax.jit(judged).lower(q).compile(),
        lambda q: jax.jit(judged).trace(q),
        lambda q: jax.jit(judged).eval_shape(q),
        lambda q: jax.make_jaxpr(judged)(q),
        lambda q: jax.linearize(judged, q),
        lambda q: jax.hessian(lambda q: judged(q).sum())(q),
        lambda q: jax.vmap(jax.grad(lambda q: judged(q).sum()))(q[None]),
        lambda q: jax.jit(jax.value_and_grad(jax.checkpoint(lambda q: judged(q).sum())))(q),
        export.export(jax.jit(judged)),
    ],
    ids=[
        *("jit", "vmap", "eval_shape", "grad", "scan", "value_and_grad", "jvp", "remat", "map", "cond"),
        *("lower", "trace", "jit_eval_shape", "make_jaxpr", "linearize", "hessian", "vmap_of_grad", "jit_of_remat", "export"),
    ],
)
def test_traced_arrays_are_judged(apply: Callable[[Array], Any]) -> None:
    apply(query(8))
    with pytest.raises(ContractError, match="heads = 6"):
        apply(query(6))


def sharded(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    mesh = jax.make_mesh((1,), ("tp",), axis_types=(AxisType.Auto,))
    specs = PartitionSpec(None, "tp")
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=specs, **options)


@pytest.mark.parametrize("check_vma", [True, False])
def test_inside_shard_map_the_error_says_that_sizes_are_of_one_shard(check_vma: bool) -> None:
    with pytest.raises(ContractError, match="inside shard_map over 'tp': the sizes are those of one shard"):
        sharded(lambda q: attend(q, KEYS), check_vma=check_vma)(query(6))


@pytest.mark.parametrize("check_vma", [True, False])
def test_inside_shard_map_each_size_is_told_of_the_whole_too(check_vma: bool) -> None:
    """28 heads over 4 devices, 7 on each."""
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = PartitionSpec(None, "model")
    function = jax.shard_map(lambda q: attend(q, KEYS), mesh=mesh, in_specs=specs, out_specs=specs, check_vma=check_vma)
    for apply in (function, jax.jit(function), functools.partial(jax.eval_shape, function)):
        with pytest.raises(ContractError) as caught:
            apply(query(28))
        assert "inside shard_map over 'data', 'model': the sizes are those of one shard" in str(caught.value)
        assert (
            "heads = 7   (q.shape[1] of one shard; 14 if split over mesh axis 'data' of size 2;"
            " 28 if split over mesh axis 'model' of size 4)"
        ) in str(caught.value)
    function(query(32))


def test_inside_shard_map_over_some_axes_only_these_count() -> None:
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = PartitionSpec(None, "model")
    function = jax.shard_map(lambda q: attend(q, KEYS), mesh=mesh, in_specs=specs, out_specs=specs, axis_names={"model"})
    with pytest.raises(ContractError) as caught:
        jax.jit(function)(query(28))
    assert "heads = 7   (q.shape[1] of one shard; 28 if split over mesh axis 'model' of size 4)" in str(caught.value)


def test_inside_shard_map_a_refused_argument_says_so_too() -> None:
    with pytest.raises(ContractError, match="inside shard_map over 'tp'"):
        sharded(lambda q: attend(q[0]))(query(8))


def test_a_program_of_one_process_of_several() -> None:
    """Each has some of the devices and some of the data, of which JAX makes a global array; the contract sees all of it."""
    mesh = jax.make_mesh((8,), ("tp",), axis_types=(AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, PartitionSpec(None, "tp"))

    def globally(heads: int) -> jax.Array:
        return jax.make_array_from_process_local_data(sharding, np.ones((2, heads, 8), np.float32), (2, heads, 8))

    assert jax.jit(judged)(globally(8)).sharding.spec == sharding.spec
    assert judged(globally(16)).shape == (2, 16, 8)
    kv_heads = jnp.ones((3, 8))
    for apply in (attend, jax.jit(attend)):
        with pytest.raises(ContractError, match=r"heads = 16   \(q.shape\[1\]\)"):
            apply(globally(16), kv_heads)


def test_symbolic_sizes_are_accepted() -> None:
    (heads,) = export.symbolic_shape("h")
    exported = export.export(jax.jit(lambda q: attend(q, KEYS)))(jax.ShapeDtypeStruct((2, heads, 8), jnp.float32))
    assert exported.out_avals[0].shape == (2, heads, 8)


@contract("heads % 2 == 0")
def anything(q: Float[Any, "batch heads"]) -> None: ...


@pytest.mark.parametrize("make", [jnp.zeros, np.zeros, jax.ShapeDtypeStruct])
def test_arrays_of_any_kind_are_judged_where_the_annotation_takes_them(make: Callable[..., Any]) -> None:
    anything(make((3, 4), jnp.float32))
    with pytest.raises(ContractError, match="heads = 3"):
        anything(make((4, 3), jnp.float32))


class Quantized(NamedTuple):
    weight: Array
    scales: Array


@contract("pages_scales_dtype is None or pages_scales_shape == (pages_heads, 1)")
def quantized(pages: Float[Array, "heads dim"] | Quantized) -> None: ...


def test_a_quantized_array_is_judged_by_its_weight_and_scales() -> None:
    weight = jnp.zeros((4, 8), jnp.int8)
    quantized(Quantized(weight, jnp.ones((4, 1))))
    with pytest.raises(ContractError, match=r"pages_scales_shape = \(4, 8\)   \(pages\.scales\.shape\)"):
        quantized(Quantized(weight, jnp.ones((4, 8))))


@pytest.mark.parametrize("block", [np.int64(3), jnp.int32(3)])
def test_a_parameter_given_as_a_scalar_array_counts_as_its_value(block: Any) -> None:
    @contract("heads % block == 0", "block_type == 'int'")
    def function(q: Float[Array, " heads"], block): ...

    function(jnp.ones(6), block)
    with pytest.raises(ContractError, match="block = 3"):
        function(jnp.ones(4), block)


def test_a_traced_parameter_is_taken_to_be_legal() -> None:
    @contract("heads % block == 0")
    def function(q: Float[Array, " heads"], block): ...

    jax.jit(function)(jnp.ones(4), 3)


# --- annotations


def test_a_string_annotation_is_enforced() -> None:
    with pytest.raises(ContractError, match="argument 'q' is refused"):
        attend(jnp.ones((2, 8)))


def test_the_annotation_of_the_result_is_jaxtypings_to_enforce() -> None:
    @contract()
    def function(x: Float[Array, " n"]) -> Float[Array, "n 2"]:
        return x

    with pytest.raises(TypeCheckError, match="return value") as caught:
        function(jnp.ones(2))
    assert not isinstance(caught.value, ContractError)


def test_axes_are_in_scope_in_the_body() -> None:
    @contract()
    def function(x: Float[Array, " n"]) -> bool:
        return isinstance(jnp.ones(3), Float[Array, " n"])

    assert (function(jnp.ones(3)), function(jnp.ones(2))) == (True, False)


def test_a_float_may_be_given_as_an_int() -> None:
    @contract()
    def function(cap: float | None) -> None: ...

    function(50)


# --- errors that are not the contract's


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"blokc": 1}), ((1,), {"q": 1})])
@pytest.mark.parametrize("wrap", [lambda function: function, jax.jit, functools.partial, jaxtyped(typechecker=beartype)])
def test_a_call_with_the_wrong_arguments_fails_in_pythons_words(wrap: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def function(q, k=None, *, block=1):
        pytest.fail("the body ran")

    with pytest.raises(TypeError) as expected:
        function(*args, **kwargs)
    with pytest.raises(TypeError) as caught:
        contract()(wrap(function))(*args, **kwargs)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("error", [ValueError("mine"), TypeCheckError("mine"), ContractError("mine", "other")])
def test_an_error_of_the_body_passes_unchanged(error: Exception) -> None:
    @contract("n >= 1")
    def function(x: Float[Array, " n"]) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        function(jnp.ones(2))
    assert caught.value is error


def frames_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]


def users_code(*args: Any, **kwargs: Any) -> Any:
    return attend(*args, **kwargs)


@pytest.mark.parametrize(
    "arguments", [(query(6), KEYS), (query(6)[0], KEYS), (), (1, 2, 3)], ids=["relation", "type", "few", "many"]
)
def test_the_traceback_of_a_refused_call_ends_in_the_code_that_makes_it(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((ContractError, TypeError)) as caught:
        users_code(*arguments)
    assert frames_of(caught.value) == ["users_code"]
    assert caught.value.__context__ is None


def test_the_traceback_of_a_refused_result_ends_in_the_code_that_calls() -> None:
    @contract()
    def function(x: Float[Array, " n"]) -> Float[Array, "n 2"]:
        return x

    with pytest.raises(TypeCheckError) as caught:
        function(jnp.ones(2))
    assert frames_of(caught.value) == []


def test_the_traceback_of_an_error_of_the_body_has_the_body_and_nothing_in_between() -> None:
    @contract()
    def body(x: Float[Array, " n"]) -> Float[Array, " n"]:
        raise ValueError("mine")

    for _ in range(2):
        with pytest.raises(ValueError, match="mine") as caught:
            body(jnp.ones(2))
        assert frames_of(caught.value) == ["body"]


def test_under_jit_the_traceback_ends_in_the_traced_code() -> None:
    with pytest.raises(ContractError) as caught:
        jax.jit(users_code)(query(6), KEYS)
    assert frames_of(caught.value)[-1] == "users_code"


# --- what can be decorated


def test_the_wrapper_looks_like_the_function() -> None:
    assert (attend.__name__, attend.__doc__, attend.__module__) == ("attend", "Attend.", __name__)
    assert list(inspect.signature(attend).parameters) == ["q", "k", "block"]


def test_the_wrapper_carries_its_contract() -> None:
    assert [rule.name for rule in attend.__contract__.rules] == ["heads % kv_heads == 0", "kv_heads >= block"]


def even(q: Float[Array, " heads"], scale: float = 1.0) -> Float[Array, " heads"]:
    """Scale."""
    return q * scale


class Layer:
    def __call__(self, q: Float[Array, " heads"]) -> Float[Array, " heads"]:
        return q


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (jax.jit(even, static_argnames="scale"), "even"),
        (functools.partial(even, scale=2.0), "even"),
        (functools.partial(jax.jit(even), scale=2.0), "even"),
        (jaxtyped(even, typechecker=beartype), "even"),
        (Layer(), "Layer"),
    ],
    ids=["jit", "partial", "partial of jit", "jaxtyped", "object"],
)
def test_whatever_can_be_called_can_be_decorated(function: Callable[..., Any], name: str) -> None:
    decorated = contract("heads % 2 == 0")(function)
    assert decorated.__name__ == name
    assert decorated(jnp.ones(4)).shape == (4,)
    with pytest.raises(ContractError, match=f"^{name}: 1 relation does not hold"):
        decorated(jnp.ones(3))
    with pytest.raises(ContractError, match=f"^{name}: argument 'q' is refused"):
        decorated([1.0, 2.0])


def test_a_partial_lends_its_functions_docstring() -> None:
    assert contract()(functools.partial(even)).__doc__ == "Scale."


def test_a_lambda_can_be_decorated() -> None:
    assert contract()(lambda x: x + 1)(1) == 2


def test_arguments_of_a_decorated_function_can_be_static_under_jit() -> None:
    jitted = jax.jit(attend, static_argnames="block")
    assert jitted(query(8), KEYS, block=4).shape == (2, 8, 8)
    with pytest.raises(ContractError, match="block = 5"):
        jitted(query(8), KEYS, block=5)


def test_nothing_else_of_a_jit_object_passes_for_the_wrappers() -> None:
    assert set(vars(contract()(jax.jit(even)))) == {"__wrapped__", "__contract__", "lower", "trace", "eval_shape"}


def test_attributes_of_a_function_are_kept() -> None:
    def function(): ...

    function.version = 3
    assert contract()(function).version == 3


def test_jit_of_a_decorated_function_can_be_lowered_only_where_it_is_legal() -> None:
    decorated = jax.jit(contract("heads % 2 == 0")(even))
    decorated.lower(jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(ContractError, match="heads = 3"):
        decorated.lower(jax.ShapeDtypeStruct((3,), jnp.float32))


def test_methods_of_each_kind_can_be_decorated() -> None:
    class Model:
        @contract("heads % 2 == 0")
        def method(self, q: Float[Array, " heads"]) -> str:
            return type(self).__name__

        @classmethod
        @contract("heads % 2 == 0")
        def for_class(cls, q: Float[Array, " heads"]) -> str:
            return cls.__name__

        @staticmethod
        @contract("heads % 2 == 0")
        def static(q: Float[Array, " heads"]) -> str:
            return "Model"

    for method in (Model().method, Model.for_class, Model.static):
        assert method(jnp.ones(4)) == "Model"
        with pytest.raises(ContractError, match="heads = 3"):
            method(jnp.ones(3))


def test_args_and_kwargs_are_enforced_and_define_no_names() -> None:
    @contract()
    def function(*arrays: Float[Array, " n"], **options: int) -> None: ...

    function(jnp.ones(2), jnp.ones(2), a=1)
    with pytest.raises(ContractError, match="argument 'arrays' is refused"):
        function(jnp.ones(2), jnp.ones(3))
    with pytest.raises(ContractError, match=r"argument 'options' is refused\n  expected int\n  got 'x' \(str\)"):
        function(a=1, b="x")


@pytest.mark.parametrize("decorated", [classmethod(even), staticmethod(even), Layer, 3])
def test_what_is_no_function_is_refused(decorated: Any) -> None:
    with pytest.raises(TypeError, match="@contract decorates a function") as refusal:
        contract()(decorated)
    assert ("below @classmethod" in str(refusal.value)) == isinstance(decorated, classmethod)


def test_a_forgotten_call_is_refused() -> None:
    with pytest.raises(TypeError, match="takes relations, rules and contracts"):
        contract(even)  # type: ignore[arg-type]


# --- decoration


@pytest.mark.parametrize("relation", ["head % 2 == 0", "heads %% 2", "heads / 2 == 1"])
def test_a_wrong_relation_fails_at_decoration(relation: str) -> None:
    with pytest.raises(RelationError):
        contract(relation)(even)


def test_an_unknown_name_tells_of_annotations_that_could_not_be_read() -> None:
    def function(q: Missing): ...  # noqa: F821

    with pytest.raises(RelationError) as caught:
        contract("heads % 2 == 0")(function)
    assert caught.value.__notes__ == ["annotations that name what is not defined there say nothing: Missing"]


def kernel(
    q: Float[Array, "batch_size num_q_heads head_dim"],
    k_pages: Float[Array, "num_kv_heads total_num_pages page_size head_dim"],
    v_pages: Float[Array, "num_kv_heads total_num_pages page_size head_dim"],
    lengths: Int[Array, " batch_size"],
    page_indices: Int[Array, "batch_size pages_per_sequence"],
    *,
    mask_value: float = -0.7 * float(np.finfo(np.float32).max),
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Float[Array, "batch_size num_q_heads head_dim"]:
    return q


def kernel_arguments(pages: int = 8, q_heads: int = 8) -> list[jax.Array]:
    cache = jnp.zeros((2, 16, 4, 128))
    return [jnp.zeros((2, q_heads, 128)), cache, cache, jnp.zeros(2, jnp.int32), jnp.zeros((2, pages), jnp.int32)]


def test_a_ready_contract_is_enforced() -> None:
    decorated = contract(PAGED_ATTENTION)(kernel)
    decorated(*kernel_arguments(), pages_per_compute_block=4)
    with pytest.raises(ContractError) as caught:
        decorated(*kernel_arguments(pages=6, q_heads=7), pages_per_compute_block=4)
    assert [violation.rule.code for violation in caught.value.violations] == ["SC101", "SC102"]
    assert caught.value.callee == "paged_attention"


def test_a_ready_contract_and_a_relation_are_enforced_together() -> None:
    decorated = contract(PAGED_ATTENTION, "batch_size >= 4")(kernel)
    with pytest.raises(ContractError) as caught:
        decorated(*kernel_arguments(pages=6), pages_per_compute_block=4)
    assert [violation.rule.code for violation in caught.value.violations] == ["SC102", "SC001"]


def test_a_signature_that_disagrees_with_its_contract_fails_at_decoration() -> None:
    def disagreeing(q: Float[Array, "batch_size head_dim num_q_heads"]) -> None: ...

    with pytest.raises(TypeError, match="'q' has the axes 'batch_size head_dim num_q_heads'"):
        contract(PAGED_ATTENTION)(disagreeing)


# --- jaxtyping's switches


def test_nothing_is_checked_while_jaxtyping_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    assert attend(query(6), KEYS).shape == (2, 6, 8)
    assert contract("heads % 2 == 0")(jax.jit(even)).eval_shape(jnp.ones(3)).shape == (3,)


def test_jaxtyping_is_asked_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(config, "jaxtyping_disable", True)
        attend(query(6), KEYS)
    with pytest.raises(ContractError):
        attend(query(6), KEYS)


def test_a_module_under_jaxtypings_import_hook_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooked_module.py").write_text(
        "from jaxtyping import Array, Float\n"
        "from shapecheck import contract\n"
        "@contract('heads % 2 == 0')\n"
        "def even(q: Float[Array, 'heads']) -> Float[Array, 'heads']:\n"
        "    return q\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with jaxtyping.install_import_hook("hooked_module", "beartype.beartype"):
        hooked = importlib.import_module("hooked_module")
    monkeypatch.delitem(sys.modules, "hooked_module")
    assert hooked.even(jnp.ones(4)).shape == (4,)
    with pytest.raises(ContractError, match="heads = 3"):
        hooked.even(jnp.ones(3))
    with pytest.raises(ContractError, match="argument 'q' is refused"):
        hooked.even(3)


# --- arrays in containers and records


class Pages(NamedTuple):
    k_pages: Float[Any, "kv_heads total_pages page_size head_dim"]
    v_pages: Float[Any, "kv_heads total_pages page_size head_dim"]
    used: int = 0


@dataclasses.dataclass(frozen=True)
class Blocks:
    rows: int = 8
    columns: int | None = None


def pages(kv_heads: int = 2, head_dim: int = 4, *, v_dim: int | None = None, dtype: Any = np.float32) -> Pages:
    return Pages(np.zeros((kv_heads, 3, 2, head_dim), dtype), np.zeros((kv_heads, 3, 2, v_dim or head_dim), dtype))


Layers = list[Float[Any, "heads dim"]]


@contract("heads % 2 == 0", "layers_dtype != 'float16'", "itemsize(layers) <= itemsize(x)")
def layered(x: Float[Any, "batch dim"], layers: Layers | None) -> None: ...


def test_every_element_of_a_list_is_judged() -> None:
    layers = [np.zeros((2, 4), np.float32)] * 20
    layered(np.zeros((1, 4), np.float32), layers)
    layered(np.zeros((1, 4), np.float32), None)
    layered(np.zeros((1, 4), np.float32), [])
    layers[17] = layers[19] = np.zeros((2, 4), np.float16)
    with pytest.raises(ContractError) as caught:
        layered(np.zeros((1, 4), np.float32), layers)
    assert str(caught.value) == (
        "layered: 1 relation does not hold\n"
        "  SC001 layers_dtype != 'float16'\n"
        "        layers_dtype = 'float16'   (layers[17].dtype)\n"
        "        and so in 1 more"
    )
    layers[3] = np.zeros((3, 4), np.float16)
    with pytest.raises(ContractError) as caught:
        layered(np.zeros((1, 4), np.float16), layers)
    assert [violation.others for violation in caught.value.violations] == [16, 0, 2]
    assert "heads = 3   (layers[3].shape[0])" in str(caught.value)


def test_the_names_of_axes_stand_for_one_size_in_all_elements() -> None:
    layers = [np.zeros((2, 4), np.float32)] * 20
    layers[17] = np.zeros((4, 4), np.float32)
    for _ in range(20):  # beartype alone looks at one element, which it draws
        with pytest.raises(ContractError) as caught:
            layered(np.zeros((1, 4), np.float32), layers)
    assert str(caught.value) == (
        "layered: argument 'layers[17]' is refused\n"
        "  expected Float[Any, 'heads dim']\n"
        "  got float32[4,4] (ndarray): the size of dimension heads is 4 which does not equal the existing value of 2"
    )


@pytest.mark.parametrize(
    ("hint", "legal"),
    [
        (list[Float[Any, " n"]] | list[int], [1, 2]),
        (Sequence[Float[Any, " n"]] | tuple[int, int], (1, 2)),
        (Sequence[Float[Any, " n"]] | bytes, b"ab"),
        (dict[str, Float[Any, " n"]] | dict[str, int], {"a": 1}),
        (list[Float[Any, " n"]] | Any, [1]),
    ],
)
def test_a_container_may_be_what_another_alternative_says(hint: Any, legal: Any) -> None:
    def function(layers): ...

    function.__annotations__ = {"layers": hint}
    contract()(function)(legal)


def test_what_is_no_list_of_arrays_is_refused() -> None:
    with pytest.raises(ContractError, match=r"'layers' is refused\n  expected list\[Float\[Any, 'heads dim'\]\] \| None"):
        layered(np.zeros((1, 4), np.float32), 3)  # type: ignore[arg-type]


def test_elements_under_the_same_key_belong_together() -> None:
    @contract("itemsize(k) == itemsize(v)")
    def function(k: dict[str, Shaped[Any, " n"]], v: Mapping[str, Shaped[Any, " n"]]) -> None: ...

    narrow, wide = np.zeros(2, np.int8), np.zeros(2, np.int32)
    function({"a": narrow, "b": wide}, {"b": wide, "a": narrow})
    function({"a": narrow}, {"b": wide})
    with pytest.raises(ContractError) as caught:
        function({"a": narrow, "b": wide}, {"b": narrow, "a": narrow})
    assert "k_bits = 32   (k['b'].dtype)" in str(caught.value)
    assert "v_bits = 8   (v['b'].dtype)" in str(caught.value)


@pytest.mark.parametrize("record", [Pages, dataclasses.make_dataclass("Made", typing.get_type_hints(Pages).items())])
def test_relations_may_speak_of_the_fields_of_a_record(record: Any) -> None:
    def function(q, cache): ...

    function.__annotations__ = {"q": Float[Any, "heads head_dim"], "cache": record}
    decorated = contract("heads % kv_heads == 0", "cache_v_pages_head_dim == head_dim", "cache_used <= total_pages")(function)
    decorated(np.zeros((4, 4)), record(*pages()[:2], 0))
    with pytest.raises(ContractError) as caught:
        decorated(np.zeros((3, 4)), record(*pages()[:2], 5))
    assert "kv_heads = 2   (cache.k_pages.shape[0])" in str(caught.value)
    assert "cache_used = 5   (cache.used)" in str(caught.value)
    with pytest.raises(ContractError, match=r"cache_v_pages_head_dim = 8   \(cache.v_pages.shape\[3\]\)"):
        decorated(np.zeros((4, 4)), record(*pages(v_dim=8)[:2], 0))


def test_a_field_that_its_annotation_refuses_is_named() -> None:
    @contract()
    def function(caches: tuple[Pages, ...]) -> None: ...

    function((pages(), pages()))
    with pytest.raises(ContractError, match=r"'caches\[1\].v_pages' is refused\n  expected Float.*\n  got float32\[2,3,2,8\]"):
        function((pages(), pages(v_dim=8)))


def test_the_fields_of_static_options_take_part() -> None:
    @contract("n % blocks_rows == 0", "blocks_columns is None or blocks_columns % 2 == 0", "blocks is not None")
    def function(x: Float[Any, " n"], blocks: Blocks = Blocks()) -> None: ...

    function(np.zeros(16))
    with pytest.raises(ContractError, match=r"blocks_rows = 5   \(blocks.rows\)"):
        function(np.zeros(16), Blocks(rows=5))
    with pytest.raises(ContractError, match=r"blocks_columns = 3   \(blocks.columns\)"):
        function(np.zeros(16), Blocks(columns=3))


def test_places_of_a_tuple_have_names_of_their_own() -> None:
    @contract("pair_0_n == pair_1_m + 1")
    def function(pair: tuple[Float[Any, " n"], Float[Any, " m"]]) -> None: ...

    function((np.zeros(2), np.zeros(1)))
    with pytest.raises(ContractError, match=r"pair_1_m = 2   \(pair\[1\].shape\[0\]\)"):
        function((np.zeros(2), np.zeros(2)))


def test_a_parameter_hides_a_part_of_its_name() -> None:
    @contract("cache_used == 1")
    def function(cache: Pages, cache_used: int) -> None: ...

    function(pages(), 1)
    with pytest.raises(ContractError):
        function(pages()._replace(used=1), 2)


def test_a_record_inside_itself_can_be_read() -> None:
    @contract("node_value_n >= 1")
    def function(node: Node) -> None: ...

    function(Node(np.zeros(2), Node(np.zeros(2), None)))
    with pytest.raises(ContractError, match=r"node.next.value"):
        function(Node(np.zeros(2), Node(np.zeros((2, 2)), None)))


@dataclasses.dataclass
class Node:
    value: Float[Any, " n"]
    next: Node | None


# --- functions of someone else's


def others(q: jax.Array, k_pages, v_pages, lengths: Any, page_indices: "missing", *, pages_per_compute_block: int):  # noqa: F821, UP037
    return q


JITTED = jax.jit(others, static_argnames="pages_per_compute_block")
OTHERS = replace(PAGED_ATTENTION, parameters=(Parameter("pages_per_compute_block"),), rules=PAGED_ATTENTION.rules[:2])


@pytest.mark.parametrize(
    "function",
    [others, JITTED, functools.partial(others), functools.partial(JITTED)],
    ids=["function", "jit", "partial", "partial of jit"],
)
def test_a_function_of_someone_elses_can_be_checked(function: Callable[..., Any]) -> None:
    wrapped = checked(function, OTHERS)
    arguments = [np.asarray(each) for each in kernel_arguments()]
    assert wrapped(*arguments, pages_per_compute_block=4).shape == (2, 8, 128)
    with pytest.raises(ContractError, match="SC102 block-not-dividing"):
        wrapped(*arguments, pages_per_compute_block=3)


def test_what_a_partial_holds_fast_takes_part() -> None:
    wrapped = checked(functools.partial(others, np.zeros((2, 7, 128)), pages_per_compute_block=4), OTHERS)
    with pytest.raises(ContractError, match="num_q_heads = 7"):
        wrapped(*kernel_arguments()[1:])


def test_of_its_annotations_those_of_jaxtyping_are_checked() -> None:
    def function(x: Float[Any, " n"], y: int) -> str: ...

    wrapped = checked(function, "n % 2 == 0")
    wrapped(np.zeros(2), "y")
    with pytest.raises(ContractError, match="n = 3"):
        wrapped(np.zeros(3), 1)
    with pytest.raises(ContractError, match="argument 'x' is refused"):
        wrapped(3, 1)


def test_checked_takes_what_contract_takes() -> None:
    with pytest.raises(TypeError, match="takes relations, rules and contracts"):
        checked(others, 3)  # type: ignore[arg-type]
