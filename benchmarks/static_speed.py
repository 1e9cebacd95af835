"""Measure how fast `shapecheck check` and `fix` are, beside other tools, in one run.

    python benchmarks/static_speed.py [--tools FOLDER] [--plot FILE] CHECKOUT...

The corpora are made of the Python files of the checkouts, which are only read:

- no call sites: all files of the checkouts but those that name a kernel
- one violation a file: 143 files that parse, spread evenly over the checkouts, each with one illegal call added
- growth: 36 of those, 1, 4 and 16 times as many; and 9 of those, the text of each 1, 4 and 16 times as long
- a commit: five files in the tree without call sites; and with one call site among them

Each command runs in turn with the others, so that all have the same company on the machine. Wall time is the least of all
rounds, and so is processor time, that of all processes together; memory is the most that one process took. Other tools are
run where they are found; `--slow` adds those that take a minute or more for each round, which they run once.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from codemods.words import Words

CALL = """

def _decode_step():
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    q = jnp.zeros((8, 32, 128), jnp.bfloat16)
    pages = jnp.zeros((8, 192, 16, 128), jnp.bfloat16)
    lengths = jnp.full((8,), 300, jnp.int32)
    page_indices = jnp.zeros((8, 24), jnp.int32)
    return paged_attention(q, pages, pages, lengths, page_indices, pages_per_compute_block=16)
