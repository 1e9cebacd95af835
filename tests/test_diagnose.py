"""What `explain` finds in the texts that people have in hand.

The errors of JAX's kernels, of Pallas and of the TPU compiler are real: `tests/upstream.py` provokes them. Here some are provoked
anew, and the others are read from the record of two versions of JAX; `pytest -m sweep` provokes all of them.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from codemods import cli
from codemods.diagnose import Diagnosis, decoded, diagnose, remarked
from codemods.diagnose.pasted import Pasted
from shapecheck.compiler.worker import ENVIRONMENT
from shapecheck.contracts import CONTRACTS
from shapecheck.symptom import Seen
from tests import upstream
from tests.upstream import CASES, SLOW, UNNAMED, provoke, recorded

ROOT = Path(__file__).parent.parent
RECORDED = recorded()
TEXTS = [(version, name) for version, texts in RECORDED.items() for name in CASES if name in texts]
TRACED = [name for name, case in CASES.items() if case.fails == "trace"]
LOWERED, COMPILED = ("table_dtype", "lanes"), ("float16", "q_float16", "smem", "r_strided")
BLOCK = "ValueError: pages_per_compute_block must be divisible by pages per sequence. Got 16 and 24."


def found(text: str) -> list[Diagnosis]:
    diagnoses, _ = diagnose(text)
    return diagnoses


def codes(text: str) -> list[str]:
    return [each.rule.code for each in found(text)]


def check(name: str, text: str) -> Diagnosis:
    """Assert that a text is taken for what it is, and nothing else; return what is found."""
    case = CASES[name]
    diagnoses = found(text)
    told = {each.rule.code for each in diagnoses}
    assert case.code in told, text
    assert told <= {case.code, case.alternative}, text
    diagnosis = next(each for each in diagnoses if each.rule.code == case.code)
    assert diagnosis.contract.name == case.kernel
    assert {each: diagnosis.read.get(each) for each in case.values} == case.values
    return diagnosis


# ---- the real texts


def test_two_versions_are_recorded_with_every_case() -> None:
    assert [version.rpartition(".")[0][:4] for version in RECORDED] == ["0.10", "0.12"]
    for texts in RECORDED.values():
        assert set(texts) == {*CASES, *UNNAMED}


@pytest.mark.parametrize(("version", "name"), TEXTS)
def test_the_recorded_errors_are_known(version: str, name: str) -> None:
    text = RECORDED[version][name]
    diagnosis = check(name, text)
    assert diagnosis.place is not None
    assert diagnosis.place.path == "/work/serving/serve.py"
    assert diagnosis.place.function == "provoke" or "serve" in diagnosis.place.function


@pytest.mark.parametrize("name", TRACED)
def test_the_errors_that_jax_raises_when_it_traces_are_known(name: str) -> None:
    check(name, provoke(CASES[name]))


@pytest.mark.parametrize("name", LOWERED)
def test_errors_of_lowering_are_known(name: str) -> None:
    check(name, provoke(CASES[name]))


def test_errors_of_the_compiler_are_known() -> None:
    if find_spec("libtpu") is None:
        pytest.skip("asks the TPU compiler, which is in libtpu")
    for name, text in in_a_process(*COMPILED).items():
        check(name, text)


@pytest.mark.sweep
def test_all_errors_are_known() -> None:
    names = [*CASES, *UNNAMED]
    texts = in_a_process(*names)
    for name in CASES:
        check(name, texts[name])
    for name in UNNAMED:
        assert codes(texts[name]) == []


def in_a_process(*names: str) -> dict[str, str]:
    """Provoke errors where libtpu may be loaded; return their texts."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.upstream", *names]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def raised(call: str, **others: object) -> str:
    """Return the traceback of a call of JAX's kernel, as it is written in a file of one's own."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    shapes = [(8, 32, 128), (8, 192, 16, 128), (8, 192, 16, 128), (8,), (8, 24)]
    arrays = [jnp.zeros(shape, jnp.int32 if len(shape) < 3 else jnp.bfloat16) for shape in shapes]
    names = {"jax": jax, "jnp": jnp, "paged_attention": paged_attention, "arrays": arrays, **others}
    source = f"def serve():\n    return {call}\n"
    linecache.cache["/srv/serve.py"] = (len(source), None, source.splitlines(keepends=True), "/srv/serve.py")
    exec(compile(source, "/srv/serve.py", "exec"), names)
    try:
        names["serve"]()  # pyright: ignore[reportCallIssue]
    except Exception:
        return traceback.format_exc()
    raise AssertionError("it does not fail")


@pytest.mark.parametrize(
    ("call", "certain"),
    [
        ("paged_attention(*arrays)", True),
        ("paged_attention(*arrays[:3], pages_per_compute_block=8)", True),
        ("paged_attention(*arrays, pages_per_compute_block=8, block_size=8)", False),
        ("paged_attention(*arrays, 8)", False),
        ("paged_attention(*arrays, q=1, pages_per_compute_block=8)", False),
    ],
)
def test_arguments_that_do_not_fit(call: str, certain: bool) -> None:
    (diagnosis,) = found(raised(call))
    assert (diagnosis.rule.code, diagnosis.contract.name, diagnosis.certain) == ("SC116", "paged_attention", certain)
    assert "(q, k_pages, v_pages, lengths, page_indices, *, [mask_value]," in diagnosis.advice[0]
    assert diagnosis.shown == {}
    assert diagnosis.place is not None
    assert diagnosis.place.path == "/srv/serve.py"


def test_arguments_of_another_kernel_of_that_name() -> None:
    assert codes("TypeError: paged_attention() missing 1 required positional argument: 'block_tables'") == []
    assert codes("TypeError: paged_attention() got an unexpected keyword argument 'lengths'") == []
    assert codes("TypeError: flash_attention() missing 1 required positional argument: 'q'") == []


@pytest.mark.parametrize(
    ("call", "certain"),
    [
        ("jax.jit(lambda block: paged_attention(*arrays, pages_per_compute_block=block))(8)", False),
        ("paged_attention(*arrays, pages_per_compute_block=jnp.int32(8))", False),
        ("paged_attention(*arrays, pages_per_compute_block='8')", True),
        ("paged_attention(*arrays, pages_per_compute_block=None)", True),
    ],
)
def test_a_block_that_is_no_integer(call: str, certain: bool) -> None:
    (diagnosis,) = found(raised(call))
    assert (diagnosis.rule.code, diagnosis.contract.name, diagnosis.certain) == ("SC110", "paged_attention", certain)


def test_an_argument_of_another_jit_is_no_block() -> None:
    assert codes(raised("jax.jit(lambda x, n: n, static_argnums=1)(1, [2])")) == []


def test_a_kernel_on_a_cpu_breaks_no_rule(capsys: pytest.CaptureFixture[str]) -> None:
    text = raised("paged_attention(*arrays, pages_per_compute_block=8)")
    assert codes(text) == []
    assert cli.main(["explain", text]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "No rule is broken: paged_attention is for the TPU, and was called on a CPU." in out
    assert "runs with kernel.paged_attention." in out
    assert cli.main(["explain", "--output-format", "json", "ValueError: Only interpret mode is supported on CPU backend."]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["line"] for each in document["remarks"]] == [1]
    assert document["diagnoses"] == document["problems"] == []


def test_another_kernel_on_a_cpu_is_not_taken_for_one_of_ours() -> None:
    frame = 'Traceback (most recent call last):\n  File "/srv/serve.py", line 2, in serve\n    flash_attention(q)\n'
    assert remarked(f"{frame}ValueError: Only interpret mode is supported on CPU backend.") == []
    assert remarked("all is well") == []


def test_what_is_slow_is_only_recorded() -> None:
    assert not SLOW & {*LOWERED, *COMPILED}
    assert all(CASES[name].fails == "compile" for name in SLOW)


@pytest.mark.parametrize("version", RECORDED)
def test_a_memory_that_is_full_is_told_with_its_numbers(version: str) -> None:
    texts = RECORDED[version]
    smem, far, vmem = (check(name, texts[name]) for name in ("smem", "smem_by_far", "vmem"))
    assert smem.used is not None
    assert smem.limit == 2**20 < smem.used < 2**20 + 4096
    assert (far.used, far.limit) == (2**21, 2**20)
    assert vmem.limit == 2**24
    assert vmem.used is not None
    assert 64 << 20 < vmem.used < 65 << 20
    assert "largest batch_size: 127" in " ".join(smem.advice)  # from the operands that the compiler shows
    assert vmem.advice == ("largest legal block: 1",)
    assert "k_pages_scales_dtype" in vmem.read


@pytest.mark.parametrize("version", RECORDED)
def test_a_full_device_is_not_laid_on_a_call(version: str) -> None:
    diagnoses, (unplaced,) = diagnose(RECORDED[version]["hbm"])
    assert diagnoses == []
    assert "Ran out of memory on HBM" in unplaced.text
    assert "names a kernel" in unplaced.reason
    named = RECORDED[version]["hbm"].replace("jit_serve", "jit_paged_attention") + "\njit(paged_attention)/pallas_call\n"
    assert codes(named) == ["SC309"]


# ---- what is said of them


def test_the_error_that_is_worded_backwards() -> None:
    (diagnosis,) = found(BLOCK)
    assert diagnosis.rule.code == "SC102"
    assert diagnosis.shown == {"pages_per_sequence": 24, "pages_per_compute_block": 16}
    assert diagnosis.advice == (
        "legal blocks: 1, 2, 3, 4, 6, 8, 12, 24; or pad page_indices to 32 pages (kernel.pad_page_indices)",
    )


def test_what_else_the_numbers_break() -> None:
    (diagnosis,) = found(BLOCK.replace("16", "2.5"))
    assert [rule.code for rule in diagnosis.also] == ["SC110"]
    assert found(BLOCK)[0].also == ()


def test_what_would_be_legal_if_more_were_known() -> None:
    (diagnosis,) = found("ValueError: number of KV heads must be even when megacore_mode is 'kv_head'")
    assert diagnosis.advice == ("legal modes: batch (megacore mode 'batch' needs an even batch), None",)


def test_numbers_that_keep_the_rule_are_no_such_error() -> None:
    assert codes(BLOCK.replace("16", "8")) == []


# ---- the same, as it is pasted


def ansi(text: str) -> str:
    return "".join(f"\x1b[31m{line[:7]}\x1b[0m\x1b[1;38;5;208m{line[7:]}\x1b[0m\n" for line in text.split("\n"))


def pytest_long(text: str) -> str:
    return "".join(f"E   {line}\n" for line in text.split("\n"))


def logged(text: str) -> str:
    return "".join(f"(EngineCore_0 pid=123) ERROR 11-30 17:02:43 [core.py:708] {line}\n" for line in text.split("\n"))


def logged_by_absl(text: str) -> str:
    return f"I1130 17:02:43.123456  123 xla.cc:55] start\n2026-11-30 17:02:43,101 - (worker 3) {text}"


def by_ray(text: str) -> str:
    return "".join(f"(worker 3) {line}\n" for line in text.split("\n"))


def quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.split("\n"))


def boxed(text: str) -> str:
    width = max(map(len, text.split("\n")))
    lines = "".join(f"│ {line:<{width}} │\n" for line in text.split("\n"))
    return f"╭{'─' * width}╮\n{lines}╰{'─' * width}╯\n"


def windows(text: str) -> str:
    return text.replace("\n", "\r\n")


def in_a_group(text: str) -> str:
    body = "".join(f"    | {line}\n" for line in text.split("\n"))
    return (
        "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: two (2 sub-exceptions)\n"
        f"  +-+---------------- 1 ----------------\n{body}    +------------------------------------\n"
    )


def cut_by_a_terminal(text: str) -> str:
    """Break long lines, also within words; not those that tell of frames, which a terminal would break as well."""
    return "\n".join(
        line if line.lstrip().startswith("File ") else "\n".join(line[at : at + 79] for at in range(0, max(1, len(line)), 79))
        for line in text.split("\n")
    )


def filled(text: str) -> str:
    return "\n".join(
        line if line.startswith(" ") else "\n".join(textwrap.wrap(line, 60, break_long_words=False)) for line in text.split("\n")
    )


@pytest.mark.parametrize(
    "paste",
    [ansi, pytest_long, logged, logged_by_absl, by_ray, quoted, boxed, windows, in_a_group, cut_by_a_terminal, filled],
)
@pytest.mark.parametrize("version", RECORDED)
def test_the_way_a_text_is_pasted_does_not_matter(version: str, paste: Callable[[str], str]) -> None:
    for name, case in CASES.items():
        assert case.code in codes(paste(RECORDED[version][name])), name


@pytest.mark.parametrize("name", TRACED)
def test_numbers_survive_a_narrow_terminal(name: str) -> None:
    for text in RECORDED.values():
        *_, message = (line for line in text[name].split("\n") if "Error: " in line) if "Error: " in text[name] else ("",)
        if any(symptom.seen is Seen.WORDS for symptom in symptoms_of(name)):
            check(name, "\n".join(message[at : at + 20] for at in range(0, len(message), 20)))


def symptoms_of(name: str) -> Any:
    contract = CONTRACTS[CASES[name].kernel]
    return next(rule.symptoms for rule in contract.rules if rule.code == CASES[name].code)


def test_several_errors_are_all_told_each_once() -> None:
    texts = RECORDED["0.10.2"]
    everything = "\n".join([*(texts[name] for name in CASES), *(texts[name] for name in CASES)])
    told = [(each.rule.code, each.contract.name) for each in found(everything)]
    for case in CASES.values():
        assert (case.code, case.kernel) in told
    assert len(set(told)) >= 40
    repeated = [(each.rule.code, each.contract.name, tuple(each.read.items())) for each in found(everything)]
    assert len(repeated) == len(set(repeated))


def test_a_summary_that_repeats_an_error_is_no_second_one() -> None:
    text = RECORDED["0.10.2"]["block"]
    assert codes(f"{text}\nFAILED test_a.py::test_a - {BLOCK}\n") == ["SC102"]


def test_chained_tracebacks() -> None:
    """The first is the cause, the second is what user code makes of it."""
    try:
        try:
            provoke_raw()
        except ValueError as error:
            raise RuntimeError("cannot decode") from error
    except RuntimeError:
        text = traceback.format_exc()
    assert "direct cause" in text
    assert codes(text) == ["SC102"]


def test_a_group_of_exceptions() -> None:
    caught: list[Exception] = []
    for _ in range(2):
        try:
            provoke_raw()
        except ValueError as error:
            caught.append(error)
    try:
        raise ExceptionGroup("several", [*caught, KeyError("other")])
    except ExceptionGroup:
        text = traceback.format_exc()
    (diagnosis,) = found(text)
    assert diagnosis.rule.code == "SC102"
    assert diagnosis.place is not None
    assert diagnosis.place.path == __file__


def provoke_raw() -> None:
    import jax
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    shapes = [(8, 32, 128), (8, 192, 16, 128), (8, 192, 16, 128), (8,), (8, 24)]
    dtypes = ["bfloat16", "bfloat16", "bfloat16", "int32", "int32"]
    arrays = [jax.ShapeDtypeStruct(shape, jax.numpy.dtype(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    jax.eval_shape(lambda *each: paged_attention(*each, pages_per_compute_block=16), *arrays)


PROGRAM = """
import jax
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention


