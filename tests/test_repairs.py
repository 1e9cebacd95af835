"""What repairs write, and that the calls are proven legal by them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods.analyse import analyse
from codemods.config import Configuration
from codemods.files import Candidate, discover
from codemods.findings import Finding
from codemods.fix import Change, fix
from codemods.repairs.imports import Imports
from codemods.rewrite import apply, inspect
from codemods.source import Source
from codemods.words import Words
from codemods.write import WriteError, write
from shapecheck.rule import Applicability

HEAD = """import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(text: str, **others: str) -> list[Finding]:
    for name, content in others.items():
        Path(f"{name}.py").write_text(content)
    Path("a.py").write_text(text)
    return analyse([Source("a.py", text.encode())], root=Path())[1]


def proposed(text: str, code: str, **others: str) -> tuple[Applicability, str] | None:
    [finding] = [each for each in findings(HEAD + text, **others) if each.code == code]
    return (finding.fix.applicability, finding.fix.message) if finding.fix else None


def fixed(text: str, *, unsafe: bool = False) -> str:
    Path("a.py").write_text(text)
    _, changes = fix(discover(["a.py"], Configuration(), Words()), analyse, None, unsafe=unsafe)
    return changes[0].after.decode() if changes else text


def repaired(*paths: str, **files: str) -> dict[str, str]:
    """Write files, fix them, and return those that changed; a second run changes nothing."""
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)

    def run() -> list[Change]:
        found = discover(paths or ["."], Configuration(), Words())
        return fix(found, analyse, lambda candidate, data: write(candidate.path, data, candidate.stamp))[1]

    changes = run()
    assert run() == []
    return {change.path.removesuffix(".py"): change.after.decode() for change in changes}


CALL = "paged_attention(q, k, v, lengths, table, {})"

RUN_TIME = {
    "16": ("SC102",),
    "min(16, table.shape[1])": ("SC102", "SC110"),
    "min(table.shape[1], 16)": ("SC102", "SC110"),
    "block": ("SC102", "SC110"),
    "table.shape[1] // 2": ("SC102", "SC110"),
    "table.shape[1] if table.shape[1] < 16 else 16": ("SC102", "SC110"),
    "16 if table.shape[1] >= 16 else table.shape[1]": ("SC102", "SC110"),
    "max(1, table.shape[1] // 2)": ("SC102", "SC110"),
    "min(16, max(1, table.shape[1]))": ("SC102", "SC110"),
}


@pytest.mark.parametrize(("block", "codes"), RUN_TIME.items(), ids=RUN_TIME)
def test_after_an_unsafe_fix_the_call_is_proven(block: str, codes: tuple[str, ...]) -> None:
    call = CALL.format(f"pages_per_compute_block={block}")
    text = fixed(HEAD + f"def decode(q, k, v, lengths, table, block: int):\n    return {call}\n", unsafe=True)
    assert "largest_divisor(table.shape[1], at_most=" in text
    sites, _ = analyse([Source("a.py", text.encode())], root=Path())
    assert [sites[0].verdicts[code] for code in codes] == ["proven"] * len(codes)
    assert fixed(text, unsafe=True) == text


@pytest.mark.parametrize("mode", ["'kv_head'", "'batch'", "'kv_head' if q.shape[0] % 2 else 'batch'"])
def test_a_mode_for_sizes_of_run_time_is_proven(mode: str) -> None:
    call = CALL.format(f"pages_per_compute_block=1, megacore_mode={mode}")
    text = fixed(HEAD + f"def decode(q, k, v, lengths, table):\n    return {call}\n", unsafe=True)
    assert "megacore_mode=megacore_mode_for(k.shape[0], q.shape[0])" in text
    sites, _ = analyse([Source("a.py", text.encode())], root=Path())
    assert {sites[0].verdicts[code] for code in ("SC201", "SC202", "SC203")} == {"proven"}


def test_a_computed_divisor_tells_that_it_may_be_one() -> None:
    text = "def decode(q, k, v, lengths, table):\n    return " + CALL.format("pages_per_compute_block=16")
    fix = proposed(text, "SC102")
    assert fix is not None
    assert fix[0] is Applicability.UNSAFE
    assert fix[1].endswith("a prime page count gives 1: pad page_indices then (kernel.pad_page_indices)")


