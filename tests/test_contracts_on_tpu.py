"""Rules about the TPU: at call time, in source, and on geometries that are only stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from codemods.analyse import analyse
from codemods.explain import explain
from codemods.source import Source
from kernel import paged_attention
from shapecheck import ContractError, Verdict, judge, observe
from shapecheck.chip import chip_of
from shapecheck.contracts import PAGED_ATTENTION, memory
from shapecheck.contracts.memory import HBM, SMEM, VMEM
from shapecheck.relation import Relation

LEGAL: dict[str, Any] = {
    "batch_size": 8,
    "num_q_heads": 32,
    "num_kv_heads": 8,
    "head_dim": 128,
    "page_size": 16,
    "total_num_pages": 192,
    "pages_per_sequence": 24,
    "pages_per_compute_block": 8,
    "q_dtype": "bfloat16",
    "pages_dtype": "bfloat16",
    "scales_dtype": None,
}
INT8 = {"pages_dtype": "int8", "scales_dtype": "float32"}
ONE_TOKEN = {"page_size": 1, "pages_per_compute_block": 1}


def verdict(code: str, *, chip: str | None = "v5e", **changes: Any) -> Verdict | None:
    return judge("paged_attention", chip=chip, **LEGAL | changes).get(code)


def test_a_call_that_compiles_keeps_all_of_them() -> None:
    for chip in ("v4", "v5e", "v5p", "v6e", "tpu7x"):
        found = judge("paged_attention", chip=chip, **LEGAL)
        assert {each for code, each in found.items() if code.startswith("SC3")} == {Verdict.PROVEN}


KEPT, BROKEN, UNKNOWN = Verdict.PROVEN, Verdict.VIOLATED, Verdict.UNPROVEN


@pytest.mark.parametrize(
    ("code", "changes", "expected"),
    [
        ("SC301", {"head_dim": 256}, KEPT),
        ("SC301", {"head_dim": 64}, BROKEN),
        ("SC301", {"head_dim": 192}, BROKEN),
        ("SC302", {"pages_dtype": "float16"}, BROKEN),
        ("SC302", INT8 | {"scales_dtype": "float16"}, BROKEN),
        ("SC302", {"q_dtype": "float16"}, KEPT),
        ("SC303", {"q_dtype": "float16"}, KEPT),
        ("SC303", {"q_dtype": "float16", "num_q_heads": 64}, BROKEN),
        ("SC304", ONE_TOKEN, BROKEN),
        ("SC304", ONE_TOKEN | {"num_q_heads": 8}, KEPT),
        ("SC304", ONE_TOKEN | INT8, Verdict.UNPROVEN),
        ("SC304", {"page_size": 1, "pages_per_compute_block": 2}, KEPT),
        ("SC305", {"batch_size": 512, "pages_per_sequence": 508}, KEPT),
        ("SC305", {"batch_size": 256, "pages_per_sequence": 1020}, UNKNOWN),
        ("SC305", {"batch_size": 512, "pages_per_sequence": 512}, BROKEN),
        ("SC306", {"page_size": 512, "pages_per_sequence": 24, "pages_per_compute_block": 24}, KEPT),
        ("SC306", {"page_size": 8, "pages_per_sequence": 1992, "pages_per_compute_block": 1992}, UNKNOWN),
        ("SC306", {"page_size": 512, "pages_per_sequence": 32, "pages_per_compute_block": 32}, BROKEN),
        ("SC306", {"chip": "v6e", "page_size": 512, "pages_per_sequence": 32, "pages_per_compute_block": 32}, KEPT),
        ("SC306", {"page_size": 512, "pages_per_compute_block": 8} | INT8, KEPT),
        ("SC306", {"page_size": 512, "pages_per_sequence": 16, "pages_per_compute_block": 16} | INT8, BROKEN),
        ("SC308", {"chip": "v3"}, BROKEN),
        ("SC308", {"chip": "v4"}, KEPT),
        ("SC309", {"num_kv_heads": 64, "num_q_heads": 64, "page_size": 512, "total_num_pages": 2048}, BROKEN),
        ("SC309", {"num_kv_heads": 64, "num_q_heads": 64, "page_size": 512, "total_num_pages": 900}, KEPT),
        ("SC309", {"chip": "v4", "num_kv_heads": 32, "page_size": 512, "total_num_pages": 2048}, UNKNOWN),
        ("SC309", {"num_kv_heads": 64, "num_q_heads": 64, "page_size": 512, "total_num_pages": 512} | INT8, BROKEN),
        ("SC310", {"pages_dtype": "float8_e5m2"}, KEPT),
        ("SC310", {"pages_dtype": "int4"}, KEPT),
        ("SC310", {"pages_dtype": "float8_e3m4"}, BROKEN),
        ("SC310", {"pages_dtype": "float4_e2m1fn"}, BROKEN),
        ("SC310", {"chip": "tpu7x", "pages_dtype": "float4_e2m1fn"}, KEPT),
        ("SC311", {"q_dtype": "float8_e4m3fn"}, KEPT),
        ("SC311", {"q_dtype": "float8_e4m3fn", "num_q_heads": 64}, BROKEN),
    ],
)
def test_a_stated_geometry(code: str, changes: dict[str, Any], expected: Verdict) -> None:
    assert verdict(code, **changes) is expected


@pytest.mark.parametrize("name", ["batch_size", "num_q_heads", "head_dim", "page_size", "pages_per_compute_block", "pages_dtype"])
def test_what_is_not_stated_is_unproven(name: str) -> None:
    stated = {key: value for key, value in LEGAL.items() if key != name}
    found = judge("paged_attention", chip="v5e", **stated)
    speaking = [rule for rule in PAGED_ATTENTION.rules if rule.on_tpu and {name, f"q_{name}"} & {*rule.names}]
    assert all(found[rule.code] is not Verdict.VIOLATED for rule in speaking)
    assert speaking == [] or any(found[rule.code] is Verdict.UNPROVEN for rule in speaking)


def test_only_rules_about_memory_need_a_chip() -> None:
    found = judge("paged_attention", **LEGAL)
    assert [code for code in found if code.startswith("SC3")] == ["SC301", "SC302", "SC303", "SC304", "SC311"]


# ---- the bounds


@pytest.mark.parametrize("chip", ["v4", "v5e", "tpu7x"])
@pytest.mark.parametrize("pages", [{}, {"pages_dtype": "float32"}, {"pages_dtype": "float8_e5m2"}, INT8])
@pytest.mark.parametrize(("bounds", "name"), [(SMEM, "smem"), (VMEM, "vmem"), (HBM, "hbm")])
def test_the_least_is_not_above_the_most(chip: str, pages: dict[str, Any], bounds: dict[str, str], name: str) -> None:
    for sizes in ({}, {"page_size": 1}, {"page_size": 20}, {"num_q_heads": 128}, {"head_dim": 512}):
        values = PAGED_ATTENTION.geometry(chip=chip_of(chip), **LEGAL | pages | sizes)
        least, most = (Relation(f"{bound}_{name}_bytes", bounds).value(values) for bound in ("least", "most"))
        assert 0 < least <= most


# ---- advice


@pytest.mark.parametrize(
    ("changes", "code", "advice"),
    [
        ({"head_dim": 80}, "SC301", "pad q and the pages to a head_dim of 128"),
        (
            {"batch_size": 512, "pages_per_sequence": 512},
            "SC305",
            "at least 1,053,184 of 1,048,576 bytes are taken; largest batch_size: 508",
        ),
        (
            {"page_size": 512, "pages_per_sequence": 64, "pages_per_compute_block": 64},
            "SC306",
            "at least 34,341,888 of 16,777,216 bytes are taken; largest legal block: 16",
        ),
        ({"num_kv_heads": 32, "page_size": 512, "total_num_pages": 8192}, "SC309", "of 16,911,433,728 bytes are taken"),
    ],
)
def test_the_advice_gives_what_is_used_and_what_would_fit(changes: dict[str, Any], code: str, advice: str) -> None:
    (rule,) = (rule for rule in PAGED_ATTENTION.rules if rule.code == code)
    assert advice in PAGED_ATTENTION.advice(rule, PAGED_ATTENTION.geometry(chip=chip_of("v5e"), **LEGAL | changes))


def test_the_advice_is_legal() -> None:
    assert verdict("SC305", batch_size=508, pages_per_sequence=512) is Verdict.PROVEN
    assert verdict("SC305", batch_size=509, pages_per_sequence=512) is not Verdict.PROVEN
    assert verdict("SC306", page_size=512, pages_per_sequence=64, pages_per_compute_block=16) is Verdict.PROVEN


# ---- at call time


def call(*, head_dim: int = 128, batch: int = 8, pages: int = 24, **others: Any) -> None:
    array = jax.ShapeDtypeStruct
    kv = array((8, 192, 16, head_dim), jnp.bfloat16)
    arrays = (array((batch, 32, head_dim), jnp.bfloat16), kv, kv, array((batch,), jnp.int32), array((batch, pages), jnp.int32))
    jax.eval_shape(lambda *arrays: paged_attention(*arrays, **{"pages_per_compute_block": 8} | others), *arrays)


def on(monkeypatch: pytest.MonkeyPatch, chip: str) -> None:
    monkeypatch.setattr(observe, "local_chip", lambda: chip_of(chip))


@pytest.mark.parametrize(("sizes", "code"), [({"head_dim": 64}, "SC301"), ({"batch": 512, "pages": 512}, "SC305")])
def test_a_call_on_a_tpu_is_refused_and_one_elsewhere_is_not(
    monkeypatch: pytest.MonkeyPatch, sizes: dict[str, Any], code: str
) -> None:
    call(**sizes)
    on(monkeypatch, "v5e")
    call(**sizes, implementation="xla")
    call()
    with pytest.raises(ContractError, match=code) as raised:
        call(**sizes)
    assert [each.rule.code for each in raised.value.violations] == [code]


def test_the_error_states_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "v5e")
    with pytest.raises(ContractError) as raised:
        call(batch=512, pages=512)
    assert "SC305 page-table-smem: " in str(raised.value)
    assert "batch_size = 512" in str(raised.value)
    assert "at least 1,053,184 of 1,048,576 bytes are taken; largest batch_size: 508" in str(raised.value)


# ---- in source

FRONT_DOOR = "from kernel import paged_attention as f\n"
JAX = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as f\n"
BODY = """\
import jax.numpy as jnp
def g(b=8, pages=24, d=128, **others):
    kv = jnp.zeros((8, 192, 16, d), jnp.bfloat16)
    return f(jnp.zeros((b, 32, d), jnp.bfloat16), kv, kv, jnp.zeros(b, jnp.int32), jnp.zeros((b, pages), jnp.int32), **others)
