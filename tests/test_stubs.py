"""The stubs that `shapecheck stub` writes, and what pyrefly says with them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from codemods import cli
from codemods.stubs.callee import Stub
from codemods.stubs.files import MARK, NAMES, VERSIONS, files_of, stubs_of
from codemods.stubs.language import Language, Untellable
from shapecheck.contract import ArrayArgument, Contract, Parameter
from shapecheck.contracts import PAGED_ATTENTION
from shapecheck.demands import relation
from shapecheck.rule import Verdict

PAGE = Path(__file__).parent.parent / "docs" / "type-checkers.md"
ARRAYS = (ArrayArgument("x", ("rows", "columns")), ArrayArgument("y", ("columns", "depth")))
PARAMETERS = (
    Parameter("block"),
    Parameter("mode", default=None),
    Parameter("window", default=None),
    Parameter("scale", default=1.0),
)


def broken(text: str, *others: str) -> str:
    """Return the condition under which a relation is told to be broken."""
    rule = relation(text)
    contract = Contract("f", ARRAYS, PARAMETERS, (rule, *map(relation, others)))
    return re.sub(r"dsl\.is_concrete_int\((\w+)\)", r"known(\1)", Language(contract).sentence(rule).broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rows % 8 == 0", "known(rows) and rows % 8 != 0"),
        ("rows % block == 0", "known(rows) and known(block) and (block != 0) and (rows % block != 0)"),
        ("rows == depth and block == 4", "known(rows) and known(depth) and (rows != depth) or (known(block) and block != 4)"),
        ("not rows == 4", "known(rows) and rows == 4"),
        ("rows in (1, 2)", "known(rows) and rows != 1 and (rows != 2)"),
        ("not (rows == 1 and not depth == 2)", "known(rows) and rows == 1 and known(depth) and (depth != 2)"),
        ("not (rows == 1 if block == 3 else rows == 2)",
         "known(block) and block == 3 and known(rows) and (rows == 1)"
         " or (known(block) and block != 3 and known(rows) and (rows == 2))"),
        ("mode != 'a' or rows % 2 == 0", "mode == 'a' and known(rows) and (rows % 2 != 0)"),
        ("mode is None or mode in ('a', 'b')", "mode is not None and mode != 'a' and (mode != 'b')"),
        ("rows == 1 if mode == 'a' else rows == 2",
         "mode == 'a' and known(rows) and (rows != 1) or (mode != 'a' and known(rows) and (rows != 2))"),
        ("min(rows, depth) >= 1", "known(rows) and rows == 0 or (known(depth) and depth == 0)"),
        ("max(rows, depth) <= 8", "known(rows) and rows // 9 != 0 or (known(depth) and depth // 9 != 0)"),
        ("rows < depth", "known(rows) and known(depth) and (depth != 0) and (rows // depth != 0)"),
        ("block <= rows",
         "known(block) and 0 <= block and known(rows) and (rows + 1 != 0) and (block // (rows + 1) != 0)"),
        ("block_type == 'int' and block >= 1", "known(block) and block < 1"),
        ("1 < block < 9", "known(block) and 1 >= block or (known(block) and block >= 9)"),
        ("x_rank == 2", "x_rank != 2"),
        ("window is None or window > 0", "window is not None and dsl.is_int_value(window) and (window <= 0)"),
    ],
)  # fmt: skip
def test_a_relation_is_said_by_what_breaks_it(text: str, expected: str) -> None:
    assert broken(text, "rows % block == 0") == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x_dtype == 'int32'", "dtypes are not known"),
        ("itemsize(x) == 4", "dtypes are not known"),
        ("x_max < rows", "what is in arrays is not known"),
        ("chip_generation >= 5", "no chip is known"),
        ("scale > 0.5", "an argument that is no size is not known"),
        ("rows * 0.5 == 4", "`0.5` is not in the language"),
        ("abs(rows) == 4", "`abs(rows)` is not in the language"),
        ("rows - depth < 4", "what may be negative is not put in order with sizes"),
        ("(mode is None) == (rows == 1)", "`mode is None` is not in the language"),
        ("rows if rows == 1 else depth == 2", "`rows` is no comparison"),
        ("block % 8 == 0", "an argument that is compared with sizes is not computed with alone"),
        ("rows >= 0", "sizes are not negative"),
        ("window is None or window <= rows", "what may be None is not compared with sizes"),
    ],
)
def test_what_cannot_be_said_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(Untellable, match=re.escape(reason)):
        broken(text, "mode is None or mode == 'a'", "rows % block == 0")


def test_a_rule_about_the_tpu_is_not_said_for_a_call_may_run_elsewhere() -> None:
    rule = relation("rows % 128 == 0", when="tpu")
    with pytest.raises(Untellable, match="TPU"):
        Language(Contract("f", ARRAYS, (), (rule,))).sentence(rule)


@pytest.mark.parametrize("stub", stubs_of(NAMES).values(), ids=list(stubs_of(NAMES)))
def test_every_rule_is_told_or_listed(stub: Stub) -> None:
    told = {each.rule.code for each in stub.told}
    untold = {each.partition(" ")[0] for each in stub.untold}
    assert told | untold == {rule.code for rule in stub.callee.contract.rules if not rule.is_hint}
    assert not told & untold
    assert all(f"def {code}_{stub.callee.name}(" in stub.text for code in told)
    assert all(f"#   {line}" in stub.text for line in stub.untold)


WORDS = (None, "kv_head", "batch", "both")
INTEGERS = (None, -1, 0, 1, 2, 3)


class Known:
    """What the language asks of sizes, where all of them are numbers."""

    @staticmethod
    def is_concrete_int(size: object) -> bool:
        return True

    @staticmethod
    def is_int_value(value: object) -> bool:
        return value is not None


@pytest.mark.parametrize("stub", stubs_of(NAMES).values(), ids=list(stubs_of(NAMES)))
def test_what_is_told_is_what_the_contract_says(stub: Stub) -> None:
    contract = stub.callee.contract
    parameters = sorted({name for each in stub.told for name in each.parameters})
    random, seen = Random(0), set[tuple[str, bool]]()
    for _ in range(600):
        sizes = {axis: random.choice((0, 1, 2, 3, 4, 8)) for axis in contract.axes}
        shapes = {name: sizes[axis] if random.random() < 0.8 else 5 for axis, names in contract.axes.items() for name in names}
        choices = {name: WORDS if name == "megacore_mode" else INTEGERS for name in parameters}
        given = {name: random.choice(each) for name, each in choices.items()}
        if given.get("pages_per_compute_block", 1) is None:
            continue
        values = contract.geometry(**shapes, **given)
        for each in stub.told:
            broken = eval(each.broken, {"dsl": Known, **values})
            assert broken == (each.rule.judge(values) is Verdict.VIOLATED), (each.rule.code, shapes, given)
            seen.add((each.rule.code, broken))
    assert seen >= {(each.rule.code, broken) for each in stub.told for broken in (False, True) if each.rule.code != "SC109"}


def test_the_rules_about_sizes_are_told() -> None:
    stub = next(iter(stubs_of(["paged_attention"]).values()))
    assert stub.callee.contract is PAGED_ATTENTION
    codes = {"SC101", "SC102", "SC103", "SC104", "SC105", "SC106", "SC109", "SC110", "SC111", "SC201", "SC202", "SC203"}
    assert {each.rule.code for each in stub.told} == codes


# ---- the command


def test_the_command_writes_files_and_says_what_they_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stub", "paged_attention", "--output", str(tmp_path / "shape_stubs")]) == 0
    written = {str(path.relative_to(tmp_path / "shape_stubs")) for path in tmp_path.rglob("*.pyi")}
    assert written == set(files_of(stubs_of(["paged_attention"]), {}))
    assert "kernel/paged_attention.pyi" in written
    out = capsys.readouterr().out
    assert out.startswith(f"wrote {len(written)} files below {tmp_path / 'shape_stubs'}, for {VERSIONS}\n")
    assert "kernel.paged_attention: 12 rules told, " in out
    assert "  SC107 lengths-dtype: dtypes are not known\n" in out


def test_it_replaces_its_own_files_and_no_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stub", "--output", str(tmp_path)]) == cli.main(["stub", "--output", str(tmp_path)]) == 0
    mine = tmp_path / "kernel" / "__init__.pyi"
    mine.write_text("mine: int\n")
    others = tmp_path / "kernel" / "paged_attention.pyi"
    others.write_text(f"{MARK}, an older one\n")
    assert cli.main(["stub", "--output", str(tmp_path)]) == 2
    assert f"{mine}: is there already" in capsys.readouterr().err
    assert (mine.read_text(), others.read_text()) == ("mine: int\n", f"{MARK}, an older one\n")


def test_where_it_cannot_write_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["stub", "--output", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_kernel_without_a_stub_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stub", "page_attention"]) == 2
    assert (
        "there is no stub of 'page_attention'; there are: paged_attention, ragged_paged_attention, and files"
        in capsys.readouterr().err
    )


# ---- functions of the user

OWN = """\
from jax import Array
from jaxtyping import Float
from shapecheck import contract, relation