def test_a_divisor_much_smaller_than_the_block_offers_padding() -> None:
    seven = "paged_attention(q, kv, kv, lens, jnp.zeros((4, 7), jnp.int32), pages_per_compute_block=4)"
    message = "replace 4 by 1; faster: pad page_indices to 8 pages (kernel.pad_page_indices)"
    assert proposed(seven, "SC102") == (Applicability.UNSAFE, message)
    assert proposed(seven.replace("7", "6"), "SC102") == (Applicability.SAFE, "replace 4 by 3")


def test_where_the_pages_are_no_plain_name_there_is_advice_only() -> None:
    text = "def decode(q, k, v, lengths, table):\n    return " + CALL.replace("table", "table + 1").format(
        "pages_per_compute_block=16"
    )
    assert proposed(text, "SC102") == (
        Applicability.DISPLAY,
        "shapecheck.largest_divisor(pages_per_sequence, at_most=16) is legal",
    )


def test_what_cannot_be_written_is_advice() -> None:
    call = "paged_attention(q, kv, kv, lens[:3], six, pages_per_compute_block=3)"
    assert proposed(call, "SC105") == (Applicability.DISPLAY, "lengths of shape (4,)")


ENUM = (
    HEAD
    + """{0}
class Block({1}):
    BIG = 4
    SMALL = 3
paged_attention(q, kv, kv, lens, six, pages_per_compute_block={2})
"""
)


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("import enum", "enum.IntEnum"),
        ("from enum import IntEnum as Base", "Base"),
        ("import enum\nclass Base(int, enum.Enum):\n    pass", "Base"),
        ("from bases import Base", "Base"),
        ("import bases", "bases.Base"),
    ],
)
@pytest.mark.parametrize("block", ["Block.BIG", "Block.BIG.value"])
def test_the_value_of_an_enums_member_is_never_changed(head: str, base: str, block: str) -> None:
    files = {"a": ENUM.format(head, base, block), "bases": "import enum\nclass Base(enum.IntEnum):\n    pass\n"}
    assert repaired(**files) == {"a": ENUM.format(head, base, "3")}


def test_nor_is_it_where_the_member_is_read_in_its_class() -> None:
    member = "    BIG = 4\n    def run(self, block=BIG):\n        return {}\nBlock(4).run()\n"
    text = HEAD + "import enum\nclass Block(enum.IntEnum):\n" + member
    call = "paged_attention(q, kv, kv, lens, six, pages_per_compute_block={})"
    assert "    BIG = 4\n" in fixed(text.format(call.format("block")))


MODE = (
    HEAD
    + """M = {}
two = jnp.zeros((2, 64, 16, 128))
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode={})
paged_attention(q, {}, {}, lens, six, pages_per_compute_block=3, megacore_mode=M)
"""
)


def test_a_mode_that_is_legal_in_another_call_stays_there() -> None:
    text = MODE.format('"kv_head"', "{}", "two", "two")
    assert fixed(text.format("M")) == text.format("'batch'")


def test_one_that_is_legal_in_no_call_is_changed_where_it_is_written() -> None:
    assert fixed(MODE.format('"kv_head"', "M", "kv", "kv")) == MODE.format('"batch"', "M", "kv", "kv")


IMPORTED = (
    HEAD
    + """{}
paged_attention(q, kv, kv, lens, six, pages_per_compute_block={})
"""
)


