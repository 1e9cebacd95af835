"""What is in the metadata of a ragged call: what of it is read, when it is looked at, and what the kernel makes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, pallas
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention as of_jax

import shapecheck
from kernel import ragged_paged_attention
from shapecheck import CONTRACTS, ContractError, Verdict, chip, observe, values
from shapecheck.measure import Measure

from .kernel_helpers.ragged import Ragged, ragged
from .kernel_helpers.ragged_schedule import Schedule, Stuck

WHILE_IT_RUNS = (jax.errors.JaxRuntimeError, ValueError)
CALL = ragged(((1, 5), (9, 20), (4, 4), (0, 3), (1, 24), (2, 17)), rows=8)  # 6 pages of 4 tokens a row; garbage in two rows
RULES = {rule.code: rule for rule in CONTRACTS["ragged_paged_attention"].rules}


def with_element(array: str, *index: int, to: int) -> Ragged:
    changed = getattr(CALL, array).copy()
    changed[index] = to
    return CALL._replace(**{array: changed})


def attend(call: Ragged = CALL, **options: Any) -> jax.Array:
    return ragged_paged_attention(*call, **{"check_values": True, **options})


MESSAGES = {
    "length": (
        with_element("kv_lens", 4, to=25),
        "  SC401 length-overrun: kv_lens_max <= pages_per_seq * page_size\n"
        "        kv_lens_max = 25   (kv_lens[4])\n"
        "        pages_per_seq = 6   (page_indices.shape[1])\n"
        "        page_size = 4   (kv_pages.shape[1])\n"
        "        at least 0, at most 24 = pages_per_seq * page_size (6 * 4)",
    ),
    "page id": (
        with_element("page_indices", 1, 4, to=22),
        "  SC402 page-id-range: page_indices_max < total_num_pages\n"
        "        page_indices_max = 22   (page_indices[1, 4])\n"
        "        total_num_pages = 22   (kv_pages.shape[0])\n"
        "        at least 0, at most 21 = total_num_pages - 1",
    ),
    "number of sequences": (
        CALL._replace(num_seqs=np.array([-1], np.int32)),
        "  SC403 num-seqs-range: 0 <= num_seqs_min\n        num_seqs_min = -1   (num_seqs[0])",
    ),
    "negative offset": (
        with_element("cu_q_lens", 0, to=-1),
        "  SC404 offsets-range: 0 <= cu_q_lens_min\n"
        "        cu_q_lens_min = -1   (cu_q_lens[0])\n"
        "  SC408 offsets-order: cu_q_lens_first == 0\n"
        "        cu_q_lens_first = -1   (cu_q_lens[0])",
    ),
    "total queries": (
        with_element("cu_q_lens", 6, to=33),
        "  SC404 offsets-range: cu_q_lens_max <= max_num_batched_tokens\n"
        "        cu_q_lens_max = 33   (cu_q_lens[6])\n"
        "        max_num_batched_tokens = 32   (q.shape[0])\n"
        "  SC405 queries-beyond-keys: q_len <= kv_len\n"
        "        q_len = 18   (cu_q_lens[6] - cu_q_lens[5])\n"
        "        kv_len = 17   (kv_lens[5])",
    ),
    "queries beyond keys": (
        with_element("kv_lens", 1, to=8),
        "  SC405 queries-beyond-keys: q_len <= kv_len\n"
        "        q_len = 9   (cu_q_lens[2] - cu_q_lens[1])\n"
        "        kv_len = 8   (kv_lens[1])",
    ),
    "rows before the first": (
        with_element("cu_q_lens", 0, to=1),
        "  SC408 offsets-order: cu_q_lens_first == 0\n        cu_q_lens_first = 1   (cu_q_lens[0])",
    ),
    "decreasing offsets": (
        with_element("cu_q_lens", 4, to=13),
        "  SC408 offsets-order: least_q_len >= 0\n        least_q_len = -1   (cu_q_lens[4] - cu_q_lens[3])",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_call_is_refused_with_the_number_and_its_place(name: str) -> None:
    call, message = MESSAGES[name]
    headline = (
        "ragged_paged_attention: 1 relation does" if message.count("  SC") == 1 else "ragged_paged_attention: 2 relations do"
    )
    with pytest.raises(ContractError) as caught:
        attend(call)
    assert str(caught.value) == f"{headline} not hold\n{message}"
    error, _ = checkify.checkify(jax.jit(attend))(call)
    assert error.get() == f"{headline} not hold\n{message} (`check` failed)"
    with pytest.raises(WHILE_IT_RUNS) as raised:
        jax.jit(attend)(call).block_until_ready()
    assert message in str(raised.value)
    attend(call, check_values=False)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: lambda x: checkify.checkify(jax.jit(f))(x)[1]])
def test_what_is_not_read_may_be_anything(transform: Any) -> None:
    np.testing.assert_array_equal(transform(attend)(CALL), attend(check_values=False))


UNREAD = {
    "a page behind the last": with_element("page_indices", 0, 2, to=-7),
    "a row of no sequence": with_element("page_indices", 7, 0, to=99),
    "an offset behind the last": with_element("cu_q_lens", 7, to=-3),
    "a length of no sequence": with_element("kv_lens", 6, to=-3),
    "no sequence at all": CALL._replace(num_seqs=np.zeros(1, np.int32)),
    "NaN behind a length": CALL,
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_is_not_looked_at(name: str) -> None:
    assert jnp.isfinite(attend(UNREAD[name])).all()


def test_of_a_sequence_without_tokens_the_first_id_is_read() -> None:
    empty = with_element("kv_lens", 3, to=0)
    table = empty.page_indices.copy()
    table[3] = (1, -1, -1, -1, -1, -1)
    attend(empty._replace(page_indices=table))
    table[3, 0] = -1
    with pytest.raises(ContractError, match=r"page_indices_min = -1   \(page_indices\[3, 0\]\)"):
        attend(empty._replace(page_indices=table))


@pytest.mark.parametrize("dtype", ["uint32", "int16", "int32"])
def test_the_number_of_sequences_is_of_any_integers(dtype: str) -> None:
    attend(CALL._replace(num_seqs=CALL.num_seqs.astype(dtype)))
    with pytest.raises(ContractError, match="num_seqs_max = 9"):
        attend(CALL._replace(num_seqs=np.array([9], dtype)))


def test_nothing_is_looked_at_unless_it_is_asked_for() -> None:
    call, _ = MESSAGES["length"]
    assert "callback" not in jax.jit(ragged_paged_attention).lower(*call).as_text()
    assert "callback" in jax.jit(attend).lower(call).as_text()


@pytest.fixture
def everywhere() -> Iterator[None]:
    values.SETTING.on = True
    yield
    values.SETTING.on = False


def test_an_installed_contract_looks_as_well(everywhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_kernel(body: Any, *, out_shape: Any, **_: Any) -> Any:  # on a CPU nothing runs it
        return lambda *arrays: jnp.full(out_shape.shape, sum(each.sum() for each in arrays), out_shape.dtype)

    monkeypatch.setattr(pallas, "pallas_call", no_kernel)
    good = ragged(((1, 5), (9, 20)), head_dim=128)
    with shapecheck.install():
        options = {"num_kv_pages_per_block": 2, "num_queries_per_block": 8}
        of_jax(*good, **options)
        with pytest.raises(WHILE_IT_RUNS, match=r"SC405[^@]*kv_len = 8   \(kv_lens\[1\]\)"):
            of_jax(*good._replace(kv_lens=np.array([5, 8], np.int32)), **options).block_until_ready()


def test_what_a_tpu_alone_demands_is_judged_on_one() -> None:
    empty, idle = ragged(((2, 4), (0, 0), (2, 3)), head_dim=128), ragged(((4, 4), (0, 3)), heads=(64, 32), head_dim=128)
    blocks = {"num_kv_pages_per_block": 2, "num_queries_per_block": 4}
    attend(empty, **blocks)
    attend(idle, **blocks)
    with mock.patch.object(observe, "local_chip", return_value=chip.chip_of("v6e")):
        with pytest.raises(ContractError, match=r"SC406[^@]*kv_lens_min = 0   \(kv_lens\[1\]\)"):
            attend(empty, **blocks)
        with pytest.raises(ContractError, match=r"SC409[^@]*last_q_len = 0   \(cu_q_lens\[2\] - cu_q_lens\[1\]\)"):
            attend(idle, **blocks)
        attend(idle, **blocks, implementation="xla")
        attend(idle, num_kv_pages_per_block=2, num_queries_per_block=8)


# ---- the loops of the kernel, followed


def measured(kv_lens: list[int], cu_q_lens: list[int], num_seqs: int) -> dict[str, int]:
    arrays: Any = {
        name: np.asarray(each, np.int32)
        for name, each in {"kv_lens": kv_lens, "cu_q_lens": cu_q_lens, "num_seqs": [num_seqs]}.items()
    }

    def number(measure: Measure) -> int:
        found, *_ = measure.find(np, arrays, {})
        assert measure.read_off is not None
        assert measure.read_off(arrays, {}) == found  # what `check` makes of numbers that are spelled out
        return int(found)

    return {name: number(each) for name, each in CONTRACTS["ragged_paged_attention"].measures.items()
            if set(each.arrays) <= arrays.keys()}  # fmt: skip


def goes_wrong(schedule: Schedule) -> bool:
    return schedule.confused or schedule.unwritten > 0


def test_the_rules_about_sequences_say_what_the_loops_of_the_kernel_do() -> None:
    drawn = random.Random(0)
    seen = {(code, verdict): 0 for code in ("SC406", "SC409") for verdict in Verdict}
    for _ in range(4000):
        q_lens = [drawn.choice([0, 1, 1, 2, 3, 4]) for _ in range(drawn.randint(0, 4))]
        kv_lens = [each + drawn.choice([0, 1, 3]) for each in q_lens]
        cu_q_lens = [sum(q_lens[:index]) for index in range(len(q_lens) + 1)]
        tiles, queries, tokens = drawn.choice([1, 2]), drawn.choice([1, 2, 4]), drawn.choice([1, 2, 4])
        geometry = {
            **measured([*kv_lens, 7], [*cu_q_lens, 0], len(q_lens)),
            "kv_pages_bits": 16,
            "num_q_heads": 32 * tiles,
            "num_combined_kv_heads": 16 * tiles,
            "q_bits": 16,
            "num_kv_pages_per_block": 1,
            "num_queries_per_block": queries,
        }
        verdicts = {code: RULES[code].judge(geometry) for code in ("SC406", "SC409")}
        for code, verdict in verdicts.items():
            seen[code, verdict] += 1
        try:
            rows = max(1, cu_q_lens[-1] + drawn.choice([0, 1, 4]))
            schedule = Schedule(
                [*kv_lens, 7], [*cu_q_lens, 0], len(q_lens), rows=rows, queries=queries, tokens=tokens, tiles=tiles
            )
        except Stuck:
            assert Verdict.VIOLATED in verdicts.values()
            continue
        if set(verdicts.values()) == {Verdict.PROVEN}:
            assert not goes_wrong(schedule)
            assert schedule.pending == 0
        if verdicts["SC406"] is Verdict.VIOLATED:
            assert goes_wrong(schedule) or schedule.pending
        if verdicts["SC409"] is Verdict.VIOLATED and cu_q_lens[-1] > 0:
            assert goes_wrong(schedule)
    assert all(seen.values())
