"""Run the checker over checkouts of public repositories, and print the table of docs/field-report.md.

    python benchmarks/field.py owner/name@commit=FOLDER ...

Each checkout is checked whole, in a process of its own that starts in its root. Of the verdicts of SC101 and SC102, one of
each at every call site, the table says how many are not `unproven`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MAIN_RULES = ("SC101", "SC102")
HEADER = (
    "repository",
    "commit",
    "files",
    "parsed",
    "call sites",
    "proven",
    "violated",
    "unproven",
    "errors",
    "SC101 and SC102 decided",
    "seconds",
    "peak MB",
)


class Checkout(NamedTuple):
    """A folder that holds one commit of a repository."""

    repository: str
    commit: str
    folder: Path

    @classmethod
    def parse(cls, text: str) -> Checkout:
        """Read `owner/name@commit=FOLDER`."""
        label, separator, folder = text.partition("=")
        repository, at, commit = label.partition("@")
        if not (separator and at and Path(folder).is_dir()):
            raise argparse.ArgumentTypeError(f"{text!r} is not owner/name@commit=FOLDER with a folder that exists")
        return cls(repository, commit, Path(folder).resolve())


@dataclass(frozen=True)
class Run:
    """What one run of the checker said, and what it took."""

    checkout: Checkout
    report: dict[str, Any]
    seconds: float
    megabytes: float

    @property
    def decided(self) -> tuple[int, int]:
        """How many verdicts of the two main rules are not `unproven`, and how many there are."""
        sites = [site["verdicts"] for site in self.report["call_sites"]]
        verdicts = [verdicts[code] for verdicts in sites for code in MAIN_RULES if code in verdicts]
        return sum(verdict != "unproven" for verdict in verdicts), len(verdicts)

    def cells(self) -> list[str]:
        """The row of the table."""
        summary = self.report["summary"]
        counts = [summary[name] for name in ("files", "parsed", "call_sites", "proven", "violated", "unproven")]
        counts.append(len(self.report["errors"]))
        label = [self.checkout.repository, self.checkout.commit[:10]]
        took = [f"{self.seconds:.1f}", f"{self.megabytes:.0f}"]
        return [*label, *(f"{count:,}" for count in counts), share(*self.decided), *took]


def share(part: int, whole: int) -> str:
    """Word a share, with the numbers it rests on."""
    return f"{part}/{whole} ({part / whole:.0%})" if whole else "-"


def check(checkout: Checkout) -> Run:
    """Check one checkout.

    Raises:
        RuntimeError: the checker gave no report.
    """
    # -P: a module of the checkout must not take the place of one of Python's own
    command = [sys.executable, "-P", "-m", "codemods", "check", "--no-cache", "--unproven", "--output-format", "json", "."]
    project = str(Path(__file__).resolve().parent.parent)
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=checkout.folder, stdout=output, env={**os.environ, "PYTHONPATH": project})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        try:
            report = json.load(output)
        except json.JSONDecodeError:
            raise RuntimeError(f"{checkout.repository}@{checkout.commit}: no report, status {process.returncode}") from None
    per_megabyte = 2**20 if sys.platform == "darwin" else 2**10
    return Run(checkout, report, seconds, usage.ru_maxrss / per_megabyte)


def table(runs: Sequence[Run]) -> str:
    """Return the rows in Markdown, with a last one of totals."""
    rows = [run.cells() for run in runs]
    if len(runs) > 1:
        sums = [sum(int(row[column].replace(",", "")) for row in rows) for column in range(2, 9)]
        decided, judged = (sum(run.decided[part] for run in runs) for part in (0, 1))
        took = [f"{sum(run.seconds for run in runs):.1f}", f"{max(run.megabytes for run in runs):.0f}"]
        rows.append(["total", "", *(f"{each:,}" for each in sums), share(decided, judged), *took])
    ruler = ["---" if column < 2 else "---:" for column in range(len(HEADER))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, ruler, *rows))


def main() -> int:
    """Check the checkouts that are named, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", type=Checkout.parse, metavar="owner/name@commit=FOLDER")
    parser.add_argument("--sites", action="store_true", help="list the call sites and their verdicts after the table")
    options = parser.parse_args()
    runs = [check(checkout) for checkout in options.checkouts]
    print(table(runs))
    for run in runs if options.sites else ():
        for site in run.report["call_sites"]:
            open_ = [code for code, verdict in site["verdicts"].items() if verdict != "proven"]
            what = ", ".join(f"{code} {site['verdicts'][code]}" for code in open_) or "all proven"
            print(f"{run.checkout.repository}@{run.checkout.commit[:10]} {site['path']}:{site['line']} {site['callee']}: {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
