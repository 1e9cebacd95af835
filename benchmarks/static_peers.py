#!/usr/bin/env python3
"""Give the same marked sources to shapecheck, pyrefly and jaxtyc, and count what each decides.

usage: python benchmarks/static_peers.py [CASES] --pyrefly VENV --jaxtyc VENV [--messages]

CASES is a folder of marked sources (`tests/cases` unless given), each VENV a virtual environment that holds the tool; one that
is left out is not run. Prints a Markdown table; `docs/static-peers.md` says what its cells mean and how each tool is set up.
Nothing of the sources is imported here: every tool runs in a subprocess on a copy. jaxtyc itself imports what it checks.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"#:\s*(.+?)\s*$")
NO_RULE = "no rule"


class Place(NamedTuple):
    """The first line of a marked call."""

    file: str
    line: int


class Marker(NamedTuple):
    """What is true of a marked call: its kind (`violated`, `proven`, ...) and the rules that this is said of."""

    place: Place
    kind: str
    codes: tuple[str, ...]


class Seen(NamedTuple):
    """What a tool says of marked calls.

    Attributes:
        errors: its messages at each of them.
        shown: the relations that it establishes there, as pairs of place and code.
        elsewhere: how many errors it has on other lines.
        seconds: the wall time of one ordinary run.
    """

    errors: Mapping[Place, Sequence[str]]
    shown: frozenset[tuple[Place, str]]
    elsewhere: int
    seconds: float


class Tool(NamedTuple):
    """A column of the table."""

    title: str
    version: str
    seen: Seen


def markers_of(file: str, text: str) -> Iterator[Marker]:
    """Yield the markers of one source file."""
    for number, line in enumerate(text.splitlines(), 1):
        if mark := MARK.search(line):
            words = mark.group(1).split()
            codes = tuple(word for word in words if word.startswith("SC"))
            kind = next(word for word in words if not word.startswith("SC"))
            yield Marker(Place(file, number), kind, codes or (NO_RULE,))


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a command in a folder; return what came of it and the wall seconds."""
    started = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done, time.perf_counter() - started


def output_of(done: subprocess.CompletedProcess[str]) -> Any:
    """Return the JSON that a tool printed; a tool that failed instead ends the benchmark."""
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{done.args[0]} failed: {(done.stderr or done.stdout).strip()[-2000:]}") from None


