"""What tells a finding from the others, and stays when the lines around it move."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from codemods.check import Run
from codemods.findings import Finding


def fingerprints(run: Run) -> Iterator[str]:
    """Yield a fingerprint for each finding of a run, in order.

    It is made of the path, the code and the call as it is written, without its layout; where a file has several of these, of how
    many there are before.
    """
    seen: Counter[str] = Counter()
    for finding in run.report.findings:
        what = "\0".join((finding.path, finding.code, _call(run, finding)))
        yield hashlib.sha256(f"{what}\0{seen[what]}".encode(errors="surrogateescape")).hexdigest()[:32]
        seen[what] += 1


def _call(run: Run, finding: Finding) -> str:
    text = run.sources[finding.path].text[finding.call.start : finding.call.end]
    return "".join(text.decode().split())