class TestLiteralsOfOtherFiles:
    @pytest.mark.parametrize(
        ("statement", "block"),
        [
            ("from config import BLOCK", "BLOCK"),
            ("from config import BLOCK as B", "B"),
            ("import config", "config.BLOCK"),
            ("import config as c", "c.BLOCK"),
            ("from config import CONFIG", "CONFIG['block']"),
            ("import config", "config.CONFIG['block']"),
            ("from shared import BLOCK", "BLOCK"),
            ("import config\nblock = config.BLOCK", "block"),
        ],
    )
    def test_it_is_changed_there(self, statement: str, block: str) -> None:
        config = "BLOCK = {0}\nCONFIG = {{'pages': 6, 'block': {0}}}\n"
        before, after = config.format(4), config.format(4).replace("'block': 4" if "CONFIG" in block else "BLOCK = 4", "{}")
        after = after.replace("{}", "'block': 3" if "CONFIG" in block else "BLOCK = 3")
        shared = "from config import BLOCK\n"
        assert repaired(a=IMPORTED.format(statement, block), config=before, shared=shared) == {"config": after}

    @pytest.mark.parametrize(
        "other",
        [
            "from config import BLOCK\nprint(BLOCK)\n",
            "import config\nassert config.BLOCK == 4\n",
            "from config import *\nprint(BLOCK)\n",
            "from config import *\n",
            "def test(monkeypatch):\n    monkeypatch.setattr('config.BLOCK', 8)\n",
            "import config\nx = getattr(config, 'BLOCK')\n",
            "import config\nconfig.BLOCK = 6\n",
            "from config import BLOCK\nx = (\n",
            HEAD + "from config import BLOCK\npaged_attention(q, kv, kv, lens, eight, pages_per_compute_block=BLOCK)\n",
        ],
    )
    def test_where_not_every_use_is_known_to_stay_legal_the_call_is_changed(self, other: str) -> None:
        call = IMPORTED.format("from config import BLOCK", "{}")
        assert repaired(a=call.format("BLOCK"), config="BLOCK = 4\n", other=other) == {"a": call.format("3")}

    def test_a_module_under_another_name_may_be_read(self) -> None:
        call = IMPORTED.format("from config import BLOCK", "{}")
        files = {"a": call.format("BLOCK"), "config": "BLOCK = 4\n", "lib": "import config as c\n"}
        assert repaired(**files, user="from lib import c\nprint(c.BLOCK)\n") == {"a": call.format("3")}

    def test_a_file_outside_the_run_is_not_changed(self) -> None:
        call = IMPORTED.format("from config import BLOCK", "{}")
        assert repaired("a.py", a=call.format("BLOCK"), config="BLOCK = 4\n") == {"a": call.format("3")}

    def test_one_that_asks_to_be_skipped_is_not_changed(self) -> None:
        call = IMPORTED.format("from config import BLOCK", "{}")
        files = {"a": call.format("BLOCK"), "config": "# shapecheck: skip-file\nBLOCK = 4\n"}
        assert repaired(**files) == {"a": call.format("3")}

    def test_one_whose_name_only_looks_the_same_is_no_obstacle(self) -> None:
        other = "import config\nBLOCK = 8\nprint(BLOCK)\n"
        call = IMPORTED.format("from config import BLOCK", "BLOCK")
        assert repaired(a=call, config="BLOCK = 4\n", other=other) == {"config": "BLOCK = 3\n"}

    def test_the_default_of_a_function_is_changed_where_it_is(self) -> None:
        lib = HEAD + "def decode(t, block=4):\n    return paged_attention(q, kv, kv, lens, t, pages_per_compute_block=block)\n"
        main = HEAD + "from lib import decode\ndecode(six, block={})\n"
        assert repaired(lib=lib, main=main.format(4)) == {"main": main.format(3)}

    def test_a_file_that_cannot_be_written_keeps_the_finding(self) -> None:
        Path("config.py").write_text("BLOCK = 4\n")
        Path("a.py").write_text(IMPORTED.format("from config import BLOCK", "BLOCK"))

        def refuse(candidate: Candidate, data: bytes) -> None:
            raise WriteError("no")

        run, changes = fix(discover(["."], Configuration(), Words()), analyse, refuse)
        assert changes == []
        assert [finding.path for finding in run.report.findings] == ["a.py"]
        assert [(error.path, error.message) for error in run.report.errors] == [("config.py", "is not fixed: no")]
        assert (run.fixed, run.failed) == ((), True)


