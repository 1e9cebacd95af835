"""An analysis of two rules, for tests of what surrounds it: a site is a call `paged_attention(pages=..., block=..., mode=...)`.

SC102: `pages % block == 0`. Literals decide it; the safe fix is a literal. An unknown `pages` is unproven, and its unsafe fix
is a call of `largest_divisor`, which is taken to be legal. SC201: `mode` is not 'kv_head'; the unsafe fix is None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

from codemods.check import Examination, Run, summarise
from codemods.config import Settings
from codemods.files import Found, Project
from codemods.findings import CallSite, Edit, Finding, ProposedFix, Value
from codemods.repairs.imports import Imports
from codemods.source import Source
from shapecheck.chip import Chip
from shapecheck.outcome import UNKNOWN
from shapecheck.plan import largest_divisor
from shapecheck.rule import Applicability, Verdict

IMPORT = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\n"
BAD = IMPORT + "out = paged_attention(pages=6, block=4)\n"
GOOD = IMPORT + "out = paged_attention(pages=6, block=3)\n"
UNPROVEN = IMPORT + "def f(n):\n    return paged_attention(pages=n, block=4)\n"


def analyse(
    sources: list[Source],
    *,
    root: Path,
    chips: tuple[Chip, ...],
    unproven: bool = True,
    editable: Set[str] = frozenset(),
) -> tuple[list[CallSite], list[Finding]]:
    judged = [result for source in sources for result in _calls(source)]
    return [site for site, _ in judged], [finding for _, findings in judged for finding in findings]


def run_over(text: str, path: str = "a.py", **changes: object) -> Run:
    """Return the run over one file, its findings changed."""
    source = Source(path, text.encode())
    sites, findings = analyse([source], root=Path(), chips=())
    findings = [Finding(**{**vars(finding), **changes}) for finding in findings]
    examined = Examination(Project("", Settings(unproven=True)), {path: source}, findings, [], sites, findings)
    return summarise(Found((), (), 1), [examined], [])


def _calls(source: Source) -> Iterator[tuple[CallSite, list[Finding]]]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id="paged_attention"), keywords=keywords):
                given = {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
                findings = [*_block(source, node, given), *_mode(source, node, given)]
                verdicts = {"SC102": Verdict.PROVEN, "SC201": Verdict.PROVEN}
                verdicts |= {finding.code: finding.verdict for finding in findings}
                yield CallSite(source.path, source.span(node), "paged_attention", "paged_attention", verdicts), findings


def _literal(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _block(source: Source, call: ast.Call, given: dict[str, ast.expr]) -> Iterator[Finding]:
    pages, block = _literal(given.get("pages")), _literal(given.get("block"))
    if block is None or (pages is not None and pages % block == 0):
        return
    place = source.span(given["block"])
    values = {"pages": Value(UNKNOWN if pages is None else pages, "page_indices.shape[1]"), "block": Value(block, "")}
    if pages is not None:
        best = str(largest_divisor(pages, block))
        fix = ProposedFix(Applicability.SAFE, f"use {best}", (Edit(place.start, place.end, best),))
        verdict, reason, counterexample = Verdict.VIOLATED, "", None
    else:
        function = Imports(source).function("shapecheck", "largest_divisor", given["block"])
        edit = Edit(place.start, place.end, f"{function.text}({ast.unparse(given['pages'])}, {block})")
        fix = ProposedFix(Applicability.UNSAFE, "use the largest divisor", (edit, *function.edits))
        verdict, reason, counterexample = Verdict.UNPROVEN, "`n` is a parameter", {"pages": block + 1}
    yield Finding(
        "SC102", "block-not-dividing", verdict, source.path, place, source.span(call), "paged_attention",
        "the block must divide the pages", "pages % block == 0", values, reason, "a divisor", counterexample, fix=fix,
    )  # fmt: skip


def _mode(source: Source, call: ast.Call, given: dict[str, ast.expr]) -> Iterator[Finding]:
    match given.get("mode"):
        case ast.Constant(value="kv_head") as mode:
            place = source.span(mode)
            fix = ProposedFix(Applicability.UNSAFE, "use None", (Edit(place.start, place.end, "None"),))
            yield Finding(
                "SC201", "megacore-kv-heads", Verdict.VIOLATED, source.path, place, source.span(call), "paged_attention",
                "the KV heads must be even", "mode != 'kv_head'", {"mode": Value("kv_head", "")}, fix=fix,
            )  # fmt: skip
        case _:
            return
