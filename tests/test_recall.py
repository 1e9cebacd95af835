"""Which calls are not checked again, and which are."""

from __future__ import annotations

import enum
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from beartype.vale import Is
from jax import export
from jaxtyping import Array, Float, Shaped, TypeCheckError, config, jaxtyped

from shapecheck import ContractError, RelationError, contract, guard, observe, recall, relation
from shapecheck.chip import chip_of


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is looked at in full: an entry for each such call."""
    seen: list[Any] = []

    def observed(*arguments: Any) -> Any:
        seen.append(arguments)
        return observe.observed(*arguments)

    monkeypatch.setattr(guard, "observed", observed)
    return seen


@contract("heads % block == 0", "q_dtype != 'int32'")
def attend(q: Float[Any, "batch heads"], block: Any = 1, scale: float = 1.0) -> Float[Any, "batch heads"]:
    return q


_POSITIVE = Is[lambda x: bool((x > 0).all())]


class Kind(enum.Enum):
    ONE = 1


@pytest.mark.parametrize("make", [jnp.ones, np.ones, lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32)])
def test_a_call_like_one_before_is_not_checked_again(examined: list[Any], make: Callable[..., Any]) -> None:
    for _ in range(3):
        attend(make((2, 6)), 3, scale=2.0)
    assert len(examined) <= 1  # another test may have made such a call


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((jnp.ones((2, 6)), 2), (jnp.ones((2, 7)), 2)),
        ((jnp.ones((2, 6)), 2), (jnp.ones((2, 6)), 4)),
        ((jnp.ones((2, 6)), 2), (jnp.ones((2, 6), jnp.int32), 2)),
        ((jnp.ones((2, 6)), 2), (jnp.ones((2, 6)), 2, "x")),
        ((jnp.ones((2, 6)), 2), (jnp.ones((6,)), 2)),
        ((jnp.ones((2, 6)), np.int64(2)), (jnp.ones((2, 6)), np.int64(4))),
        ((jnp.ones((2, 6)), jnp.int32(2)), (jnp.ones((2, 6)), jnp.int32(4))),
        ((jnp.ones((2, 6)), np.asarray(2)), (jnp.ones((2, 6)), np.asarray(4))),
        ((jnp.ones((2, 6)), 1), (jnp.ones((2, 6)), None)),
        ((jnp.ones((2, 6)),), (jnp.ones((2, 6)), 4)),
    ],
)
def test_a_call_that_differs_from_one_before_is_checked(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    attend(*first)
    with pytest.raises(ContractError):
        attend(*second)


def test_a_call_that_was_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(ContractError):
            attend(jnp.ones((2, 7)), 2)


@pytest.mark.parametrize(
    ("hint", "legal", "illegal"),
    [
        (tuple[int, int], (1, 2), (True, 2.0)),
        (tuple[int, tuple[int, int]], (1, (1, 2)), (1, (1.0, 2))),
        (tuple[bool, int], (True, 2), (1, 2)),
        (Literal["x"], np.str_("x"), np.str_("y")),
        (Annotated[int, Is[lambda x: x > 0]], 1, -1),
        (NewType("Positive", Annotated[Shaped[np.ndarray, " n"], _POSITIVE]), np.ones(2), -np.ones(2)),  # pyright: ignore
        (TypeVar("Positives", bound=Annotated[Shaped[np.ndarray, " n"], _POSITIVE]), np.ones(2), -np.ones(2)),  # pyright: ignore
    ],
)
def test_a_value_equal_to_one_that_was_accepted_or_of_its_type_may_be_refused(hint: Any, legal: Any, illegal: Any) -> None:
    function = contract()(_of(hint))
    function(legal)
    with pytest.raises(ContractError, match="refused"):
        function(illegal)


def test_a_tuple_that_is_the_default_is_found_at_once(examined: list[Any]) -> None:
    @contract("blocks == (1, 2)")
    def function(x: Float[Array, " n"], blocks: tuple[int, int] = (1, 2)) -> None: ...

    memory = recall.Recall(inspect.signature(function), function.__contract__)  # type: ignore[attr-defined]
    assert list(memory.quick_keys((jnp.ones(2),), {}))
    assert not list(memory.quick_keys((jnp.ones(2), (1, 3)), {}))
    for _ in range(2):
        function(jnp.ones(2))
    assert len(examined) == 1
    with pytest.raises(ContractError):
        function(jnp.ones(2), (1, 3))


def test_sizes_that_are_no_integers_are_not_taken_for_them() -> None:
    @contract("n % 2 == 0")
    def function(x: Float[Any, " n"]) -> None: ...

    function(jax.ShapeDtypeStruct((3.0,), jnp.float32))  # what this means is for others to say
    with pytest.raises(ContractError):
        function(jax.ShapeDtypeStruct((3,), jnp.float32))


def test_an_array_whose_dtype_cannot_be_hashed_is_looked_at_each_time() -> None:
    class Lists:
        name = "float32"
        __hash__ = None  # type: ignore[assignment]

    class Duck:
        shape = (4,)
        dtype = Lists()

    function = contract("n % 2 == 0")(_of(Shaped[Any, " n"]))
    assert function(Duck()) is function(Duck()) is None


def test_the_same_keywords_in_another_order_are_the_same_call() -> None:
    attend(q=jnp.ones((2, 6)), block=3)
    attend(block=3, q=jnp.ones((2, 6)))
    with pytest.raises(ContractError):
        attend(block=6, q=jnp.ones((2, 3)))


def test_a_list_that_grows_is_looked_at_each_time() -> None:
    @contract("block in sizes")
    def function(x: Float[Array, " n"], block: int, sizes: Any) -> None: ...

    sizes = [1, 2]
    function(jnp.ones(3), 2, sizes)
    sizes.remove(2)
    with pytest.raises(ContractError):
        function(jnp.ones(3), 2, sizes)


def test_a_default_that_changes_is_looked_at_each_time() -> None:
    allowed = {1, 2}

    @contract("block in sizes")
    def function(x: Float[Array, " n"], block: int, sizes: Any = allowed) -> None: ...

    function(jnp.ones(3), 2)
    allowed.remove(2)
    with pytest.raises(ContractError):
        function(jnp.ones(3), 2)


def test_an_object_that_rules_speak_of_is_looked_at_each_time(examined: list[Any]) -> None:
    class Size:
        value = 2

        def __eq__(self, other: object) -> bool:
            return self.value == other

        __hash__ = None  # type: ignore[assignment]

    @contract("size == n")
    def function(x: Float[Array, " n"], size: Any) -> None: ...

    size = Size()
    function(jnp.ones(2), size)
    size.value = 3
    with pytest.raises(ContractError):
        function(jnp.ones(2), size)


def test_self_takes_no_part(examined: list[Any]) -> None:
    class Layer:
        @contract("n % 2 == 0")
        def call(self, x: Float[Array, " n"], kind: Kind = Kind.ONE) -> None: ...

    for _ in range(2):
        Layer().call(jnp.ones(2), Kind.ONE)
    assert len(examined) == 1


def test_what_a_validator_looks_at_is_looked_at_each_time() -> None:
    function = contract("n == 2")(_of(Annotated[Float[Array, " n"], Is[lambda x: bool((x > 0).all())]]))
    function(jnp.ones(2))
    with pytest.raises(ContractError, match="refused"):
        function(-jnp.ones(2))


def test_a_size_computed_from_an_argument_is_computed_each_time() -> None:
    class Sizes:
        n = 2

    @contract()
    def function(sizes: Any, x: Float[Array, " {sizes.n}"]) -> None: ...

    sizes = Sizes()
    function(sizes, jnp.ones(2))
    sizes.n = 3
    with pytest.raises(ContractError):
        function(sizes, jnp.ones(2))


def test_symbolic_sizes_are_not_taken_for_others(examined: list[Any]) -> None:
    for text in ("h", "2*h"):
        (heads,) = export.symbolic_shape(text)
        export.export(jax.jit(lambda q: attend(q, 2)))(jax.ShapeDtypeStruct((2, heads), jnp.float32))
    assert len(examined) == 2


def test_traced_arrays_of_known_sizes_are_remembered_too(examined: list[Any]) -> None:
    jax.jit(lambda q: [attend(q, 5), attend(q, 5)])(jnp.ones((2, 35)))
    assert len(examined) == 1


def test_what_was_legal_on_another_chip_is_judged_here(monkeypatch: pytest.MonkeyPatch, examined: list[Any]) -> None:
    @contract(relation("n % 8 == 0", when="v5e"))
    def function(x: Float[Array, " n"]) -> None: ...

    for _ in range(2):
        function(jnp.ones(6))
    assert len(examined) == 1
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of("v5e"))
    with pytest.raises(ContractError):
        function(jnp.ones(6))
    for _ in range(2):
        function(jnp.ones(8))
    assert len(examined) == 3


def test_what_was_legal_without_x64_is_judged_with_it() -> None:
    @contract("x_dtype == 'int32'")
    def function(x: Shaped[Any, " n"]) -> None: ...

    function(np.zeros(3, np.int64))
    with jax.enable_x64(True), pytest.raises(ContractError):
        function(np.zeros(3, np.int64))


def test_while_jaxtyping_is_disabled_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(config, "jaxtyping_disable", True)
        attend(jnp.ones((2, 9)), 2)
    with pytest.raises(ContractError):
        attend(jnp.ones((2, 9)), 2)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "REMEMBERED", 8)
    memory = recall.Recall(inspect.signature(attend), attend.__contract__)
    for size in range(100):
        memory.accept(recall.Acceptance(({}, {}, {})), (size,), (size, size))
        assert len(memory.accepted) <= 9


class AllEqual(type):
    """Of classes that are all equal."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 1


