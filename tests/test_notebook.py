from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods import analyse as real
from codemods.check import Run, check
from codemods.config import Configuration, Settings
from codemods.files import discover
from codemods.findings import Edit, Note
from codemods.fix import fix
from codemods.ignores import add_ignores
from codemods.notebook import Notebook, source_of
from codemods.report import render
from codemods.rewrite import apply
from codemods.source import SourceError
from codemods.suppress import Suppressions, skips_file
from codemods.words import Words
from codemods.write import write
from shapecheck.rule import Applicability

from .fake_analysis import GOOD, IMPORT, analyse
from .test_damage import CALL as CALL_OF_JAX
from .test_damage import HEAD

CALL = "paged_attention(pages=6, block=4)"


def notebook(*cells: str, split: bool = True, language: str = "python", **style: Any) -> bytes:
    """Return a notebook with a cell of text, and code cells with outputs that name the kernel."""
    sources = [source.splitlines(keepends=True) if split else source for source in cells]
    output = {"output_type": "stream", "name": "stdout", "text": [f"\x1b[31mé {CALL}\n"]}
    document = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": [f"# é {CALL}\n"]},
            *(
                {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output], "source": each}
                for each in sources
            ),
        ],
        "metadata": {"language_info": {"name": language}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, **style).encode()


def sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(candidate: Any, data: bytes) -> None:
    write(candidate.path, data, candidate.stamp)


def found(settings: Settings | None = None) -> Any:
    return discover(["."], Configuration(lambda each: settings or each), Words())


STYLES: dict[str, Callable[[bytes], bytes]] = {
    "as Jupyter writes it": lambda data: data + b"\n",
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "blanks": lambda data: b" \n\t" + data.replace(b": ", b" :\t").replace(b",\n", b" ,\n\n") + b"\n \n",
}


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_nothing_but_the_number_changes(style: Callable[[bytes], bytes], escaped: bool, indent: Any, split: bool) -> None:
    cells = "import é\n", f"x = 'é\t\"\\\\\U0001f600', {CALL}  # 名\ny = 1", "z = 1"
    data = style(notebook(*cells, split=split, indent=indent, ensure_ascii=escaped))
    Path("a.ipynb").write_bytes(data)
    run, [change] = fix(found(), analyse, put)
    assert not run.failed
    before, after = data.rsplit(b"block=4)  #", 1)
    assert Path("a.ipynb").read_bytes() == change.after == before + b"block=3)  #" + after
    assert fix(found(), analyse, put)[1] == []


def test_the_kernel_is_found_behind_an_escape() -> None:
    Path("a.ipynb").write_bytes(notebook(f"x = 1\n{CALL}", split=False))
    assert len(check(found(), analyse).report.call_sites) == 1