@contract(
    "num_q_heads % num_kv_heads == 0",
    relation("window is None or window % 128 == 0", name="whole-window", message="in lanes"),
    "block_m % 8 == 0",
    "mode is None or mode in ('fast', 'exact')",
    "q_dtype == 'float32'",
)
def attend(
    q: Float[Array, "batch num_q_heads head_dim"],
    k: Float[Array, "batch tokens num_kv_heads head_dim"],
    window: int | None = None,
    *,
    block_m: int = 128,
    mode: str | None = None,
    causal: bool = False,
) -> Float[Array, "batch num_q_heads head_dim"]: ...


@contract("m % block == 0", "n <= 512", relation("n % 128 == 0", when="tpu"))
def matmul(x: Float[Array, "m k"], y: Float[Array, "k n"], block: int) -> Float[Array, "m n"]: ...


@contract("m % 8 == 0")
def flexible(x: Float[Array, "*batch m"], y: Float[Array, "m"] | None = None) -> Float[Array, "*batch m"]: ...


@contract("m % n == 0")
def hidden(x: Float[Array, "m n"], /, n: int, *more: int, k: int = 3, **options: int) -> Float[Array, "m n"]: ...


@contract("m % 8 == 0")
def count(x: Float[Array, "m"]) -> int: ...


