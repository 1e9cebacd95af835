"""Calls that do not fit the signature of what they call: Python refuses them, whatever their sizes are."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from codemods import cli
from codemods.analyse import analyse
from codemods.callees import CALLEES, FITS
from codemods.findings import CallSite, Finding
from codemods.source import Source
from shapecheck.rule import Verdict

PROLOGUE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jaxtyping import Array, Float
from kernel import paged_attention as front_door
from shapecheck import contract

q = jnp.zeros((2, 16, 128), jnp.bfloat16)
kv = jnp.zeros((4, 64, 16, 128), jnp.bfloat16)
n, t = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 24), jnp.int32)

@contract("heads % 2 == 0")
def attend(q: Float[Array, "batch heads dim"], scale, /, block=1, *rest, cap, **others): ...

@contract("heads % 2 == 0")
def plain(q: Float[Array, "batch heads dim"], k: Float[Array, "batch heads dim"] | None = None): ...
"""


def judged(text: str) -> tuple[CallSite, list[Finding]]:
    (site,), findings = analyse([Source("a.py", f"{PROLOGUE}{text}\n".encode())], root=Path("/nonexistent"))
    return site, [finding for finding in findings if finding.code == "SC116"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("paged_attention(q, kv, kv, n, t)", "missing a required .*'pages_per_compute_block'"),
        ("paged_attention(q, kv, kv, n, pages_per_compute_block=8)", "missing a required argument: 'page_indices'"),
        ("paged_attention(q, kv, kv, n, t, 8)", "too many positional arguments|missing"),
        ("paged_attention(q, kv, kv, n, t, pages_per_compute_block=8, implementation='xla')", "unexpected .*'implementation'"),
        ("paged_attention(q, kv, kv, n, t, q=q, pages_per_compute_block=8)", "multiple values for argument 'q'"),
        ("front_door(q, kv, kv, n, t, implementation='xla')", "missing a required .*'pages_per_compute_block'"),
        (
            "functools.partial(paged_attention, pages_per_compute_block=8)(q, kv, kv, n)",
            "missing a required argument: 'page_indices'",
        ),
        ("jax.jit(paged_attention)(q, kv, kv, n, t)", "missing a required .*'pages_per_compute_block'"),
        ("def f(**options):\n    paged_attention(q, kv, kv, n, t, soft_cap=3.0, **options)", "unexpected .*'soft_cap'"),
        ("def f(*more):\n    paged_attention(q, kv, kv, n, t, 8, *more)", "too many positional arguments"),
        ("attend(q, cap=3)", "missing a required .*'scale'"),
        ("attend(q, 1)", "missing a required .*'cap'"),
        ("plain(q, q, q)", "too many positional arguments"),
        ("plain(q, window=1)", "unexpected .*'window'"),
        ("plain(k=q, window=1)", "missing a required argument: 'q', and got an unexpected keyword argument 'window'"),
        ("attend(q, 1, window=1)", "missing a required .*'cap'$"),
    ],
)
def test_a_call_that_python_refuses_is_violated(call: str, error: str) -> None:
    site, findings = judged(call)
    assert site.verdicts["SC116"] == "violated"
    assert [finding.verdict for finding in findings] == [Verdict.VIOLATED]
    with pytest.raises(TypeError, match=error):
        raise TypeError(findings[0].values["type_error"].value)


@pytest.mark.parametrize(
    "arguments", ["q, kv, n, t, pages_per_compute_block=5", "q, kv, kv, t, n, t, 8", "q, kv, kv, t, n, block=5"]
)
def test_no_other_rule_is_violated_by_a_call_that_python_refuses(arguments: str) -> None:
    text = f"{PROLOGUE}paged_attention({arguments})\n"
    (site,), findings = analyse([Source("a.py", text.encode())], root=Path("/nonexistent"))
    assert [code for code, verdict in site.verdicts.items() if verdict is Verdict.VIOLATED] == ["SC116"]
    assert "the arguments do not fit the parameters (a.py:18)" in {each.reason for each in findings}


