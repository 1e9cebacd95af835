"""`shapecheck check --compile`, with a stand-in for the compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codemods import cli
from shapecheck.compiler import Failure

from .test_compile import CALL, CASES, IMPORT, RAGGED, RAGGED_LINE, UNKNOWN, Compiler, compiler

__all__ = ["compiler"]

BODY = CALL.replace("return ", "")
KNOWN = f"{IMPORT}batch, block = 8, 12\nif True:\n{BODY}"
MOSAIC = {"failure": Failure.MOSAIC, "message": "Mosaic failed to compile TPU kernel: Invalid vector type", "seconds": 0.2}


def check(*arguments: str) -> int:
    return cli.main(["check", "--compile", *arguments])


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    check(*arguments, "--output-format", "json")
    return json.loads(capsys.readouterr().out)


def test_what_compiles_is_counted(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    assert check("--chip", "v5p,v4") == 0
    assert [question.chip.name for question in compiler.asked] == ["v5p", "v4"]
    assert capsys.readouterr().out.splitlines()[-1] == "compiler: 2 questions, 2 ok, 0 refused; 0.0 s"


def test_the_verdict_is_that_of_a_rule(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    [site] = document(capsys, "--chip", "v5p")["call_sites"]
    assert site["verdicts"]["SC399"] == "proven"


def test_a_refusal_that_no_rule_describes(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    compiler.verdicts = {8: MOSAIC}
    assert check("--chip", "v5p,v4") == 1
    out = capsys.readouterr().out
    assert "a.py:9:5: SC399 compiler-refusal: the TPU compiler refuses the call for v5p, v4: the kernel compiler" in out
    assert "fails: Mosaic failed to compile TPU kernel: Invalid vector type\n" in out
    assert "= where: num_kv_heads = 8\n" in out
    assert out.splitlines()[-2:] == [
        "1 call site: 0 proven, 1 violated, 0 unproven; 1 file",
        "compiler: 2 questions, 0 ok, 2 refused; 0.0 s",
    ]


def test_what_the_contract_has_said_is_not_said_again(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(CASES)
    found = document(capsys, "--chip", "v5p")
    assert [finding["code"] for finding in found["findings"]] == ["SC102"]
    assert len(compiler.asked) == 2


def test_ways_to_fail_are_told_apart(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(CASES.replace("run(16, 7)", "run(16, 6)"))
    compiler.verdicts = {8: MOSAIC, 16: {"failure": Failure.HBM, "message": "Ran out of memory on HBM", "seconds": 0.1}}
    messages = [finding["message"] for finding in document(capsys, "--chip", "v5p")["findings"]]
    assert ["Mosaic" in message for message in messages] == [True, False]
    assert "(HBM) than there is: Ran out of memory on HBM: batch_size = 16" in messages[1]


def test_a_disagreement(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(CASES)
    compiler.verdicts = {16: {"seconds": 1.0}}
    found = document(capsys, "--chip", "v5p")["findings"]
    assert [finding["code"] for finding in found] == ["SC903", "SC102"]
    assert "the call compiles for v5p, although SC102 should not hold there; please report it" in found[0]["message"]


def test_no_answer_is_unproven(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    compiler.verdicts = {8: {"failure": Failure.TIMEOUT, "message": "no answer within 5 s"}}
    assert check("--chip", "v5p") == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 call site: 0 proven, 0 violated, 1 unproven; 1 file",
        "compiler: 1 question, 0 ok, 0 refused, 1 not answered; 0.0 s",
    ]
    [finding] = document(capsys, "--chip", "v5p", "--unproven")["findings"]
    assert (finding["code"], finding["verdict"]) == ("SC399", "unproven")
    assert "unproven: no answer within 5 s" in finding["message"]


def test_an_execution_that_is_not_certain_gives_no_violation(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import sys\n" + KNOWN.replace("if True", "if len(sys.argv) > 2"))
    compiler.verdicts = {8: MOSAIC}
    assert check("--chip", "v5p") == 0
    capsys.readouterr()
    verdicts = {finding["code"]: finding["verdict"] for finding in document(capsys, "--chip", "v5p", "--unproven")["findings"]}
    assert verdicts["SC399"] == "unproven"


def test_unknown_sizes_are_counted(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(UNKNOWN)
    assert check("--chip", "v5p") == 0
    assert compiler.asked == []
    said = "compiler: 0 questions, 0 ok, 0 refused; 1 call site of unknown sizes; 0.0 s"
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_an_execution_that_is_not_followed_to_its_end_proves_nothing(
    compiler: Compiler, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = "for i in range(1000):\n    for j in range(1000):\n"
    body = "".join(f"    {line}\n" for line in BODY.splitlines())
    Path("a.py").write_text(f"{IMPORT}batch, block = 8, 12\n{loop}{body}")
    [site] = document(capsys, "--chip", "v5p")["call_sites"]
    assert len(compiler.asked) == 1
    assert "SC399" not in site["verdicts"]


def test_comments_and_settings_apply(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    compiler.verdicts = {8: MOSAIC}
    Path("a.py").write_text(KNOWN.replace('"kv_head")', '"kv_head")  # shapecheck: ignore[SC399]'))
    assert check("--chip", "v5p") == 0
    Path("a.py").write_text(KNOWN)
    assert check("--chip", "v5p", "--ignore", "SC399") == 0
    Path("pyproject.toml").write_text('[tool.shapecheck]\nchips = ["v6e"]\n')
    assert check() == 1
    assert [question.chip.name for question in compiler.asked] == ["v5p", "v5p", "v6e"]


def test_expected_failures_are_left_alone(compiler: Compiler) -> None:
    Path("a.py").write_text("import pytest\n" + KNOWN.replace("if True", "with pytest.raises(ValueError)"))
    check("--chip", "v5p")
    assert compiler.asked == []


def test_a_chip_is_needed(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    assert check() == 2
    assert "--compile needs to know the chip" in capsys.readouterr().err


def test_without_a_compiler_nothing_is_pretended(compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(KNOWN)
    compiler.unavailable = "not installed: libtpu"
    assert check("--chip", "v5p") == 2
    assert capsys.readouterr() == ("", "shapecheck: the TPU compiler cannot be asked: not installed: libtpu\n")


def test_no_call_site_needs_no_compiler(compiler: Compiler) -> None:
    compiler.unavailable = "not installed: libtpu"
    Path("a.py").write_text("x = 1\n")
    assert check("--chip", "v5p") == 0


def test_it_is_not_for_add_ignores(compiler: Compiler) -> None:
    with pytest.raises(SystemExit):
        check("--add-ignores")


FRONT_DOOR = RAGGED.replace("jax.experimental.pallas.ops.tpu.ragged_paged_attention", "kernel")
TORCH = RAGGED.replace("jax.experimental.pallas.ops.tpu", "torch_xla.experimental.pallas_kernels").replace(
    "attention import", "attention_v2 import"
)


class TestRagged:
    def test_what_compiles_is_proven(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        arrays = "jnp.zeros((64, 8, 128)), jnp.zeros((64, 16, 4, 128)), ids[:, 0], ids, jnp.arange(5), jnp.array([4])"
        Path("a.py").write_text(f"{RAGGED}\nids = jnp.zeros((4, 16), jnp.int32)\nragged_paged_attention({arrays})\n")
        site = document(capsys, "--chip", "v5p,v4")["call_sites"][-1]
        assert {question.kernel.name for question in compiler.asked} == {"ragged_paged_attention"}
        assert site["verdicts"]["SC399"] == "proven"

    def test_a_refusal_that_no_rule_describes(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(f"{RAGGED}\nknown(jnp.bfloat16)\n")
        compiler.verdicts = {64: MOSAIC}
        [finding] = document(capsys, "--chip", "v5p")["findings"]
        assert (finding["code"], finding["line"]) == ("SC399", RAGGED_LINE)
        values = {name: each["value"] for name, each in finding["values"].items()}
        assert values["num_combined_kv_heads"] == 4
        assert values["num_queries_per_block"] == 8
        assert "sliding_window" not in values  # it has its default

    def test_a_memory_that_does_not_suffice_is_its_own_rule(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(f"{RAGGED}\nknown(jnp.bfloat16)\n")
        compiler.verdicts = {64: {"failure": Failure.VMEM, "message": "Ran out of memory in memory space vmem", "seconds": 0.1}}
        [finding] = document(capsys, "--chip", "v5p")["findings"]
        assert finding["code"] == "SC306"
        assert "num_kv_pages_per_block" in finding["values"]

    @pytest.mark.parametrize(
        ("given", "handed_on"),
        [("jnp.float16", "float32"), ("jnp.float32", "float32"), ("jnp.bfloat16", "bfloat16"), ("'float64'", "float32")],
    )
    def test_the_front_door_hands_on_what_the_kernel_takes(self, given: str, handed_on: str, compiler: Compiler) -> None:
        source = FRONT_DOOR.replace("num_queries_per_block=8", "num_queries_per_block=8, k_scale=2")
        Path("a.py").write_text(f"{source}\nknown({given})\n")
        assert check("--chip", "v5p") == 0
        request = compiler.asked[0].request
        assert request["arrays"]["q"]["dtype"] == handed_on
        assert (request["parameters"]["k_scale"], request["parameters"]["v_scale"]) == (2.0, 1.0)
        assert isinstance(request["parameters"]["k_scale"], float)

    def test_what_is_no_kernel_of_jax_is_not_asked_about(self, compiler: Compiler) -> None:
        Path("a.py").write_text(f"{TORCH}\nknown(jnp.bfloat16)\n")
        assert check("--chip", "v5p") == 0
        assert compiler.asked == []

    def test_xla_is_not_asked_about(self, compiler: Compiler) -> None:
        source = FRONT_DOOR.replace("num_queries_per_block=8", "num_queries_per_block=8, implementation='xla'")
        Path("a.py").write_text(f"{source}\nknown(jnp.bfloat16)\n")
        assert check("--chip", "v5p") == 0
        assert compiler.asked == []


def test_a_call_that_is_split_over_devices_is_not_asked_about_as_a_whole(
    compiler: Compiler, capsys: pytest.CaptureFixture[str]
) -> None:
    source = KNOWN.replace("jax.experimental.pallas.ops.tpu.paged_attention", "kernel").replace(
        'megacore_mode="kv_head"', 'mesh=mesh, heads_axis="model"'
    )
    Path("a.py").write_text(f"import jax\nmesh = jax.make_mesh((2,), ('model',))\n{source}")
    assert check("--chip", "v5p") == 0
    assert compiler.asked == []
    assert "1 call site of unknown sizes" in capsys.readouterr().out
