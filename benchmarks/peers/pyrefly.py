"""pyrefly infers shapes from the stubs that it brings for JAX, NumPy and torch; `stubs/` holds the contract of the kernel."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import CODE, Answers, Place, questions, run, write

PACKAGES = (
    "pyrefly==1.5.0",
    "jax-pyrefly-stubs==1.4.0",
    "pyrefly-numpy-stubs==1.4.0",
    "jax==0.12.0.1",
    "jaxtyping==0.3.11",
    "pytest==9.2.0",
)
# They require torch itself, 6 GB. What of it they need is in `stubs/torch-stubs`.
BARE = ("pyrefly-torch-stubs==1.4.0",)


def declared(text: str) -> str:
    """Return a source of which pyrefly reads the jaxtyping annotations too: a decorator has to name their axes."""
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        annotations = [arg.annotation for arg in node.args.args if isinstance(arg.annotation, ast.Subscript)]
        parts = [part.value for each in annotations for part in ast.walk(each) if isinstance(part, ast.Constant)]
        if parts:
            axes = dict.fromkeys(word for part in parts for word in str(part).split() if word.isidentifier())
            first = min(part.lineno for part in (node, *node.decorator_list)) - 1
            for line in (f'@shape_extensions.static_jaxtyping("{" ".join(axes)}")', "import shape_extensions"):
                lines.insert(first, f"{' ' * node.col_offset}{line}\n")
    return "".join(lines)


def answers(sources: Mapping[str, str], venv: Path, scratch: Path) -> Answers:
    """Run pyrefly: `SC101 holds` shows a rule, another error is one of the call if it names a rule or the kernel."""
    changed = {file: declared(text) for file, text in sources.items()}
    asked = {
        new.place: old.place
        for file, text in sources.items()
        for old, new in zip(questions(file, text), questions(file, changed[file]), strict=True)
    }
    write({**changed, "pyrefly.toml": 'python-version = "3.13"\nsearch-path = ["stubs"]\n'}, scratch)
    overlay(next((venv / "lib").glob("python3*")) / "site-packages", scratch / "stubs")
    python = venv / "bin" / "python"
    options = ["-c", "pyrefly.toml", "--output-format", "json", "--python-interpreter-path", python]
    report, _, seconds = run([venv / "bin" / "pyrefly", "check", *options, *sorted(changed)], scratch)
    errors: dict[Place, set[str]] = {}
    held: set[tuple[Place, str]] = set()
    elsewhere = 0
    for error in report["errors"]:
        what = error["description"].partition("\n")[0]
        codes = set(CODE.findall(what))
        place = asked.get(Place(Path(error["path"]).name, error["line"]))
        if place and what.endswith(" holds"):
            held |= {(place, code) for code in codes}
        elif place and (codes or "paged_attention" in what):
            errors[place] = errors.get(place, set()) | codes
        elif what.endswith(" is broken"):
            elsewhere += 1
    return Answers(errors, held, {place for place, _ in held} | set(errors), elsewhere, seconds)


def overlay(packages: Path, stubs: Path) -> None:
    """Put pyrefly's stubs and those of the kernel into one folder: a package of stubs can not be in two."""
    for name in ("jax-stubs", "torch-stubs"):
        shutil.copytree(packages / name, stubs / name)
    shutil.copytree(Path(__file__).with_name("stubs"), stubs, dirs_exist_ok=True)
    torch = stubs / "torch-stubs" / "__init__.pyi"
    torch.write_text(torch.read_text("utf-8").replace("\nops: Any\n", "\nfrom torch_xla.ops import ops as ops\n"), "utf-8")