@pytest.mark.parametrize(
    "call",
    [
        "paged_attention(q, kv, kv, n, t, pages_per_compute_block=8)",
        "paged_attention(q=q, k_pages=kv, v_pages=kv, lengths=n, page_indices=t, pages_per_compute_block=8)",
        "paged_attention(*(q, kv, kv, n, t), **{'pages_per_compute_block': 8})",
        "front_door(q, kv, kv, n, t, pages_per_compute_block=8, implementation='xla')",
        "attend(q, 1, cap=3)",
        "attend(q, 1, 2, 3, 4, cap=3, scale=5, q=6)",
        "plain(q)",
    ],
)
def test_a_call_that_fits_is_proven(call: str) -> None:
    site, findings = judged(call)
    assert (set(site.verdicts.values()), findings) == ({Verdict.PROVEN}, [])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("def f(**options):\n    paged_attention(q, kv, kv, n, t, **options)", "not all arguments of the call are known"),
        ("def f(*more):\n    plain(q, *more)", "not all arguments of the call are known"),
        (
            "try:\n    paged_attention(q, kv, kv, n, t, 8)\nexcept (ValueError, TypeError):\n    pass",
            "the code around the call catches a TypeError",
        ),
        ("try:\n    paged_attention(q, kv, kv, n, t, 8)\nexcept:\n    pass", "the code around the call catches a TypeError"),
        ("def f(old):\n    if old:\n        paged_attention(q, kv, kv, n, t, 8)", "it fails if"),
    ],
)
def test_what_may_fit_or_is_tried_is_unproven(call: str, reason: str) -> None:
    site, findings = judged(call)
    assert site.verdicts["SC116"] == "unproven"
    assert findings[0].reason.startswith(reason)


def test_a_try_that_catches_something_else_expects_no_type_error() -> None:
    site, _ = judged("try:\n    paged_attention(q, kv, kv, n, t)\nexcept ValueError:\n    pass")
    assert site.verdicts["SC116"] == "violated"


def test_where_an_error_is_expected_none_is_reported() -> None:
    _, findings = judged("import pytest\nwith pytest.raises(TypeError):\n    paged_attention(q, kv, kv, n, t)")
    assert findings == []


@pytest.mark.parametrize("path", ["jax.experimental.pallas.ops.tpu.paged_attention.paged_attention", "kernel.paged_attention"])
def test_the_table_has_the_signature_of_the_function(path: str) -> None:
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    import kernel

    function = kernel.paged_attention if path.startswith("kernel") else paged_attention
    assert shape(CALLEES[path].signature) == shape(inspect.signature(function))


def shape(signature: inspect.Signature) -> list[tuple[str, str, bool]]:
    return [(name, each.kind.name, each.default is each.empty) for name, each in signature.parameters.items()]


def test_the_rule_comes_with_every_callee() -> None:
    assert all(FITS in callee.rules for callee in CALLEES.values())


def test_the_words_are_those_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\npaged_attention(q, k)\n"
    )
    assert cli.main(["check", "--no-cache", str(tmp_path / "a.py")]) == 1
    out = capsys.readouterr().out
    assert "= Python says: missing a required argument: 'v_pages'" in out
    assert "type_error" not in out


def test_of_several_ranks_the_wrong_one_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        "import jax.numpy as jnp\n"
        "from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention\n"
        "q, kv = jnp.zeros((128, 32, 128)), jnp.zeros((256, 16, 16, 128))\n"
        "n, t, c = jnp.zeros(8, jnp.int32), jnp.zeros((8, 16), jnp.int32), jnp.zeros(9, jnp.int32)\n"
        "ragged_paged_attention(q, kv, n, t, c, jnp.int32(8))\n"
    )
    assert cli.main(["check", "--no-cache", str(tmp_path / "a.py")]) == 1
    out = capsys.readouterr().out
    assert "a.py:5:40: SC109 rank" in out
    assert out.count("= where: ") == 1
    assert "= where: num_seqs_rank = 0  (num_seqs.ndim)" in out
    assert "= help: num_seqs of shape (1,)" in out