class TestWhereLiteralsAre:
    def test_a_value_that_another_file_imports_stays(self) -> None:
        text = "BLOCK = 4\npaged_attention(q, kv, kv, lens, six, pages_per_compute_block=BLOCK)\n"
        assert proposed(text, "SC102", other="from a import BLOCK\nprint(BLOCK)\n") == (Applicability.SAFE, "replace BLOCK by 3")
        assert proposed(text, "SC102", other="") == (Applicability.SAFE, "replace 4 by 3")

    @pytest.mark.parametrize(
        ("setting", "reading", "block"),
        [
            ("B = 4", "globals()['B']", "B"),
            ("C = {1: 4, 2: 3}", "C[True]", "C[1]"),
            ("C = {'b': 4}", "C.get('b')", "C['b']"),
            ("class A: b = 4", "getattr(A, 'b')", "A.b"),
            ("class A: b = 4", "vars(A)", "A.b"),
            ("import dataclasses\n@dataclasses.dataclass\nclass A: b: int = 4\na = A()", "dataclasses.asdict(a)", "a.b"),
        ],
    )
    def test_a_value_that_is_read_in_another_way_stays(self, setting: str, reading: str, block: str) -> None:
        text = f"{setting}\nprint({reading})\npaged_attention(q, kv, kv, lens, six, pages_per_compute_block={block})\n"
        assert proposed(text, "SC102") == (Applicability.SAFE, f"replace {block} by 3")
        harmless = text.replace(reading, "C[2]" if block == "C[1]" else "0")
        assert proposed(harmless, "SC102") == (Applicability.SAFE, "replace 4 by 3")

    def test_a_value_is_changed_where_another_file_has_it_too(self) -> None:
        text = "BLOCK = 4\npaged_attention(q, kv, kv, lens, six, pages_per_compute_block=BLOCK)\n"
        other = HEAD + "from a import BLOCK\npaged_attention(q, kv, kv, lens, six, pages_per_compute_block=BLOCK)\n"
        assert repaired(a=HEAD + text, other=other) == {"a": HEAD + text.replace("4", "3", 1)}

    def test_a_loop_over_a_table_of_sizes(self) -> None:
        text = """for pages, block in [(8, 4), (6, 5)]:
    paged_attention(q, kv, kv, lens, jnp.zeros((4, pages), jnp.int32), pages_per_compute_block=block)
"""
        assert proposed(text, "SC102") == (Applicability.SAFE, "replace 5 by 3")
        assert proposed(text.replace("(8, 4)", "(8, 5)"), "SC102") != (Applicability.SAFE, "replace 5 by 3")

    def test_a_loop_whose_variable_is_read_for_something_else_stays(self) -> None:
        text = (
            "for block in (4, 3):\n    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=block)\n    print(block)\n"
        )
        fix = proposed(text, "SC102")
        assert fix is not None
        assert fix[0] is Applicability.UNSAFE

    @pytest.mark.parametrize(
        ("more", "safe"),
        [("", True), ("paged_attention(q, kv, kv, lens, eight, pages_per_compute_block=b)", False), ("print(b)", False)],
    )
    def test_a_walrus_stays_and_its_literal_is_changed(self, more: str, safe: bool) -> None:
        text = f"paged_attention(q, kv, kv, lens, six, pages_per_compute_block=(b := 4))\n{more}\n"
        fix = proposed(text, "SC102")
        assert (fix == (Applicability.SAFE, "replace 4 by 3")) is safe
        assert safe or fix is None or fix[0] is Applicability.UNSAFE

    def test_a_parameter_is_not_replaced_by_a_value(self) -> None:
        text = (
            "def call(table, block):\n    print(block)\n    paged_attention(q, kv, kv, lens, table, "
            "pages_per_compute_block=block)\ncall(six, 4)\n"
        )
        fix = proposed(text, "SC102")
        assert fix is not None
        assert fix[0] is Applicability.UNSAFE
        assert fix[1].startswith("replace block by largest_divisor(table.shape[1], at_most=block)")

    def test_a_mode_that_some_cases_are_right_with_stays(self) -> None:
        text = (
            "import pytest\n@pytest.mark.parametrize('heads', [1, 2])\n@pytest.mark.parametrize('mode', ['kv_head', None])\n"
            "def test(heads, mode):\n    kv = jnp.zeros((heads, 64, 16, 128))\n"
            "    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode=mode)\n"
        )
        assert proposed(text, "SC201") == (Applicability.DISPLAY, "legal modes: batch, None")

    def test_a_default_whose_type_is_declared_is_changed_to_another_type_only_on_request(self) -> None:
        text = (
            "def call(cap: float = 0.0):\n    paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, "
            "attn_logits_soft_cap=cap)\ncall()\n"
        )
        assert proposed(text, "SC113") == (Applicability.UNSAFE, "replace 0.0 by None")
        assert proposed(text.replace(": float = ", "="), "SC113") == (Applicability.SAFE, "replace 0.0 by None")


