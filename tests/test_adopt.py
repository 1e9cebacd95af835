"""`fix --adopt`: the typed front door, and contracts of functions that hand on to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils import QuantizedTensor

from codemods.cli import main
from shapecheck import ContractError

MODULE = "jax.experimental.pallas.ops.tpu.paged_attention"
IMPORT = f"from {MODULE} import paged_attention\n"
WRAPPER = f"""{IMPORT}

def decode(q, k_pages, v_pages, lengths, page_indices, *, block=8, mode=None):
    \"\"\"Attend.\"\"\"
    return paged_attention(
        q,
        k_pages,
        v_pages,
        lengths,
        page_indices,
        pages_per_compute_block=block,
        megacore_mode=mode,
    )
"""
ADOPTED = """from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils
from jax.typing import ArrayLike
from jaxtyping import Float, Int, Integer, Real
from kernel import paged_attention
from shapecheck import contract


@contract(
    "num_q_heads % num_kv_heads == 0",
    "pages_per_sequence % block == 0",
    "mode != 'kv_head' or num_kv_heads % 2 == 0",
    "mode != 'batch' or batch_size % 2 == 0",
)
def decode(
    q: Float[ArrayLike, "batch_size num_q_heads head_dim"],  # noqa: F722
    k_pages: quantization_utils.QuantizedTensor
    | Real[ArrayLike, "num_kv_heads total_num_pages page_size head_dim"],  # noqa: F722
    v_pages: quantization_utils.QuantizedTensor
    | Real[ArrayLike, "num_kv_heads total_num_pages page_size head_dim"],  # noqa: F722
    lengths: Int[ArrayLike, " batch_size"],  # noqa: F722
    page_indices: Integer[ArrayLike, "batch_size pages_per_sequence"],  # noqa: F722
    *,
    block=8,
    mode=None,
):
    \"\"\"Attend.\"\"\"
    return paged_attention(
        q,
        k_pages,
        v_pages,
        lengths,
        page_indices,
        pages_per_compute_block=block,
        megacore_mode=mode,
    )
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def adopted(text: str, path: str = "a.py") -> str:
    Path(path).write_text(text)
    main(["fix", "--adopt", "--exit-zero", path])
    return Path(path).read_text()


def test_a_wrapper_states_its_contract() -> None:
    assert adopted(WRAPPER) == ADOPTED
    assert adopted(ADOPTED) == ADOPTED