class TestCells:
    def code(self, *cells: str) -> str:
        return Notebook("a.ipynb", notebook(*cells)).code.decode()

    @pytest.mark.parametrize(
        ("cell", "code"),
        [
            ("%load_ext x\ny = 1", "###########\ny = 1"),
            ("!ls -l é\ny = 1", "#########\ny = 1"),
            ("?f\nf?\nf.g??\ny = 1", "##\n##\n#####\ny = 1"),
            ("if x:\n    !ls\n    %cd y\nelse:\n\t%time", "if x:\n    0##\n    0####\nelse:\n\t0####"),
            ("a, b = !ls 'x'\nc = %sql select\nd = 1 % 2", "a, b = ƿ#####\nc = ƿ#########\nd = 1 % 2"),
            ("!ls \\\n  -l \\\n  x\ny = 1", "#####\n  ####\n  #\ny = 1"),
            ("x = (1\n  % 2)\n!ls", "x = (1\n  % 2)\n###"),
            ("s = '''\n%d\n!x\n'''\n!ls", "s = '''\n%d\n!x\n'''\n###"),
            ("s = '''\n%d\n!x?\n'''", "s = '''\n%d\n!x?\n'''"),
            ("x = 1 \\\n% 2\n!ls", "x = 1 \\\n% 2\n###"),
            ("%%bash\nif [ x ]\n\n  paged_attention()", "######\n########\n\n  #################"),
            ("\n%%time\ny = 1\n!ls", "\n######\ny = 1\n###"),
            ("%%timeit -n 1\ny = 1", "#############\ny = 1"),
            ("%timeit f(é)\n%time f(x)  # twice", "0,      f(é)\n0,    f(x)  # twice"),
            ("if x:\n\t%timeit -n 10 -r3 -qo f(x)[0]", "if x:\n\t0,                    f(x)[0]"),
            ("%timeit x = f(y)", "################"),
            ("%timeit (x := f(y))", "###################"),
            ("%time x = f(y)\n%time (x := f(y))", "0;    x = f(y)\n0;    (x := f(y))"),
            ("if x:\n  %time a, b = 1, 2; import c", "if x:\n  0;    a, b = 1, 2; import c"),
            ("%time for x in y: pass\n%time x = {n}", "######################\n#############"),
            ("%timeit f({n}, $m)", "##################"),
            ("%timeit f(\nx = 1", "##########\nx = 1"),
            ("%timeit f(x); g(x)", "##################"),
            ("%timeit f(x) \\\n  + 1\nx = 1", "##############\n  ###\nx = 1"),
            ("x = (1\n%time (2)\n)\n!ls", "x = (1\n%time (2)\n)\n###"),
            ("%timeit", "#######"),
            ("%timeit -z f(x)", "###############"),
            ("%prun f(x)", "##########"),
            ("# only a comment", "# only a comment"),
            ("", ""),
        ],
    )
    def test_what_is_no_python_is_masked_byte_for_byte(self, cell: str, code: str) -> None:
        assert self.code(cell) == code
        assert len(code.encode()) == len(cell.encode())

    @pytest.mark.parametrize(
        ("cells", "message", "cell", "line"),
        [
            (["x = 1", "y = 1\nx = ("], "'(' was never closed", 3, 2),
            (["x = (1,", ")"], "'(' was never closed", 2, 1),  # though the two together would be Python
            (["x = 1 + \\", "2"], "unexpected EOF", 2, 1),
            (["!ls\nx = $"], "invalid syntax", 2, 2),
            (["x\0"], "a NUL byte", 2, 1),
        ],
    )
    def test_a_cell_that_is_no_python_is_reported(self, cells: list[str], message: str, cell: int, line: int) -> None:
        with pytest.raises(SourceError) as caught:
            _ = Notebook("a.ipynb", notebook(*cells)).tree
        assert message in str(caught.value)
        assert (caught.value.cell, caught.value.line) == (cell, line)

    def test_one_that_looks_like_what_stands_between_two(self) -> None:
        source = Notebook("a.ipynb", notebook("# ----", "\n# -----", "x"))
        assert source.restore(source.text) == source.data
        assert [place and place.number for place in map(source.cell_at, (1, 3, 5, 7))] == [2, 3, 3, 4]

    def test_comments_are_heeded(self) -> None:
        assert skips_file(source_of("a.ipynb", notebook("!ls 'x", "# shapecheck: skip-file")))
        source = source_of("a.ipynb", notebook("!ls 'x", f"{CALL}  # shapecheck: ignore"))
        assert Suppressions(source).keep(analyse([source], root=Path(), chips=())[1]) == []


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"{\n", "is no notebook: Expecting property name enclosed in double quotes", 2),
        (b"", "is no notebook: Expecting value", 1),
        (b"[]", "is no notebook of nbformat 4: it has no list of cells", 1),
        (b'{"worksheets": []}', "is no notebook of nbformat 4", 1),
        (b'{"cells": 1}', "is no notebook of nbformat 4", 1),
        (b"[" * 100_000, "is no notebook: nested too deeply", 1),
        (b"\xff", "cannot be decoded as utf-8: invalid start byte", 1),
        (notebook("'\ud800'"), "cannot be decoded as utf-8: surrogates not allowed", 1),
    ],
    ids=["cut", "empty", "list", "nbformat 3", "number", "deep", "not UTF-8", "surrogate"],
)
def test_what_is_no_notebook_is_refused(data: bytes, message: str, line: int) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        source_of("a.ipynb", data)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "data",
    [
        notebook(CALL, language="R"),
        b'{"cells": []}',
        b'{"cells": [1, {"cell_type": "code"}, {"cell_type": "code", "source": []}, {"cell_type": "code", "source": [1]}]}',
    ],
)
def test_a_notebook_without_python_is_empty(data: bytes) -> None:
    source = source_of("a.ipynb", data)
    assert source.tree.body == []
    assert source.restore(source.text) == data


