"""Ask shapecheck, pyrefly and jaxtyc the same questions, and print the table of benchmarks/README.md.

    python benchmarks/static_peers.py [CASES] [--environments FOLDER] [--answers]

docs/comparison.md says what its cells mean, tests/marked.py what the markers of the sources in CASES mean. The other two tools
run in virtual environments of their own in FOLDER, which are made where they are missing. Nothing of the sources is imported
here, but jaxtyc imports and traces what it checks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from peers import ROOT, Answers, Question, environment, jaxtyc, pyrefly, questions, shapecheck

KINDS = ("violated", "proven", "unproven", "quiet")


def judged(question: Question, code: str, said: Answers) -> str:
    """Return whether a tool is right, wrong or silent about one rule at one call."""
    blamed = said.errors.get(question.place)
    reported = blamed is not None and (not blamed or code in blamed)
    held = (question.place, code) in said.held
    match question.kind:
        case "violated":
            return "right" if reported else "silent"
        case _ if reported:
            return "wrong"
        case "proven":
            return "right" if held else "silent"
        case _:
            return "right" if question.place in said.seen and not held else "silent"


def answered(question: Question, said: Answers) -> str:
    """Return whether a tool is right, wrong or silent about one call.

    Of rules that are violated it has to find one. Of rules that are proven it has to show all, and of a legal call it may
    report nothing, whatever it blames.
    """
    verdicts = {judged(question, code, said) for code in question.codes or ("",)}
    if question.kind == "violated":
        return next(verdict for verdict in ("right", "wrong", "silent") if verdict in verdicts)
    if question.place in said.errors:
        return "wrong"
    return next(verdict for verdict in ("wrong", "silent", "right") if verdict in verdicts)


def counted(asked: Sequence[Question], said: Answers) -> Mapping[str, Counter[str]]:
    """Return the rows of a tool: all calls, the calls of each kind, the calls at which something is said of each rule."""
    rows: dict[str, Counter[str]] = {"all calls": Counter(), **{kind: Counter() for kind in KINDS}}
    for question in asked:
        for row in ("all calls", question.kind):
            rows[row][answered(question, said)] += 1
        for code in question.codes:
            rows.setdefault(code, Counter())[judged(question, code, said)] += 1
    return rows


def table(asked: Sequence[Question], tools: Mapping[str, Answers]) -> str:
    """Return the table in Markdown."""
    columns = [counted(asked, said) for said in tools.values()]
    rows = ["all calls", *KINDS, *sorted(row for row in columns[0] if row.startswith("SC"))]
    lines = [["right / wrong / silent", "of", *tools], ["---", *["---:"] * (1 + len(tools))]]
    for row in rows:
        cells = [" / ".join(str(column[row][verdict]) for verdict in ("right", "wrong", "silent")) for column in columns]
        lines.append([row, str(columns[0][row].total()), *cells])
    lines.append(["errors elsewhere", "", *(str(said.elsewhere) for said in tools.values())])
    base = next(iter(tools.values())).seconds
    lines.append(["wall time", "", *(f"{said.seconds:.1f} s, {said.seconds / base:.2g}x" for said in tools.values())])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Run the three tools, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="?", type=Path, default=ROOT / "tests" / "cases", help="default: tests/cases")
    cache = Path.home() / ".cache" / "shapecheck-peers"
    parser.add_argument("--environments", type=Path, metavar="FOLDER", default=cache, help=f"default: {cache}")
    parser.add_argument("--answers", action="store_true", help="list after the table what each tool said of each call")
    options = parser.parse_args()
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(options.cases.glob("*.py"))}
    asked = [question for file, text in sources.items() for question in questions(file, text)]
    if not asked:
        parser.error(f"{options.cases} holds no marked source")
    places = options.environments.absolute()
    for_pyrefly = environment(places / "pyrefly", pyrefly.PACKAGES, pyrefly.BARE)
    for_jaxtyc = environment(places / "jaxtyc", jaxtyc.PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        tools = {
            "shapecheck": shapecheck.answers(sources, scratch / "shapecheck"),
            pyrefly.PACKAGES[0].replace("==", " "): pyrefly.answers(sources, for_pyrefly, scratch / "pyrefly"),
            jaxtyc.PACKAGES[0].replace("==", " "): jaxtyc.answers(sources, for_jaxtyc, scratch / "jaxtyc"),
        }
    print(table(asked, tools))
    for question in asked if options.answers else ():
        print(f"{question.place.file}:{question.place.line} {question.kind} {' '.join(question.codes)}")
        for name, said in tools.items():
            blamed = said.errors.get(question.place)
            report = "no report" if blamed is None else f"reports {' '.join(sorted(blamed)) or 'an error'}"
            held = " ".join(code for code in question.codes if (question.place, code) in said.held)
            print(f"    {name}: {answered(question, said)}: {report}{held and f', shows {held}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
