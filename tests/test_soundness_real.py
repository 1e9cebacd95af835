"""No verdict that real code contradicts: what helpers and tests call the kernel with, recorded and held against our reading."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codemods import analyse
from codemods.evaluate.program import Program
from codemods.source import Source
from codemods.verdicts import Judge
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.rule import Verdict

from .recording import Position, Record

ROOT = Path(__file__).parent.parent


def recorded(files: Sequence[str], folder: Path, to: Path, *options: str) -> list[Record]:
    """Run test files of a folder in a process of their own, with recorders for kernels; return what they recorded."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SHAPECHECK_RECORD": str(to),
    }
    # What the tests find out about the result of a recorder is of no interest.
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "recording"]
    run = subprocess.run([*command, *options, *files], cwd=folder, env=environment, capture_output=True, text=True)
    assert to.exists(), run.stdout + run.stderr
    return [Record(*each) for each in pickle.loads(to.read_bytes())]


@cache
def _broken(rule_values: tuple[tuple[str, Any], ...]) -> frozenset[str]:
    verdicts = PAGED_ATTENTION.judge(dict(rule_values))
    return frozenset(code for code, verdict in verdicts.items() if verdict is Verdict.VIOLATED)


def contradictions(judge: Judge, values: dict[str, Any]) -> list[str]:
    """Return what an execution that we have read says of a call, and a recorded one contradicts."""
    broken = _broken(tuple(sorted(values.items())))
    wrong = [
        f"{name} is {value!r}, not {values[name]!r}"
        for name, value in judge.constants().items()
        if name in values and values[name] != value
    ]
    for rule in judge.rules:
        verdict = judge.judge(rule).verdict
        if verdict is (Verdict.PROVEN if rule.code in broken else Verdict.VIOLATED):
            wrong.append(f"{rule.code} is {verdict.value}, {'' if rule.code in broken else 'not '}broken")
    return wrong


class Comparison:
    """Recorded calls, each held against the executions that the checker has followed to that very expression."""

    def __init__(self, files: Sequence[str], root: Path, records: Sequence[Record]) -> None:
        sources = [Source(str(root / file), (root / file).read_bytes()) for file in files]
        sites = analyse._sites(Program(sources, root), sources, root, lambda path: None)
        self.sites = {_position(site): site for site in sites}
        self.judges = {at: list(analyse._judges(site, ())) for at, site in self.sites.items()}
        self.compared: dict[Position, int] = {}
        self.wrong: dict[str, None] = {}
        for record in records:
            for at in record.stack:
                if at in self.sites:
                    self._compare(at, record)

    def _compare(self, at: Position, record: Record) -> None:
        """One execution at least must be this one: all that is known of it agrees."""
        self.compared[at] = self.compared.get(at, 0) + 1
        if self.sites[at].unfinished:
            return
        judges = [judge for judge in self.judges[at] if record.expected or not judge.arrival.expected] or self.judges[at]
        found = []
        for judge in judges:
            found.append(contradictions(judge, record.values))
            if not found[-1]:
                return
        self.wrong[f"{at[0]}:{at[1]}: of {len(judges)} executions none is this one; the nearest: {min(found, key=len)}"] = None


def _position(site: analyse.Site) -> Position:
    node = site.node
    return site.source.path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


if __name__ == "__main__":
    records = [Record(*each) for each in pickle.loads(Path(sys.argv[1]).read_bytes())]
    print(len(records))
    c = Comparison(sys.argv[3:], Path(sys.argv[2]), records)
    for at in c.sites:
        js = c.judges[at]
        print(at[0][-60:], at[1], "records", c.compared.get(at, 0), "judges", len(js), "unfinished" * c.sites[at].unfinished, str(c.sites[at].unreached or "")[:50], "known", min((sum(1 for n in j.constants()) for j in js), default=0))
    print(len(c.wrong))
    for each in list(c.wrong)[:40]:
        print(each)