class TestEdits:
    def test_lines_that_are_added_become_items_of_their_own(self) -> None:
        data = notebook("import os\n", "import sys\nx = 1", "y = 1", indent=1)
        source = source_of("a.ipynb", data)
        start = source.text.index(b"x = 1")
        result = apply(source, [Edit(start, start, "from m import f\n\n")])
        assert sources(result.data) == ["import os\n", "import sys\nfrom m import f\n\nx = 1", "y = 1"]
        assert result.data.decode() == data.decode().replace(
            '    "import sys\\n",\n', '    "import sys\\n",\n    "from m import f\\n",\n    "\\n",\n'
        )

    def test_the_last_line_of_a_cell(self) -> None:
        source = source_of("a.ipynb", notebook("%pip install x", "import os", "x = 1", indent=1))
        end = source.text.index(b"import os") + len(b"import os\n")
        result = apply(source, [Edit(end, end, "from m import f\n")])
        assert sources(result.data) == ["%pip install x", "import os\nfrom m import f", "x = 1"]

    def test_a_cell_that_would_vanish_is_refused(self) -> None:
        source = source_of("a.ipynb", notebook("x", "y"))
        with pytest.raises(SourceError, match="another number of cells"):
            source.restore(b"x\n")

    @pytest.mark.parametrize("split", [True, False])
    def test_comments_are_added_and_removed(self, split: bool) -> None:
        cells = "%matplotlib inline", f"x = [\n  {CALL},\n]", f"{CALL}, \\\n1"
        Path("a.ipynb").write_bytes(notebook(*cells, split=split, indent=1))
        before = Path("a.ipynb").read_bytes()
        run, _ = add_ignores(found(), analyse, put)
        assert not run.failed
        assert not run.report.errors
        data = Path("a.ipynb").read_bytes()
        assert sources(data) == [
            "%matplotlib inline",
            f"x = [\n  {CALL},  # shapecheck: ignore[SC102]\n]",
            f"# shapecheck: ignore[SC102]\n{CALL}, \\\n1",
        ]
        Path("a.ipynb").write_bytes(data.replace(b"block=4", b"block=3"))
        fix(found(Settings(select=("SC902",))), analyse, put)
        assert Path("a.ipynb").read_bytes() == before.replace(b"block=4", b"block=3").replace(
            CALL.replace("4", "3").encode() + b'\\n"]', b""
        )

    @given(st.lists(st.text('ab\n"\\é\U0001f600\t', max_size=8), min_size=1, max_size=3), st.data())
    def test_any_edit_comes_back(self, cells: list[str], data: st.DataObject) -> None:
        split, escaped = data.draw(st.booleans()), data.draw(st.booleans())
        source = Notebook(
            "a.ipynb", notebook(*cells, split=split, ensure_ascii=escaped, indent=data.draw(st.sampled_from([None, 1])))
        )
        kept = sources(source.data)
        index = data.draw(st.integers(0, len(kept) - 1))
        if split and not kept[index]:
            return  # it has no line to edit
        old = kept[index]
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(old))] * 2)))
        changed = [*kept]
        changed[index] = old[:start] + data.draw(st.text('x\n"é', max_size=4)) + old[end:]
        written = [each for each, cell in zip(changed, kept, strict=True) if cell or not split]
        result = source.restore(source._boundary.join(written).encode())
        assert sources(result) == changed
        document, expected = json.loads(result), json.loads(source.data)
        for each in (*document["cells"], *expected["cells"]):
            each["source"] = "".join(each["source"])
        expected["cells"][index + 1]["source"] = changed[index]
        assert document == expected


