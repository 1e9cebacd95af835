"""Mistakes are seeded into the calls of the golden cases, and `fix` repairs them where they were made."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from codemods.analyse import analyse
from codemods.config import Configuration
from codemods.files import discover
from codemods.findings import Edit
from codemods.fix import fix
from codemods.rewrite import splice
from codemods.source import Source
from codemods.words import Words
from shapecheck.rule import Verdict

from .marked import source_of

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
Mutation: TypeAlias = Callable[[Source, ast.Call], Edit | None]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def replaced(source: Source, node: ast.expr, text: str) -> Edit:
    span = source.span(node)
    return Edit(span.start, span.end, text)


def other_block(source: Source, call: ast.Call) -> Edit | None:
    """A literal block becomes a larger number that divides little."""
    node = keyword(call, "pages_per_compute_block")
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return replaced(source, node, str(node.value + 7))
    return None


def added(text: str, name: str) -> Mutation:
    """A further keyword, where the call has none of this name."""

    def mutate(source: Source, call: ast.Call) -> Edit | None:
        if keyword(call, name) is not None or not call.keywords or len(call.args) != 5:
            return None
        end = source.span(call.keywords[-1].value).end
        return Edit(end, end, f", {name}={text}")

    return mutate


def other_dtype(source: Source, call: ast.Call) -> Edit | None:
    """The lengths become int16."""
    if len(call.args) < 5 or isinstance(call.args[3], ast.Starred):
        return None
    text = source.segment(call.args[3])
    return replaced(source, call.args[3], f"({text}).astype('int16')")


MUTATIONS = {  # with the code of what is wrong then, and how often that is so at least
    "block": (other_block, "SC102", 5),
    "misspelt mode": (added("'kvhead'", "megacore_mode"), "SC203", 10),
    "cap": (added("0.0", "attn_logits_soft_cap"), "SC113", 10),
    "dtype": (other_dtype, "SC107", 10),
}


FORMS = (  # a statement above the first function, and what stands at the call
    ("A{n} = B{n} = {block}", "B{n}"),
    ("A{n}, (B{n}, C{n}) = 1, ({block}, 2)", "B{n}"),
    ("BASE{n} = {{'block': 1}}; D{n} = {{**BASE{n}, 'block': {block}}}", "D{n}['block']"),
    ("class K{n}: block = {block}", "K{n}.block"),
    ("KEY{n} = -1; L{n} = [1, {block}]", "L{n}[KEY{n}]"),
    ("M{n} = {block} if True else 1", "M{n}"),
)


def written_elsewhere(source: Source, lines: set[int]) -> Iterator[Edit]:
    """Write the literal blocks above all functions, each another way, and wrong."""
    statements: list[str] = []
    for node in ast.walk(source.tree):
        edit = other_block(source, node) if isinstance(node, ast.Call) and node.lineno in lines else None
        if edit is not None:
            statement, name = (
                text.format(n=len(statements), block=edit.replacement) for text in FORMS[len(statements) % len(FORMS)]
            )
            statements.append(f"{statement}\n")
            yield Edit(edit.start, edit.end, name)
    code = (each for each in source.tree.body if not isinstance(each, ast.Import | ast.ImportFrom | ast.Expr))
    first = next(code)
    line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", ()))])
    yield Edit(source.line_starts[line - 1], source.line_starts[line - 1], "".join(statements))


@pytest.mark.thorough
def test_what_is_wrong_elsewhere_is_repaired_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    repaired = 0
    for path in CASES[::2]:
        source, before, legal = as_it_is(path)
        edits = sorted(written_elsewhere(source, legal), key=lambda edit: edit.start)
        wrong = Source("a.py", splice(source.text, edits))
        codes, _ = violations(wrong, tmp_path)
        if codes["SC102"] <= before["SC102"]:
            continue
        Path("a.py").write_bytes(wrong.data)
        _, [change] = fix(discover(["a.py"], Configuration(), Words()), analyse, None, unsafe=True)
        after, _ = violations(Source("a.py", change.after), tmp_path)
        assert after["SC102"] <= before["SC102"], path.name
        assert after.total() <= before.total(), path.name
        statements = edits[0].replacement.splitlines()
        repaired += len(set(statements) - set(change.after.decode().splitlines()))
    assert repaired >= 10


def seeded(source: Source, mutation: Mutation, lines: set[int]) -> Iterator[Edit]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.lineno in lines and (edit := mutation(source, node)) is not None:
            yield edit


def violations(source: Source, root: Path) -> tuple[Counter[str], set[int]]:
    """Return how many violations a file has of each code, and the lines of the calls without any."""
    sites, found = analyse([source], root=root)
    failing = {each.call.line for each in found if each.verdict is Verdict.VIOLATED}
    codes = Counter(each.code for each in found if each.verdict is Verdict.VIOLATED)
    return codes, {site.span.line for site in sites} - failing


@cache
def as_it_is(path: Path) -> tuple[Source, Counter[str], set[int]]:
    source = source_of(path)
    return source, *violations(source, path.parent)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_what_is_seeded_is_repaired(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mutation, code, least = MUTATIONS[kind]
    mistakes = 0
    files = CASES[::2] if kind == "block" else CASES[list(MUTATIONS).index(kind) % 3 :: 3]  # few have a literal block
    for path in files:
        source, before, legal = as_it_is(path)
        edits = sorted(seeded(source, mutation, legal), key=lambda edit: edit.start)
        wrong = Source("a.py", splice(source.text, edits))
        codes, _ = violations(wrong, tmp_path)
        if codes[code] <= before[code]:
            continue  # nothing that the source shows is wrong now
        mistakes += codes[code] - before[code]
        Path("a.py").write_bytes(wrong.data)
        _, [change] = fix(discover(["a.py"], Configuration(), Words()), analyse, None, unsafe=True)
        after, _ = violations(Source("a.py", change.after), tmp_path)
        assert after[code] <= before[code], path.name
        assert after.total() <= before.total(), path.name
    assert mistakes >= least