def plain(x: Float[Array, "m"]) -> Float[Array, "m"]: ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    return tmp_path


def test_the_functions_of_a_file_have_stubs_by_their_annotations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text(OWN)
    assert cli.main(["stub", "own.py"]) == 0
    assert [str(path) for path in Path("shape_stubs").rglob("*.pyi")] == ["shape_stubs/own.pyi"]
    assert capsys.readouterr().out.splitlines()[1:] == [
        "own.attend: 8 rules told, 1 not:",
        "  SC001 q_dtype == 'float32': dtypes are not known",
        "own.matmul: 5 rules told, 1 not:",
        "  SC001 n % 128 == 0: it holds on a TPU only, and where a call runs is not known",
        "own.flexible: 0 rules told, 3 not:",
        "  SC001 rank of y: an array that is inside of an argument, or that may be left out, is not known",
        "  SC001 axis m: how many axes there are is not known",
        "  SC001 m % 8 == 0: how many axes there are is not known",
        "own.hidden: 2 rules told, 0 not",
    ]


@pytest.mark.parametrize(
    "text", [None, "def f(:\n", "import shapecheck\n", "from shapecheck import contract\n\n@contract('x > 0')\ndef f(x): ...\n"]
)
def test_a_file_without_such_functions_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    if text is not None:
        Path("own.py").write_text(text)
    assert cli.main(["stub", "own.py"]) == 2
    assert "own.py" in capsys.readouterr().err
    assert not Path("shape_stubs").exists()


