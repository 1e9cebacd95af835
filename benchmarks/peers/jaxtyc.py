"""jaxtyc imports a module and traces those of its functions that have jaxtyping annotations, through the real kernel.

Its error is the exception that ends the trace, so it sees one mistake a function, and no call outside of one. Each marked call is
therefore given to it in a function of its own: the whole module becomes the body of a function with an annotated parameter, and
the function that holds the call is called at its end, where its arguments are known.
"""

from __future__ import annotations

import ast
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from . import ROOT, Answers, Question, questions, run, write

# The last two are for `kernel`, which the sources import.
PACKAGES = ("jaxtyc==0.7.2", "jax==0.12.0.1", "pytest==9.2.0", "jaxtyping==0.3.11", "beartype==0.23.1")
HERE = Path(__file__).parent
OURS = re.compile("relations? do(es)? not hold")


class Wrap(ast.NodeTransformer):
    """Hand each marked call, the outermost that starts on its line, to `_marked`; find the function around the right one."""

    def __init__(self, lines: set[int], kept: int) -> None:
        self.lines, self.kept = lines, kept
        self.within: list[ast.FunctionDef] = []
        self.around: ast.FunctionDef | None = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remember which function is being looked at."""
        self.within.append(node)
        self.generic_visit(node)
        self.within.pop()
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Wrap a call."""
        if node.lineno not in self.lines:
            return self.generic_visit(node)
        self.lines.discard(node.lineno)
        if node.lineno == self.kept and self.within:
            self.around = self.within[0]
        return ast.parse(f"_marked({node.lineno}, lambda: {ast.unparse(node)})", mode="eval").body


def isolated(file: str, text: str, line: int) -> str:
    """Return a module whose one annotated function does what a source does, up to and with the marked call on a line."""
    wrap = Wrap({question.place.line for question in questions(file, text)}, line)
    tree = ast.parse(text)
    wrap.visit(tree)
    outside = [node for node in tree.body if isinstance(node, ast.ImportFrom) and "annotations" in (a.name for a in node.names)]
    parameters, call = called(wrap.around) if wrap.around in tree.body else ([], "")
    body = "\n".join([*(ast.unparse(node) for node in tree.body if node not in outside), call])
    head = "\n".join([*map(ast.unparse, outside), "import jax", "from jaxtyping import Array, Float, Int32", "import marked"])
    arguments = ", ".join(['probe: Float[Array, "1"]', *parameters])
    indented = "".join(f"        {each}\n" for each in body.splitlines())
    # argparse ends the process: that is no error of the call
    return f"""{head}

_marked = marked.Marked({file!r}, {line})

def marked_call({arguments}):
    try:
{indented}    except SystemExit:
        pass
    return probe
"""


def called(function: ast.FunctionDef | None) -> tuple[list[str], str]:
    """Return the parameters that a call of a function needs, and that call; none where an argument would have to be made up."""
    if function is None or function.args.vararg or function.args.kwarg:
        return [], ""
    spec = function.args
    required = spec.args[: len(spec.args) - len(spec.defaults)]
    required += [arg for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None]
    if not all(arg.arg == "key" or isinstance(arg.annotation, ast.Subscript) for arg in required):
        return [], ""
    parameters = [f"given_{arg.arg}: {ast.unparse(arg.annotation)}" for arg in required if arg.annotation]
    arguments = [f"{arg.arg}={f'given_{arg.arg}' if arg.annotation else 'jax.random.key(0)'}" for arg in required]
    return parameters, f"{function.name}({', '.join(arguments)})"


class Traced(NamedTuple):
    """What came of one marked call: the message of an exception that it let out, and whether it was traced to its end."""

    question: Question
    message: str
    finished: bool


def traced(sources: Mapping[str, str], venv: Path, folder: Path) -> Iterator[Traced]:
    """Give jaxtyc each marked call of the sources."""
    asked = [question for file, text in sources.items() for question in questions(file, text)]
    names = {question.place: f"{Path(question.place.file).stem}__{question.place.line}.py" for question in asked}
    files = {name: isolated(place.file, sources[place.file], place.line) for place, name in names.items()}
    write({**files, "marked.py": (HERE / "marked.py").read_text(encoding="utf-8")}, folder)
    report, notes, _ = run(
        [venv / "bin" / "jaxtyc", "check", "--format", "json", *files],
        folder,
        PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)]),
        VIRTUAL_ENV=str(venv),
        JAX_PLATFORMS="cpu",
        XLA_FLAGS="--xla_force_host_platform_device_count=8",  # the sources make meshes of as many
    )
    messages = {Path(found["file"]).name: found["message"] for found in report["diagnostics"]}
    noted = Counter(notes.splitlines())
    for question in asked:
        entered, left = (noted[f"{what} {question.place.file}:{question.place.line}"] for what in ("entered", "left"))
        yield Traced(question, messages.get(names[question.place], "") if entered > left else "", left > 0)


def answers(sources: Mapping[str, str], venv: Path, scratch: Path) -> Answers:
    """Run jaxtyc. A rule holds where a call was traced to its end, if jaxtyc reports the call of `probes.py` that breaks it.

    An exception that no probe raises, nor shapecheck, is of something else than the kernel.
    """
    probes = {"probes.py": (HERE / "probes.py").read_text(encoding="utf-8")}
    blamed: dict[str, set[str]] = {}
    for probe in traced(probes, venv, scratch / "probes"):
        if probe.message:
            blamed.setdefault(gist(probe.message), set()).update(probe.question.codes)
    able = set[str]().union(*blamed.values())
    started = time.perf_counter()
    found = list(traced(sources, venv, scratch / "cases"))
    seconds = time.perf_counter() - started
    ours = {gist(each.message): set[str]() for each in found if OURS.search(each.message)}
    errors = {each.question.place: codes for each in found if (codes := {**ours, **blamed}.get(gist(each.message))) is not None}
    finished = [each.question for each in found if each.finished and not each.message]
    held = {(question.place, code) for question in finished for code in able}
    return Answers(errors, held, {question.place for question in finished} | set(errors), 0, seconds)


def gist(message: str) -> str:
    """Return what JAX says without the values."""
    return re.sub(r"\d+|\bGot .*", "", message)