def versions(venv: Path, *packages: str) -> str:
    """Return the versions of packages in a virtual environment."""
    code = f"from importlib.metadata import version\nprint(', '.join(f'{{n}} {{version(n)}}' for n in {packages!r}))"
    done, _ = run([venv / "bin" / "python", "-c", code], venv)
    if done.returncode:
        raise SystemExit(f"{venv} lacks one of {', '.join(packages)}: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


def split(messages: Iterable[tuple[Place | None, str]], marked: frozenset[Place]) -> tuple[dict[Place, list[str]], int]:
    """Return the messages at marked calls by place, and the number of the others."""
    errors: dict[Place, list[str]] = {}
    elsewhere = 0
    for place, message in messages:
        if place is not None and place in marked:
            errors.setdefault(place, []).append(message)
        else:
            elsewhere += 1
    return errors, elsewhere


# shapecheck


def shapecheck(cases: Mapping[str, str], scratch: Path) -> Tool:
    """Run shapecheck: a violated finding is an error, a verdict `proven` shows a relation."""
    write(cases, scratch)
    command = [sys.executable, "-m", "codemods", "check", "--output-format", "json", "."]
    done, seconds = run(command, scratch, PYTHONPATH=str(ROOT))
    report = output_of(done)
    worst: dict[tuple[Place, str], bool] = {}
    for site in report["call_sites"]:
        for code, verdict in site["verdicts"].items():
            key = Place(site["path"], site["line"]), code
            worst[key] = worst.get(key, True) and verdict == "proven"
    messages = [
        (Place(finding["path"], finding["call_line"]), f"{finding['code']} {finding['message']}")
        for finding in report["findings"]
        if finding["verdict"] == "violated"
    ]
    errors, elsewhere = split(messages, places(cases))
    shown = frozenset(key for key, proven in worst.items() if proven)
    done, _ = run([sys.executable, "-m", "codemods", "--version"], scratch, PYTHONPATH=str(ROOT))
    return Tool("shapecheck", done.stdout.strip(), Seen(errors, shown, elsewhere, seconds))


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files, by their paths, into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def places(cases: Mapping[str, str]) -> frozenset[Place]:
    """Return the places of all markers."""
    return frozenset(marker.place for file, text in cases.items() for marker in markers_of(file, text))


# pyrefly. Its stubs of JAX and torch follow shapes; what the kernel demands is written here in the language that such stubs use
# for rules of shapes, where an `Invalid` result is an error at the call. That language has no dtypes and no contents of arrays.


class Relation(NamedTuple):
    """A rule in pyrefly's language of shapes: the sizes it speaks of, and when it is kept and broken."""

    sizes: tuple[str, ...]
    kept: str
    broken: str


SIZES = {
    "batch": "q[0]",
    "heads": "q[1]",
    "dim": "q[2]",
    "kv": "k[0]",
    "total": "k[1]",
    "page": "k[2]",
    "kdim": "k[3]",
    "vkv": "v[0]",
    "vtotal": "v[1]",
    "vpage": "v[2]",
    "vdim": "v[3]",
    "rows": "lengths[0]",
    "trows": "table[0]",
    "pages": "table[1]",
}


def _equal(*pairs: tuple[str, str]) -> Relation:
    kept, broken = " and ".join(f"{a} == {b}" for a, b in pairs), " or ".join(f"{a} != {b}" for a, b in pairs)
    return Relation(tuple(name for pair in pairs for name in pair), kept, broken)


# `n // b * b == n` rather than `n % b == 0`: the first is simplified where sizes are symbols (b = 1, b = n), the second is not.
RELATIONS: Mapping[str, Relation] = {
    "SC101": Relation(("heads", "kv"), "heads // kv * kv == heads", "heads % kv != 0"),
    "SC102": Relation(("pages", "block"), "pages // block * block == pages", "pages % block != 0"),
    "SC103": _equal(("kv", "vkv"), ("total", "vtotal"), ("page", "vpage"), ("kdim", "vdim")),
    "SC104": _equal(("dim", "kdim")),
    "SC105": _equal(("rows", "batch")),
    "SC106": _equal(("trows", "batch")),
    "SC110": Relation(("block",), "block >= 1", "block < 1"),
    "SC111": Relation(
        ("heads", "dim", "kv", "total", "page", "pages"),
        "heads >= 1 and dim >= 1 and kv >= 1 and total >= 1 and page >= 1 and pages >= 1",
        "heads == 0 or dim == 0 or kv == 0 or total == 0 or page == 0 or pages == 0",
    ),
    "SC201": Relation(("kv",), 'mode != "kv_head" or kv // 2 * 2 == kv', 'mode == "kv_head" and kv % 2 != 0'),
    "SC202": Relation(("batch",), 'mode != "batch" or batch // 2 * 2 == batch', 'mode == "batch" and batch % 2 != 0'),
    "SC203": Relation(
        (),
        'mode is None or mode == "kv_head" or mode == "batch"',
        'mode is not None and mode != "kv_head" and mode != "batch"',
    ),
    "SC109": Relation(
        (),
        "len(q) == 3 and len(k) == 4 and len(v) == 4 and len(lengths) == 1 and len(table) == 2",
        "len(q) != 3 or len(k) != 4 or len(v) != 4 or len(lengths) != 1 or len(table) != 2",
    ),
}

RULES_STUB = """
import shape_extensions.dsl as dsl
from shape_extensions import Int, IntTuple, type_shape_dsl_function

@type_shape_dsl_function
def judged(
    q: IntTuple, k: IntTuple, v: IntTuple, lengths: IntTuple, table: IntTuple, block: Int, mode: str | None
) -> IntTuple:
"""

# The first overload binds what the rules speak of; the second takes calls whose block or mode is no more than an `int` or a `str`.
KERNEL_STUB = """
from typing import overload
from {array_module} import {array} as Array
from paged_attention_rules import judged
from shape_extensions import Flag, Int, IntTuple, IntVar

@overload
def paged_attention[Q: IntTuple, K: IntTuple, V: IntTuple, L: IntTuple, T: IntTuple, B: IntVar, Mode: Flag[str | None]](
    q: Array[Q], k_pages: Array[K], v_pages: Array[V], lengths: Array[L], page_indices: Array[T], {star}
    pages_per_compute_block: Int[B], megacore_mode: Mode = None, attn_logits_soft_cap: float | None = None, {more}
) -> Array[judged(Q, K, V, L, T, Int[B], Mode)]: ...
@overload
def paged_attention[Q: IntTuple](
    q: Array[Q], k_pages: Array, v_pages: Array, lengths: Array, page_indices: Array, {star}
    pages_per_compute_block: int, megacore_mode: str | None = None, attn_logits_soft_cap: float | None = None, {more}
) -> Array[Q]: ...
"""

JAX_KERNEL = KERNEL_STUB.format(
    array_module="jax._array", array="Array", star="*,", more="mask_value: float = ..., inline_seq_dim: bool = True"
)
TORCH_KERNEL = KERNEL_STUB.format(array_module="torch", array="Tensor", star="", more="")
TPU = "jax-stubs/experimental/pallas/ops/tpu/paged_attention"

KERNEL_STUBS = {
    f"{TPU}/paged_attention_kernel.pyi": JAX_KERNEL,
    f"{TPU}/__init__.pyi": "from . import paged_attention_kernel as paged_attention_kernel\n"
    "from .paged_attention_kernel import paged_attention as paged_attention\n",
    "kernel/__init__.pyi": "from typing import Any\n"
    "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as paged_attention\n"
    "def pad_page_indices(*args: Any, **kwargs: Any) -> Any: ...\n",
    "torch_xla/__init__.pyi": "",
    "torch_xla/experimental/__init__.pyi": "",
    "torch_xla/experimental/custom_kernel.pyi": TORCH_KERNEL,
    "torch_ops.pyi": "from torch_xla.experimental import custom_kernel\n"
    "class _Ops:\n    xla = custom_kernel\n    def __getattr__(self, name: str) -> object: ...\nops: _Ops\n",
}


def rules_stub(codes: Iterable[str], kept: bool) -> str:
    """Return the stub of the rules that reports a rule where it is broken, or where it is kept.

    Every size is asked for first, so that an unknown one does not hide the rules that do not need it.
    """
    body = RULES_STUB
    named = sorted({name for code in codes for name in RELATIONS[code].sizes} & SIZES.keys())
    body += "".join(f"    {name} = {SIZES[name]}\n" for name in named)
    for code in codes:
        relation = RELATIONS[code]
        known = "" if kept else "".join(f"dsl.is_concrete_int({name}) and " for name in dict.fromkeys(relation.sizes))
        test = relation.kept if kept else f"{known}({relation.broken})"
        body += f'    if {test}:\n        return dsl.Invalid("{code} {"holds" if kept else "is broken"}")\n'
    return body + "    return q\n"


def declared(text: str) -> str:
    """Return a source in which pyrefly reads the jaxtyping annotations: a decorator has to name their axes."""
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        strings = [part.value for part in ast.walk(node.args) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if strings and any(isinstance(arg.annotation, ast.Subscript) for arg in node.args.args):
            axes = " ".join(dict.fromkeys(word for string in strings for word in string.split() if word.isidentifier()))
            first = min(part.lineno for part in (node, *node.decorator_list)) - 1
            for line in (f'@shape_extensions.static_jaxtyping("{axes}")', "import shape_extensions"):
                lines.insert(first, " " * node.col_offset + line + "\n")
    return "".join(lines)


def pyrefly(cases: Mapping[str, str], venv: Path, scratch: Path, *, contract: bool) -> Tool:
    """Run pyrefly with its stubs alone, or also with the contract of the kernel; then once a rule for what it shows."""
    packages = next((venv / "lib").glob("python3*")) / "site-packages"
    sources = {file: declared(text) if contract else text for file, text in cases.items()}
    marked = {
        new.place: old.place for file in cases for old, new in zip(markers_of(file, cases[file]), markers_of(file, sources[file]))
    }
    write(sources, scratch)
    if contract:
        overlay(packages, scratch / "stubs")
    search = [str(scratch / "stubs"), str(ROOT)] if contract else [str(ROOT)]
    write({"pyrefly.toml": f'python-version = "3.13"\nsearch-path = {json.dumps(search)}\n'}, scratch)
    errors, elsewhere, seconds = reported(venv, scratch, marked, rules_stub(RELATIONS, kept=False))
    shown: set[tuple[Place, str]] = set()
    for code in RELATIONS if contract else ():
        held, _, _ = reported(venv, scratch, marked, rules_stub([code], kept=True))
        shown.update((place, code) for place, messages in held.items() if any(f"{code} holds" in text for text in messages))
    title = "pyrefly, its stubs and the contract" if contract else "pyrefly, its stubs"
    names = versions(venv, "pyrefly", "jax-pyrefly-stubs", "pyrefly-torch-stubs")
    return Tool(title, names, Seen(errors, frozenset(shown), elsewhere, seconds))


def overlay(packages: Path, stubs: Path) -> None:
    """Put pyrefly's stubs and those of the kernel into one folder: a package of stubs can not be in two."""
    for name in ("jax-stubs", "torch-stubs"):
        shutil.copytree(packages / name, stubs / name)
    torch = stubs / "torch-stubs" / "__init__.pyi"
    torch.write_text(torch.read_text().replace("\nops: Any\n", "\nfrom torch_ops import ops as ops\n"))
    write(KERNEL_STUBS, stubs)


def reported(
    venv: Path, folder: Path, marked: Mapping[Place, Place], rules: str
) -> tuple[dict[Place, list[str]], int, float]:
    """Run pyrefly with a stub of rules; return the errors at marked calls, the number of others, and the seconds."""
    write({"stubs/paged_attention_rules.pyi": rules}, folder)
    files = sorted(path.name for path in folder.glob("*.py"))
    command = [venv / "bin" / "pyrefly", "check", "-c", "pyrefly.toml", "--output-format", "json"]
    done, seconds = run([*command, "--python-interpreter-path", venv / "bin" / "python", *files], folder)
    found = [error for error in output_of(done)["errors"] if error["severity"] == "error"]
    located = [(marked.get(Place(Path(error["path"]).name, error["line"])), error["description"]) for error in found]
    errors, elsewhere = split(located, frozenset(marked.values()))
    return errors, elsewhere, seconds


# jaxtyc. It imports a module and traces those of its functions that have jaxtyping annotations, through the real kernel: an error
# is what the traced code raises, at the `def`. A call outside such a function is not looked at. So each marked call is also given
# to it in a function of its own: the whole module becomes the body of a function with one annotated parameter, the other marked
# calls are left out of it, and the function that holds the call is called at the end where its arguments are known.

# One call a rule that breaks it and no other: which rules jaxtyc can see broken at all.
PROBES = """
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils
q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 6), jnp.int32)
paged_attention(q[:, :7], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC101 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=4)  #: SC102 violated
paged_attention(q, kv, kv[:, :32], lens, idx, pages_per_compute_block=3)  #: SC103 violated
paged_attention(q[..., :64], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC104 violated
paged_attention(q, kv, kv, lens[:1], idx, pages_per_compute_block=3)  #: SC105 violated
paged_attention(q, kv, kv, lens, idx[:1], pages_per_compute_block=3)  #: SC106 violated
paged_attention(q, kv, kv, lens.astype(jnp.int16), idx, pages_per_compute_block=3)  #: SC107 violated
paged_attention(q, kv, kv, lens, idx.astype(jnp.int16), pages_per_compute_block=3)  #: SC108 violated
paged_attention(q[0], kv, kv, lens, idx, pages_per_compute_block=3)  #: SC109 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=0)  #: SC110 violated
paged_attention(q, kv[:, :, :0], kv[:, :, :0], lens, idx, pages_per_compute_block=3)  #: SC111 violated
paged_attention(q, quantization_utils.quantize_to_int8(kv), kv, lens, idx, pages_per_compute_block=3)  #: SC112 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, attn_logits_soft_cap=0.0)  #: SC113 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, mask_value=0.0)  #: SC114 violated
paged_attention(q.astype(jnp.int32), kv, kv, lens, idx, pages_per_compute_block=3)  #: SC115 violated
paged_attention(q, kv[:1], kv[:1], lens, idx, pages_per_compute_block=3, megacore_mode="kv_head")  #: SC201 violated
paged_attention(q[:1], kv, kv, lens[:1], idx[:1], pages_per_compute_block=3, megacore_mode="batch")  #: SC202 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=3, megacore_mode="kv_heads")  #: SC203 violated
paged_attention(q, kv, kv, lens + 500, idx, pages_per_compute_block=3)  #: SC401 violated
paged_attention(q, kv, kv, lens, idx + 64, pages_per_compute_block=3)  #: SC402 violated
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Isolate(ast.NodeTransformer):
    """Take all marked calls but one out of a module, and let that one note on stderr when it is entered and left."""

    def __init__(self, marked: Iterable[int], kept: int, tag: str) -> None:
        self.marked, self.kept, self.tag = set(marked), kept, tag
        self.within: list[Function] = []
        self.around: Function | None = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remember which function is being looked at."""
        self.within.append(node)
        self.generic_visit(node)
        self.within.pop()
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a marked call: the outermost that starts on its line."""
        if node.lineno not in self.marked:
            return self.generic_visit(node)
        self.marked.discard(node.lineno)
        if node.lineno != self.kept:
            return ast.Constant(None)
        self.around = self.within[0] if self.within else None
        note = "__import__('sys').stderr.write('{} " + self.tag + "\\n')"
        return ast.parse(f"({note.format('entered')}, {ast.unparse(node)}, {note.format('left')})[1]", mode="eval").body


def isolated(text: str, marker: Marker) -> str:
    """Return a module whose one annotated function does what the source does up to and with one marked call."""
    lines = [other.place.line for other in markers_of(marker.place.file, text)]
    isolate = Isolate(lines, marker.place.line, f"{marker.place.file}:{marker.place.line}")
    tree = isolate.visit(ast.parse(text))
    first = [node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*")]
    body = [node for node in tree.body if node not in first]
    given, call = called(isolate.around) if isolate.around in tree.body else ([], "")
    parameters = ", ".join(['probe: Float[Array, "1"]', *given])
    inner = "\n".join(ast.unparse(node) for node in body) + "\n" + call
    indented = "".join(f"    {line}\n" for line in inner.splitlines())
    imports = "".join(ast.unparse(node) + "\n" for node in first)
    return f"{imports}import jax\nfrom jaxtyping import Array, Float, Int32\n\ndef marked_call({parameters}):\n{indented}"


def called(function: Function | None) -> tuple[list[str], str]:
    """Return the parameters that a call of a function needs, and that call; none where an argument would have to be made up."""
    if function is None:
        return [], ""
    spec = function.args
    required = spec.args[: len(spec.args) - len(spec.defaults)]
    required += [arg for arg, default in zip(spec.kwonlyargs, spec.kw_defaults) if default is None]
    given, arguments = [], []
    for arg in required:
        if isinstance(arg.annotation, ast.Subscript):
            given.append(f"given_{arg.arg}: {ast.unparse(arg.annotation)}")
            arguments.append(f"{arg.arg}=given_{arg.arg}")
        elif arg.arg == "key":
            arguments.append("key=jax.random.key(0)")
        else:
            return [], ""
    return given, f"{function.name}({', '.join(arguments)})"


def traced(venv: Path, folder: Path) -> tuple[list[Any], str, float]:
    """Run jaxtyc on a folder; return its diagnostics, what the traced code wrote to stderr, and the seconds."""
    write({"pyproject.toml": '[tool.jaxtyc]\nseverity = "info"\n'}, folder)
    python_path = os.pathsep.join([str(ROOT), str(folder)])
    command = [venv / "bin" / "jaxtyc", "check", "--format", "json", "."]
    done, seconds = run(command, folder, PYTHONPATH=python_path, JAX_PLATFORMS="cpu", VIRTUAL_ENV=str(venv))
    return output_of(done)["diagnostics"], done.stderr, seconds


def jaxtyc(cases: Mapping[str, str], venv: Path, scratch: Path) -> Tool:
    """Run jaxtyc on the sources as they are: an error at a function is one at each marked call in it."""
    write(cases, scratch)
    diagnostics, _, seconds = traced(venv, scratch)
    at = {(Path(found["file"]).name, found["line"]): found["message"] for found in diagnostics if found["severity"] == "error"}
    errors: dict[Place, list[str]] = {}
    for file, text in cases.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Function) and (file, node.lineno) in at:
                held = (marker.place for marker in markers_of(file, text) if node.lineno <= marker.place.line <= node.end_lineno)
                errors.update((place, [at[file, node.lineno]]) for place in held)
    return Tool("jaxtyc", versions(venv, "jaxtyc", "jax"), Seen(errors, frozenset(), len(at) - len(errors), seconds))


def jaxtyc_isolated(cases: Mapping[str, str], venv: Path, scratch: Path) -> Tool:
    """Run jaxtyc on each marked call in a function of its own.

    An error is an exception that the marked call let out. A relation is shown where the call was traced to its end, if jaxtyc
    reports the call of `PROBES` that breaks that rule.
    """
    able = {marker.codes[0] for marker, error, _ in isolated_runs({"probes.py": PROBES}, venv, scratch / "probes") if error}
    started = time.perf_counter()
    runs = list(isolated_runs(cases, venv, scratch / "cases"))
    seconds = time.perf_counter() - started
    errors = {marker.place: [error] for marker, error, _ in runs if error}
    shown = {(marker.place, code) for marker, error, done in runs if done and not error for code in marker.codes if code in able}
    title = "jaxtyc, a function for each call"
    return Tool(title, versions(venv, "jaxtyc", "jax"), Seen(errors, frozenset(shown), 0, seconds))


def isolated_runs(cases: Mapping[str, str], venv: Path, folder: Path) -> Iterator[tuple[Marker, str, bool]]:
    """Yield for each marker the error that its call let out, and whether the call was traced to its end."""
    markers = [marker for file, text in cases.items() for marker in markers_of(file, text)]
    names = {marker.place: f"{Path(marker.place.file).stem}__{marker.place.line}.py" for marker in markers}
    write({names[marker.place]: isolated(cases[marker.place.file], marker) for marker in markers}, folder)
    diagnostics, stderr, _ = traced(venv, folder)
    messages = {Path(found["file"]).name: found["message"] for found in diagnostics}
    notes = Counter(stderr.splitlines())
    for marker in markers:
        tag = f"{marker.place.file}:{marker.place.line}"
        entered, left = notes[f"entered {tag}"], notes[f"left {tag}"]
        yield marker, messages.get(names[marker.place], "") if entered > left else "", left > 0


# The table.


def judged(marker: Marker, code: str, seen: Seen, speaks: bool) -> str:
    """Return what one tool makes of one fact: `right`, `wrong` or `silent`."""
    error = bool(seen.errors.get(marker.place))
    if marker.kind == "violated":
        return "right" if error else "silent"
    if error:
        return "wrong"
    match marker.kind:
        case "unproven":
            return "right"
        case "proven":
            return "right" if (marker.place, code) in seen.shown else "silent"
        case _:
            return "right" if speaks else "silent"


def counted(markers: Sequence[Marker], seen: Seen) -> dict[str, Counter[str]]:
    """Return how often a tool is right, wrong and silent: on markers, on markers of each kind, and on the facts of each rule."""
    speaking = {marker.place.file for marker in markers if marker.kind == "violated" and seen.errors.get(marker.place)}
    counts: dict[str, Counter[str]] = {}
    for marker in markers:
        verdicts = [judged(marker, code, seen, marker.place.file in speaking) for code in marker.codes]
        whole = next((verdict for verdict in ("wrong", "silent") if verdict in verdicts), "right")
        for row in ("all markers", f"`{marker.kind}`"):
            counts.setdefault(row, Counter())[whole] += 1
        for code, verdict in zip(marker.codes, verdicts, strict=True):
            if code != NO_RULE:
                counts.setdefault(code, Counter())[verdict] += 1
    return counts


def table(markers: Sequence[Marker], tools: Sequence[Tool]) -> Iterator[str]:
    """Yield the lines of the table: right / wrong / silent for each row and tool."""
    columns = [counted(markers, tool.seen) for tool in tools]
    kinds = [f"`{kind}`" for kind in ("violated", "proven", "unproven", "quiet", "not-a-site")]
    rows = ["all markers", *kinds, *sorted(row for row in columns[0] if row.startswith("SC"))]
    yield f"| right / wrong / silent | n | {' | '.join(tool.title for tool in tools)} |"
    yield "|---|--:|" + "--:|" * len(tools)
    for row in (row for row in rows if row in columns[0]):
        cells = [f"{column[row]['right']} / {column[row]['wrong']} / {column[row]['silent']}" for column in columns]
        yield f"| {row} | {columns[0][row].total()} | {' | '.join(cells)} |"
    yield f"| errors on other lines | | {' | '.join(str(tool.seen.elsewhere) for tool in tools)} |"
    yield f"| wall seconds | | {' | '.join(f'{tool.seen.seconds:.1f}' for tool in tools)} |"
    yield ""
    yield from sorted({f"- {tool.title}: {tool.version}" for tool in tools})


def main() -> None:
    """Run the tools that are to be had and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="?", type=Path, default=ROOT / "tests" / "cases")
    parser.add_argument("--pyrefly", metavar="VENV", type=Path, help="has pyrefly, jax-pyrefly-stubs, pyrefly-torch-stubs")
    parser.add_argument("--jaxtyc", metavar="VENV", type=Path, help="has jaxtyc, jax and what the sources import")
    parser.add_argument("--messages", action="store_true", help="list also each error and what was made of it")
    options = parser.parse_args()
    cases = {path.name: path.read_text(encoding="utf-8") for path in sorted(options.cases.glob("*.py"))}
    markers = [marker for file, text in cases.items() for marker in markers_of(file, text)]
    runs: list[Callable[[Path], Tool]] = [lambda scratch: shapecheck(cases, scratch)]
    if venv := options.pyrefly and options.pyrefly.absolute():
        runs += [lambda scratch, on=on: pyrefly(cases, venv, scratch, contract=on) for on in (False, True)]
    if other := options.jaxtyc and options.jaxtyc.absolute():
        runs += [lambda scratch: jaxtyc(cases, other, scratch), lambda scratch: jaxtyc_isolated(cases, other, scratch)]
    with tempfile.TemporaryDirectory() as scratch:
        tools = [start(Path(scratch) / str(number)) for number, start in enumerate(runs)]
    print("\n".join(table(markers, tools)))
    for tool in tools if options.messages else ():
        for marker in markers:
            verdicts = [judged(marker, code, tool.seen, True) for code in marker.codes]
            print(f"{tool.title}: {marker.place.file}:{marker.place.line} {marker.kind} {dict(zip(marker.codes, verdicts))}")
            print(*(f"    {text}" for text in tool.seen.errors.get(marker.place, ())), sep="\n")


if __name__ == "__main__":
    main()