"""


def calling(**sizes: Any) -> str:
    given = {"pages_per_compute_block": 8} | sizes
    return f"g({', '.join(f'{name}={value!r}' for name, value in given.items())})\n"


def checked(imports: str, *chips: str, **sizes: Any) -> list[str]:
    (site,), findings = analyse(
        [Source("a.py", (imports + BODY + calling(**sizes)).encode())],
        root=Path("/nonexistent"),
        chips=tuple(map(chip_of, chips)),
    )
    assert site.verdicts
    return [each.code for each in findings if each.verdict is Verdict.VIOLATED]


def test_the_kernel_of_jax_runs_on_a_tpu() -> None:
    assert checked(JAX, d=64) == ["SC301"]
    assert checked(JAX) == []


def test_the_front_door_runs_on_a_tpu_where_one_is_declared() -> None:
    assert checked(FRONT_DOOR, d=64) == []
    assert checked(FRONT_DOOR, "v5e", d=64) == ["SC301"]
    assert checked(FRONT_DOOR, "v5e", d=64, implementation="xla") == []


def test_memory_is_judged_for_the_chips_that_are_declared() -> None:
    assert checked(JAX, b=512, pages=512) == []
    assert checked(JAX, "v5e", b=512, pages=512) == ["SC305"]
    assert checked(JAX, "v3") == ["SC308"]


def test_a_call_must_be_legal_on_every_chip_that_is_declared() -> None:
    assert checked(JAX, "v4", "v3") == checked(JAX, "v3", "v4") == ["SC308"]
    assert checked(JAX, "v5p", "v5e", megacore_mode="kv_head") == ["SC204"]
    assert checked(JAX, "v5p", "v4", megacore_mode="kv_head") == []


def test_a_megacore_mode_hangs_only_the_kernel_itself() -> None:
    assert checked(FRONT_DOOR, "v5e", megacore_mode="kv_head") == ["SC204"]
    assert checked(FRONT_DOOR, "v5e", megacore_mode="kv_head", implementation="pallas") == ["SC204"]
    assert checked(FRONT_DOOR, "v5e", megacore_mode="kv_head", implementation="xla") == []
    assert checked(FRONT_DOOR, "v5e", megacore_mode="kv_head", implementation="interpret") == []


@pytest.mark.parametrize("mode", ["with pltpu.force_tpu_interpret_mode():\n    pass\n", "pltpu.set_tpu_interpret_mode()\n"])
def test_a_file_that_interprets_the_kernel_is_not_on_a_tpu(mode: str) -> None:
    assert checked(JAX + "from jax.experimental.pallas import tpu as pltpu\n" + mode, d=64) == []


def test_so_is_one_beside_a_conftest_that_does(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("pltpu.force_tpu_interpret_mode()\n")
    source = Source(str(tmp_path / "tests" / "a.py"), (JAX + BODY + calling(d=64)).encode())
    (site,), _ = analyse([source], root=tmp_path)
    assert "SC301" not in site.verdicts
    (tmp_path / "conftest.py").unlink()
    (site,), _ = analyse([source], root=tmp_path)
    assert site.verdicts["SC301"] is not Verdict.PROVEN


TRACED = "jnp.zeros((8, 32, 64), jnp.bfloat16), kv, kv, jnp.zeros(8, jnp.int32), jnp.zeros((8, 24), jnp.int32)"


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ("jax.eval_shape(h, {0})", []),
        ("jax.make_jaxpr(h)({0})", []),
        ("jax.jit(h).eval_shape({0})", []),
        ("jax.jit(h).lower({0})", ["SC301"]),
        ("jax.eval_shape(h, {0})\nh({0})", ["SC301"]),
    ],
)
def test_what_is_only_traced_is_not_on_a_tpu(call: str, codes: list[str]) -> None:
    text = (
        f"import jax, jax.numpy as jnp\n{JAX}kv = jnp.zeros((8, 192, 16, 64), jnp.bfloat16)\n"
        f"def h(*arrays):\n    return f(*arrays, pages_per_compute_block=8)\n{call.format(TRACED)}\n"
    )
    _, findings = analyse([Source("a.py", text.encode())], root=Path("/nonexistent"))
    assert [each.code for each in findings if each.verdict is Verdict.VIOLATED] == codes


@pytest.mark.parametrize(
    ("head", "codes"),
    [
        ("pl.pallas_call = functools.partial(pl.pallas_call, interpret=True)", []),
        ("mock.patch.object(pl, 'pallas_call', other).start()", []),
        ("mock.patch('jax.experimental.pallas.pallas_call', other).start()", []),
        ("with mode(pl.pallas_call, interpret=True):\n    pass", []),
        ("pl.pallas_call(body, interpret=False)", ["SC301"]),
    ],
)
def test_so_is_a_file_that_replaces_what_makes_kernels(head: str, codes: list[str]) -> None:
    imports = "from unittest import mock\nimport functools\nfrom jax.experimental import pallas as pl\n"
    assert checked(f"{JAX}{imports}{head}\n", d=64) == codes


@pytest.mark.parametrize("statement", ["from helper import simulate", "import helper", "from between import simulate"])
def test_so_is_a_file_that_imports_what_interprets(tmp_path: Path, statement: str) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("from jax.experimental.pallas import tpu\nsimulate = tpu.force_tpu_interpret_mode\n")
    (tmp_path / "between.py").write_text("from helper import simulate\n")
    source = Source(str(tmp_path / "a.py"), (f"{statement}\n{JAX}{BODY}{calling(d=64)}").encode())
    (site,), _ = analyse([source], root=tmp_path)
    assert "SC301" not in site.verdicts
    helper.write_text("simulate = None\n")
    (site,), _ = analyse([source], root=tmp_path)
    assert site.verdicts["SC301"] is Verdict.VIOLATED


def test_a_size_that_is_not_known_leaves_memory_unproven() -> None:
    script = (
        "import os\nimport jax.numpy as jnp\n"
        "kv = jnp.zeros((8, 192, 16, 128), jnp.bfloat16)\n"
        'table = jnp.zeros((8, 8 * int(os.environ["N"])), jnp.int32)\n'
        "f(jnp.zeros((8, 32, 128), jnp.bfloat16), kv, kv, jnp.zeros(8, jnp.int32), table, pages_per_compute_block=8)\n"
    )
    text = JAX + script
    (site,), findings = analyse([Source("a.py", text.encode())], root=Path("/nonexistent"), chips=(chip_of("v5e"),))
    assert (site.verdicts["SC305"], site.verdicts["SC306"]) == (Verdict.UNPROVEN, Verdict.PROVEN)
    (finding,) = (each for each in findings if each.code == "SC305")
    assert "os.environ" in str(finding.reason)


def test_between_the_bounds_the_reason_says_so() -> None:
    text = JAX + BODY + calling(b=256, pages=1020, pages_per_compute_block=4)
    (site,), findings = analyse([Source("a.py", text.encode())], root=Path("/nonexistent"), chips=(chip_of("v5e"),))
    assert site.verdicts["SC305"] is Verdict.UNPROVEN
    (finding,) = (each for each in findings if each.code == "SC305")
    assert "not known to the byte" in str(finding)


def test_hints_are_seen_in_source_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(JAX, "tpu7x") == ["SC505"]
    assert checked(JAX, "v5e") == []
    assert "SC505" not in judge("paged_attention", chip="tpu7x", **LEGAL)
    on(monkeypatch, "tpu7x")
    call()


def test_explain_tells_of_the_bounds() -> None:
    text = explain("SC305")
    assert "least_smem_bytes <= smem_bytes" in text
    assert "Judged only where a chip is declared" in text


@pytest.mark.parametrize(
    ("chip", "group", "head_dim", "page_size", "block", "dtypes", "used"),
    [  # what libtpu 0.0.42 or 0.0.50 says that it uses, where it is furthest from what a simple formula says
        ("v5p", 4, 256, 128, 30, ("float32", None), 17_596_416),
        ("v4", 4, 256, 512, 2, ("bfloat16", None), 2_682_880),
        ("v4", 8, 256, 1024, 1, ("float8_e5m2", None), 3_198_976),
        ("v4", 1, 128, 512, 30, ("float8_e4m3fn", None), 16_179_200),
        ("v6e", 48, 512, 512, 25, ("int8", None), 30_666_752),
        ("v5p", 48, 512, 512, 6, ("bfloat16", None), 14_958_592),
    ],
)
def test_what_the_compiler_uses_is_between_the_bounds(
    chip: str, group: int, head_dim: int, page_size: int, block: int, dtypes: tuple[str, str | None], used: int
) -> None:
    sizes = {"num_kv_heads": 1, "num_q_heads": group, "head_dim": head_dim, "page_size": page_size}
    pages = {"pages_per_sequence": block, "pages_per_compute_block": block}
    types = dict(zip(("pages_dtype", "scales_dtype"), dtypes, strict=True))
    least, most = memory.bounds(PAGED_ATTENTION.geometry(chip=chip_of(chip), **LEGAL | sizes | pages | types))["vmem"]
    assert least <= used <= most
