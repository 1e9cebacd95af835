"""What the contract says of a geometry, and what the compiler says of it, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapecheck import Verdict, judge
from shapecheck.compiler import KERNELS


def verdicts(geometry: Mapping[str, Any]) -> dict[str, Verdict]:
    """Return the verdict of each rule that the compiler can see; of `paged_attention` where no callee is named."""
    stated = dict(geometry)
    kernel = KERNELS[stated.pop("callee", "paged_attention")]
    found = judge(kernel.name, **kernel.completed({**kernel.assumed, **stated}))
    silent = {rule.code for rule in kernel.contract.rules if rule.silent}
    return {code: verdict for code, verdict in found.items() if code not in silent}


def disagreement(found: Mapping[str, Verdict], *, compiles: bool) -> str:
    """Return how these verdicts are wrong; empty where they are not. What is unproven is never wrong."""
    worst = Verdict.worst(found.values())
    if compiles and worst is Verdict.VIOLATED:
        violated = sorted(code for code, each in found.items() if each is Verdict.VIOLATED)
        return f"false reject: it compiles, the contract says {', '.join(violated)}"
    if not compiles and worst is Verdict.PROVEN:
        return "false accept: it does not compile, the contract says that it does"
    return ""