def test_in_a_package_the_stub_stands_beside_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("package").mkdir()
    Path("package/__init__.py").touch()
    Path("package/own.py").write_text(OWN)
    assert cli.main(["stub", "package/own.py"]) == 2
    assert "write it beside the file: --output .\n" in capsys.readouterr().err
    assert cli.main(["stub", "package/own.py", "--output", "."]) == 0
    assert [str(path) for path in Path().rglob("*.pyi")] == ["package/own.pyi"]


# ---- with pyrefly; `# CODE` behind a call is what it breaks, a line without one is accepted

OWN_CALLS = """\
import jax.numpy as jnp

from own import attend, flexible, hidden, matmul, plain

q = jnp.zeros((2, 16, 64))
k = jnp.zeros((2, 512, 8, 64))
x = jnp.zeros((64, 32))
y = jnp.zeros((32, 128))

attend(q, k, 256, block_m=16, mode="fast", causal=True).reshape(2, 16, 64)
attend(jnp.zeros((2, 20, 64)), k)  # num_q_heads % num_kv_heads == 0
attend(q, k, 100)  # whole-window: in lanes
attend(q, k, block_m=12)  # block_m % 8 == 0
attend(q, k, mode="slow")  # mode is None
attend(q, k[:1])  # axis batch
attend(q[0], k)  # rank of q
attend(q, k, blockm=8)  # No matching overload
matmul(x, y, 8)
matmul(x, y, 7)  # m % block == 0
matmul(x, x, 8)  # axis k
matmul(x, jnp.zeros((32, 513)), 8)  # n <= 512
matmul(x, jnp.zeros((32, 512)), 8)
flexible(x)
hidden(jnp.zeros((12, 5)), 4, 1, 2, k=4, other=3)
hidden(jnp.zeros((12, 4)), 5)  # m % n == 0
plain(x)


def unknown(block: int, mode: str | None, window: int | None) -> None:
    attend(q, k, window, block_m=block, mode=mode)
    matmul(x, y, block)
"""

CALLS = """\
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor, quantize_to_int8
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

import kernel

q = jnp.zeros((8, 32, 128), jnp.bfloat16)
k = jnp.zeros((8, 192, 16, 128), jnp.bfloat16)
odd = jnp.zeros((5, 192, 16, 128), jnp.bfloat16)
n = jnp.full((8,), 300, jnp.int32)
table = jnp.zeros((8, 24), jnp.int32)

paged_attention(q, k, k, n, table, pages_per_compute_block=8, megacore_mode="batch").reshape(8, 32, 128)
kernel.paged_attention(q, k, k, n, table, pages_per_compute_block=24, implementation="xla", check_values=True)
paged_attention(q, odd, odd, n, table, pages_per_compute_block=8)  # SC101
paged_attention(q, k, k, n, table, pages_per_compute_block=16)  # SC102
kernel.paged_attention(q, k, k, n, table, pages_per_compute_block=16)  # SC102
paged_attention(q, k, odd, n, table, pages_per_compute_block=8)  # SC103
paged_attention(q, k[..., :64], k[..., :64], n, table, pages_per_compute_block=8)  # SC104
paged_attention(q, k, k, n[:4], table, pages_per_compute_block=8)  # SC105
paged_attention(q, k, k, n, table[:4], pages_per_compute_block=8)  # SC106
paged_attention(q[0], k, k, n, table, pages_per_compute_block=8)  # SC109
paged_attention(q, k, k, n, table, pages_per_compute_block=0)  # SC110
paged_attention(q, k, k, n, jnp.zeros((8, 0), jnp.int32), pages_per_compute_block=8)  # SC111
kernel.paged_attention(q[:, :30], odd, odd, n, table, pages_per_compute_block=8, megacore_mode="kv_head")  # SC201
paged_attention(q[:7], k, k, n[:7], table[:7], pages_per_compute_block=8, megacore_mode="batch")  # SC202
paged_attention(q, k, k, n, table, pages_per_compute_block=8, megacore_mode="kv_heads")  # SC203
paged_attention(q, k, k, n, table, pages_per_compute_blocks=8)  # No matching overload
paged_attention(q, quantize_to_int8(k), quantize_to_int8(k), n, table, pages_per_compute_block=8)
kernel.paged_attention(np.zeros((8, 32, 128)), k, k, n, table, pages_per_compute_block=8)

kv = jnp.zeros((100, 16, 16, 128), jnp.bfloat16)
one = jnp.zeros((1,), jnp.int32)
many = jnp.zeros((64, 32, 128), jnp.bfloat16)
offsets = jnp.zeros((9,), jnp.int32)
ragged_paged_attention(many, kv, n, table, offsets, one, sm_scale=0.1, num_kv_pages_per_block=8)
kernel.ragged_paged_attention(many, kv, n, table, offsets, one, implementation="xla")
ragged_paged_attention(many, kv, n, table, n, one)  # SC123
kernel.ragged_paged_attention(many, kv[:, :, :15], n, table, offsets, one)  # SC121
ragged_paged_attention(many, kv, n, table, offsets, one, num_queries_per_block=0)  # SC131


def unknown(q: Array, k: Array, n: Array, t: Array, block: int, mode: Literal["batch"] | None, x: Any) -> None:
    paged_attention(q, k, k, n, t, pages_per_compute_block=block)
    paged_attention(q, k, k, n, t, pages_per_compute_block=4, megacore_mode=mode)
    paged_attention(q, k, k, n, t, pages_per_compute_block=4, megacore_mode="kv_heads")  # SC203
    paged_attention(x, x, x, x, x, pages_per_compute_block=x, megacore_mode=x)
    kernel.paged_attention(q, odd, odd, n, kernel.pad_page_indices(t, 4), pages_per_compute_block=4)
    kernel.paged_attention(q, odd, odd, n, t, pages_per_compute_block=8, mesh=x, heads_axis="model")
"""


