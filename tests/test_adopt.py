"""`fix --adopt`: the typed front door, and contracts of functions that hand on to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from codemods.cli import main
from shapecheck import ContractError

IMPORT = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\n"
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
ADOPTED = """from jax.typing import ArrayLike
from jaxtyping import Float, Int32, Integer, Real
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
    k_pages: Real[ArrayLike, "num_kv_heads total_num_pages page_size head_dim"],  # noqa: F722
    v_pages: Real[ArrayLike, "num_kv_heads total_num_pages page_size head_dim"],  # noqa: F722
    lengths: Int32[ArrayLike, " batch_size"],  # noqa: F722
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


def test_a_jitted_wrapper_keeps_its_decorator_outside() -> None:
    text = "import jax\n" + WRAPPER.replace("def decode", "@jax.jit\ndef decode").replace("q,", "q: jax.Array,", 1)
    assert "@jax.jit\n@contract(\n" in adopted(text)


@pytest.mark.parametrize(
    "change",
    [
        ("        q,", "        q * 2,"),
        ("    return", "    q = q * 2\n    return"),
        ("def decode", "@other\ndef decode"),
        ("lengths, page_indices, *", "lengths, page_indices=None, *"),
        ("decode(q,", "decode(q: Float[Array, 'b h d'],"),
        ("def decode(q,", "def decode(  # the query\n    q,"),
    ],
    ids=str,
)
def test_other_functions_only_call_the_front_door(change: tuple[str, str]) -> None:
    text = WRAPPER.replace(*change, 1)
    assert adopted(text) == text.replace(IMPORT, "from kernel import paged_attention\n")


CALL = "decode(q, k, v, lengths, {})"
REFUSED = {
    "a caller gives None": ("", CALL.format("None"), "b.py:2 gives it None for `page_indices`"),
    "a caller may give None": ("", CALL.format("page_indices=None if x else t"), "b.py:2 gives it None for `page_indices`"),
    "the body asks for None": ("    if lengths is None:\n        return q\n", "", "it asks what `lengths` is"),
    "the body asks for its type": ("    if isinstance(k_pages, tuple):\n        return q\n", "", "it asks what `k_pages` is"),
    "the body asks for its truth": ("    assert lengths or q\n", "", "it asks what `lengths` and `q` is"),
    "a caller gives quantized pages": ("", """import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils
q, kv = jnp.zeros((2, 4, 128)), jnp.zeros((2, 8, 16, 128))
pages = quantization_utils.quantize_to_int8(kv)
decode(q, pages, pages, jnp.ones((2,), jnp.int32), jnp.zeros((2, 8), jnp.int32))
""", "a caller gives it quantized `k_pages` and `v_pages`"),
    "the file quantizes": ("    # QuantizedTensor\n", "", "the file names quantized pages, which it may be given"),
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


@pytest.mark.parametrize(
    "text",
    [
        IMPORT + "paged_attention = wrapped(paged_attention)\n",
        IMPORT + "import jax.numpy as jnp\nq = jnp.zeros((4, 8, 128))\n"
        "paged_attention(q, q, q, q, q, pages_per_compute_block=1)\n",  # it fails
        IMPORT + "x = 1\n",
        "from other import paged_attention\npaged_attention(1)\n",
    ],
)
def test_what_is_not_legal_or_not_the_kernel_stays(text: str) -> None:
    assert adopted(text) == text


def test_a_module_kernel_of_the_trees_own_is_not_ours() -> None:
    Path("pyproject.toml").write_text("")
    Path("kernel.py").write_text("")
    assert IMPORT in adopted(WRAPPER)


def test_other_names_of_the_import_stay() -> None:
    text = WRAPPER.replace("import paged_attention", "import paged_attention as pa, quantization_utils").replace(
        "return paged_attention", "return pa"
    )
    result = adopted(text)
    assert "from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils\n" in result
    assert "from kernel import paged_attention as pa\n" in result
