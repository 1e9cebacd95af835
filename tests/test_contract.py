from __future__ import annotations

import pytest

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.chip import chip_of
from shapecheck.contract import Contract
from shapecheck.outcome import UNKNOWN
from shapecheck.relation import Relation, RelationError
from shapecheck.rule import Fix, Rule, Verdict


def rule(text: str, code: str = "SC001", **others: object) -> Rule:
    return Rule(code, text, Relation(text), message=text, explanation="", argument="block", **others)  # type: ignore[arg-type]


def stated(*rules: Rule) -> Contract:
    return Contract(
        "attend",
        arrays=(ArrayArgument("q", ("batch", "heads")), ArrayArgument("pages", ("heads", "size"), quantizable=True)),
        parameters=(Parameter("block"), Parameter("mode", default=None)),
        rules=rules,
        aliases={"dtype": ("q_dtype", "pages_dtype")},
    )


def test_a_rule_with_a_name_that_no_argument_defines_is_refused_with_those_there_are() -> None:
    with pytest.raises(RelationError, match=r"'batch % blok == 0': attend has no 'blok' \(did you mean 'block'\?\)"):
        stated(rule("batch % blok == 0"))


@pytest.mark.parametrize(
    ("axes", "shape", "sizes"),
    [
        (("batch", "heads"), (2, 3), {"q_batch": 2, "q_heads": 3}),
        (("batch", "heads"), (2, 3, 4), {}),
        (("_", "heads"), (2, 3), {"q_heads": 3}),
        (("...", "heads"), (2, 3, 4), {"q_heads": 4}),
        (("...", "heads"), (4,), {"q_heads": 4}),
        (("...", "heads"), (), {}),
        (("batch", "...", "heads"), (2, 3, 4, 5), {"q_batch": 2, "q_heads": 5}),
        (("n", "n"), (2, 3), {"q_n": 2}),
    ],
)
def test_a_shape_defines_its_named_axes(axes: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    assert ArrayArgument("q", axes).sizes(shape) == {"q_rank": len(shape), "q_shape": shape, **sizes}


def test_an_axis_behind_a_variadic_one_comes_from_the_end() -> None:
    assert dict(ArrayArgument("q", ("...", "heads")).origins())["q_heads"] == "q.shape[-1]"


def test_an_axis_comes_from_its_first_occurrence() -> None:
    assert stated().origins["heads"] == "q.shape[1]"
    assert stated().origins["pages_heads"] == "pages.shape[0]"


def test_an_axis_that_is_stated_has_that_size_wherever_it_occurs() -> None:
    geometry = stated().geometry(heads=8)
    assert (geometry["heads"], geometry["q_heads"], geometry["pages_heads"]) == (8, 8, 8)


def test_one_occurrence_can_be_stated_alone() -> None:
    geometry = stated().geometry(q_heads=8)
    assert (geometry["heads"], geometry["pages_heads"]) == (8, UNKNOWN)


def test_a_parameter_that_is_left_out_has_its_default() -> None:
    geometry = stated().geometry()
    assert (geometry["mode"], geometry["block"]) == (None, UNKNOWN)


def test_an_alias_states_several_names() -> None:
    geometry = stated().geometry(dtype="int8")
    assert (geometry["q_dtype"], geometry["pages_dtype"]) == ("int8", "int8")


def test_plain_pages_have_no_scales() -> None:
    assert stated().geometry(pages_scales_dtype=None)["pages_scales_shape"] is None


def test_scales_have_the_shape_of_the_weight_but_for_the_last_axis() -> None:
    assert stated().geometry(pages_scales_dtype="float32", heads=8, size=16)["pages_scales_shape"] == (8, 1)


def test_a_name_that_the_contract_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match=r"attend has no 'btach' \(did you mean 'batch'"):
        stated().geometry(btach=3)


def test_a_geometry_of_an_array_of_any_rank_leaves_its_rank_unknown() -> None:
    contract = Contract("f", (ArrayArgument("x", ("...", "n")),), (), (rule("n % 2 == 0"), rule("x_rank == 2", "SC002")))
    assert contract.judge(contract.geometry(n=3)) == {"SC001": Verdict.VIOLATED, "SC002": Verdict.UNPROVEN}


def test_a_rule_that_needs_a_chip_is_judged_only_where_one_is_declared() -> None:
    contract = stated(rule("mode is None or cores_per_device == 2"))
    assert contract.judge(contract.geometry(mode="batch")) == {}
    assert contract.judge(contract.geometry(mode="batch", chip=chip_of("v5e"))) == {"SC001": Verdict.VIOLATED}


def test_advice_offers_only_what_breaks_no_other_rule() -> None:
    blocks = Fix("block", "blocks", lambda values: [8, 4, 2, 1])
    dividing = rule("heads % block == 0", fix=blocks)
    contract = stated(dividing, rule("block >= 2", "SC002"))
    assert contract.advice(dividing, contract.geometry(heads=8, block=3)) == "legal blocks: 2, 4, 8"


def test_a_long_list_of_choices_is_shortened() -> None:
    dividing = rule("heads % block == 0", fix=Fix("block", "blocks", lambda values: range(1, 21)))
    contract = stated(dividing)
    assert contract.advice(dividing, contract.geometry(heads=0, block=21)).endswith("1, 2, 3, 4, 5, 6, ..., 16, 17, 18, 19, 20")


class TestBounds:
    """A rule that states what is enough beside what must hold."""

    RULE = Rule("SC1", "r", Relation("size <= 8"), "", "", "size", enough=Relation("size + spare <= 8"))

    @pytest.mark.parametrize(
        ("values", "verdict"),
        [
            ({"size": 9, "spare": 0}, Verdict.VIOLATED),
            ({"size": 7, "spare": 2}, Verdict.UNPROVEN),
            ({"size": 7, "spare": 1}, Verdict.PROVEN),
            ({"size": 7}, Verdict.UNPROVEN),
            ({"size": 9}, Verdict.VIOLATED),
        ],
    )
    def test_between_the_two_it_is_unproven(self, values: dict[str, int], verdict: Verdict) -> None:
        assert self.RULE.judge(values) is verdict

    def test_it_takes_the_names_of_both(self) -> None:
        assert self.RULE.names == ("size", "spare")
