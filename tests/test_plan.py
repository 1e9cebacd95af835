from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck import plan
from shapecheck.chip import chip_of
from shapecheck.plan import divisors, largest_divisor, megacore_mode_for


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_the_largest_divisor_divides_and_none_above_it_does(n: int, at_most: int) -> None:
    divisor = largest_divisor(n, at_most)
    assert n % divisor == 0
    assert divisor <= at_most
    assert all(n % larger for larger in range(divisor + 1, min(n, at_most) + 1))


@pytest.mark.parametrize(("n", "at_most"), [(0, 4), (4, 0), (-4, 4)])
def test_a_largest_divisor_of_nothing_is_refused_with_the_values(n: int, at_most: int) -> None:
    with pytest.raises(ValueError, match=f"n={n} and at_most={at_most}"):
        largest_divisor(n, at_most)


@given(st.integers(1, 3000))
def test_the_divisors_are_all_of_them_in_order(n: int) -> None:
    assert divisors(n) == [d for d in range(1, n + 1) if n % d == 0]


@pytest.mark.parametrize(
    ("num_kv_heads", "batch_size", "chip", "mode"),
    [
        (8, 3, "v5p", "kv_head"),
        (1, 4, "v4", "batch"),
        (1, 3, "v4", None),
        (8, 8, "v5e", None),
        (8, 8, "tpu7x", None),
    ],
)
def test_the_megacore_mode_is_one_that_is_legal_there(num_kv_heads: int, batch_size: int, chip: str, mode: str | None) -> None:
    assert megacore_mode_for(num_kv_heads, batch_size, chip=chip) == mode


def test_without_a_chip_the_first_device_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "local_chip", lambda: chip_of("v5p"))
    assert megacore_mode_for(8, 8) == "kv_head"


def test_on_a_device_that_is_no_tpu_there_is_no_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "local_chip", lambda: None)
    assert megacore_mode_for(8, 8) is None


def test_an_unknown_chip_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown chip 'v99'"):
        megacore_mode_for(8, 8, chip="v99")
