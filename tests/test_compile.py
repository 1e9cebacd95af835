"""`shapecheck compile`, with a stand-in for the compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codemods import cli, compile
from shapecheck.compiler import Answer, CompilerUnavailable, Failure, Question

IMPORT = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
"""
CALL = """\
    q = jnp.zeros((batch, 32, 128), jnp.bfloat16)
    pages = jnp.zeros((8, 256, 16, 128), jnp.bfloat16)
    lengths = jnp.zeros((batch,), jnp.int32)
    table = jnp.zeros((batch, 24), jnp.int32)
    return paged_attention(q, pages, pages, lengths, table, pages_per_compute_block=block, megacore_mode="kv_head")
"""
KNOWN = f"{IMPORT}\ndef run(batch, block):\n{CALL}\nrun(8, 12)\n"
CASES = f"{KNOWN}run(16, 7)\n"
UNKNOWN = f"{IMPORT}\ndef run(batch, block=4):\n{CALL}"
LINE = 9  # of the call
RAGGED = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

def run(q, lens, table, offsets, **options):
    pages = jnp.zeros((64, 16, 4, 128), jnp.bfloat16)
    return ragged_paged_attention(q, pages, lens, table, offsets, jnp.array([4], jnp.int32), **options)

def known(dtype):
    q, ids = jnp.zeros((64, 8, 128), dtype), jnp.zeros((4, 16), jnp.int32)
    run(q, jnp.ones((4,), jnp.int32), ids, jnp.arange(5, dtype=jnp.int32), num_kv_pages_per_block=2, num_queries_per_block=8)
"""
RAGGED_LINE = 6


class Compiler:
    """Refuses blocks that do not divide, as JAX does, and whatever `verdicts` says of a batch."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.options: dict[str, Any] = {}
        self.verdicts: dict[int, dict[str, Any]] = {}
        self.unavailable = ""

    def __call__(self, questions: Sequence[Question], **options: Any) -> list[Answer]:
        if self.unavailable:
            raise CompilerUnavailable(self.unavailable)
        self.options = options
        self.asked += questions
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        arrays, block = question.request["arrays"], question.request["parameters"].get("pages_per_compute_block")
        if verdict := self.verdicts.get(arrays["q"]["shape"][0]):
            return Answer(question, **verdict)
        if block and arrays["page_indices"]["shape"][1] % block:
            return Answer(question, Failure.UPSTREAM, "ValueError: Got 7.", 0.01)
        return Answer(question, seconds=1.25, memory={"vmem": 196608, "hbm": 1 << 25})


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compile, "ask", compiler)
    return compiler


def run(*arguments: str) -> int:
    try:
        return cli.main(["compile", *arguments])
    except SystemExit as end:
        return int(end.code or 0)


