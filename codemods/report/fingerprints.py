"""What tells a finding from the others, and stays when the lines around it move."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from codemods.check import Run
from codemods.findings import Finding
from codemods.source import Source

_TRAILING_COMMA = re.compile(r",\s*(?=[)\]}])")


def fingerprints(run: Run) -> Iterator[str]:
    """Yield a fingerprint for each finding of a run, in order.

    It is made of the identity of the finding and, where a file has several of these, of how many there are before.
    """
    seen: Counter[str] = Counter()
    for finding in run.report.findings:
        what = identity(finding.path, run.sources[finding.path], finding)
        yield _digest(what, str(seen[what]))
        seen[what] += 1


def identity(path: str, source: Source, finding: Finding) -> str:
    """Return what a finding shares with its equals: the path, the code, and the call as it is written, without its layout."""
    return _digest(path, finding.code, "".join(call_of(source, finding).split()))


def call_of(source: Source, finding: Finding) -> str:
    """Return the call of a finding on one line."""
    text = " ".join(source.text[finding.call.start : finding.call.end].decode().split())
    return _TRAILING_COMMA.sub("", text).replace("( ", "(")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]