def pyrefly() -> Path:
    """Return the pyrefly for which stubs are written, with JAX and its stubs in the environment that it is in."""
    found = shutil.which("pyrefly")
    if found is None:
        pytest.skip("pyrefly is not on the path: it is in the extra `pyrefly`, with stubs that are for it alone")
    wanted = VERSIONS.split(" and ")[0]
    if subprocess.run([found, "--version"], capture_output=True, text=True).stdout.strip() != wanted:
        pytest.skip(f"the stubs are for {wanted}")
    return Path(found)


@pytest.mark.parametrize(("arguments", "calls"), [([], CALLS), (["own.py"], OWN_CALLS)], ids=["kernels", "own"])
def test_pyrefly_tells_the_rules(folder: Path, arguments: list[str], calls: str) -> None:
    command = pyrefly()
    Path("own.py").write_text(OWN)
    assert cli.main(["stub", *arguments]) == 0
    Path("pyrefly.toml").write_text('python-version = "3.13"\nsearch-path = ["shape_stubs"]\n')
    Path("calls.py").write_text(calls)
    options = ["-c", "pyrefly.toml", "--output-format", "min-text", "--python-interpreter-path", str(command.with_name("python"))]
    check = [str(command), "check", *options, "calls.py", "shape_stubs"]
    report = subprocess.run(check, capture_output=True, text=True).stdout
    errors: dict[int, list[str]] = {}
    for file, line, message in re.findall(r"^ERROR (\S+?):(\d+):\S+ (.*)$", report, re.MULTILINE):
        assert file == "calls.py", message
        errors.setdefault(int(line), []).append(message)
    for number, line in enumerate(calls.splitlines(), 1):
        expected = line.partition("  # ")[2]
        here = errors.get(number, [])
        assert bool(here) == bool(expected), (line, here)
        assert all(expected in message for message in here), (line, here)
    if calls is CALLS:
        shown = re.findall(r"^```log\nERROR \S+ (.*)$", PAGE.read_text(), re.MULTILINE)
        assert shown
        assert all(message in report for message in shown)