class TestStated:
    def test_what_compiles(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--chip", "v5p,v4") == 0
        smem = "0.005 to 0.007 MiB SMEM (predicted)"  # libtpu does not say it
        assert capsys.readouterr().out == (
            f"v5p: compiles (1.2 s): 0.188 MiB VMEM, {smem}, 32 MiB HBM\n"
            f"v4: compiles (1.2 s): 0.188 MiB VMEM, {smem}, 32 MiB HBM\n"
        )

    def test_what_libtpu_does_not_say_is_predicted(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        compiler.verdicts = {8: {"seconds": 1.0, "memory": {"hbm": 1 << 25}}}
        assert run("--chip", "v5p") == 0
        assert re.search(r"[\d.]+ to [\d.]+ MiB VMEM \(predicted\), .*, 32 MiB HBM$", capsys.readouterr().out)

    def test_what_does_not(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--chip", "v5p", "--block", "7") == 1
        out = capsys.readouterr().out
        assert out.startswith("v5p: does not compile (0.0 s): JAX refuses the arguments\n  SC102 block-not-dividing: ")
        assert "pages_per_sequence = 64, pages_per_compute_block = 7; legal blocks: 1, 2, 4, 8, 16, 32, 64" in out
        assert out.endswith("  the compiler: ValueError: Got 7.\n")

    def test_what_compiles_and_goes_wrong(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--chip", "v5p,v5e", "--megacore", "batch") == 1
        assert "  but it goes wrong, or hangs, when it runs: SC204 megacore-chip: " in capsys.readouterr().out

    def test_a_hint_is_no_failure(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--chip", "tpu7x", "--kv-heads", "8") == 0
        assert "  hint: SC505 skipped-upstream: " in capsys.readouterr().out

    def test_a_disagreement(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        compiler.verdicts = {8: {"seconds": 1.0}}
        assert run("--chip", "v5e", "--block", "7") == 0
        assert "  although the contract says that it cannot, please report it: SC102" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("failure", "message", "text"),
        [
            (Failure.TIMEOUT, "no answer within 5 s", "v5p: not known: the compiler takes too long: no answer within 5 s\n"),
            (Failure.CRASH, "SIGSEGV", "v5p: not known: the compiler crashes: SIGSEGV\n"),
        ],
    )
    def test_no_answer(
        self, failure: Failure, message: str, text: str, compiler: Compiler, capsys: pytest.CaptureFixture[str]
    ) -> None:
        compiler.verdicts = {8: {"failure": failure, "message": message}}
        assert run("--chip", "v5p") == 2
        assert capsys.readouterr().out == text

    def test_no_compiler(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        compiler.unavailable = "not installed: libtpu"
        assert run("--chip", "v5p") == 2
        assert capsys.readouterr().err == "shapecheck: the TPU compiler cannot be asked: not installed: libtpu\n"

    def test_every_option_is_part_of_the_question(self, compiler: Compiler) -> None:
        sizes = ["--batch", "4", "--q-heads", "16", "--kv-heads", "4", "--head-dim", "256", "--page-size", "32"]
        more = ["--pages-per-sequence", "10", "--total-pages", "99", "--block", "5", "--megacore", "batch", "--soft-cap", "30"]
        types = ["--q-dtype", "float32", "--pages-dtype", "int8", "--scales-dtype", "float32", "--no-inline-seq-dim"]
        rest = ["--mesh", "data=2,model=2", "--timeout", "7", "--jobs", "3", "--no-cache"]
        assert run("--chip", "v5p", *sizes, *more, *types, *rest) == 0
        [question] = compiler.asked
        pages = {"shape": (4, 99, 32, 256), "dtype": "int8", "scales": {"shape": (4, 99, 32, 1), "dtype": "float32"}}
        assert question.chip.name == "v5p"
        assert question.request["mesh"] == {"data": 2, "model": 2}
        assert question.request["arrays"] == {
            "q": {"shape": (4, 16, 256), "dtype": "float32"},
            "k_pages": pages,
            "v_pages": pages,
            "lengths": {"shape": (4,), "dtype": "int32"},
            "page_indices": {"shape": (4, 10), "dtype": "int32"},
        }
        parameters = question.request["parameters"]
        assert (parameters["pages_per_compute_block"], parameters["megacore_mode"]) == (5, "batch")
        assert (parameters["attn_logits_soft_cap"], parameters["inline_seq_dim"]) == (30.0, False)
        assert {key: compiler.options[key] for key in ("timeout", "processes", "cache")} == {
            "timeout": 7.0,
            "processes": 3,
            "cache": None,
        }

    def test_every_option_of_a_ragged_call_is_part_of_the_question(self, compiler: Compiler) -> None:
        sizes = ["--batch", "4", "--tokens", "32", "--q-heads", "16", "--kv-heads", "4", "--head-dim", "256", "--page-size", "32"]
        more = ["--pages-per-sequence", "10", "--total-pages", "99", "--block", "5", "--query-block", "7", "--soft-cap", "30"]
        types = ["--q-dtype", "float32", "--pages-dtype", "int8", "--k-scale", "0.5", "--v-scale", "2"]
        rest = ["--sliding-window", "128", "--vmem-limit", "1000000", "--mesh", "model=2"]
        assert run("--callee", "ragged_paged_attention", "--chip", "v5p", *sizes, *more, *types, *rest) == 0
        request = compiler.asked[0].request
        assert request["module"] == "jax.experimental.pallas.ops.tpu.ragged_paged_attention"
        assert request["arrays"] == {
            "q": {"shape": (32, 16, 256), "dtype": "float32"},
            "kv_pages": {"shape": (99, 32, 8, 256), "dtype": "int8"},
            "kv_lens": {"shape": (4,), "dtype": "int32"},
            "page_indices": {"shape": (4, 10), "dtype": "int32"},
            "cu_q_lens": {"shape": (5,), "dtype": "int32"},
            "num_seqs": {"shape": (1,), "dtype": "int32"},
        }
        assert request["specs"]["q"] == [None, "model", None]
        assert request["specs"]["kv_pages"] == [None, None, "model", None]
        del request["parameters"]["mask_value"], request["parameters"]["sm_scale"]
        assert request["parameters"] == {
            "sliding_window": 128,
            "soft_cap": 30.0,
            "k_scale": 0.5,
            "v_scale": 2.0,
            "num_kv_pages_per_block": 5,
            "num_queries_per_block": 7,
            "vmem_limit_bytes": 1000000,
        }

    def test_a_ragged_call_is_judged_by_its_own_contract(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        compiler.verdicts = {9: {"failure": Failure.UPSTREAM, "message": "ValueError: no"}}
        assert run("--callee", "ragged_paged_attention", "--chip", "v5e", "--tokens", "9", "--kv-heads", "3") == 1
        out = capsys.readouterr().out
        assert "  SC101 heads-not-grouped: the KV heads must divide the query heads: num_combined_kv_heads = 6" in out
        assert "  SC122 combined-heads-tiling: " in out

    def test_what_is_left_out_follows_from_the_rest(self, compiler: Compiler) -> None:
        assert run("--chip", "v5p", "--batch", "2", "--pages-per-sequence", "21", "--scales-dtype", "float32") == 0
        [question] = compiler.asked
        assert question.request["arrays"]["k_pages"]["shape"][1] == 42
        assert question.request["arrays"]["k_pages"]["dtype"] == "int8"
        assert question.request["parameters"]["pages_per_compute_block"] == 7

    def test_chips_of_the_settings(self, compiler: Compiler, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text('[tool.shapecheck]\nchips = ["v6e", "v4"]\n')
        assert run() == 0
        assert [question.chip.name for question in compiler.asked] == ["v6e", "v4"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "name the chip to compile for: --chip v5p"),
            (["--chip", "v9"], "unknown chip 'v9'"),
            (["--chip", "v5p", "--batch", "-1"], "'-1' is no size"),
            (["--chip", "v5p", "--q-dtype", "bf16"], "'bf16' is no dtype (did you mean 'bfloat16'?); known: bfloat16"),
            (["--chip", "v5p", "--pages-dtype", "xyz"], "'xyz' is no dtype; known: bfloat16"),
            (["--chip", "v5p", "--mesh", "4"], "'4' is no mesh such as model=4"),
            (
                ["--chip", "v5p", "--mesh", "tp=2"],
                "'tp=2' is no mesh such as model=4 or data=2,model=4: its axes are data and model",
            ),
            (["--chip", "v5p", "--mesh", "model=2,model=2"], "is no mesh"),
            (["--chip", "v5p", "--mesh", "model=3"], "num_q_heads = 32 cannot be split 3 ways, over 'model'"),
            (
                ["--chip", "v5p", "--mesh", "data=3"],
                "batch_size = 8 cannot be split 3 ways, over 'data'; legal numbers: 1, 2, 4, 8",
            ),
            (["--chip", "v5p", "--callee", "attention"], "invalid choice: 'attention'"),
            (["--chip", "v5p", "--tokens", "8"], "--tokens is not for paged_attention, which has: --batch, --q-heads"),
            (
                ["--chip", "v5p", "--callee", "ragged_paged_attention", "--megacore", "batch"],
                "--megacore is not for ragged_paged_attention, which has: --batch",
            ),
            (
                ["--chip", "v5p", "--callee", "ragged_paged_attention", "--mesh", "data=2"],
                "ragged_paged_attention is not split over 'data', only over model",
            ),
            (["--chip", "v5p", "--callee", "paged_attention", "--call", "a.py:1"], "with --call it is that of the source"),
            (["--chip", "v5p", "--timeout", "0"], "'0' is no number of seconds"),
            (["--chip", "v5p", "--jobs", "0"], "at least 1"),
            (["--chip", "v5p", "--call", "a.py"], "'a.py' is no place"),
            (["--chip", "v5p", "--call", "gone.py:3"], "gone.py:1: cannot be read"),
        ],
    )
    def test_wrong_usage(
        self, arguments: list[str], message: str, compiler: Compiler, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(*arguments) == 2
        assert message in capsys.readouterr().err
        assert compiler.asked == []

    def test_json(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        compiler.verdicts = {
            2: {
                "failure": Failure.VMEM,
                "message": "Ran out",
                "seconds": 2.0,
                "used": 17 << 20,
                "limit": 16 << 20,
                "cached": True,
            }
        }
        assert run("--chip", "v5p", "--batch", "2", "--mesh", "model=4", "--output-format", "json") == 1
        document = json.loads(capsys.readouterr().out)
        assert document["version"] == 1
        [answer] = document["compilations"]
        assert {key: answer[key] for key in ("chip", "mesh", "verdict", "compiles", "message", "seconds", "cached")} == {
            "chip": "v5p",
            "mesh": {"data": 1, "model": 4},
            "verdict": "oom_vmem",
            "compiles": False,
            "message": "Ran out",
            "seconds": 2.0,
            "cached": True,
        }
        assert (answer["used"], answer["limit"], answer["memory"]) == (17 << 20, 16 << 20, {})
        assert answer["predicted"]["smem"] == {"least": 512 + 512 + 2560, "most": 512 + 512 + 5120}
        assert answer["arrays"]["q"] == {"shape": [2, 32, 128], "dtype": "bfloat16"}


class TestCall:
    def test_the_sizes_are_those_of_the_source(self, compiler: Compiler) -> None:
        Path("a.py").write_text(KNOWN)
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}") == 0
        arrays = compiler.asked[0].request["arrays"]
        assert (arrays["q"]["shape"], arrays["page_indices"]["shape"]) == ((8, 32, 128), (8, 24))
        assert compiler.asked[0].request["parameters"]["megacore_mode"] == "kv_head"

    def test_each_way_to_reach_it_is_compiled(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(CASES)
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}") == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("v5p, batch_size = 8, pages_per_compute_block = 12: compiles")
        assert lines[1].startswith("v5p, batch_size = 16, pages_per_compute_block = 7: does not compile")

    def test_what_is_not_known_is_said_with_the_option_that_states_it(
        self, compiler: Compiler, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("a.py").write_text(UNKNOWN)
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}") == 2
        assert capsys.readouterr().err == (
            f"shapecheck: a.py:{LINE}: not all sizes are known; state them by options:\n"
            "  --batch (batch_size): `batch` is a parameter of `run` (a.py:4)\n"
            "  --block (pages_per_compute_block): `block` is a parameter of `run`, 4 by default (a.py:4)\n"
        )
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}", "--batch", "2", "--block", "6") == 0
        [question] = compiler.asked
        assert question.request["arrays"]["page_indices"]["shape"] == (2, 24)
        assert question.request["parameters"]["pages_per_compute_block"] == 6

    def test_options_go_before_the_source(self, compiler: Compiler) -> None:
        quantized = ["--pages-dtype", "int8", "--scales-dtype", "float32"]
        Path("a.py").write_text(KNOWN)
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}", "--kv-heads", "4", *quantized) == 0
        pages = compiler.asked[0].request["arrays"]["k_pages"]
        assert (pages["shape"], pages["scales"]["shape"]) == ((4, 256, 16, 128), (4, 256, 16, 1))

    def test_a_ragged_call(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(f"{RAGGED}\nknown(jnp.bfloat16)\n")
        assert run("--chip", "v5p", "--call", f"a.py:{RAGGED_LINE}") == 0
        arrays = compiler.asked[0].request["arrays"]
        assert (arrays["q"]["shape"], arrays["cu_q_lens"]["shape"]) == ((64, 8, 128), (5,))
        assert compiler.asked[0].request["parameters"]["num_queries_per_block"] == 8
        assert run("--chip", "v5p", "--call", f"a.py:{RAGGED_LINE}", "--batch", "9", "--kv-heads", "4") == 0
        arrays = compiler.asked[1].request["arrays"]
        assert [arrays[name]["shape"] for name in ("kv_lens", "page_indices", "cu_q_lens")] == [(9,), (9, 16), (10,)]
        assert arrays["kv_pages"]["shape"] == (64, 16, 8, 128)

    def test_what_is_not_known_of_a_ragged_call(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(RAGGED.partition("def known")[0])
        place = ["--chip", "v5p", "--call", f"a.py:{RAGGED_LINE}"]
        assert run(*place) == 2
        told = re.findall(r"^  (\S+) \((\w+)\): ", capsys.readouterr().err, re.MULTILINE)
        assert ("--batch", "max_num_seqs") in told
        assert ("--tokens", "max_num_batched_tokens") in told
        stated = ["--batch", "3", "--tokens", "8", "--q-heads", "8", "--pages-per-sequence", "4", "--q-dtype", "float32"]
        rest = ["--block", "2", "--query-block", "8", "--soft-cap", "5", "--sliding-window", "9"]
        scales = ["--k-scale", "1", "--v-scale", "1", "--vmem-limit", "9999999"]
        assert run(*place, *stated, *rest, *scales) == 2
        assert "mask_value" in capsys.readouterr().err  # what `**options` may hold no option states

    def test_what_is_reached_with_unknown_sizes_too_is_said(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.py").write_text(f"{KNOWN}\ndef handle(request):\n    run(request.batch, 6)\n")
        assert run("--chip", "v5p", "--call", f"a.py:{LINE}") == 0
        assert f"a.py:{LINE}: not compiled where it is reached with sizes that are not known:" in capsys.readouterr().err
        assert len(compiler.asked) == 1

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (KNOWN, 1, f"a.py:1: no call of a known kernel; there is one on line {LINE}"),
            ("x = 1\n", 1, "a.py:1: no call of a known kernel\n"),
            (f"{IMPORT}x = (\n", 3, "a.py:3: cannot be parsed"),
            (
                "from torch_xla.experimental.custom_kernel import multi_queries_paged_attention as f\nf(1)\n",
                2,
                "multi_queries_paged_attention is not compiled: it is no kernel of JAX",
            ),
        ],
    )
    def test_no_such_call(
        self, text: str, line: int, message: str, compiler: Compiler, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("a.py").write_text(text)
        assert run("--chip", "v5p", "--call", f"a.py:{line}") == 2
        assert message in capsys.readouterr().err

    def test_a_folder_is_no_place(self, compiler: Compiler, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--chip", "v5p", "--call", ".:3") == 2
        assert ".: is a folder" in capsys.readouterr().err