class One(metaclass=AllEqual): ...


class Other(metaclass=AllEqual): ...


@pytest.mark.parametrize(("hint", "legal", "illegal"), [(One, One(), Other()), (type[One], One, Other)])
def test_a_type_that_is_equal_to_another_is_looked_at_each_time(hint: Any, legal: Any, illegal: Any) -> None:
    function = contract()(_of(hint))
    function(legal)
    with pytest.raises(ContractError, match="refused"):
        function(illegal)


@pytest.mark.parametrize("poses", [False, True])
def test_what_an_array_of_jax_says_of_itself_is_not_believed_of_others(poses: bool) -> None:
    class Poser:
        aval = jax.typeof(jnp.ones(4))
        dtype = np.dtype(np.float32)

        def __init__(self, size: int) -> None:
            self.shape = (size,)

        if poses:
            __class__ = property(lambda self: jax.Array)  # type: ignore[assignment]

    function = contract("n % 2 == 0")(_of(Float[Array if poses else Any, " n"]))
    function(Poser(4))
    with pytest.raises(ContractError, match="n = 3"):
        function(Poser(3))


@pytest.mark.parametrize("mesh", [None, jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit])
def test_where_an_array_is_takes_no_part(mesh: Any) -> None:
    def placed(size: int) -> Array:
        if mesh is None:
            return jnp.ones(size)
        axes = jax.make_mesh((2,), ("x",), axis_types=(mesh,))
        return jax.device_put(jnp.ones(size), jax.sharding.NamedSharding(axes, jax.sharding.PartitionSpec("x")))

    function = contract("n % 4 == 0")(_of(Float[Array, " n"]))
    for _ in range(2):
        function(placed(8))
        with pytest.raises(ContractError, match="n = 6"):
            function(placed(6))


