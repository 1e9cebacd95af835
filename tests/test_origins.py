"""Where a value is written down: the literal is repaired there, unless something else reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from codemods.analyse import analyse
from codemods.config import Configuration
from codemods.files import discover
from codemods.fix import fix
from codemods.words import Words
from codemods.write import write

HEAD = """\
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

q, kv = jnp.zeros((4, 8, 128)), jnp.zeros((1, 64, 16, 128))
lens, six, eight = jnp.zeros((4,), jnp.int32), jnp.zeros((4, 6), jnp.int32), jnp.zeros((4, 8), jnp.int32)
"""
CALL = "paged_attention(q, kv, kv, lens, {}, pages_per_compute_block={})\n"


def call(block: str, table: str = "six") -> str:
    return CALL.format(table, block)


def spread(options: str, table: str = "six") -> str:
    return f"paged_attention(q, kv, kv, lens, {table}, **{options})\n"


def test(decorator: str, parameter: str, body: str) -> str:
    return f"import pytest\n@pytest.mark.parametrize({decorator})\ndef test({parameter}):\n    {body}"


test.__test__ = False  # type: ignore[attr-defined]


class Form(NamedTuple):
    """A program with a literal block, which stands at BLOCK; what is added to it that needs the block as it is; other files."""

    text: str
    reader: str
    files: Mapping[str, str] = MappingProxyType({})


DATACLASS = "import dataclasses\n@dataclasses.dataclass\nclass Config:\n    pages: int = 6\n    block: int = "
TUPLE = "from typing import NamedTuple\nclass Config(NamedTuple):\n    pages: int = 6\n    block: int = "
BASE = "base = {'pages_per_compute_block': BLOCK}\n"

FORMS = {
    "chained": Form("A = B = BLOCK\n" + call("B"), "print(A)"),
    "unpacked": Form("B, PAGES = BLOCK, 6\nprint(PAGES)\n" + call("B"), "print(B)"),
    "unpacked deep": Form("[PAGES, (B, X)] = [6, (BLOCK, 8)]\n" + call("B"), "print(B)"),
    "unpacked from a name": Form("SIZES = 6, BLOCK\nPAGES, B = SIZES\n" + call("B"), "print(SIZES[1])"),
    "unpacked and kept": Form("PAGES, B = SIZES = 6, BLOCK\n" + call("B"), "print(SIZES)"),
    "zip": Form("for name, b in zip('ab', (BLOCK, 6)):\n    print(name)\n    " + call("b"), "    print(b)"),
    "zip of names": Form(
        "blocks = [6, BLOCK]\nnames = ['a', 'b']\nfor b, name in zip(blocks, names, strict=True):\n    " + call("b"),
        "print(blocks)",
    ),
    "enumerate": Form("for i, b in enumerate((6, BLOCK)):\n    print(i)\n    " + call("b"), "    print(b)"),
    "enumerate pairs": Form("for i, (t, b) in enumerate([(eight, 8), (six, BLOCK)]):\n    " + call("b", "t"), "    print(b)"),
    "values": Form("D = {'a': BLOCK, 'b': 6}\nfor b in D.values():\n    " + call("b"), "print(D['a'])"),
    "items": Form("D = {'a': BLOCK, 'b': 6}\nfor k, b in D.items():\n    print(k)\n    " + call("b"), "print(D)"),
    "partial over partial": Form(
        "from functools import partial\ninner = partial(paged_attention, q, kv, kv, pages_per_compute_block=BLOCK)\n"
        "outer = partial(inner, lens)\nouter(six)\n",
        "inner(lens, eight)",
    ),
    "partial that overrides": Form(
        "from functools import partial\ninner = partial(paged_attention, q, kv, kv, pages_per_compute_block=8)\n"
        "outer = partial(inner, lens, pages_per_compute_block=BLOCK)\nouter(six)\ninner(lens, eight)\n",
        "outer(eight)",
    ),
    "entry behind a spread": Form(
        "base = {'megacore_mode': None}\nopts = {**base, 'pages_per_compute_block': BLOCK}\n" + spread("opts"), "print(opts)"
    ),
    "entry of what is spread": Form(BASE + "opts = {**base, 'megacore_mode': None}\n" + spread("opts"), spread("base", "eight")),
    "overridden entry": Form(
        "base = {'pages_per_compute_block': 8}\nopts = {**base, 'pages_per_compute_block': BLOCK}\n"
        + spread("opts")
        + spread("base", "eight"),
        spread("opts", "eight"),
    ),
    "union of dicts": Form(BASE + "opts = base | {'megacore_mode': None}\n" + spread("opts"), "print(base)"),
    "copy of a dict": Form(BASE + "opts = dict(base, megacore_mode=None)\n" + spread("opts"), "opts.update(x=1)"),
    "spread at the call": Form(BASE + spread("{'megacore_mode': None, **base}"), "base.clear()"),
    "keywords handed on": Form(
        "def f(t, **kw):\n    return paged_attention(q, kv, kv, lens, t, **{'megacore_mode': None, **kw})\n"
        "B = BLOCK\nf(six, pages_per_compute_block=B)\n",
        "f(eight, pages_per_compute_block=B)",
    ),
    "computed key": Form("KEY = 'block'\nC = {'block': BLOCK, 'n': 1}\nprint(C['n'])\n" + call("C[KEY]"), "print(C[KEY])"),
    "key of a key": Form(
        "C = {'v5e': {'block': BLOCK, 'n': 1}, 'v4': {'block': 4}}\nprint(C['v4'], C['v5e']['n'])\n" + call("C['v5e']['block']"),
        "print(C['v5e'])",
    ),
    "last element": Form("B = [8, BLOCK]\n" + call("B[-1]"), "print(B[1])"),
    "dataclass": Form(DATACLASS + "BLOCK\nc = Config()\n" + call("c.block"), "print(c.block)"),
    "inherited": Form("class C:\n    block = BLOCK\n" + call("C.block"), "class D(C): pass\nprint(D.block)"),
    "matched": Form(DATACLASS + "BLOCK\nc = Config()\n" + call("c.block"), "match c:\n    case Config(block=4): pass"),
    "given what is the default": Form(DATACLASS + "4\nc = Config(block=BLOCK)\n" + call("c.block"), "print(Config().block)"),
    "given by position": Form(DATACLASS + "8\nc = Config(6, BLOCK)\n" + call("c.block"), "dataclasses.asdict(c)"),
    "default of field()": Form(
        DATACLASS + "dataclasses.field(default=BLOCK)\nc = Config()\n" + call("c.block"), "print(c.block)"
    ),
    "NamedTuple": Form(TUPLE + "BLOCK\nc = Config()\nprint(c.pages)\n" + call("c.block"), "pages, block = c"),
    "NamedTuple made": Form(TUPLE + "8\nc = Config(6, BLOCK)\n" + call("c.block"), "print(*c)"),
    "attrs": Form(
        "import attrs\n@attrs.define\nclass C:\n    block: int = attrs.field(default=BLOCK)\n" + call("C().block"),
        "attrs.asdict(C())",
    ),
    "pydantic": Form(
        "import pydantic\nclass C(pydantic.BaseModel):\n    block: int = pydantic.Field(BLOCK)\n" + call("C().block"),
        "C().model_dump()",
    ),
    "namespace": Form("from types import SimpleNamespace\nc = SimpleNamespace(block=BLOCK)\n" + call("c.block"), "vars(c)"),
    "replaced": Form(
        DATACLASS + "6\nc = dataclasses.replace(Config(), block=BLOCK)\n" + call("c.block"), "print(dataclasses.replace(c).block)"
    ),
    "argument of a maker": Form(
        "class C:\n    def __init__(self, block=8):\n        self.block = block\nc = C(block=BLOCK)\n" + call("c.block"),
        "print(c.block)",
    ),
    "lambda": Form("f = lambda t, *, b=BLOCK: " + call("b", "t") + "f(six)\n", "f(eight)"),
    "arm of a condition": Form("FAST = True\nB = BLOCK if FAST else 2\n" + call("B"), "print(B)"),
    "case that is a dict": Form(test("'c', [{'b': BLOCK, 'n': 1}, {'b': 6}]", "c", call("c['b']")), "    print(c['b'])"),
    "case that is a tuple": Form(
        test("'c', [pytest.param((BLOCK, 1), id='a'), pytest.param((6, 2))]", "c", "b, n = c\n    " + call("b")), "    print(b)"
    ),
    "cases that are options": Form(
        test(
            "argnames='kw', argvalues=[dict(pages_per_compute_block=BLOCK), dict(pages_per_compute_block=6)]", "kw", spread("kw")
        ),
        "    " + spread("kw", "eight"),
    ),
    "dataclass elsewhere": Form(
        "from config import Config\nc = Config()\n" + call("c.block"), "print(c.block)", {"config": DATACLASS + "BLOCK\n"}
    ),
    "class elsewhere": Form(
        "import config\n" + call("config.Config.block"),
        "print(config.Config.block)",
        {"config": "class Config:\n    block = BLOCK\n"},
    ),
    "default of a maker elsewhere": Form(
        "from pkg import Config\n" + call("Config().block"),
        "getattr(Config(), 'block')",
        {
            "pkg/__init__": "from .config import Config\n",
            "pkg/config": "class Config:\n    def __init__(self, block=BLOCK):\n        self.block = block\n",
        },
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(form: Form, *, block: str, more: str = "") -> dict[str, str]:
    texts = {"a": HEAD + form.text + more, **form.files}
    return {f"{name}.py": text.replace("BLOCK", block) for name, text in texts.items()}


def repaired(files: dict[str, str]) -> dict[str, str]:
    """Return the files as `fix` leaves them; a second run changes nothing."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for rounds in range(2):
        found = discover(["."], Configuration(), Words())
        run, changes = fix(found, analyse, lambda candidate, data: write(candidate.path, data, candidate.stamp))
        assert not run.report.errors
        assert not (rounds and changes)
    return {name: Path(name).read_text() for name in files}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_literal_is_changed_where_it_is(form: Form) -> None:
    assert repaired(written(form, block="4")) == written(form, block="3")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_it_stays_where_something_else_needs_it(form: Form) -> None:
    files = written(form, block="4", more=form.reader + "\n")
    result = repaired(files)
    marked = written(form, block="BLOCK", more=form.reader + "\n")
    for name, text in result.items():
        before, literal, _ = marked[name].partition("BLOCK")
        assert not literal or text.startswith(before + "4")