def decode(shape, block=8):
    shapes = [(shape, "bfloat16"), *[((8, 192, 16, 128), "bfloat16")] * 2, ((8,), "int32"), ((8, 24), "int32")]
    arrays = [jax.ShapeDtypeStruct(size, jax.numpy.dtype(dtype)) for size, dtype in shapes]
    return jax.eval_shape(lambda *each: paged_attention(*each, pages_per_compute_block=block), *arrays)


def test_rank():
    decode((8, 1, 32, 128))


def test_block():
    decode((8, 32, 128), 16)


def test_zero():
    decode((8, 32, 128), 0)


def test_other():
    a, b = (1, 2, 3)
"""


@pytest.mark.parametrize("options", [["--tb=long", "--color=yes"], ["--tb=short"]])
def test_a_report_of_pytest(tmp_path: Path, options: list[str]) -> None:
    """A long one shows the source of the kernel, with the errors that were not raised."""
    (tmp_path / "test_decode.py").write_text(PROGRAM)
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-q", *options, "test_decode.py"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    diagnoses = found(run.stdout)
    assert [each.rule.code for each in diagnoses] == ["SC109", "SC102", "SC110"]
    assert all(each.place and each.place.path.endswith("test_decode.py") for each in diagnoses)


def test_a_long_log() -> None:
    noise = "2026-11-30 17:02:43,101 INFO step 1234 loss=0.123 tokens/s=4567 lengths=[1, 2, 3] soft_cap=30.0 paged_attention ok\n"
    half = noise * (5_000_000 // len(noise))
    (diagnosis,) = found(half + RECORDED["0.10.2"]["block"] + half)
    assert (diagnosis.rule.code, diagnosis.read["pages_per_sequence"]) == ("SC102", 24)


def test_a_long_line() -> None:
    for character in " ^~x|(0.":
        assert codes(character * 1_000_000 + f"\n{BLOCK}") == ["SC102"], character


def test_an_error_that_is_repeated_a_hundred_thousand_times() -> None:
    assert codes(f"{BLOCK}\n" * 100_000) == ["SC102"]


def test_what_powershell_writes() -> None:
    assert codes(decoded(BLOCK.encode("utf-16"))) == ["SC102"]
    assert codes(decoded(b"\xef\xbb\xbf" + BLOCK.encode())) == ["SC102"]


# ---- what is something else


OTHER_KERNEL = (
    '  File "/venv/lib/python3.11/site-packages/jax/experimental/pallas/ops/gpu/paged_attention.py", line 350, in paged_attention'
)

OTHERS = {
    "prose": "The pages per sequence must be divided by the compute block. Got it? Number of Q heads: 32.",
    "empty line": "\n \n",
    "binary": decoded(bytes(range(256)) * 40),
    "numpy": "ValueError: operands could not be broadcast together with shapes (8,32,128) (8,16,128)",
    "torch": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x128 and 64x128)",
    "unpacking, somewhere": "ValueError: not enough values to unpack (expected 3, got 2)",
    "unpacking, in one's own code": (
        'Traceback (most recent call last):\n  File "/app/model.py", line 3, in attend\n    b, h, d = q.shape\n'
        "    ^^^^^^^\nValueError: not enough values to unpack (expected 3, got 2)"
    ),
    "a division, in one's own code": (
        'Traceback (most recent call last):\n  File "/app/model.py", line 3, in paged_attention\n'
        "    if pages_per_sequence % pages_per_compute_block != 0:\nZeroDivisionError: integer modulo by zero"
    ),
    "the kernel for GPUs": (
        f"Traceback (most recent call last):\n{OTHER_KERNEL}\n    raise ValueError(\n"
        "ValueError: Number of Q heads must be divisible by number of KV heads. Got 7 and 8."
    ),
    "another kernel's memory": (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem"
        " while allocating on stack for %flash_attention.1 = (f32[8,32]) custom-call(%q). Scoped allocation with size 64.04M and"
        " limit 16.00M exceeded scoped vmem limit by 48.04M."
    ),
    "another kernel's memory, fed by ours": (
        "Ran out of memory in memory space vmem while allocating on stack for %flash_attention.1 = (f32[8,32])"
        ' custom-call(%paged_attention.1), metadata={op_name="jit(step)/flash/pallas_call"}. Scoped allocation with size'
        " 64.04M and limit 16.00M exceeded scoped vmem limit by 48.04M."
    ),
    "an error where one's own kernel is called": (
        'Traceback (most recent call last):\n  File "/app/model.py", line 3, in decode\n    jit(paged_attention)(q)\n'
        "ValueError: zero-size array to reduction operation max which has no identity"
    ),
    "a config with a time limit": "config: megacore_mode='batch', frozen=True\nconnect timeout=30\nout.block_until_ready()\n",
    "another kernel's blocks": (
        "ValueError: The Pallas TPU lowering currently requires that the last two dimensions of your block shape are divisible by"
        " 8 and 128 respectively, or be equal to the respective dimensions of the overall array. Block spec for outputs[1] in"
        " pallas_call my_kernel at /app/k.py:1 has block shape (Blocked(block_size=4), Blocked(block_size=64)), array shape (8,)"
    ),
    "Mosaic, of a kernel without a name": "INTERNAL: Mosaic failed to compile TPU kernel: Invalid vector type for load",
    "a hang without a mode": "decode hangs on v5e, stuck in block_until_ready",
    "a mode without a hang": "we set megacore_mode='kv_head' on v5p",
    "a hang where the mode is right": "decode hangs on v5p with megacore_mode='batch'",
    "a version": "SC102 is fixed in 1.2; SC999 no-such-rule: see there",
    "source": '    raise ValueError("`lengths` and `q` must have the same batch size")',
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_something_else_is_not_taken_for_one_of_the_kernels(name: str) -> None:
    assert codes(OTHERS[name]) == []


def test_what_comes_near_is_told() -> None:
    reasons = {name: [each.reason for each in diagnose(text)[1]] for name, text in OTHERS.items()}
    assert ["raised in" in reason and "ops/gpu/paged_attention.py" in reason for reason in reasons["the kernel for GPUs"]] == [
        True
    ]
    assert any("'my_kernel'" in reason for reason in reasons["another kernel's blocks"])
    assert any("whole traceback" in reason for reason in reasons["unpacking, somewhere"])
    assert reasons["unpacking, in one's own code"] == []
    assert reasons["numpy"] == []


def test_an_error_behind_the_traceback_of_another_one() -> None:
    """A log line has no traceback: that of the error before is not its own."""
    text = OTHERS["unpacking, in one's own code"] + f"\nretrying\n{BLOCK}\n"
    assert codes(text) == ["SC102"]


def test_other_kernels_of_jax() -> None:
    import jax
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    q = jax.ShapeDtypeStruct((1, 2, 64, 96), jax.numpy.float32)
    odd = jax.ShapeDtypeStruct((1, 3, 64, 96), jax.numpy.float32)
    for arguments in ((q, q, odd), (q, odd, odd), (q, q)):
        try:
            jax.eval_shape(flash_attention, *arguments)
        except Exception:
            assert codes(traceback.format_exc()) == []


def test_an_operation_without_a_name_is_known_by_where_it_comes_from() -> None:
    *_, texts = RECORDED.values()
    text = texts["vmem"]
    assert codes(text.replace("%paged_attention.1", "%custom-call.3")) == ["SC306"]
    assert codes(text.replace("%paged_attention.1", "%fusion.3")) == []


def test_a_traceback_without_the_frame_of_the_kernel() -> None:
    """JAX leaves out its own frames, and of what belongs to them versions think differently."""
    text = f'Traceback (most recent call last):\n  File "/app/model.py", line 3, in decode\n    out = paged_attention(\n{BLOCK}\n'
    assert codes(text) == ["SC102"]
    assert codes(text.replace("out = paged_attention(", "out = my_paged_attention(")) == []


def test_a_notebook() -> None:
    """IPython shows lines of source around the one that is executed."""
    text = f"""
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[3], line 7
      5 q = jnp.zeros((8, 32, 128))
