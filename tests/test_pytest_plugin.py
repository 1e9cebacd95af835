"""`pytest --shapecheck`, in runs of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent

SUITE = """
import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention


def attend(pages_per_compute_block=2, length=5, bad_page=None, **options):
    pages = jnp.ones((2, 16, 8, 128))
    if bad_page is not None:
        pages = pages.at[0, bad_page, 7, 0].set(jnp.nan)
    lengths = jnp.array([length, 16], jnp.int32)
    table = jnp.arange(8, dtype=jnp.int32).reshape(2, 4)
    q = jnp.ones((2, 4, 128))
    out = paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=pages_per_compute_block, **options)
    return out.block_until_ready()
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    plugin = [] if _is_entry_point() else ["-p", "shapecheck.pytest_plugin"]

    def run(tests: str, *options: str, plugin: list[str] = plugin) -> pytest.RunResult:
        pytester.makepyfile(test_suite=SUITE + tests)
        return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *options, "test_suite.py", timeout=300)

    return run


def _is_entry_point() -> bool:
    from importlib.metadata import entry_points

    return any(each.value == "shapecheck.pytest_plugin" for each in entry_points(group="pytest11"))


def test_without_the_option_it_does_and_imports_nothing(run) -> None:
    result = run(
        """
import sys

def test_contracts_are_not_there():
    assert "shapecheck.installed" in sys.modules  # by `import shapecheck`, which is light
    assert not {"beartype", "shapecheck.enforce", "shapecheck.pytest_session"} & set(sys.modules)

def test_the_kernel_is_not_interpreted():
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU backend"):
        attend()
"""
    )
    result.assert_outcomes(passed=2)
    assert "distinct calls" not in result.stdout.str()


def test_kernels_are_interpreted_and_their_calls_are_listed(run) -> None:
    result = run(
        """
def test_legal():
    assert attend().shape == (2, 4, 128)

def test_legal_again():
    attend()

def test_megacore_does_not_hang():
    attend(megacore_mode="kv_head")

def test_illegal():
    attend(pages_per_compute_block=3)

def test_illegal_as_expected():
    with pytest.raises(ValueError, match="SC113 soft-cap"):
        attend(attn_logits_soft_cap=0.0)
""",
        "--shapecheck=",
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *ContractError: paged_attention: 1 relation does not hold",
            "*= shapecheck =*",
            "4 distinct calls of kernels, 2 refused",
            "  refused: SC113 paged_attention(q float32[[]2,4,128], k_pages float32[[]2,16,8,128], *soft_cap=0.0, *)",
            "               first in test_suite.py::test_illegal_as_expected",
            "  refused: SC102 paged_attention(*pages_per_compute_block=3)",
            "               first in test_suite.py::test_illegal",
            "  legal        paged_attention(*pages_per_compute_block=2)",
            "  legal        paged_attention(*pages_per_compute_block=2, megacore_mode='kv_head')",
        ]
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("option", "refused"), [("--shapecheck", True), ("--shapecheck=", True), ("--shapecheck=v5p", False)], ids=str
)
def test_the_chips_of_the_project_are_declared_where_the_command_line_names_none(
    run, pytester, option: str, refused: bool
) -> None:
    pytester.makepyprojecttoml('[tool.shapecheck]\nchips = ["v5e", "v5e"]\n')
    result = run(
        """
def test_megacore():
    attend(megacore_mode="kv_head")
""",
        option,
        "-rA",
    )
    assert result.ret == refused
    if refused:
        result.stdout.fnmatch_lines(["  refused: SC204 on v5e paged_attention(*)"])


def test_a_traceback_ends_in_the_call_that_is_refused(run) -> None:
    result = run(
        """
import traceback
from shapecheck import ContractError

@pytest.mark.parametrize("wrong", [{"pages_per_compute_block": 3}, {"megacore_mode": "kv_head"}])
def test_refused(wrong):
    with pytest.raises(ContractError) as caught:
        attend(**wrong)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line.startswith("out = paged_attention(q, pages,")
""",
        "--shapecheck=v5e",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('chips = ["v9"]', "*pyproject.toml:2: [[]tool.shapecheck] chips: *v9*"),
        ('chips = "v5e"', "*pyproject.toml:2: [[]tool.shapecheck] chips must be an array of strings, not 'v5e'"),
    ],
)
def test_what_is_wrong_with_the_chips_of_the_project_is_told_with_its_line(run, pytester, settings: str, message: str) -> None:
    pytester.makepyprojecttoml(f"[tool.shapecheck]\n{settings}\n")
    result = run("def test(): ...", "--shapecheck=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_call_must_be_legal_on_the_declared_chips(run) -> None:
    result = run(
        """
def test_without_a_mode():
    attend()

def test_megacore():
    attend(megacore_mode="kv_head")
""",
        "--shapecheck=v5p,v5e",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *ContractError: paged_attention: 1 relation does not hold",
            "E *  on a v5e, declared for this run",
            "E *  SC204 megacore-chip: *",
            "2 distinct calls of kernels, 1 refused",
            "  refused: SC204 on v5e paged_attention(*)",
            "  legal on v5p, v5e paged_attention(*)",
        ]
    )


