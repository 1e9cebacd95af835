from __future__ import annotations

from xml.etree.ElementTree import fromstring

from codemods.check import Run, summarise
from codemods.files import Found, Problem
from codemods.report import render

from .fake_analysis import BAD, GOOD, UNPROVEN, run_over


def test_each_call_is_a_test_and_each_finding_that_counts_a_failure() -> None:
    assert render(run_over(GOOD + BAD + UNPROVEN), "junit") == (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        '<testsuites name="shapecheck" tests="3" failures="1" errors="0" skipped="1">\n'
        '  <testsuite name="a.py" tests="3" failures="1" errors="0" skipped="1">\n'
        '    <testcase name="paged_attention at 2:7" classname="a.py" file="a.py" line="2" />\n'
        '    <testcase name="paged_attention at 4:7" classname="a.py" file="a.py" line="4">\n'
        '      <failure type="SC102" message="SC102 block-not-dividing: the block must divide the pages: pages = 6, block = 4; '
        'a divisor">a.py:4:38</failure>\n'
        "    </testcase>\n"
        '    <testcase name="paged_attention at 7:12" classname="a.py" file="a.py" line="7">\n'
        '      <skipped message="SC102 block-not-dividing: the block must divide the pages: block = 4; unproven: `n` is a '
        'parameter; fails when pages = 5" />\n'
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_a_call_with_several_findings_is_one_test_that_fails() -> None:
    root = fromstring(render(run_over(BAD.replace("block=4", "block=4, mode='kv_head'")), "junit"))
    assert len(list(root.iter("failure"))) == 2
    assert [(each.get("tests"), each.get("failures")) for each in (root, root[0])] == [("1", "1"), ("1", "1")]


def test_what_cannot_be_told_fails_where_it_counts() -> None:
    run = run_over(UNPROVEN)
    strict = Run(run.report, run.sources, frozenset({"a.py"}))
    assert strict.failed
    assert fromstring(render(strict, "junit")).get("failures") == "1"


def test_a_file_that_cannot_be_checked_is_an_error() -> None:
    root = fromstring(render(summarise(Found((), (Problem("b.py", 3, "cannot be parsed: oh"),), 2), [], []), "junit"))
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    [error] = root.iter("error")
    assert error.get("message") == "SC901 3: cannot be parsed: oh"


def test_what_xml_cannot_hold_is_replaced() -> None:
    [failure] = fromstring(render(run_over(BAD, message='a < b & "\x00\x1b"', path="<a>.py"), "junit")).iter("failure")
    assert 'a < b & "\ufffd\ufffd"' in (failure.get("message") or "")


def test_nothing_to_report_is_a_suite_of_tests_that_pass() -> None:
    assert fromstring(render(run_over(GOOD), "junit")).get("failures") == "0"