def test_the_result_is_clean_by_ruff() -> None:
    pytest.importorskip("ruff")
    Path("a.py").write_text(adopted(WRAPPER))
    for command in (["check", "--isolated", "--select", "E4,E7,E9,F,I"], ["format", "--isolated", "--check"]):
        run = subprocess.run([sys.executable, "-m", "ruff", *command, "a.py"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


def test_ruffs_settings_are_respected() -> None:
    Path("pyproject.toml").write_text('[tool.ruff.lint]\nignore = ["F722"]\n')
    assert "noqa" not in adopted(WRAPPER)


def test_the_result_runs_and_enforces() -> None:
    names: dict[str, object] = {}
    exec(compile(adopted(WRAPPER), "a.py", "exec"), names)  # our own text, not that of a scanned file
    decode = names["decode"]
    assert callable(decode)
    q, kv = jnp.ones((2, 4, 128)), jnp.ones((2, 8, 16, 128))
    lengths, table = jnp.ones((2,), jnp.int32), jnp.zeros((2, 4), jnp.int32)
    assert decode(q, kv, kv, lengths, table, block=2).shape == (2, 4, 128)
    assert decode(q, kv, kv, np.ones((2,), np.int32), np.zeros((2, 4), np.int32), block=2).shape == (2, 4, 128)
    with pytest.raises(ContractError, match="pages_per_sequence % block == 0"):
        decode(q, kv, kv, lengths, table, block=3)


def test_what_was_legal_before_stays_so() -> None:
    names: dict[str, object] = {}
    exec(
        compile(
            adopted(WRAPPER.replace("(q, k_pages", "(q: jax.Array, k_pages").replace("\n", "\nimport jax\n", 1)), "a.py", "exec"
        ),
        names,
    )
    decode = names["decode"]
    assert callable(decode)
    kv = jnp.ones((2, 8, 16, 128))
    quantized = QuantizedTensor(jnp.ones((2, 8, 16, 128), jnp.int8), jnp.ones((2, 8, 16, 1)))
    for pages in (kv, np.ones((2, 8, 16, 128), np.float32), kv.astype(jnp.bfloat16), quantized):
        for q in (jnp.ones((2, 4, 128), jnp.bfloat16), np.ones((2, 4, 128), np.float32)):
            for kind in (np.int32, np.int64):
                table = np.zeros((2, 4), kind)
                assert decode(q, pages, pages, np.ones((2,), kind), table, block=np.int64(2)).shape == (2, 4, 128)
                assert jax.jit(decode, static_argnames="block")(q, pages, pages, table[:, 0], table, block=2).shape == (2, 4, 128)
    with pytest.raises(ContractError, match="pages_per_sequence % block == 0"):
        decode(kv[0, :, :4], quantized, quantized, np.ones((8,), np.int32), np.zeros((8, 4), np.int32), block=3)


def test_a_call_inside_with_is_always_made() -> None:
    text = WRAPPER.replace("    return paged_attention(", "    with scope():\n        return paged_attention(")
    assert "@contract(\n" in adopted(text)
    text = WRAPPER.replace("    return paged_attention(", "    with paged_attention(").replace(
        "mode,\n    )\n", "mode,\n    ):\n        pass\n"
    )
    assert "@contract(\n" in adopted(text)


def test_a_jitted_wrapper_keeps_its_decorator_outside() -> None:
    text = "import jax\n" + WRAPPER.replace("def decode", "@jax.jit\ndef decode").replace("q,", "q: jax.Array,", 1)
    assert "@jax.jit\n@contract(\n" in adopted(text)


COMMENTED = "there is a comment among its parameters, or its body on the same line"
MAY_NOT_CALL = "it may return without a call of the kernel"
TWICE = "    paged_attention(q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=1)\n    return"
LEFT = {
    "it computes one": ("        q,", "        q * 2,", "it does not hand on a parameter as it is for `q`"),
    "it binds one anew": ("    return", "    q = q * 2\n    return", "it does not hand on a parameter as it is for `q`"),
    "a decorator": ("def decode", "@other\ndef decode", "it has a decorator besides jit"),
    "a default": ("lengths, page_indices, *", "lengths, page_indices=None, *", "it has a default for `page_indices`"),
    "annotated": ("decode(q,", "decode(q: Float[Array, 'b h d'],", "`q` is annotated as Float[Array, 'b h d']"),
    "a comment": ("def decode(q,", "def decode(  # the query\n    q,", COMMENTED),
    "any number of arguments": ("mode=None", "mode=None, **options", "it takes `*args`, `**kwargs` or types as parameters"),
    "one for both": ("        v_pages,", "        k_pages,", "it hands on one parameter for two arrays"),
    "two calls": ("    return", TWICE, "it calls the kernel more than once"),
    "async": ("def decode", "async def decode", "it is a method, or inside of another function, or async"),
    "a float": ("block=8", "block=8, cap: float = 1.0", "the annotation of `cap`, float, would be enforced"),
    "a class of the tree": ("block=8", "block=8, mesh: 'Mesh' = None", "the annotation of `mesh`, 'Mesh', would be enforced"),
    "None for an int": ("block=8", "block: int = None", "`block` is None by default, but annotated as int"),
    "a result": ("mode=None):", "mode=None) -> np.float32:", "the annotation of its result, np.float32, would be enforced"),
    "another way out": ("    return", "    if block > 8:\n        return slow(q)\n    return", MAY_NOT_CALL),
    "another arm": ("    return paged_attention(", "    return slow(q) if block > 8 else paged_attention(", MAY_NOT_CALL),
    "a generator": ("    return", "    yield", MAY_NOT_CALL),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), LEFT.values(), ids=LEFT)
def test_other_functions_only_call_the_front_door(old: str, new: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = WRAPPER.replace(old, new, 1)
    assert adopted(text) == text.replace(IMPORT, "from kernel import paged_attention\n")
    line = 5 if reason.startswith("it has a decorator") else 4
    assert f"a.py:{line}: not adopted: `decode` states no contract: {reason}\n" in capsys.readouterr().out


CALL = "decode(q, k, v, lengths, {})"
REFUSED = {
    "a caller gives None": ("", CALL.format("None"), "b.py:2 gives it None for `page_indices`"),
    "a caller may give None": ("", CALL.format("page_indices=None if x else t"), "b.py:2 gives it None for `page_indices`"),
    "the body asks for None": ("    if lengths is None:\n        raise ValueError\n", "", "it asks what `lengths` is"),
    "the body asks for its type": ("    assert isinstance(k_pages, tuple)\n", "", "it asks what `k_pages` is"),
    "the body asks for its truth": ("    assert lengths or q\n", "", "it asks what `lengths` and `q` is"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "caller", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_function_that_takes_more_than_arrays_states_no_contract(
    body: str, caller: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.py").write_text(f"from a import decode\n{caller}\n")
    text = WRAPPER.replace("    return", f"{body}    return")
    assert adopted(text) == text.replace(IMPORT, "from kernel import paged_attention\n")
    assert f"a.py:4: not adopted: `decode` states no contract: {reason}\n" in capsys.readouterr().out


def test_the_notes_are_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    adopted(WRAPPER)
    lines = capsys.readouterr().out.splitlines()
    told = [(1, "adopted: the kernel is imported from `kernel`"), (4, "adopted: `decode` states its contract")]
    assert [f"a.py:{line}: {text}" for line, text in told] == [line for line in lines if "adopted:" in line]

    def output(kind: str) -> str:
        Path("a.py").write_text(WRAPPER)
        main(["fix", "--adopt", "--exit-zero", "--output-format", kind, "a.py"])
        return capsys.readouterr().out

    assert json.loads(output("json"))["notes"] == [{"path": "a.py", "line": line, "message": text} for line, text in told]
    [invocation] = json.loads(output("sarif"))["runs"][0]["invocations"]
    assert [(each["level"], each["message"]["text"]) for each in invocation["toolExecutionNotifications"]] == [
        ("note", text) for _, text in told
    ]
    assert invocation["executionSuccessful"]
    assert output("github").splitlines() == [
        f"::notice title=shapecheck (note),file=a.py,line={line}::a.py:{line}: {text}" for line, text in told
    ]


FAILING = "import jax.numpy as jnp\nq = jnp.zeros((4, 8, 128))\npaged_attention(q, q, q, q, q, pages_per_compute_block=1)\n"
KEPT = {
    "bound again": (WRAPPER + "paged_attention = 1\n", ""),
    "illegal": (IMPORT + FAILING, "a.py:1: not adopted: the call on line 4 breaks SC107, SC108, SC109"),
    "not called": (IMPORT + "x = 1\n", ""),
    "another kernel": ("from other import paged_attention\npaged_attention(1)\n", ""),
    "by its module": (
        WRAPPER.replace(IMPORT, "import jax.experimental.pallas.ops.tpu.paged_attention as pa\n").replace(
            "return p", "return pa.p"
        ),
        "a.py:1: not adopted: the kernel is not imported by one `from ... import paged_attention` of the module",
    ),
    "imported inside": (
        WRAPPER.replace(IMPORT, "").replace("    return", f"    {IMPORT}    return"),
        "a.py:5: not adopted: the kernel is not imported by one `from ... import paged_attention` of the module",
    ),
}


@pytest.mark.parametrize(("text", "note"), KEPT.values(), ids=KEPT)
def test_what_is_not_legal_or_not_the_kernel_stays(text: str, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert adopted(text) == text
    told = capsys.readouterr().out
    assert (f"\n{note}" in f"\n{told}") if note else "adopted" not in told


def test_a_module_kernel_of_the_trees_own_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("")
    Path("kernel.py").write_text("")
    assert IMPORT.replace("\n", ", quantization_utils\n") in adopted(WRAPPER)
    assert "a.py:1: not adopted: the tree has a module `kernel` of its own\n" in capsys.readouterr().out


def test_other_names_of_the_import_stay() -> None:
    text = WRAPPER.replace("import paged_attention", "import paged_attention as pa, quantization_utils").replace(
        "return paged_attention", "return pa"
    )
    result = adopted(text)
    assert "from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils\n" in result
    assert "from kernel import paged_attention as pa\n" in result


def test_a_call_by_another_name_is_left_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = "import jax.experimental.pallas.ops.tpu.paged_attention as pa\n" + WRAPPER
    call = "\n\ndef other(*arrays):\n    return pa.paged_attention(*arrays, pages_per_compute_block=8)\n"
    after = adopted(text + call)
    assert after.endswith(call)
    assert "from kernel import paged_attention" in after
    line = (text + call).count("\n")
    assert f"a.py:{line}: not adopted: this call does not go by the name `paged_attention`\n" in capsys.readouterr().out