def test_values_are_looked_at(run) -> None:
    tests = """
def test_good():
    attend()

def test_length():
    attend(length=33)

def test_nan():
    attend(bad_page=1)

def test_good_again():
    attend()
"""
    result = run(tests, "--shapecheck=", "--shapecheck-values")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*- what shapecheck found in the arrays -*",
            "paged_attention: 1 relation does not hold",
            "  SC401 length-overrun: *",
            "        lengths_max = 33   (lengths[[]0])",
            "  SC407 tail-not-finite: *",
            "        k_pages_tail = nan   (k_pages[[]0, 1, 7, 0], behind the 5 tokens of row 0)",
        ]
    )
    run(tests, "--shapecheck=").assert_outcomes(passed=4)


RAGGED = """
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention


def attend_ragged(function=ragged_paged_attention, queries=8, **options):
    kv_lens, table = jnp.array([3, 8], jnp.int32), jnp.zeros((2, 2), jnp.int32)
    starts, count = jnp.array([0, 1, 1 + queries], jnp.int32), jnp.array([2], jnp.int32)
    q = jnp.arange(16.0)[:, None, None] * jnp.ones((16, 4, 128))
    out = function(
        q, jnp.ones((8, 4, 4, 128)), kv_lens, table, starts, count, num_kv_pages_per_block=2, num_queries_per_block=8, **options
    )
    return out.block_until_ready()
"""


def test_the_metadata_of_the_ragged_kernel_are_looked_at(run) -> None:
    tests = """
def test_queries():
    attend_ragged(queries=9)
"""
    result = run(RAGGED + tests, "--shapecheck=", "--shapecheck-values")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*  SC405 queries-beyond-keys: q_len <= kv_len",
            "*        q_len = 9   (cu_q_lens[[]2[]] - cu_q_lens[[]1[]])",
            "*        kv_len = 8   (kv_lens[[]1[]])",
        ]
    )


def test_the_ragged_kernel_is_computed_by_xla_where_there_is_no_tpu(run) -> None:
    tests = """
def test_legal():
    out = attend_ragged()
    assert (out[:9] == 1).all()

def test_with_a_setting_of_its_own():
    from jax.experimental.pallas import tpu as pltpu
    with pltpu.force_tpu_interpret_mode():
        assert (attend_ragged()[:9] == 1).all()

def test_the_contract_is_that_of_the_kernel():
    with pytest.raises(ValueError, match="SC129 scale-type"):  # which our front door does not have
        attend_ragged(k_scale=1, v_scale=1)
"""
    result = run(RAGGED + tests, "--shapecheck=v5e")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "2 distinct calls of kernels, 1 refused",
            "  refused: SC129 on v5e ragged_paged_attention(*)",
            "  legal on v5e ragged_paged_attention(*)",
            "XLA has computed JAX's ragged_paged_attention, by kernel.ragged_paged_attention: Pallas' interpreter cannot run it",
        ]
    )


def test_calls_of_our_front_doors_are_judged_for_the_declared_chips(run) -> None:
    result = run(
        """
from kernel import paged_attention

def test_megacore():
    attend(megacore_mode="kv_head")

def test_block():
    attend(pages_per_compute_block=3)

def test_legal():
    attend()
""",
        "--shapecheck=v5e,v5p",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *  on a v5e, declared for this run",
            "E *  SC204 megacore-chip: *",
            "3 distinct calls of kernels, 2 refused",
            "  refused: SC204 on v5e kernel.paged_attention(*pages_per_compute_block=2, megacore_mode='kv_head')",
            "               first in test_suite.py::test_megacore",
            "  refused: SC102 on v5e and v5p kernel.paged_attention(*)",
            "  legal on v5e, v5p kernel.paged_attention(*)",
        ]
    )


def test_what_a_front_door_refuses_by_itself_is_listed_and_the_traceback_ends_in_the_call(run) -> None:
    result = run(
        """
import traceback
from kernel import paged_attention

@pytest.mark.parametrize("wrong", [{"pages_per_compute_block": 3}, {"pages_per_compute_block": "two"}])
def test_refused(wrong):
    with pytest.raises(ValueError) as caught:
        attend(**wrong)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line.startswith("out = paged_attention(q, pages,")
""",
        "--shapecheck=",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["  refused: SC102 kernel.paged_attention(*)"])