----> 7 paged_attention(q, k, v, lengths, table, pages_per_compute_block=16)

File ~/jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py:456, in paged_attention(q)
    455 if pages_per_sequence % pages_per_compute_block != 0:
--> 456   raise ValueError(
    460 if lengths.shape != (batch_size,):
    461   raise ValueError("`lengths` and `q` must have the same batch size")

{BLOCK}
"""
    assert codes(text) == ["SC102"]


# ---- hangs


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("decode hangs with megacore_mode='kv_head'", "kv_head"),
        ('our v5e server is stuck since we set megacore_mode to "batch"; megacore_mode=batch before, too', "batch"),
        ("DEADLINE_EXCEEDED on TPU v5 lite\nconfig: {'megacore_mode': 'batch', 'block': 8}", "batch"),
        (
            'Thread 0x7F (active): "MainThread"\n    block_until_ready (jax/_src/array.py:640)\n'
            '    decode (serve.py:12)\n        Arguments:\n            megacore_mode: "kv_head"',
            "kv_head",
        ),
    ],
)
def test_a_hang_with_a_mode_may_be_the_chip(text: str, mode: str) -> None:
    (diagnosis,) = found(text)
    assert (diagnosis.rule.code, diagnosis.certain) == ("SC204", False)
    assert diagnosis.read["megacore_mode"] == mode


@pytest.mark.parametrize("text", ["paged_attention hangs on v6e", "paged attention never returns on a TPU v5 lite"])
def test_a_hang_of_the_kernel_may_be_a_mode(text: str) -> None:
    (diagnosis,) = found(text)
    assert (diagnosis.rule.code, diagnosis.certain, dict(diagnosis.read)) == ("SC204", False, {"cores_per_device": 1})


@pytest.mark.parametrize(
    "text",
    [
        "paged_attention hangs on v5p",  # which has two cores
        "paged_attention hangs on v6e with megacore_mode=None",
        "ragged_paged_attention hangs on v6e",
        "paged_attention is slow on v6e",
        "paged_attention: ok\nthe reader hangs",
    ],
)
def test_a_hang_that_is_no_mode(text: str) -> None:
    assert codes(text) == []


def test_a_hang_far_from_a_mode_is_not_its_own() -> None:
    assert codes("megacore_mode='batch'\n" + "ok\n" * 1000 + "the reader hangs\n") == []


# ---- texts of shapecheck


def test_errors_at_call_time() -> None:
    written = (Path(__file__).parent / "messages" / "paged_attention.txt").read_text()
    for message in re.split(r"^# (?=SC)", written, flags=re.MULTILINE)[1:]:
        told = set(re.findall(r"^  (SC\d+) ", message, re.MULTILINE))
        assert set(codes(message)) == told
        assert set(codes(pytest_long(message))) == told
    heads, *_ = (each for each in found(written) if each.rule.code == "SC101")
    assert heads.read == {"num_q_heads": 7, "num_kv_heads": 2}
    assert "legal num_kv_heads: 1, 7" in heads.advice


@pytest.mark.parametrize("output_format", ["text", "concise", "github"])
def test_what_check_prints(output_format: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    cli.main(["check", "--output-format", output_format, "examples"])
    diagnoses = found(capsys.readouterr().out)
    assert [each.rule.code for each in diagnoses] == ["SC102", "SC201", "SC101", "SC108"]
    assert diagnoses[0].read == {"pages_per_sequence": 78, "pages_per_compute_block": 16}
    assert [each.place and (each.place.path, each.place.line) for each in diagnoses][:2] == [
        ("examples/serving/bench.py", 34),
        ("examples/serving/bench.py", 50),
    ]


def test_a_contract_of_ones_own() -> None:
    text = (
        "ContractError: attend: 2 relations do not hold\n  SC001 num_q_heads % num_kv_heads == 0\n"
        "        num_q_heads = 20   (q.shape[1])\n        num_kv_heads = 8   (k.shape[2])\n"
        "  SC001 whole-blocks: tokens % 128 == 0\n        tokens = 100   (k.shape[1])\n"
    )
    first, second = found(text)
    assert (first.contract.name, first.read) == ("attend", {"num_q_heads": 20, "num_kv_heads": 8})
    assert (second.rule.name, second.read) == ("whole-blocks", {"tokens": 100})


@pytest.mark.parametrize("value", ["007", "(,)", "(12)", "'a\\'", "'\\x'", "٣", "1_000", "24abc", "1234567890123456789", "1.2.3"])
def test_what_is_no_value_of_python_is_not_read_in_part(value: str) -> None:
    (diagnosis,) = found(f"SC102 block-not-dividing: pages_per_sequence = {value}, pages_per_compute_block = 16")
    assert diagnosis.read == {"pages_per_compute_block": 16}


# ---- wrappers of the kernels, whose errors are not provoked here


@pytest.mark.parametrize(
    ("path", "function", "error", "code", "callee"),
    [
        (
            "torch_xla/experimental/custom_kernel.py",
            "paged_attention",
            "AssertionError: megacore_mode must be one of ['kv_head', 'batch', None].",
            "SC203",
            "paged_attention",
        ),
        (
            "torch_xla/experimental/custom_kernel.py",
            "multi_queries_paged_attention",
            "AssertionError: q should have 4 dimensions.",
            "SC109",
            "multi_queries_paged_attention",
        ),
        (
            "torch_xla/experimental/pallas_kernels/multi_queries_paged_attention_kernel.py",
            "paged_attention",
            "ValueError: num_kv_pages_per_compute_block must be divisible by pages per sequence. Got pages_per_sequence=24 and "
            "num_kv_pages_per_compute_block=16.",
            "SC102",
            "multi_queries_paged_attention",
        ),
        (
            "torch_xla/experimental/pallas_kernels/multi_queries_paged_attention_kernel.py",
            "paged_attention",
            "ValueError: Number of Q heads must be divisible by number of KV heads. Got 7 and 8.",
            "SC101",
            "multi_queries_paged_attention",
        ),
        (
            "ejkernel/kernels/_pallas/tpu/page_attention/_interface.py",
            "page_attention",
            "ValueError: `context_lens` and `query` must have the same batch size",
            "SC105",
            "page_attention",
        ),
        (
            "torch_xla/experimental/custom_kernel.py",
            "_ragged_paged_attention_runtime_check",
            "ValueError: num_seqs[0]=tensor(5, dtype=torch.int32) must be less or equal to max_num_seqs=4",
            "SC403",
            "ragged_paged_attention",
        ),
    ],
)
def test_wrappers(path: str, function: str, error: str, code: str, callee: str) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/app/serve.py", line 12, in decode\n    out = attend(q)\n'
        f'  File "/venv/lib/python3.11/site-packages/{path}", line 34, in {function}\n    raise ValueError(\n{error}\n'
    )
    (diagnosis,) = found(text)
    assert (diagnosis.rule.code, diagnosis.contract.name) == (code, callee)
    assert diagnosis.place is not None
    assert (diagnosis.place.path, diagnosis.place.line, diagnosis.place.function) == ("/app/serve.py", 12, "decode")


# ---- the statements


def test_every_symptom_reads_what_its_contract_has() -> None:
    for contract in CONTRACTS.values():
        for rule in contract.rules:
            for symptom in rule.symptoms:
                assert len(symptom.anchor) >= 8, symptom  # a shorter one would be met everywhere
                assert symptom.pattern.match(symptom.anchor) or symptom.names or "{" in symptom.text
                local = {name for value in symptom.values.values() for name in getattr(value, "names", ())}
                for name in {*symptom.names, *symptom.values} - local:
                    assert name in contract.origins or name in contract.aliases, (contract.name, rule.code, name)
                assert symptom.argument in ("", *(each.name for each in (*contract.arrays, *contract.parameters)))


def test_lines_are_told_from_one() -> None:
    assert found(f"a\nb\n{BLOCK}\n")[0].line == 3


def test_the_text_without_spaces_keeps_its_lines() -> None:
    pasted = Pasted("a b\n\n c\n")
    assert pasted.squeezed == "abc"
    assert [pasted.line_at(offset) for offset in range(3)] == [0, 0, 2]


def test_the_record_holds_no_place_of_the_machine_that_wrote_it() -> None:
    for texts in RECORDED.values():
        for text in texts.values():
            assert str(ROOT) not in text
            assert not re.search(r"/(?:opt|tmp|home)/", text)
    assert upstream.RECORD.stat().st_size < 100_000
