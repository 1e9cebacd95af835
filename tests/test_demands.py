from __future__ import annotations

import re

import pytest

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import chip_of
from shapecheck.contract import Contract
from shapecheck.demands import relation, stated_contract
from shapecheck.relation import Relation, RelationError
from shapecheck.rule import Rule, Verdict

Q = ArrayArgument("q", ("batch", "heads"))
K = ArrayArgument("k", ("heads",))
BLOCK = Parameter("block")
MODE = Parameter("mode", default=None)
READY = Contract("attend", (Q, K), (BLOCK, MODE), (Rule("SC101", "dividing", Relation("heads % block == 0"), "", "", "block"),))


def test_relations_become_rules_named_by_their_text() -> None:
    contract = stated_contract("f", (Q,), (BLOCK,), ["heads % block == 0", "batch >= 1"])
    assert [(rule.code, rule.name) for rule in contract.rules] == [("SC001", "heads % block == 0"), ("SC001", "batch >= 1")]


@pytest.mark.parametrize(
    ("relation", "argument"),
    [("heads % block == 0", "block"), ("batch == k_heads", "k"), ("block_type == 'int'", "block"), ("1 == 1", "")],
)
def test_a_rule_points_at_a_parameter_if_it_has_one_and_else_at_its_last_array(relation: str, argument: str) -> None:
    assert stated_contract("f", (Q, K), (BLOCK,), [relation]).rules[0].argument == argument


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(RelationError, match=r"'head % 2 == 0': f has no 'head' \(did you mean 'heads' or 'q_heads'\?\)"):
        stated_contract("f", (Q,), (), ["head % 2 == 0"])


def test_a_parameter_hides_the_axis_of_its_name() -> None:
    assert stated_contract("f", (Q,), (Parameter("heads"),), []).origins["heads"] == "heads"


def test_a_ready_contract_keeps_its_name_and_takes_further_relations() -> None:
    contract = stated_contract("my_attend", (Q, K), (BLOCK, MODE), [READY, "batch <= 8"])
    assert contract.name == "attend"
    assert [rule.code for rule in contract.rules] == ["SC101", "SC001"]


def test_relations_may_use_arguments_that_the_ready_contract_lacks() -> None:
    bias = ArrayArgument("bias", ("batch", "width"))
    contract = stated_contract("f", (Q, K, bias), (BLOCK, MODE, Parameter("limit", 4)), [READY, "width <= limit"])
    assert contract.origins["width"] == "bias.shape[1]"


def test_arrays_without_an_annotation_agree() -> None:
    assert stated_contract("f", (), (Parameter("q"), Parameter("k"), BLOCK, MODE), [READY]) == READY


def test_a_default_that_the_contract_leaves_open_agrees() -> None:
    assert stated_contract("f", (Q, K), (Parameter("block", 4), MODE), [READY]) == READY


def test_two_ready_contracts_are_refused() -> None:
    with pytest.raises(TypeError, match="one contract at most, not 2"):
        stated_contract("f", (Q, K), (BLOCK, MODE), [READY, READY])


@pytest.mark.parametrize(
    ("arrays", "parameters", "complaint"),
    [
        ((Q,), (BLOCK, MODE), "it has no argument 'k'"),
        ((ArrayArgument("q", ("heads", "batch")), K), (BLOCK, MODE), "'q' has the axes 'heads batch', not 'batch heads'"),
        ((K, Q), (BLOCK, MODE), "its arrays stand in another order than q, k"),
        ((Q, K), (MODE,), "it has no argument 'block'"),
        ((Q, K, ArrayArgument("block", ())), (MODE,), "'block' is annotated as an array"),
        ((Q, K), (BLOCK, Parameter("mode", "batch")), "'mode' has the default 'batch' instead of None"),
        ((Q, K), (BLOCK, Parameter("mode")), "'mode' has no default instead of None"),
    ],
)
def test_a_signature_that_disagrees_is_refused_by_the_name_of_the_argument(
    arrays: tuple[ArrayArgument, ...], parameters: tuple[Parameter, ...], complaint: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"the signature disagrees with the contract of attend: {complaint}")):
        stated_contract("f", arrays, parameters, [READY])


# --- relations with a name, with words, and for some chips


def test_a_relation_may_have_a_name_and_words() -> None:
    (rule,) = stated_contract("f", (Q,), (BLOCK,), [relation("heads % block == 0", name="whole", message="no rest")]).rules
    assert (rule.code, rule.name, rule.message, rule.argument) == ("SC001", "whole", "no rest", "block")


def test_a_relation_without_a_name_has_its_text() -> None:
    assert relation("a  ==  b").name == "a == b"


@pytest.mark.parametrize(
    ("when", "judged"),
    [
        ((), ["", "v5e", "v6e"]),
        ("tpu", ["v5e", "v6e"]),
        ("v5e", ["v5e"]),
        ("TPU v6 lite", ["v6e"]),
        (["v5e", "v6e"], ["v5e", "v6e"]),
    ],
)
def test_a_relation_holds_where_it_says(when: str | list[str], judged: list[str]) -> None:
    contract = stated_contract("f", (Q,), (), [relation("heads % 2 == 0", when=when)])
    places = {"": {"on_tpu": False}, **{name: {**chip_of(name).facts, "on_tpu": True} for name in ("v5e", "v6e")}}
    values = contract.geometry(heads=3)
    assert [name for name, place in places.items() if contract.judge({**values, **place})] == judged


def test_whether_a_call_fails_on_a_chip_takes_heed_of_the_chips_a_relation_is_for() -> None:
    contract = stated_contract("f", (Q,), (), [relation("heads % 2 == 0", when="v5e"), relation("batch % 2 == 0", when="v2")])
    assert contract.fails_on_a_chip(contract.geometry(heads=3, batch=2))
    assert contract.fails_on_a_chip(contract.geometry(heads=2, batch=3))  # no kernel is for a v2, this is
    assert not contract.fails_on_a_chip(contract.geometry(heads=2, batch=2))


def test_a_relation_for_an_unknown_chip_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown chip 'v9'; known: v2"):
        relation("a == b", when="v9")


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("int8", 1), ("int4", 1)])
def test_the_size_of_an_element_can_be_asked_for(dtype: str, size: int) -> None:
    contract = stated_contract("f", (Q,), (), [f"itemsize(q) == {size}"])
    assert contract.judge(contract.geometry(q_dtype=dtype)) == {"SC001": Verdict.PROVEN}


@pytest.mark.parametrize("text", ["itemsize(block) == 1", "itemsize(q, k) == 1", "itemsize(batch + 1) == 1"])
def test_the_size_of_an_element_is_that_of_an_array(text: str) -> None:
    with pytest.raises(RelationError):
        stated_contract("f", (Q,), (BLOCK,), [text])


def test_a_parameter_may_be_called_what_a_chip_has() -> None:
    contract = stated_contract("f", (Q,), (Parameter("vmem_bytes"),), ["vmem_bytes >= 8"])
    assert contract.judge(contract.geometry(vmem_bytes=4)) == {"SC001": Verdict.VIOLATED}