@pytest.mark.parametrize("make", [jnp.ones, np.ones, lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32)])
def test_each_kind_of_array_is_found_by_a_quick_key(make: Callable[..., Any]) -> None:
    memory = recall.Recall(inspect.signature(attend), attend.__contract__)  # type: ignore[attr-defined]
    call = ((make((2, 6)), 3), {"scale": 2.0})
    assert memory.found(*call)[1] is None
    for key in memory.quick_keys(*call):
        memory.accept(recall.Acceptance(({}, {}, {})), key)
    assert memory.found(*call)[1] is not None


def test_an_object_that_is_hashed_by_its_identity_is_looked_at_each_time() -> None:
    @dataclass(eq=False)
    class Blocks:
        rows: int

    function = contract("cache_rows == 2")(_of(Blocks))
    blocks = Blocks(2)
    function(blocks)
    blocks.rows = 3
    with pytest.raises(ContractError):
        function(blocks)


# ---- results


def test_a_result_is_checked_also_where_the_call_is_not() -> None:
    results = [jnp.ones(2), jnp.ones(2), jnp.ones(3)]

    @contract()
    def function(x: Float[Array, " n"]) -> Float[Array, " n"]:
        return results.pop(0)

    function(jnp.ones(2))
    function(jnp.ones(2))
    with pytest.raises(TypeCheckError, match="the return value is refused"):
        function(jnp.ones(2))


