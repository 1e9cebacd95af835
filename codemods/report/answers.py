"""What `shapecheck compile` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from codemods.report.wording import assignments, printable
from shapecheck.compiler import Answer, mebibytes
from shapecheck.rule import Rule

_VERSION = 1


def render(answers: Sequence[Answer], output_format: str) -> str:
    """Return the answers as text or as JSON."""
    if output_format == "json":
        return json.dumps({"version": _VERSION, "compilations": [_document(answer) for answer in answers]}, indent=2) + "\n"
    differing = _differing(answers)
    return "".join(f"{printable(line)}\n" for answer in answers for line in _lines(answer, differing))


def _lines(answer: Answer, differing: Sequence[str]) -> Iterator[str]:
    question = answer.question
    where = {name: question.values.get(name) for name in differing}
    head = question.chip.name
    head += f", {question.mesh}" if question.mesh else ""
    head += f", {assignments(where)}" if where else ""
    took = "on an earlier run" if answer.cached else f"{answer.seconds:.1f} s"
    if answer.failure is None:
        yield f"{head}: compiles ({took}): {', '.join(_memory(answer))}"
        for rule in answer.silent:
            yield f"  but it goes wrong, or hangs, when it runs: {_rule(answer, rule)}"
        for rule in answer.disputed:
            yield f"  although the contract says that it cannot, please report it: {_rule(answer, rule)}"
        for rule in answer.hints:
            yield f"  hint: {_rule(answer, rule)}"
        return
    if answer.compiles is None:
        yield f"{head}: not known: {answer.words}: {answer.brief}"
        return
    yield f"{head}: does not compile ({took}): {answer.words}"
    for rule in answer.foreseen or ([answer.rule] if answer.rule else []):
        yield f"  {_rule(answer, rule)}"
    yield f"  the compiler: {answer.brief}"


def _memory(answer: Answer) -> Iterator[str]:
    """Yield what the call takes of each memory: what libtpu says, or else what the contract predicts."""
    for space in ("vmem", "smem", "hbm"):
        if space in answer.memory:
            yield f"{mebibytes(answer.memory[space])} {space.upper()}"
        elif space in answer.predicted:
            least, most = map(mebibytes, answer.predicted[space])
            yield f"{least.removesuffix(' MiB')} to {most} {space.upper()} (predicted)"


def _rule(answer: Answer, rule: Rule) -> str:
    """Return a rule with the values that break it, and what would be legal."""
    geometry = answer.question.geometry
    values = {name: geometry[name] for name in rule.relation.names if name in geometry}
    text = f"{rule.code} {rule.name}: {rule.message}: {assignments(values)}"
    advice = answer.question.contract.advice(rule, geometry)
    return f"{text}; {advice}" if advice else text


def _differing(answers: Sequence[Answer]) -> list[str]:
    """Return the names whose values tell the calls apart."""
    names = dict.fromkeys(name for answer in answers for name in answer.question.kernel.names)
    return [name for name in names if len({repr(answer.question.values.get(name)) for answer in answers}) > 1]


def _document(answer: Answer) -> dict[str, Any]:
    question = answer.question
    rules = answer.foreseen or ((answer.rule,) if answer.rule else ())
    return {
        "callee": question.kernel.name,
        "chip": question.chip.name,
        "mesh": question.mesh and asdict(question.mesh),
        "verdict": answer.failure or "ok",
        "compiles": answer.compiles,
        "rules": [{"code": rule.code, "name": rule.name, "message": rule.message} for rule in rules],
        "wrong_when_run": [rule.code for rule in answer.silent],
        "hints": [rule.code for rule in answer.hints],
        "disputed": [rule.code for rule in answer.disputed],
        "message": answer.message,
        "seconds": round(answer.seconds, 3),
        "cached": answer.cached,
        "memory": dict(answer.memory),
        "predicted": {space: {"least": least, "most": most} for space, (least, most) in answer.predicted.items()},
        "used": answer.used,
        "limit": answer.limit,
        "arrays": question.request["arrays"],
        "parameters": question.request["parameters"],
    }
