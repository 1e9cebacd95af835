"""Each row of the table of callees: how it is imported, how its arguments bind, and which of its rules a call breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.callees import CALLEES
from codemods.findings import CallSite, Finding
from codemods.source import Source
from shapecheck.contracts import CONTRACTS
from shapecheck.rule import Verdict

TPU = "jax.experimental.pallas.ops.tpu"
CUSTOM = "torch_xla.experimental.custom_kernel"
MULTI = "torch_xla.experimental.pallas_kernels.multi_queries_paged_attention_kernel"
RAGGED = "torch_xla.experimental.pallas_kernels.ragged_paged_attention_v2"
EJ = "ejkernel.kernels._pallas.tpu"

JAX = """\
import jax.numpy as jnp
q = jnp.zeros((2, 16, 128), jnp.bfloat16)
kv = jnp.zeros((4, 64, 16, 128), jnp.bfloat16)
n, t = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 24), jnp.int32)
queries, e = jnp.zeros((2, 32, 16, 128), jnp.bfloat16), jnp.zeros((2,), jnp.int32)
starts, count = jnp.arange(3, dtype=jnp.int32), jnp.zeros((1,), jnp.int32)
"""
TORCH = """\
import torch
import torch_xla
q = torch.zeros((2, 16, 128), dtype=torch.bfloat16)
kv = torch.zeros((4, 64, 16, 128), dtype=torch.bfloat16)
n, t = torch.zeros((2,), dtype=torch.int32), torch.zeros((2, 24), dtype=torch.int32)
queries, e = torch.zeros((2, 32, 16, 128), dtype=torch.bfloat16), torch.zeros((2,), dtype=torch.int32)
starts, count = torch.arange(3, dtype=torch.int32), torch.zeros((1,), dtype=torch.int32)
"""


def analysed(text: str) -> tuple[list[CallSite], list[Finding]]:
    return analyse([Source("a.py", text.encode())], root=Path("/nonexistent"))


def outcome(text: str) -> tuple[list[str], list[str]]:
    """Return the codes that are violated and those that are unproven at the one call site of a source."""
    (site,), _ = analysed(text)
    by_verdict: dict[Verdict, list[str]] = {}
    for code, verdict in site.verdicts.items():
        by_verdict.setdefault(verdict, []).append(code)
    return by_verdict.get(Verdict.VIOLATED, []), by_verdict.get(Verdict.UNPROVEN, [])


IMPORTS = [
    # the import, the path of the table, how the function is called then
    (f"from {TPU}.paged_attention import paged_attention as f", f"{TPU}.paged_attention.paged_attention", "f"),
    (f"from {TPU} import paged_attention as f", f"{TPU}.paged_attention.paged_attention", "f.paged_attention"),
    (f"import {TPU}.paged_attention.paged_attention_kernel as f", f"{TPU}.paged_attention.paged_attention_kernel.paged_attention",
     "f.paged_attention"),
    ("from kernel import paged_attention as f", "kernel.paged_attention", "f"),
    ("from kernel.paged_attention import paged_attention as f", "kernel.paged_attention.paged_attention", "f"),
    (f"from {CUSTOM} import paged_attention as f", f"{CUSTOM}.paged_attention", "f"),
    ("f = torch.ops.xla", "torch.ops.xla.paged_attention", "f.paged_attention"),
    ("from torch import ops", "torch.ops.xla.paged_attention.default", "ops.xla.paged_attention.default"),
    (f"from {MULTI} import paged_attention as f", f"{MULTI}.paged_attention", "f"),
    (f"from {CUSTOM} import multi_queries_paged_attention as f", f"{CUSTOM}.multi_queries_paged_attention", "f"),
    (f"import {CUSTOM} as f", f"{CUSTOM}.multi_queries_paged_attention", "f.multi_queries_paged_attention"),
    ("f = torch.ops.xla.multi_queries_paged_attention", "torch.ops.xla.multi_queries_paged_attention", "f"),
    ("", "torch.ops.xla.multi_queries_paged_attention.default", "torch.ops.xla.multi_queries_paged_attention.default"),
    (f"from {CUSTOM} import extended_paged_attention as f", f"{CUSTOM}.extended_paged_attention", "f"),
    (f"from {EJ}.page_attention import page_attention as f", f"{EJ}.page_attention.page_attention", "f"),
    (f"from {EJ} import page_attention as f", f"{EJ}.page_attention", "f"),
    (f"from {EJ}.page_attention._interface import page_attention as f", f"{EJ}.page_attention._interface.page_attention", "f"),
    ("from ejkernel.kernels import pallas", "ejkernel.kernels.pallas.tpu.page_attention", "pallas.tpu.page_attention"),
    (f"from {TPU}.ragged_paged_attention import ragged_paged_attention as f",
     f"{TPU}.ragged_paged_attention.ragged_paged_attention", "f"),
    (f"from {TPU} import ragged_paged_attention as f", f"{TPU}.ragged_paged_attention.kernel.ragged_paged_attention",
     "f.kernel.ragged_paged_attention"),
    ("from kernel import ragged_paged_attention as f", "kernel.ragged_paged_attention", "f"),
    ("import kernel.ragged_paged_attention as f", "kernel.ragged_paged_attention.ragged_paged_attention",
     "f.ragged_paged_attention"),
    (f"from {CUSTOM} import ragged_paged_attention as f", f"{CUSTOM}.ragged_paged_attention", "f"),
    (f"import {RAGGED} as f", f"{RAGGED}.ragged_paged_attention", "f.ragged_paged_attention"),
    ("f = torch.ops.xla", "torch.ops.xla.ragged_paged_attention", "f.ragged_paged_attention"),
    ("", "torch.ops.xla.ragged_paged_attention.default", "torch.ops.xla.ragged_paged_attention.default"),
    ("import ejkernel", "ejkernel.kernels.pallas.tpu.page_attention", "ejkernel.kernels.pallas.tpu.page_attention"),
]  # fmt: skip

ROWS = sorted({id(callee): path for path, callee in CALLEES.items()}.values())

ARGUMENTS = {
    # of the contract's name: arguments of a legal call, and of one whose block alone is wrong
    "paged_attention": (("q", "kv", "kv", "n", "t"), {"pages_per_compute_block": (8, 16)}),
    "page_attention": (("q", "kv", "kv", "n", "t"), {"pages_per_compute_block": (8, 16)}),
    "extended_paged_attention": (
        ("queries[:, :1]", "kv", "kv", "n", "t"), {"pages_per_compute_block": (8, 16), "use_pallas": (True, True)},
    ),
    "multi_queries_paged_attention": (
        ("queries", "kv", "kv", "n", "t", "e"),
        {"num_kv_pages_per_compute_block": (8, 16), "num_queries_per_compute_block": (16, 16), "use_kernel": (True, True)},
    ),
    "ragged_paged_attention": (
        ("q", "kv", "n + 1", "t", "starts", "count + 1"),
        {"num_kv_pages_per_block": (8, 32), "num_queries_per_block": (8, 8), "use_kernel": (True, True)},
    ),
}  # fmt: skip
BLOCKS = {  # of a contract's name: the code that a wrong block breaks, the block's name, the value, and what is legal
    "multi_queries_paged_attention": ("SC102", "pages_per_compute_block", 16, 8),
    "ragged_paged_attention": ("SC127", "num_kv_pages_per_block", 32, 24),
}
DIVIDING = ("SC102", "pages_per_compute_block", 16, 12)


def call(path: str, function: str, *, legal: bool, by_keyword: bool) -> str:
    """Write a call of a callee with its first arguments by position, as far as it takes them, or with all by keyword."""
    callee = CALLEES[path]
    arrays, options = ARGUMENTS[callee.contract.name]
    given = dict(zip(callee.positional, arrays, strict=False))
    given |= {name: repr(values[not legal]) for name, values in options.items() if name in callee.signature.parameters}
    by_position = [] if by_keyword else list(callee.positional)
    while by_position and by_position[-1] not in given:
        by_position.pop()
    words = [given.get(name, "0" if name == "num_splits" else "None") for name in by_position]
    words += [f"{name}={value}" for name, value in given.items() if name not in by_position]
    return f"{function}({', '.join(words)})"


def source(path: str, imported: str, called: str) -> str:
    return f"{TORCH if 'torch' in path else JAX}{imported}\n{called}\n"


@pytest.mark.parametrize("by_keyword", [False, True], ids=["by_position", "by_keyword"])
@pytest.mark.parametrize(("imported", "path", "function"), IMPORTS, ids=lambda text: text)
class TestEveryRow:
    def test_a_legal_call_is_proven(self, imported: str, path: str, function: str, by_keyword: bool) -> None:
        text = source(path, imported, call(path, function, legal=True, by_keyword=by_keyword))
        assert outcome(text) == ([], [])

    def test_a_wrong_block_is_violated(self, imported: str, path: str, function: str, by_keyword: bool) -> None:
        text = source(path, imported, call(path, function, legal=False, by_keyword=by_keyword))
        (site,), findings = analysed(text)
        assert (site.callee, site.contract) == (CALLEES[path].name, CALLEES[path].contract.name)
        code, parameter, block, legal = BLOCKS.get(site.contract, DIVIDING)
        (finding,) = [each for each in findings if each.verdict is Verdict.VIOLATED]
        assert finding.code == code
        assert finding.fix is not None
        assert finding.fix.message == f"replace {block} by {legal}"
        assert finding.values[parameter].value == block


def test_every_path_is_imported_above() -> None:
    tried = {path for _, path, _ in IMPORTS}
    assert tried == set(CALLEES)


@pytest.mark.parametrize("path", ROWS)
def test_each_parameter_has_a_name_in_the_contract_or_none_at_all(path: str) -> None:
    callee = CALLEES[path]
    known = {each.name for each in (*callee.contract.arrays, *callee.contract.parameters)}
    foreign = {callee.contract_name(name) for name in callee.signature.parameters} - known
    assert foreign <= {
        "attn_scale",
        "max_context_len",
        "num_splits",
        "sliding_window",
        "num_warps",
        "num_stages",
        "implementation",
    }
    assert set(callee.renamed) <= set(callee.signature.parameters)
    assert callee.required <= known
    assert {array.name for array in callee.contract.arrays} <= callee.required


@pytest.mark.parametrize(
    "imported",
    [
        "from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention",
        "from ejkernel.kernels._triton.page_attention import page_attention",
        "from ejkernel.kernels._xla import page_attention",
        "from ejkernel.modules import page_attention",
        "from ejkernel.kernels._pallas.tpu import ragged_page_attention_v2 as page_attention",
        "from vllm import multi_queries_paged_attention",
        "from torch_xla.experimental import extended_paged_attention",
        "import torch; paged_attention = torch.ops.rocm.paged_attention",
        "def page_attention(*arguments, **keywords): ...",
    ],
)
def test_a_namesake_is_no_call_site(imported: str) -> None:
    name = next(
        word for word in ("multi_queries_paged_attention", "extended_paged_attention", "paged_attention", "page_attention")
        if word in imported
    )  # fmt: skip
    sites, findings = analysed(f"{JAX}{imported}\n{name}(q, kv, kv, t, n, pages_per_compute_block=16)\n")
    assert (sites, findings) == ([], [])


def multi(changes: str = "", **arguments: str) -> str:
    """Write a call of the multi-query kernel by keyword, legal but for the changes."""
    given = {
        "q": "queries",
        "k_pages": "kv",
        "v_pages": "kv",
        "lengths": "n",
        "page_indices": "t",
        "effective_q_lens": "e",
        "num_kv_pages_per_compute_block": "8",
        "num_queries_per_compute_block": "16",
    }
    words = [f"{name}={value}" for name, value in (given | arguments).items() if value]
    imported = f"from {MULTI} import paged_attention as f"
    return f"{JAX}{imported}\n{changes}\nf({', '.join(words)})\n"


class TestMultiQueries:
    @pytest.mark.parametrize(
        ("changes", "arguments", "violated"),
        [
            ("", {}, []),
            ("", {"num_queries_per_compute_block": "24"}, []),
            ("", {"num_queries_per_compute_block": "32"}, []),
            ("queries = queries[:, :30]", {}, []),
            ("queries = queries[:, :1]", {"num_queries_per_compute_block": "1"}, []),
            ("queries = queries[:, :4]", {"num_queries_per_compute_block": ""}, []),
            ("", {"num_queries_per_compute_block": ""}, ["SC307"]),
            ("", {"num_queries_per_compute_block": "12"}, ["SC307"]),
            ("", {"num_queries_per_compute_block": "40"}, ["SC131"]),
            ("", {"num_queries_per_compute_block": "0"}, ["SC131"]),
            ("", {"num_kv_pages_per_compute_block": "4"}, ["SC134"]),
            ("", {"num_kv_pages_per_compute_block": "48"}, ["SC102"]),
            ("", {"num_kv_pages_per_compute_block": "0"}, ["SC110"]),
            ("e = jnp.zeros((3,), jnp.int32)", {}, ["SC105"]),
            ("e = jnp.zeros((2, 1), jnp.int32)", {}, ["SC109"]),
            ("n = jnp.zeros((2,), jnp.int16)", {}, ["SC107"]),
            ("", {"q": "q"}, ["SC109"]),
            ("kv = kv[:3]", {}, ["SC101"]),
            ("queries, kv = queries[..., :64], kv[..., :64]", {}, ["SC301"]),
            ("n = jnp.array([0, 385], jnp.int32)", {}, ["SC401"]),
            ("t = jnp.full((2, 24), 64, jnp.int32)", {}, ["SC402"]),
            ("", {"attn_logits_soft_cap": "0.0"}, ["SC113"]),
            (
                "from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils\n"
                "kv = quantization_utils.quantize_to_int8(kv)",
                {}, ["SC133"],
            ),
        ],
    )  # fmt: skip
    def test_the_rules(self, changes: str, arguments: dict[str, str], violated: list[str]) -> None:
        assert outcome(multi(changes, **arguments))[0] == violated

    def test_an_unknown_block_has_a_counterexample(self) -> None:
        text = multi().replace("f(", "def g(block):\n    f(").replace("compute_block=8", "compute_block=block")
        _, findings = analysed(text)
        (finding,) = [each for each in findings if each.code == "SC134"]
        assert finding.verdict is Verdict.UNPROVEN
        assert finding.counterexample == {"block": 1}

    @pytest.mark.parametrize(("block", "fixed"), [("4", "replace 4 by 8"), ("40", "replace 40 by 32")])
    def test_the_query_block_is_repaired(self, block: str, fixed: str) -> None:
        _, findings = analysed(multi(num_queries_per_compute_block=block))
        (fix,) = [finding.fix for finding in findings]
        assert fix is not None
        assert fix.message == fixed


TORCH_MULTI = "torch.ops.xla.multi_queries_paged_attention(queries, kv, kv, n, t, e, {block}, 16{rest})"


class TestTheReferenceInTheKernelsPlace:
    @pytest.mark.parametrize("block", [8, 16])
    def test_no_rule_speaks_of_it(self, block: int) -> None:
        assert outcome(TORCH + TORCH_MULTI.format(block=block, rest=", use_kernel=False")) == ([], [])
        assert outcome(TORCH + TORCH_MULTI.format(block=block, rest=", False")) == ([], [])

    def test_it_may_be_chosen_at_run_time(self) -> None:
        text = f"{TORCH}def f(fast):\n    {TORCH_MULTI.format(block=16, rest=', use_kernel=fast')}\n"
        _, findings = analysed(text)
        (finding,) = findings
        assert (finding.code, finding.verdict) == ("SC102", Verdict.UNPROVEN)

    def test_the_op_has_no_default(self) -> None:
        violated, unproven = outcome(TORCH + TORCH_MULTI.format(block=16, rest=""))
        assert (violated, "SC102" in unproven) == (["SC116"], True)

    def test_the_function_has_one(self) -> None:
        text = TORCH_MULTI.format(block=16, rest="").replace("torch.ops.xla", "custom_kernel")
        assert outcome(f"{TORCH}from torch_xla.experimental import custom_kernel\n{text}") == (["SC102"], [])

    def test_the_query_block_has_no_default_in_torch(self) -> None:
        text = TORCH_MULTI.format(block=8, rest=", use_kernel=True").replace(", 16", "")
        violated, unproven = outcome(TORCH + text)
        assert (violated, unproven) == (["SC116"], ["SC131", "SC307"])

    @pytest.mark.parametrize(("rest", "violated"), [("", []), (", use_pallas=False", []), (", use_pallas=True", ["SC102"])])
    def test_the_extended_kernel_runs_on_request_only(self, rest: str, violated: list[str]) -> None:
        call = f"from {CUSTOM} import extended_paged_attention as f\nf(queries[:, :1], kv, kv, n, t, 16{rest})"
        assert outcome(TORCH + call) == (violated, [])


@pytest.mark.parametrize(
    ("queries", "heads", "violated"), [(32, 4, ["SC135"]), (1, 4, []), (32, 2, []), (32, 3, ["SC101", "SC135"])]
)
def test_the_extended_kernel_takes_several_queries_in_groups_of_8_heads_only(
    queries: int, heads: int, violated: list[str]
) -> None:
    call = f"from {CUSTOM} import extended_paged_attention as f\nf(queries[:, :{queries}], kv[:{heads}], kv[:{heads}], n, t, 8, "
    assert outcome(f"{TORCH}{call}use_pallas=True)") == (violated, [])


class TestEjkernel:
    @staticmethod
    def outcome(changes: str = "", block: str = "pages_per_compute_block=8", more: str = "") -> tuple[list[str], list[str]]:
        imported = f"from {EJ}.page_attention import page_attention"
        names = "query=q, key_cache=kv, value_cache=kv, context_lens=n, block_tables=t"
        return outcome(f"{JAX}{imported}\n{changes}\npage_attention({names}, {block}{more})\n")

    @pytest.mark.parametrize("block", ["", "pages_per_compute_block=None"])
    def test_it_finds_a_block_by_itself(self, block: str) -> None:
        assert self.outcome(block=block) == ([], [])

    def test_a_block_of_0_is_none(self) -> None:
        assert self.outcome(block="pages_per_compute_block=128 // 256")[0] == ["SC110"]

    def test_a_cache_of_pages_first_is_transposed(self) -> None:
        assert self.outcome("kv = jnp.zeros((64, 4, 16, 128), jnp.bfloat16)") == ([], [])

    @pytest.mark.parametrize(
        ("shape", "heads"),
        [
            ((62, 6, 16, 128), ["SC101"]),
            ((6, 62, 16, 128), ["SC101"]),
            ((64, 1, 16, 128), ["SC201"]),
            ((1, 64, 16, 128), ["SC201"]),
            ((64, 2, 16, 128), []),
            ((2, 64, 16, 128), []),
            ((2, 1, 16, 128), ["SC201"]),
        ],
    )
    def test_the_heads_are_those_of_the_cache_as_it_is_read(self, shape: tuple[int, ...], heads: list[str]) -> None:
        violated, _ = self.outcome(f"kv = jnp.zeros({shape}, jnp.bfloat16)", more=", megacore_mode='kv_head'")
        assert [code for code in violated if code in ("SC101", "SC201")] == heads

    @pytest.mark.parametrize(
        ("changes", "violated"),
        [
            ("t = jnp.full((2, 24), -1, jnp.int32)", []),
            ("t = jnp.full((2, 24), 64, jnp.int32)", ["SC402"]),
            ("t = t.astype(jnp.uint32)", ["SC108"]),
            ("n = n.astype(jnp.int16)", ["SC107"]),
            ("q = queries", ["SC109"]),
        ],
    )
    def test_the_rules(self, changes: str, violated: list[str]) -> None:
        assert self.outcome(changes)[0] == violated

    def test_findings_point_at_its_own_arguments(self) -> None:
        start = f"{JAX}from {EJ} import page_attention\npage_attention(q, kv, kv, block_tables=t[:, :3], context_lens=n,"
        _, (finding,) = analysed(f"{start}\n    pages_per_compute_block=2,\n)\n")
        assert (finding.code, finding.span.line) == ("SC102", start.count("\n") + 2)
        assert finding.values["pages_per_sequence"].origin == "t[:, :3].shape[1]"


def test_the_contracts_of_the_table_are_known_by_name() -> None:
    assert {callee.contract.name for callee in CALLEES.values()} == set(CONTRACTS)
