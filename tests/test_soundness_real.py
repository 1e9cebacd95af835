"""No verdict that real code contradicts: what helpers and tests call the kernel with, recorded and held against our reading."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codemods import analyse
from codemods.source import Source
from codemods.surroundings import Surroundings
from codemods.verdicts import Judge
from shapecheck.contract import ON_TPU, Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.rule import Verdict

from .recording import Position, Record

ROOT = Path(__file__).parent.parent


def recorded(folder: Path, *arguments: str, program: str = "") -> list[Record]:
    """Run pytest in a process of its own, with recorders for kernels, then a program; return what they recorded."""
    with tempfile.TemporaryDirectory() as scratch:
        to = Path(scratch, "records")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "SHAPECHECK_RECORD": str(to),
            "SHAPECHECK_PROGRAM": program,
        }
        command = [sys.executable, "-m", "pytest", "--tb=line", "--assert=plain", "-p", "no:cacheprovider", "-p", "recording"]
        run = subprocess.run([*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
        assert to.exists(), run.stdout + run.stderr
        records = [Record(*each) for each in pickle.loads(to.read_bytes())]
        assert records, run.stdout + run.stderr
        return records


_broken: dict[tuple[int, tuple[tuple[str, Any], ...]], frozenset[str]] = {}  # by contract, and by the values of a call


def broken_by(contract: Contract, values: dict[str, Any]) -> frozenset[str]:
    """Return the codes of the rules that a call breaks; where the source says so, one about the TPU is judged."""
    key = id(contract), tuple(sorted(values.items()))
    if key not in _broken:
        verdicts = contract.judge({**values, ON_TPU: True})
        _broken[key] = frozenset(code for code, verdict in verdicts.items() if verdict is Verdict.VIOLATED)
    return _broken[key]


def contradictions(judge: Judge, values: dict[str, Any]) -> list[str]:
    """Return what an execution that we have read says of a call, and a recorded one contradicts."""
    broken = broken_by(judge.callee.contract, values)
    wrong = [
        f"{name} is {value!r}, not {values[name]!r}"
        for name, value in judge.constants.items()
        if name in CONTRACTS[judge.callee.contract.name].origins and name in values and values[name] != value
    ]
    for rule in judge.rules:
        verdict = judge.judge(rule).verdict
        if verdict is (Verdict.PROVEN if rule.code in broken else Verdict.VIOLATED):
            wrong.append(f"{rule.code} is {verdict.value}, {'' if rule.code in broken else 'not '}broken")
    return wrong


class Comparison:
    """Recorded calls, each held against the executions that the checker has followed to that very expression."""

    def __init__(self, files: Sequence[str], root: Path, records: Sequence[Record]) -> None:
        sources = [Source(str(root / file), (root / file).read_bytes()) for file in files]
        around = Surroundings(sources, root)
        sites = analyse.find_sites(around.program(), sources, around.neighbours, lambda path: None)
        self.sites = {_position(site): site for site in sites}
        self.judges = {at: list(analyse.judges_of(site, (), {})) for at, site in self.sites.items()}
        self.compared: dict[Position, int] = {}
        self.wrong: dict[str, None] = {}
        for record in records:
            for at in record.stack:
                if at in self.sites:
                    self._compare(at, record)

    def _compare(self, at: Position, record: Record) -> None:
        """One execution at least must be this one: all that is known of it agrees."""
        self.compared[at] = self.compared.get(at, 0) + 1
        if (
            self.sites[at].unseen is not None or "float64" in record.values.values()
        ):  # x64 is taken to be off, as docs/limits.md says
            return
        judges = [judge for judge in self.judges[at] if record.expected or not judge.arrival.expected] or self.judges[at]
        found = []
        for judge in judges:
            found.append(contradictions(judge, record.values))
            if not found[-1]:
                return
        self.wrong[f"{at[0]}:{at[1]}: of {len(judges)} executions none is this one; the nearest: {min(found, key=len)}"] = None


def _position(site: analyse.Site) -> Position:
    node = site.node
    return site.source.path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


SLOW = "test_kernel_reference.py"  # it computes most of what it passes on
OURS = sorted(str(path.relative_to(ROOT)) for path in Path(__file__).parent.glob("test_kernel_*.py") if path.name != SLOW)


@pytest.mark.thorough
def test_our_tests_of_the_kernel() -> None:
    comparison = Comparison(OURS, ROOT, recorded(ROOT, *OURS))
    assert len(comparison.compared) > 12
    assert not comparison.wrong, "\n".join(comparison.wrong)


def test_the_benchmarks_of_the_example(tmp_path: Path) -> None:
    """Traced, not computed: its pools are those of real models. `eval_shape` runs the same code with abstract arrays."""
    serving = ROOT / "examples"
    program = tmp_path / "trace.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(serving)!r})\n"
        "import jax\nfrom serving import bench\n"
        "for name in [each for each in vars(bench) if each.startswith('bench_')]:\n"
        "    jax.eval_shape(lambda run=getattr(bench, name): run() and None)\n"
    )
    records = recorded(tmp_path, program=str(program))
    comparison = Comparison(["serving/bench.py"], serving, records)
    assert len(comparison.compared) == len(comparison.sites) == 5
    assert not comparison.wrong, "\n".join(comparison.wrong)
    others = [each._replace(values=each.values | {"page_indices_pages_per_sequence": 77}) for each in records]
    assert len(Comparison(["serving/bench.py"], serving, others).wrong) == 5, "what is not so is found"


# ---- public code, where it is at hand: these files have been read, and do no harm

CHECKOUTS = os.environ.get("SHAPECHECK_CHECKOUTS")
PUBLIC = (
    "jax-ml__jax/tests/pallas/tpu_paged_attention_kernel_test.py",
    "old/jax-ml__jax@4fed1256dd/tests/pallas/tpu_paged_attention_kernel_test.py",
    "old/jax-ml__jax@242c993cee/tests/pallas/tpu/paged_attention_kernel_test.py",
    "old/AI-Hypercomputer__JetStream@7f831bc7ea/experimental/jax/inference/kernel/attention/tpu/paged_attention_test.py",
    "old/pytorch__xla@43c2bf0036/torch_xla/experimental/pallas_kernels/tpu_paged_attention_kernel_test.py",
    "erfanzar__ejkernel/test/kernels/_pallas/tpu/test_page_attention.py",
    "old/AI-Hypercomputer__maxtext@de5c6299a7/MaxText/benchmarks/bench_paged_attention_kernel.py --num-blocks 16",
    "old/AI-Hypercomputer__maxtext@d3466dd95f/MaxText/benchmarks/bench_paged_attention_kernel.py --num-blocks 16",
)


@pytest.mark.skipif(CHECKOUTS is None, reason="SHAPECHECK_CHECKOUTS names no folder of public repositories")
@pytest.mark.parametrize("command", PUBLIC, ids=lambda command: command.removeprefix("old/").partition("/")[0])
def test_public_code(command: str, tmp_path: Path) -> None:
    path, _, options = command.partition(" ")
    original = Path(CHECKOUTS or "", path)
    if not original.exists():
        pytest.skip(f"{path} is not in the folder of checkouts")
    file = tmp_path / "test_public.py"  # alone: of the packages around it nothing is imported
    shutil.copy(original, file)
    if "absl" in file.read_text():
        pytest.importorskip("absl", reason="the tests of JAX need absl-py")
    if options:
        records = recorded(tmp_path, program=f"{file} {options}")
    else:  # each is skipped where there is no TPU
        records = recorded(tmp_path, str(file), "-p", "no:skipping")
    comparison = Comparison([file.name], file.parent, records)
    assert comparison.compared
    assert not comparison.wrong, "\n".join(comparison.wrong)