class TestImports:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("import jax\n\nUSE\n", "import jax\nfrom shapecheck import f\n\nUSE\n"),
            (
                "import os\n\nimport jax\nfrom jax import lax\nfrom zoo import y\n\nfrom . import z\n\nUSE\n",
                "import os\n\nimport jax\nfrom jax import lax\nfrom shapecheck import f\n"
                "from zoo import y\n\nfrom . import z\n\nUSE\n",
            ),
            ('"""Doc."""\n\nUSE\n', '"""Doc."""\n\nfrom shapecheck import f\n\nUSE\n'),
            (
                '"""Doc."""\nfrom __future__ import annotations\n\nUSE\n',
                '"""Doc."""\nfrom __future__ import annotations\n\nfrom shapecheck import f\n\nUSE\n',
            ),
            ("import os\n\nfrom . import z\n\nUSE\n", "import os\n\nfrom shapecheck import f\n\nfrom . import z\n\nUSE\n"),
            ("from . import z\n\nUSE\n", "from shapecheck import f\n\nfrom . import z\n\nUSE\n"),
            ("import jax  # noqa\nUSE", "import jax  # noqa\nfrom shapecheck import f\nUSE"),
            ("import jax; import os\r\nUSE\r\n", "import jax; import os\r\nfrom shapecheck import f\r\nUSE\r\n"),
            ("from shapecheck import a, z\n\nUSE\n", "from shapecheck import a, f, z\n\nUSE\n"),
            ("from shapecheck import (\n    a,\n)\n\nUSE\n", "from shapecheck import (\n    a,\n    f,\n)\n\nUSE\n"),
            (
                "import jax\n\nif TYPE_CHECKING:\n    import shapecheck\n\nUSE\n",
                "import jax\nfrom shapecheck import f\n\nif TYPE_CHECKING:\n    import shapecheck\n\nUSE\n",
            ),
            (
                "try:\n    import jax\nexcept E:\n    pass\nUSE\n",
                "from shapecheck import f\n\ntry:\n    import jax\nexcept E:\n    pass\nUSE\n",
            ),
            ("import os\nos.x()\nimport jax\nUSE\n", "import os\nos.x()\nimport jax\nfrom shapecheck import f\nUSE\n"),
        ],
    )
    def test_it_is_added_where_it_belongs(self, before: str, after: str) -> None:
        assert self.named(before) == ("f", after)

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("from shapecheck import f\nUSE\n", "f"),
            ("from shapecheck import f as g\nUSE\n", "g"),
            ("import shapecheck\nUSE\n", "shapecheck.f"),
            ("import shapecheck as s\nUSE\n", "s.f"),
            ("from shapecheck.plan import f\nUSE\n", "f"),
            ("def g():\n    from shapecheck import f\n    USE\n", "f"),
        ],
    )
    def test_one_that_is_there_is_used(self, text: str, name: str) -> None:
        assert self.named(text) == (name, text)

    @pytest.mark.parametrize(
        "taken",
        [
            "f = 1",
            "def f(): pass",
            "class f: pass",
            "def g(f): pass",
            "from other import f",
            "match x:\n    case [*f]: pass",
            "f(x)",
        ],
    )
    def test_a_name_that_is_taken_is_not_taken_away(self, taken: str) -> None:
        name, text = self.named(f"import jax\n{taken}\nUSE\n")
        assert name == "shapecheck.f"
        assert text == f"import jax\nimport shapecheck\n{taken}\nUSE\n"

    def test_where_both_names_are_taken_it_has_another(self) -> None:
        name, text = self.named("import jax\nf = shapecheck = 1\nUSE\n")
        assert name == "shapecheck_f"
        assert "from shapecheck import f as shapecheck_f\n" in text

    def named(self, text: str) -> tuple[str, str]:
        source = Source("a.py", text.encode())
        use = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "USE")
        reference = Imports(source).function("shapecheck", "f", use)
        for edit in reference.edits:
            inspect(source, edit)
        return reference.text, apply(source, reference.edits).text.decode()

    @pytest.mark.parametrize(
        ("imports", "dtype"),
        [
            ("import jax.numpy as np", "np.int32"),
            ("import jax\nfrom jax import numpy as jnp", "jnp.int32"),
            ("import jax", "jax.numpy.int32"),
            ("import numpy as np", "np.int32"),
            ("import os", "jnp.int32"),
        ],
    )
    def test_a_dtype_has_the_modules_own_alias(self, imports: str, dtype: str) -> None:
        kernel = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention"
        body = (
            "def decode(q: Float[Array, '4 8 128'], k: Float[Array, '1 64 16 128'], lengths: Int16[Array, '4'], "
            "table: Int32[Array, '4 6']):\n    return paged_attention(q, k, k, lengths, table, pages_per_compute_block=3)\n"
        )
        text = fixed(f"{imports}\n{kernel}\nfrom jaxtyping import Array, Float, Int16, Int32\n{body}")
        assert f"paged_attention(q, k, k, lengths.astype({dtype}), table, " in text
        assert ("import jax.numpy as jnp\n" in text) == (imports == "import os")