class TestReports:
    @pytest.fixture
    def run(self) -> Run:
        Path("a.ipynb").write_bytes(notebook(IMPORT, f"x = 1\n\ny = {CALL}\nz = 1"))
        Path("b.ipynb").write_bytes(notebook(GOOD, "\nx = ("))
        return check(found(), analyse)

    def test_people_read_the_cell_and_the_line_in_it(self, run: Run) -> None:
        lines = render(run, "text").splitlines()
        assert lines[0].startswith("a.ipynb:cell 3:3:36: SC102 block-not-dividing")
        assert lines[1:8] == [
            "  |",
            "1 | x = 1",
            "2 |",
            f"3 | y = {CALL}",
            "  |                                    ^",
            "4 | z = 1",
            "  |",
        ]
        assert any(line.startswith("b.ipynb:cell 3:2:1: SC901 file-error: cannot be parsed: '('") for line in lines)
        assert render(run, "concise").startswith("a.ipynb:cell 3:3:36: SC102")

    def test_programs_read_them_as_well(self, run: Run) -> None:
        document = json.loads(render(run, "json"))
        [finding], [site], [error] = document["findings"], document["call_sites"], document["errors"]
        assert [finding[key] for key in ("cell", "line", "column", "end_line", "call_line")] == [3, 3, 36, 3, 3]
        assert [site[key] for key in ("cell", "line", "column")] == [3, 3, 5]
        assert [error[key] for key in ("cell", "line")] == [3, 2]
        [result] = json.loads(render(run, "sarif"))["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1  # all of the JSON is on one line

    def test_a_cell_that_is_nested_too_deeply(self) -> None:
        Path("a.ipynb").write_bytes(notebook(CALL, f"\nx = {'1 + ' * 400}1"))
        [error] = check(found(), analyse).report.errors
        assert (error.cell, error.line, error.message) == (3, 2, "is not checked: nested too deeply, 403 levels")

    @pytest.mark.parametrize("split", [True, False], ids=["a string a line", "one string"])
    @pytest.mark.parametrize("style", [{"indent": 1}, {"indent": 1, "ensure_ascii": False}, {}], ids=str)
    @pytest.mark.parametrize("before", ["x = 1\n\n", "x = 'é \U0001f600\t\\\\\"'\r\n", ""])
    def test_an_annotation_points_to_the_place_in_the_json(self, before: str, style: dict[str, Any], split: bool) -> None:
        Path("a.ipynb").write_bytes(notebook(IMPORT, f"{before}y = {CALL}\nz = 1", split=split, **style))
        run = check(found(), analyse)
        (annotation,) = render(run, "github").splitlines()
        line, column, end_line, end_column = map(int, re.findall(r"(?:line|col|endLine|endColumn)=(\d+)", annotation))
        assert line == end_line
        marked = Path("a.ipynb").read_text().split("\n")[line - 1]
        assert marked[column - 1 : end_column - 1] == "4"
        assert marked[: column - 1].endswith("y = paged_attention(pages=6, block=")
        [result] = json.loads(render(run, "sarif"))["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["region"] == {
            "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column,
        }  # fmt: skip

    def test_a_carriage_return_at_the_end_of_a_cell_is_the_first_half_of_what_follows(self) -> None:
        Path("a.ipynb").write_bytes(notebook(f"{IMPORT}x = 1\r", f"y = {CALL}", indent=1))
        run = check(found(), analyse)
        assert render(run, "concise").startswith("a.ipynb:cell 3:1:36: SC102")
        line, column = map(int, re.findall(r"(?:line|col)=(\d+)", render(run, "github"))[:2])
        assert Path("a.ipynb").read_text().split("\n")[line - 1][column - 1 :].startswith("4)")

    def test_an_annotation_of_what_cannot_be_parsed_points_to_the_notebook(self, run: Run) -> None:
        _, error = render(run, "github").splitlines()
        assert "file=b.ipynb,line=1::b.ipynb:cell 3:2: SC901" in error


def test_an_edit_in_one_cell_knows_nothing_of_the_others() -> None:
    source = source_of("a.ipynb", notebook("a = 1", "b = 1", "c = 1", indent=1))
    start = source.text.index(b"b = 1")
    result = apply(source, [Edit(start + 4, start + 5, "2")])
    assert result.data == source.data.replace(b"b = 1", b"b = 2")


@pytest.mark.parametrize("cell", ["x = 1\nfrom a import BLOCK", "x = 1"])
def test_a_constant_that_a_notebook_imports_is_not_changed(cell: str) -> None:
    text = HEAD + "BLOCK = 4\n" + CALL_OF_JAX.replace("=4", "=BLOCK") + "\n"
    Path("a.py").write_text(text)
    Path("b.ipynb").write_bytes(notebook(cell, split=False))
    fix(found(), real.analyse, put)
    assert ("BLOCK = 4" in Path("a.py").read_text()) == ("import" in cell)
    assert Path("a.py").read_text() != text


@pytest.mark.parametrize("line", ["%timeit {}", "%time {}", "%time out = {}", "%timeit -n 10 {}.block_until_ready()"])
def test_a_call_that_is_timed_is_checked_and_not_changed(line: str) -> None:
    data = notebook(HEAD, line.format(CALL_OF_JAX) + "\n")
    Path("a.ipynb").write_bytes(data)
    run = check(found(), real.analyse)
    [finding] = run.report.findings
    assert finding.code == "SC102"
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY
    run, changes = fix(found(), real.analyse, put)
    assert (run.report.findings[0].code, changes) == ("SC102", [])
    assert Path("a.ipynb").read_bytes() == data


def test_a_value_that_a_timed_call_is_given_is_repaired_where_it_stands() -> None:
    Path("a.ipynb").write_bytes(notebook(f"{HEAD}BLOCK = 4\n", "%timeit " + CALL_OF_JAX.replace("=4", "=BLOCK")))
    run, [_] = fix(found(), real.analyse, put)
    assert run.report.findings == []
    assert "BLOCK = 3" in sources(Path("a.ipynb").read_bytes())[0]


def test_what_a_timed_statement_assigns_is_known() -> None:
    Path("a.ipynb").write_bytes(notebook(f"{HEAD}BLOCK = 4\n", "%time BLOCK = 3\n", CALL_OF_JAX.replace("=4", "=BLOCK")))
    run = check(found(), real.analyse)
    assert run.report.findings == []
    assert run.report.call_sites[0].verdicts["SC102"] == "proven"


def test_a_cell_that_is_timed_is_checked_and_fixed() -> None:
    Path("a.ipynb").write_bytes(notebook(HEAD, f"%%time\nout = {CALL_OF_JAX}\n"))
    run, [_] = fix(found(), real.analyse, put)
    assert run.report.findings == []
    assert sources(Path("a.ipynb").read_bytes())[1] == f"%%time\nout = {CALL_OF_JAX.replace('=4', '=3')}\n"


def test_a_line_that_is_passed_over_though_it_calls_a_kernel_is_told() -> None:
    Path("a.ipynb").write_bytes(notebook(HEAD, f"x = 1\n%time for _ in range(3): {CALL_OF_JAX}\n!ls\n"))
    run = check(found(), real.analyse)
    [note] = run.report.notes
    assert note == Note("a.ipynb", 2, "in cell 3 is IPython's, and not checked: put the call into a line of its own")