def test_a_result_that_depends_on_what_the_body_binds_is_checked_each_time() -> None:
    bound = [3, 3, 4]

    @contract()
    def function(x: Float[Array, " n"]) -> Float[Array, " m"]:
        assert isinstance(jnp.ones(bound.pop(0)), Float[Array, " m"])
        return jnp.ones(3)

    function(jnp.ones(2))
    function(jnp.ones(2))
    with pytest.raises(TypeCheckError):
        function(jnp.ones(2))


# ---- jaxtyping's scopes


def test_axes_have_their_sizes_in_the_body_also_where_the_call_is_not_checked() -> None:
    @contract()
    def function(x: Float[Array, " n"]) -> tuple[bool, bool]:
        return isinstance(jnp.ones(3), Float[Array, " n"]), isinstance(jnp.ones(2), Float[Array, " n"])

    for _ in range(3):
        assert function(jnp.ones(3)) == (True, False)


def test_what_the_body_binds_is_gone_in_the_next_call() -> None:
    @contract()
    def function(x: Float[Array, " n"], size: int) -> bool:
        return isinstance(jnp.ones(size), Float[Array, " m"])

    assert [function(jnp.ones(3), size) for size in (1, 2, 1)] == [True, True, True]


def test_arguments_are_in_scope_in_the_body() -> None:
    @contract()
    def function(x: Float[Array, " n"], size: int, *, more: int = 1) -> bool:
        return isinstance(jnp.ones(5), Float[Array, " {size}+{more}"])

    for _ in range(2):
        assert function(jnp.ones(3), 4)
        assert not function(jnp.ones(3), 3)
        assert function(jnp.ones(3), 3, more=2)


def test_a_scope_around_the_call_has_no_say_in_it_and_keeps_its_own() -> None:
    @jaxtyped(typechecker=beartype)
    def outer(y: Float[Array, " batch"], q: Any) -> bool:
        attend(q)
        return isinstance(q, Float[Array, "batch heads"])

    assert outer(jnp.ones(2), jnp.ones((2, 6)))
    assert not outer(jnp.ones(3), jnp.ones((2, 6)))  # the call itself is legal, what `outer` asks for is not so
    assert outer(jnp.ones(2), jnp.ones((2, 6)))


# ---- threads


def test_threads_that_make_legal_and_illegal_calls_each_get_their_own_verdict() -> None:
    @contract("n % block == 0")
    def function(x: Float[Any, " n"], block: int) -> Float[Any, " n"]:
        return x

    wrong: list[Any] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            n, block = (int(each) for each in random.integers(1, 9, 2))
            try:
                function(np.ones(n), block)
                legal = True
            except ContractError:
                legal = False
            if legal != (n % block == 0):
                wrong.append((n, block))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