@pytest.mark.thorough
def test_a_kernel_behind_its_front_door_is_run_and_not_listed_again(run) -> None:
    result = run(
        RAGGED
        + """
@pytest.mark.parametrize("implementation", ["pallas", "interpret"])
def test_paged(implementation):
    from kernel import paged_attention  # while contracts are there already
    globals().update(paged_attention=paged_attention)
    attend(implementation=implementation, megacore_mode="batch")

def test_derivative():
    from kernel import paged_attention
    pages, lengths, table = jnp.ones((2, 16, 8, 128)), jnp.full(2, 5), jnp.zeros((2, 4), jnp.int32)
    attend = lambda q: paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=1, implementation="pallas")
    jax.grad(lambda q: jax.jit(attend)(q).sum())(jnp.ones((2, 4, 128)))

def test_ragged():
    from kernel import ragged_paged_attention
    attend_ragged(ragged_paged_attention, implementation="pallas")
""",
        "--shapecheck=v5p",
    )
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["4 distinct calls of kernels, 0 refused", *["  legal on v5p kernel.*paged_attention(*)"] * 4])


@pytest.mark.thorough
def test_workers_of_xdist_report_what_they_have_seen(run) -> None:
    result = run(
        """
@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_blocks(block):
    attend(pages_per_compute_block=block)
""",
        "--shapecheck=v5e",
        "-n2",
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["4 distinct calls of kernels, 1 refused", "  refused: SC102 on v5e paged_attention(*)"])


def test_the_compiler_is_asked_about_what_was_accepted(run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(
        """
def test_legal():
    attend()

def test_refused():
    with pytest.raises(ValueError):
        attend(megacore_mode="batch")
""",
        "--shapecheck=v5e",
        "--shapecheck-compile",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["libtpu compiles 1 of 1 calls for v5e"])
    assert result.ret == 0


@pytest.mark.thorough
def test_the_compiler_is_asked_about_what_front_doors_hand_on(run) -> None:
    result = run(
        RAGGED
        + """
import kernel
paged_attention = kernel.paged_attention

def test_split():
    attend(mesh=jax.make_mesh((1,), ("x",)), heads_axis="x")

def test_xla():
    attend(implementation="xla")

def test_ragged():
    attend_ragged(kernel.ragged_paged_attention, k_scale=2)
""",
        "--shapecheck=v5e",
        "--shapecheck-compile",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "libtpu compiles 2 of 2 calls for v5e",
            "  not asked    kernel.paged_attention(*): what each device gets of it is a call of its own",
            "  not asked    kernel.paged_attention(*implementation='xla'): it does not run on a TPU",
        ]
    )


def test_a_call_that_does_not_compile_fails_the_run(run) -> None:
    result = run(
        """
def test_legal(monkeypatch):
    from shapecheck import pytest_session
    monkeypatch.setattr(pytest_session, "violations_of", lambda contract, values: ())
    from shapecheck.rule import Verdict
    from shapecheck.contract import Contract
    monkeypatch.setattr(Contract, "judge", lambda self, values: {})
    jax.eval_shape(lambda: paged_attention(
        jnp.ones((2, 4, 64)), jnp.ones((2, 16, 8, 64)), jnp.ones((2, 16, 8, 64)), jnp.ones(2, jnp.int32),
        jnp.ones((2, 4), jnp.int32), pages_per_compute_block=2))
""",
        "--shapecheck=v5e",
        "--shapecheck-compile",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["libtpu compiles 0 of 1 calls for v5e", "  v5e: *: paged_attention(*"])
    assert result.ret == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shapecheck=v9"], "--shapecheck: unknown chip 'v9'; known: v2, *"),
        (["--shapecheck"], "--shapecheck: unknown chip 'test_suite.py'*to name no chip before a path, write --shapecheck="),
        (["--shapecheck-values"], "--shapecheck-values goes with --shapecheck"),
        (["--shapecheck-compile"], "--shapecheck-compile goes with --shapecheck"),
        (
            ["--shapecheck-compile", "--shapecheck="],
            "--shapecheck-compile needs chips to compile for: --shapecheck=v5e,v5p, or chips in [[]tool.shapecheck]",
        ),
    ],
)
def test_options_that_make_no_sense(run, options: list[str], message: str) -> None:
    result = run("", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_suite_can_ask_whether_kernels_run(run) -> None:
    tests = """
from shapecheck.pytest_plugin import runs_tpu_kernels

def test_on_a_tpu(request):
    if not runs_tpu_kernels(request.config):
        pytest.skip("no TPU")
    attend()
"""
    run(tests, "--shapecheck=").assert_outcomes(passed=1)
    run(tests).assert_outcomes(skipped=1)


@pytest.mark.thorough
def test_a_suite_without_calls_says_so(run) -> None:
    result = run("def test_nothing(): pass", "--shapecheck=")
    result.stdout.fnmatch_lines(["*= shapecheck =*", "no call of a kernel that has a contract"])


@pytest.mark.thorough
def test_the_page_shows_what_is_listed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "pytest.md").read_text()
    listed = page.partition("```log\n")[2].partition("```")[0].replace("tests/test_decode.py", "test_suite.py").splitlines()
    monkeypatch.setenv("COLUMNS", "80")
    result = run(
        """
def test_block():
    attend()


def test_megacore():
    attend(megacore_mode="kv_head")
""",
        "--shapecheck=v5e,v5p",
    )
    result.stdout.fnmatch_lines([line.replace("[", "[[]").replace("...", "*") for line in listed], consecutive=True)