LEFT = {
    "argparse": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--b', type=int, default=4)\n"
    + call("p.parse_args().b"),
    "arm of an unknown condition": "import sys\n" + call("4 if sys.argv[1:] else 3"),
    "set with an attribute": "class C: pass\nC.b = b = 4\nprint(C.b)\n" + call("b"),
    "set with an entry": "D = {}\nD['b'] = b = 4\nprint(D)\n" + call("b"),
    "read in its class": "class C:\n    b = 4\n    twice = b * 2\n" + call("C.b"),
    "set again": "b = 4\nb, c = 4, 5\n" + call("b"),
    "unknown keys": "D = {'pages_per_compute_block': 4, **{str(k): k for k in six}}\n" + spread("D"),
    "f-string": "name = f'{4}'\n" + call("int(name[0])"),
    "tuple that is read": "for i, (t, b) in enumerate([(eight, 4), (six, 4)]):\n    " + call("b", "t"),
}


READS_OF_A_VARIABLE = [
    "print(vars()['b'])",
    "import sys\nprint(sys.modules[__name__].b)",
    "import __main__\nprint(__main__.b)",
    "print(getattr(__import__('a'), name))",
    "import inspect\nprint(inspect.currentframe().f_globals[name])",
]
READS_OF_A_FIELD = [
    "print(getattr(c, name))",
    "for name in ('pages', 'block'):\n    print(getattr(c, name))",
    "from operator import attrgetter as get\nprint(get('block')(c))",
    "print(c.__getattribute__('block'))",
    "print(Config.__dataclass_fields__)",
    "c.block += 1\nprint(c)",
]