class Raided(dict[Any, Any]):
    """A dict that another thread empties after each thing that is done to it, which is the worst that one may do."""

    def __getitem__(self, key: Any) -> Any:
        return self.pop(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.pop(key, default)

    def __contains__(self, key: object) -> bool:
        return self.pop(key, None) is not None

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def update(self, *others: Any, **named: Any) -> None: ...


class Stocked(Raided):
    """One that another thread has put in again what was there, before the next thing is done to it."""

    def __getitem__(self, key: Any) -> Any:
        return dict.__getitem__(self, key)

    def update(self, *others: Any, **named: Any) -> None:
        dict.update(self, *others, **named)


@pytest.mark.parametrize("memory", [Raided, Stocked])
def test_what_another_thread_does_between_any_two_steps_changes_no_verdict(
    memory: type[Raided], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rests on no lock of the interpreter: each step is one operation of a dict, and the next one expects nothing of it."""

    class Shared(recall.Recall):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.accepted = memory()

    monkeypatch.setattr(guard, "Recall", Shared)

    @contract("n % block == 0", relation("n % 8 != 5", when="v5e"))
    def function(x: Float[Any, " n"], block: int = 2) -> Float[Any, " n"]:
        return x

    function.__contract__.__dict__["_failing"] = memory()  # type: ignore[attr-defined]
    for n in (4, 5, 4, 5, 6, 13):
        for make in (np.ones, jnp.ones):
            for block in (2, 1):
                if n % block:
                    with pytest.raises(ContractError, match=f"n = {n}"):
                        function(make(n), block)
                else:
                    function(make(n), block)


# ---- containers and records


class Cache(NamedTuple):
    keys: Float[Any, "heads dim"]
    block: Any = 2


@dataclass
class Mutable:
    keys: Float[Any, "heads dim"]
    block: Any = 2


@pytest.mark.parametrize("record", [Cache, Mutable])
def test_a_record_is_known_by_its_fields(examined: list[Any], record: Any) -> None:
    function = contract("heads % cache_block == 0")(_of(record))
    for _ in range(2):
        function(record(np.ones((4, 2)), 2))
    assert len(examined) == 1
    for wrong in (record(np.ones((3, 2)), 2), record(np.ones((4, 2)), 3), record(np.ones((4, 2)), jnp.int32(3))):
        with pytest.raises(ContractError):
            function(wrong)


def _of(hint: Any) -> Callable[..., Any]:
    def function(cache): ...

    function.__annotations__ = {"cache": hint}
    return function


def test_the_elements_of_a_list_are_known_by_their_shapes(examined: list[Any]) -> None:
    function = contract("cache_heads % 2 == 0")(_of(list[Float[Any, "heads dim"]]))
    for _ in range(2):
        function([np.ones((4, 2))] * 3)
    assert len(examined) == 1
    with pytest.raises(ContractError, match=r"cache\[2\]"):
        function([np.ones((4, 2)), np.ones((4, 2)), np.ones((3, 2))])


@dataclass
class Scaled:
    """An array kept in two parts, which has a shape and a dtype itself."""

    weight: Shaped[Any, "heads dim"]
    scales: Float[Any, "heads dim"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.weight.shape

    @property
    def dtype(self) -> Any:
        return self.weight.dtype


@pytest.mark.parametrize("hint", [Scaled, Scaled | Shaped[Any, "heads dim"]])
def test_a_record_that_looks_like_an_array_is_known_by_its_fields_too(examined: list[Any], hint: Any) -> None:
    function = contract("cache_scales_shape == (2, 4)")(_of(hint))
    for _ in range(2):
        function(Scaled(np.ones((2, 4), np.int8), np.ones((2, 4))))
    assert len(examined) == 1
    with pytest.raises(ContractError):
        function(Scaled(np.ones((2, 4), np.int8), np.ones((2, 1))))


class Validated(NamedTuple):
    keys: Annotated[Shaped[np.ndarray, " n"], _POSITIVE]


@pytest.mark.parametrize("hint", [Validated, Validated | None, list[Validated]])
def test_a_field_that_a_validator_looks_at_is_looked_at_each_time(hint: Any) -> None:
    function = contract()(_of(hint))
    legal, illegal = Validated(np.ones(2)), Validated(-np.ones(2))
    function(legal if hint != list[Validated] else [legal])
    with pytest.raises(ContractError, match="refused"):
        function(illegal if hint != list[Validated] else [illegal])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of 3.12")
def test_an_alias_is_looked_into_for_validators() -> None:
    names: dict[str, Any] = {"hint": Annotated[Shaped[np.ndarray, " n"], _POSITIVE]}
    exec("type Alias = hint", names)
    function = contract()(_of(names["Alias"]))
    function(np.ones(2))
    with pytest.raises(ContractError, match="refused"):
        function(-np.ones(2))


# ---- all together


class Size(enum.IntEnum):
    TWO = 2


_MATRIX = np.ones((2, 4), np.float32)
VALUES: list[Any] = [
    *(1, True, 1.0, 2, 2.0, np.int64(2), np.float64(2), Size.TWO, None, "x", np.str_("x"), np.str_("y"), b"x", np.array(2)),
    *((1, 2), (True, 2), (1.0, 2), (np.int64(1), 2), (1, Size.TWO), ("x", 1), (np.str_("x"), 1), {1: 2}, {True: 2}, {1.0: 2}),
    *(_MATRIX, -_MATRIX, _MATRIX[:1], _MATRIX[0], _MATRIX.astype(np.int64), _MATRIX.astype(">f4"), jnp.asarray(_MATRIX)),
    *(jax.ShapeDtypeStruct((2, 4), jnp.float32), jax.ShapeDtypeStruct((2.0, 4), jnp.float32), np.float32(1)),
    *(Scaled(_MATRIX, _MATRIX), Scaled(_MATRIX, _MATRIX[:1]), Validated(_MATRIX), Validated(-_MATRIX)),
    *(Cache(_MATRIX), Cache(_MATRIX, 1), Cache(_MATRIX[:1]), Mutable(_MATRIX), [_MATRIX, _MATRIX], [_MATRIX, _MATRIX[:1]]),
]
_Matrix: Any = Float[Any, "heads dim"]
HINTS: list[Any] = [
    *(Any, int, float, bool, int | None, Size, tuple[int, int], tuple[bool, int], tuple[str, int], Literal["x", 2]),
    *(_Matrix, _Matrix | Scaled, _Matrix | None, Scaled, Validated, Cache, Cache | Mutable, list[_Matrix], Shaped[Any, "..."]),
    *(Annotated[Float[np.ndarray, "heads dim"], _POSITIVE], Annotated[Any, Is[lambda x: type(x) is not bool]], dict[int, int]),
]
DEMANDS = [
    "cache == 1",
    "cache_type == 'int'",
    "heads == 2",
    "cache_dtype == 'float32'",
    "cache_block == 2",
    "cache_scales_heads == 2",
]


@pytest.mark.parametrize("hint", HINTS)
def test_no_call_before_has_a_say_in_a_verdict(hint: Any) -> None:
    def judging(demands: list[str]) -> Callable[..., Any]:
        return contract(*demands)(_of(hint))

    def accepts(function: Callable[..., Any], value: Any) -> bool:
        try:
            function(value)
        except ContractError:
            return False
        return True

    for demand in ["", *DEMANDS]:
        try:
            function = judging([demand] if demand else [])
        except RelationError:
            continue  # an argument so annotated has no such name
        expected = [accepts(judging([demand] if demand else []), value) for value in VALUES]
        for order in (range(len(VALUES)), reversed(range(len(VALUES)))):
            wrong = [VALUES[each] for each in order if accepts(function, VALUES[each]) != expected[each]]
            assert not wrong, demand
