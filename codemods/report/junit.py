"""The XML of JUnit, as test reports of CI services read it: https://llg.cubic.org/docs/junit/."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from codemods.check import Run
from codemods.codes import OWN_CODES
from codemods.findings import CallSite, FileError, Finding
from codemods.report.wording import in_cell, place, printable, sentence


def render(run: Run) -> str:
    """Return one suite of tests for each file: each call is a test, and each file that cannot be checked.

    What counts for the exit status is a failure; a call of which something else is reported is skipped.
    """
    root = Element("testsuites", name="shapecheck")
    for path in sorted({each.path for each in (*run.report.call_sites, *run.report.findings, *run.report.errors)}):
        suite = SubElement(root, "testsuite", name=_text(path))
        suite.extend(_cases(run, path))
        _count(suite, len(suite))
    _count(root, sum(len(suite) for suite in root))
    indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + tostring(root, encoding="unicode") + "\n"


def _count(element: Element, tests: int) -> None:
    element.set("tests", str(tests))
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(counted, str(sum(case.find(tag) is not None for case in element.iter("testcase"))))


def _cases(run: Run, path: str) -> Iterator[Element]:
    findings: dict[tuple[int, int], list[Finding]] = {}
    for finding in run.report.findings:
        if finding.path == path:
            findings.setdefault((finding.call.start, finding.call.end), []).append(finding)
    for site in run.report.call_sites:
        if site.path == path:
            yield _case(run, site, findings.pop((site.span.start, site.span.end), []))
    for others in findings.values():  # of comments
        yield _case(run, others[0], others)
    for error in run.report.errors:
        if error.path == path:
            yield _error(error)


def _case(run: Run, tested: CallSite | Finding, findings: list[Finding]) -> Element:
    span = tested.span if isinstance(tested, CallSite) else tested.call
    name = f"{tested.callee or tested.path} at {place(span)}"
    line = run.sources[tested.path].in_file(span).line
    case = Element("testcase", name=_text(name), classname=_text(tested.path), file=_text(tested.path), line=str(line))
    failing = [finding for finding in findings if run.counts(finding)]
    for finding in failing:
        failure = SubElement(
            case, "failure", type=finding.code, message=_text(f"{finding.code} {finding.name}: {sentence(finding)}")
        )
        failure.text = _text(f"{finding.path}:{place(finding.span)}")
    if findings and not failing:
        SubElement(case, "skipped", message=_text("; ".join(f"{each.code} {each.name}: {sentence(each)}" for each in findings)))
    return case


def _error(error: FileError) -> Element:
    case = Element("testcase", name=OWN_CODES[error.code].name, classname=_text(error.path), file=_text(error.path))
    message = f"{error.code} {in_cell(error.cell)}{error.line}: {error.message}"
    SubElement(case, "error", type=error.code, message=_text(message))
    return case


def _text(text: str) -> str:
    """Return text that XML can hold."""
    return printable(text)
