"""What `benchmarks/static_peers.py` makes of sources and of answers; no other tool is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .marked import complaints, source_of

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import static_peers
from peers import Answers, Place, Question, environment, jaxtyc, marked, pyrefly, questions

PLACE = Place("a.py", 1)


def answers(errors: set[str] | None = None, held: str = "", seen: bool = True) -> Answers:
    reported = {} if errors is None else {PLACE: errors}
    return Answers(reported, {(PLACE, code) for code in held.split()}, {PLACE} if seen else set(), 0, 1.0)


def test_each_marker_is_a_question_but_of_calls_of_other_functions() -> None:
    text = "f()  #: SC101 SC102 violated\nf()\nf()  #: proven SC103\nf()  #: not-a-site\nf()  #: quiet\n"
    assert [(each.place.line, each.kind, each.codes) for each in questions("a.py", text)] == [
        (1, "violated", ("SC101", "SC102")),
        (3, "proven", ("SC103",)),
        (5, "quiet", ()),
    ]


@pytest.mark.parametrize(
    ("kind", "codes", "said", "verdict"),
    [
        ("violated", "SC101", answers({"SC101"}), "right"),
        ("violated", "SC101", answers(set()), "right"),  # an error that names no rule
        ("violated", "SC101 SC102", answers({"SC102"}), "right"),
        ("violated", "SC101", answers({"SC102"}), "silent"),
        ("violated", "SC101", answers(held="SC101"), "silent"),
        ("proven", "SC101 SC102", answers(held="SC101 SC102"), "right"),
        ("proven", "SC101 SC102", answers(held="SC101"), "silent"),
        ("proven", "SC101", answers(), "silent"),
        ("proven", "SC101", answers({"SC102"}, held="SC101"), "wrong"),
        ("unproven", "SC101", answers({"SC101"}), "wrong"),
        ("unproven", "SC101", answers(), "right"),
        ("unproven", "SC101", answers(held="SC101"), "silent"),
        ("unproven", "SC101", answers(seen=False), "silent"),
        ("quiet", "", answers(), "right"),
        ("quiet", "", answers(set()), "wrong"),
        ("quiet", "", answers(seen=False), "silent"),
    ],
)
def test_a_silent_tool_is_right_only_of_what_it_has_shown(kind: str, codes: str, said: Answers, verdict: str) -> None:
    assert static_peers.answered(Question(PLACE, kind, tuple(codes.split())), said) == verdict


def test_the_table_counts_calls_by_kind_and_facts_by_rule() -> None:
    asked = [Question(PLACE, "proven", ("SC101", "SC102")), Question(Place("a.py", 2), "violated", ("SC101",))]
    rows = static_peers.table(asked, {"a tool": answers(held="SC101"), "another": answers()}).splitlines()
    assert rows[0] == "| right / wrong / silent | of | a tool | another |"
    assert "| all calls | 2 | 0 / 0 / 2 | 0 / 0 / 2 |" in rows
    assert "| SC101 | 2 | 1 / 0 / 1 | 0 / 0 / 2 |" in rows


def test_each_probe_breaks_its_rule_and_no_other() -> None:
    probes = Path(jaxtyc.__file__).with_name("probes.py")
    assert complaints(source_of(probes), probes.parent) == []


def test_pyrefly_is_told_the_axes_of_annotations() -> None:
    text = 'def f(q: Float[Array, "b 8 d"]):\n    return g(q)  #: quiet\ndef h(q): ...\n'
    declared = pyrefly.declared(text)
    assert declared.splitlines()[1] == '@shape_extensions.static_jaxtyping("b d")'
    assert [each.place.line for each in questions("a.py", declared)] == [4]


def test_jaxtyc_gets_each_call_in_a_function_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "marked", marked)
    text = """
missing()  #: quiet
def f(q: Float[Array, "2"], key):
    made.append(q)  #: quiet
"""
    space: dict[str, Any] = {"made": []}
    exec(jaxtyc.isolated("a.py", text, 4), space)
    space["marked_call"]("probe", "given")
    assert space["made"] == ["given"]
    assert capsys.readouterr().err == "entered a.py:4\nleft a.py:4\n"


def test_a_call_whose_arguments_are_unknown_is_not_made() -> None:
    text = "def f(q, block):\n    g(q, block)  #: quiet\n"
    assert "f(" not in jaxtyc.isolated("a.py", text, 2).partition("_marked(2, lambda: g(q, block))")[2]


def test_a_folder_that_is_no_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no virtual environment"):
        environment(tmp_path, ["pyrefly==1.5.0"])


def test_the_page_and_the_table_agree() -> None:
    root = Path(__file__).parent.parent
    rows = {*(root / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines()}
    quoted = (root / "docs" / "comparison.md").read_text(encoding="utf-8").partition("\n\nThe rest of the table")[0]
    assert [line for line in quoted.splitlines() if line.startswith("|") and line not in rows] == []