"""
FILES = 143
LEAST, MOST = 8_000, 120_000  # bytes of a file to which a call is added
WORDS = "paged_attention|page_attention|ragged_paged_attention|extended_paged_attention|multi_queries_paged_attention|shapecheck"


class Cost(NamedTuple):
    """What a run takes: seconds, seconds of all processors, and megabytes of the process that takes the most."""

    wall: float
    processor: float
    memory: float


class Command(NamedTuple):
    """A command to measure.

    Attributes:
        name: what the table calls it.
        arguments: those of the process.
        folder: where it runs.
        copies: it changes files: each round has a fresh copy of the folder.
        processors: how many it may use; 0 for all.
        rounds: how often it runs; 0 for as often as the others.
    """

    name: str
    arguments: Sequence[str]
    folder: Path
    copies: bool = False
    processors: int = 0
    rounds: int = 0


class Measuring(NamedTuple):
    """How to measure, and with what.

    Attributes:
        work: a folder for corpora, copies and the cache.
        tools: the folder of the other tools.
        rounds: how often each command runs.
        slow: whether to run the tools that take long.
    """

    work: Path
    tools: Path | None
    rounds: int
    slow: bool

    def shapecheck(self, name: str, folder: Path, *arguments: str, **options: Any) -> Command:
        return Command(name, [sys.executable, "-P", "-m", "codemods", *arguments], folder, **options)

    def other(self, name: str, tool: str, folder: Path, *arguments: str, slow: bool = False, **options: Any) -> Iterator[Command]:
        """Yield a command of another tool, if it is there."""
        path = shutil.which(tool, path=str(self.tools)) if self.tools else None
        path = path or shutil.which(tool)
        if path is None:
            print(f"{tool} is not there", file=sys.stderr)
        elif self.slow or not slow:
            yield Command(name, [path, *arguments], folder, rounds=1 if slow else 0, **options)

    def measure(self, commands: Sequence[Command]) -> Mapping[str, Cost]:
        """Run all commands in turn, so many rounds, and return the least of each by its name."""
        costs: dict[str, list[Cost]] = {}
        for turn in range(self.rounds):
            for command in commands:
                if not command.rounds or turn < command.rounds:
                    costs.setdefault(command.name, []).append(self._cost(command))
        return {name: Cost(*(min(each) for each in zip(*measured, strict=True))) for name, measured in costs.items()}

    def _cost(self, command: Command) -> Cost:
        folder = command.folder
        if command.copies:
            folder = self.work / "copy"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(command.folder, folder)
        root = str(Path(__file__).resolve().parent.parent)
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.work / "cache"), "PYTHONPATH": root}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
        environment["PYTHONPYCACHEPREFIX"] = str(self.work / "compiled")
        start = time.perf_counter()
        process = subprocess.Popen(
            command.arguments,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=_using(command.processors) if command.processors else None,
        )
        assert process.stderr is not None
        complaint = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            sys.exit(f"{command.name} failed: {complaint.decode(errors='replace')[-500:]}")
        return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def _using(processors: int) -> Callable[[], None]:
    allowed = sorted(os.sched_getaffinity(0))[:processors]
    return lambda: os.sched_setaffinity(0, allowed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT", help="the folder of a checkout")
    parser.add_argument("--tools", type=Path, metavar="FOLDER", help="where the other tools are, before those of PATH")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--slow", action="store_true", help="run fixit and torchfix as well, once each")
    parser.add_argument("--plot", metavar="FILE", help="draw the growth; needs matplotlib")
    options = parser.parse_args()
    print(f"{_machine()}, Python {platform.python_version()}, {options.rounds} rounds\n")
    with tempfile.TemporaryDirectory() as work:
        tools = options.tools.resolve() if options.tools else None
        measuring = Measuring(Path(work), tools, options.rounds, options.slow)
        checkouts = [each.resolve() for each in options.checkouts]
        tree = measuring.work / "tree"
        with get_context("fork").Pool(1) as elsewhere:  # the memory of this process counts as that of those that it starts
            sources = elsewhere.apply(_without_calls, (checkouts, tree))
        chosen = _spread(sources, FILES)
        first = _with_calls(chosen[:1], measuring.work / "first")
        for command in ("check", "fix"):  # so that all modules are compiled
            measuring.measure([measuring.shapecheck(command, first, command, "--no-cache", copies=True)])
        _no_call_sites(measuring, tree)
        _one_violation(measuring, _with_calls(chosen, measuring.work / "calls"), _copied(chosen, measuring.work / "plain"))
        _second_run(measuring, tree, _with_calls(chosen, measuring.work / "again"))
        _commit(measuring, tree, chosen)
        growth = _growth(measuring, chosen)
    if options.plot:
        _draw(growth, options.plot)


def _no_call_sites(measuring: Measuring, tree: Path) -> None:
    commands = [
        *measuring.other("ripgrep", "rg", tree, "-lw", WORDS, *("-g", "*.py", "-g", "*.pyi", "-g", "*.ipynb")),
        measuring.shapecheck("shapecheck check", tree, "check", "--no-cache"),
        *measuring.other("ruff, one rule, no cache", "ruff", tree, "check", "-q", "--no-cache", "--isolated", "--select", "E711"),
    ]
    _show(f"No call sites: {_size(tree)}", measuring.measure(commands), "ripgrep")


def _one_violation(measuring: Measuring, calls: Path, plain: Path) -> None:
    files = sorted(path.name for path in calls.iterdir())
    pattern = "paged_attention($$$)"
    commands = [
        measuring.shapecheck("shapecheck check", calls, "check", "--no-cache"),
        measuring.shapecheck("shapecheck check, one processor", calls, "check", "--no-cache", processors=1),
        measuring.shapecheck("shapecheck fix", calls, "fix", "--no-cache", copies=True),
        *measuring.other("ast-grep, no names", "ast-grep", calls, "run", "-l", "python", "-p", pattern),
        *measuring.other("pyupgrade", "pyupgrade", calls, "--py311-plus", *files, copies=True),
        *measuring.other(
            "semgrep, no names", "semgrep", calls, "scan", "--metrics=off", "--disable-version-check", "-q", "-l", "python",
            "-e", "paged_attention(...)", ".",
        ),
        *measuring.other("fixit, one rule", "fixit", calls, "--rules", "fixit.rules:CompareSingletonPrimitivesByIs", "lint", ".",
                         slow=True),
        *measuring.other("torchfix", "torchfix", calls, ".", slow=True),
    ]  # fmt: skip
    costs = measuring.measure(commands)
    _show(f"One violation a file: {_size(calls)}", costs, "shapecheck check")
    one, two = costs["shapecheck check, one processor"].wall, costs["shapecheck check"].wall
    print(f"\nAll processors are {one / two:.2f} times as fast as one.")
    few = {"all": measuring.work / "few"}
    _copied(sorted(calls.iterdir())[:5], few["all"])
    small = measuring.measure(
        [
            measuring.shapecheck("all processors", few["all"], "check", "--no-cache"),
            measuring.shapecheck("one processor", few["all"], "check", "--no-cache", processors=1),
        ]
    )
    _show("Five of these files", small, "one processor")


def _second_run(measuring: Measuring, tree: Path, calls: Path) -> None:
    for source in sorted(calls.iterdir())[:20]:  # a large tree in which some files have calls
        shutil.copy(source, tree)
    time.sleep(2.5)  # until the stamps of the files can be relied on
    without = "the same files without calls"
    scans = [
        ("that tree, and 20 of these files", tree, measuring.shapecheck(without, tree, "check", "--exclude", "m0??_*.py")),
        ("one violation a file", calls, measuring.shapecheck(without, measuring.work / "plain", "check")),
    ]
    for name, folder, scan in scans:
        first = measuring._replace(rounds=1).measure([measuring.shapecheck("first run", folder, "check")])
        again = measuring.measure([scan, measuring.shapecheck("second run", folder, "check")])
        _show(f"A second run: {name}", {**first, **again}, without)
    for source in sorted(calls.iterdir())[:20]:
        (tree / source.name).unlink()


def _commit(measuring: Measuring, tree: Path, chosen: Sequence[Path]) -> None:
    names = [str(path.relative_to(tree)) for path in chosen[:5]]
    scripts = [str(path.relative_to(tree)) for path in chosen[5:9]]
    (tree / "new_call.py").write_text(f"import os\n{CALL}")
    commands = [
        Command("python -c pass", [sys.executable, "-P", "-c", "pass"], tree),
        measuring.shapecheck("five files without call sites", tree, "check", "--no-cache", *names),
        measuring.shapecheck("five files, one call site", tree, "check", "--no-cache", "new_call.py", *scripts),
        measuring.shapecheck("the same, not for the first time", tree, "check", "new_call.py", *scripts),
    ]
    measuring._replace(rounds=1).measure(commands[-1:])
    _show("A commit of five files in that tree", measuring.measure(commands), "python -c pass")
    (tree / "new_call.py").unlink()


def _growth(measuring: Measuring, chosen: Sequence[Path]) -> Mapping[str, Sequence[Cost]]:
    growth: dict[str, list[Cost]] = {}
    for name, files in (("files", chosen[:36]), ("lines", chosen[:9])):
        for times in (1, 4, 16):
            folder = measuring.work / f"{name}{times}"
            if name == "files":
                for copy in range(times):
                    _with_calls(files, folder, f"c{copy:02}_")
            else:
                _with_calls(files, folder, times=times)
            command = measuring.shapecheck(name, folder, "check", "--no-cache")
            rounds = measuring.rounds if times < 16 else 1
            growth.setdefault(name, []).append(measuring._replace(rounds=rounds).measure([command])[name])
    print("\n### Growth\n\n| times as much | files: wall s | processor s | MB | lines: wall s | processor s | MB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for index, times in enumerate((1, 4, 16)):
        cells = [
            f"{cost.wall:.2f} | {cost.processor:.2f} | {cost.memory:.0f}" for each in growth.values() for cost in [each[index]]
        ]
        print(f"| {times} | {' | '.join(cells)} |")
    return growth


def _show(title: str, costs: Mapping[str, Cost], base: str) -> None:
    print(f"\n### {title}\n\n| command | wall s | processor s | MB | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name, cost in costs.items():
        ratio = f"{cost.wall / costs[base].wall:.2f}" if base in costs else ""
        print(f"| {name} | {cost.wall:.3f} | {cost.processor:.3f} | {cost.memory:.0f} | {ratio} |")
    sys.stdout.flush()


def _without_calls(checkouts: Sequence[Path], tree: Path) -> list[Path]:
    """Copy the Python files that name no kernel; return those to which a call can be added."""
    words = Words()
    fit: list[Path] = []
    for checkout in checkouts:
        for path in sorted(checkout.rglob("*")):
            if path.suffix not in (".py", ".pyi", ".ipynb") or not path.is_file() or path.is_symlink():
                continue
            data = path.read_bytes()
            if words.occur_in(data):
                continue
            copy = tree / checkout.name / path.relative_to(checkout)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            if LEAST < len(data) < MOST and path.suffix == ".py" and _parses(data):
                fit.append(copy)
    return fit


def _parses(data: bytes) -> bool:
    try:
        compile(data, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _spread(files: Sequence[Path], count: int) -> list[Path]:
    """Choose so many files, evenly; about four in five are larger than the least that is asked for."""
    return [files[index * len(files) // count] for index in range(count)]


def _copied(files: Sequence[Path], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(files):
        shutil.copy(path, folder / f"m{number:03}_{path.name}")
    return folder


def _with_calls(files: Sequence[Path], folder: Path, prefix: str = "", *, times: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(files):
        text = path.read_bytes().rstrip() + CALL.encode()
        text = re.sub(rb"^from __future__.*\n", b"", text, flags=re.MULTILINE) * times if times > 1 else text
        (folder / f"{prefix}m{number:03}_{path.name}").write_bytes(text)
    return folder


def _size(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return f"{len(sizes):,} files, {sum(sizes) / 1e6:.1f} MB"


def _machine() -> str:
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if os.path.exists("/proc/cpuinfo") else []
    return f"{len(os.sched_getaffinity(0))} cores of {models[0] if models else platform.processor()}, {platform.system()}"


def _draw(growth: Mapping[str, Sequence[Cost]], path: str) -> None:
    figures: Any = import_module("matplotlib.figure")
    figure = figures.Figure(figsize=(7, 3), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("processor", "memory"), strict=True):
        for corpus, costs in growth.items():
            axes.plot((1, 4, 16), [getattr(cost, name) for cost in costs], "o-", label=corpus)
        axes.set(xlabel="times as much", ylabel={"processor": "processor s", "memory": "MB"}[name], ylim=(0, None))
        axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