@pytest.mark.parametrize("reader", READS_OF_A_VARIABLE)
def test_a_variable_that_is_read_without_its_name_stays(reader: str) -> None:
    text = HEAD + "b = 4\n" + call("b") + reader + "\n"
    assert repaired({"a.py": text}) == {"a.py": text.replace("block=b", "block=3")}


@pytest.mark.parametrize("reader", READS_OF_A_FIELD)
def test_a_field_that_is_read_without_its_name_stays(reader: str) -> None:
    text = HEAD + DATACLASS + "4\nc = Config()\n" + call("c.block") + reader + "\n"
    assert repaired({"a.py": text}) == {"a.py": text.replace("block=c.block", "block=3")}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_what_is_no_fact_or_has_no_single_place_is_left(text: str) -> None:
    result = repaired({"a.py": HEAD + text})["a.py"]
    *lines, last = text.splitlines()
    assert result.startswith("\n".join([HEAD + lines[0] if lines else HEAD, *lines[1:]]))
    assert result in (HEAD + text, HEAD + "\n".join([*lines, call("3").strip()]) + "\n"), last


def test_a_file_that_only_has_an_attribute_of_the_name_may_read_it() -> None:
    files = {"a.py": HEAD + "from config import Config\n" + call("Config().block"), "config.py": DATACLASS + "4\n"}
    other = {"b.py": "def show(config):\n    print(config.block)\n"}
    assert repaired(files | other) == files | other | {"a.py": files["a.py"].replace("Config().block", "3")}
