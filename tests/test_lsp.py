"""The language server, as an editor sees it: the real process, over its standard streams."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from codemods.lsp.jobs import Worker
from codemods.lsp.session import Ask, Check, Checked
from codemods.lsp.settings import EditorSettings

from .editor import IMPORT, Editor, applied, editor, source

CALL = 6  # the line of the call in `source()`, from 0
Scene: TypeAlias = Callable[[Editor], Awaitable[None]]


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'serving'\n")
    return tmp_path


def play(folder: Path, scene: Scene, **how: object) -> None:
    """Run a scene in an editor with a workspace."""

    async def run() -> None:
        async with editor(folder, **how) as client:  # type: ignore[arg-type]
            await scene(client)

    asyncio.run(run())


def codes(diagnostics: object) -> list[object]:
    return [each.code for each in diagnostics]  # type: ignore[attr-defined]


def part(text: str, place: types.Range) -> str:
    """Return the piece of a line that a range of UTF-16 units covers."""
    assert place.start.line == place.end.line
    line = text.splitlines()[place.start.line].encode("utf-16-le")
    return line[2 * place.start.character : 2 * place.end.character].decode("utf-16-le")


# ---- diagnostics


def test_what_is_typed_is_checked_before_it_is_saved(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(source("3"))

    async def scene(client: Editor) -> None:
        client.open("a.py", source("4"))
        (found,) = await client.diagnostics("a.py")
        assert (found.code, found.source, found.severity) == ("SC102", "shapecheck", types.DiagnosticSeverity.Error)
        assert "legal blocks: 1, 2, 3, 6" in found.message
        assert part(source("4"), found.range) == "4"
        client.change("a.py", source("3"), 2)
        assert await client.diagnostics("a.py", 2) == ()
        client.change("a.py", "45", 3, found.range)  # a part of it
        (found,) = await client.diagnostics("a.py", 3)
        assert part(source("45"), found.range) == "45"

    play(tmp_path, scene)


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-32"])
def test_positions_count_what_the_editor_counts(tmp_path: Path, encoding: str | None) -> None:
    line = 'print("🙂é"); out = paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=4)'
    text = source("3") + "# a line that is none:\f \u2028 \x1d\n" + line + "\n"
    begins = line.index("4)")

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        (found,) = await client.diagnostics("a.py")
        extra = {None: 1, "utf-8": 4, "utf-32": 0}[encoding]
        start = types.Position(CALL + 2, begins + extra)
        assert found.range == types.Range(start, types.Position(start.line, start.character + 1))
        client.change("a.py", "6", 2, found.range)
        assert await client.diagnostics("a.py", 2) == ()
        assert await client.hover("a.py", CALL + 2, begins + extra) is not None
        assert await client.hover("a.py", CALL + 2, begins + extra + 3) is None

    play(tmp_path, scene, encoding=encoding)


def test_open_files_see_what_the_others_have_not_saved(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("BLOCK = 3\n")
    text = source("BLOCK", before="from config import BLOCK\n")

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        assert await client.diagnostics("a.py") == ()
        client.open("config.py", "BLOCK = 3\n")
        client.published.clear()
        client.change("config.py", "BLOCK = 4\n", 2)
        assert codes(await client.diagnostics("a.py")) == ["SC102"]
        client.published.clear()
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(client.uri("config.py"))))
        assert await client.diagnostics("a.py") == ()
        (tmp_path / "config.py").write_text("BLOCK = 5\n")
        client.published.clear()
        event = types.FileEvent(client.uri("config.py"), types.FileChangeType.Changed)
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        assert codes(await client.diagnostics("a.py")) == ["SC102"]

    play(tmp_path, scene)


def test_calls_of_functions_with_a_contract_are_checked_where_they_are_made(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text("from .kernels import attend\n")
    (tmp_path / "ours" / "kernels.py").write_text(
        "from jaxtyping import Array, Float\nfrom shapecheck import contract\n\n"
        '@contract("heads % 8 == 0")\ndef attend(q: Float[Array, "heads d"]): ...\n'
    )
    text = "import jax.numpy as jnp\nfrom ours import attend\nattend(jnp.zeros((12, 128)))\n"

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        (found,) = await client.diagnostics("a.py")
        assert found.code == "SC001"
        assert part(text, found.range) == "jnp.zeros((12, 128))"
        client.change("a.py", text.replace("12", "16"), 2)
        assert await client.diagnostics("a.py", 2) == ()

    play(tmp_path, scene)


@pytest.mark.parametrize("started", ["", "serving"])
def test_the_folder_that_the_editor_is_started_in_does_not_matter(tmp_path: Path, started: str) -> None:
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "__init__.py").touch()
    (tmp_path / "serving" / "config.py").write_text("BLOCK = 4\n")
    text = source("BLOCK", before="from serving.config import BLOCK\n")

    async def scene(client: Editor) -> None:
        client.open("serving/a.py", text)
        assert codes(await client.diagnostics("serving/a.py")) == ["SC102"]

    play(tmp_path, scene, started=tmp_path / started)


def test_a_file_that_does_not_parse_says_so_at_its_line(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", source("4") + "def f(:\n")
        (found,) = await client.diagnostics("a.py")
        assert found.code == "SC901"
        assert found.range.start == types.Position(CALL + 1, 0)
        assert "invalid syntax" in found.message
        assert await client.hover("a.py", CALL, 10) is None
        client.change("a.py", source("4"), 2)
        assert codes(await client.diagnostics("a.py", 2)) == ["SC102"]

    play(tmp_path, scene)


def test_comments_are_obeyed_and_closed_files_have_no_diagnostics(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", source("4", after="  # shapecheck: ignore[SC102]"))
        client.open("b.py", source("3", after="  # shapecheck: ignore[SC102]"))
        client.open("c.py", source("4"))
        client.open("none.py", "print('no kernel here')\n")
        assert await client.diagnostics("a.py") == ()
        assert await client.diagnostics("none.py") == ()
        (unused,) = await client.diagnostics("b.py")
        assert unused.code == "SC902"
        assert unused.tags == (types.DiagnosticTag.Unnecessary,)
        assert codes(await client.diagnostics("c.py")) == ["SC102"]
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(client.uri("c.py"))))
        assert (await client.publication(client.uri("c.py"), lambda each: not each.diagnostics)).diagnostics == ()

    play(tmp_path, scene, options={"select": ["SC"]})


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "elsewhere"])
def test_files_outside_of_a_workspace_are_checked(tmp_path: Path, uri: str) -> None:
    (tmp_path / "pyproject.toml").unlink()

    async def scene(client: Editor) -> None:
        name = (tmp_path / "a.py").as_uri() if uri == "elsewhere" else uri
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(name, "python", 1, source("4"))))
        published = await client.publication(name, lambda each: True)
        assert codes(published.diagnostics) == ["SC102"]

    play(tmp_path, scene, workspace=False)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_has_the_encoding_that_it_declares(tmp_path: Path, newline: str) -> None:
    text = ("# -*- coding: latin-1 -*-\n" + source("4", before='name = "é"; ')).replace("\n", newline)

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        (found,) = await client.diagnostics("a.py")
        assert part(text, found.range) == "4"

    play(tmp_path, scene)


# ---- an editor is never kept waiting

SLOW = source("4") + "".join(
    f"for n{i} in range(1, 40):\n    for m in range(1, 20):\n"
    "        paged_attention(q, k_pages, v_pages, lengths, jnp.zeros((2, n0 * m)), pages_per_compute_block=n0 + m)\n"
    for i in range(40)
)


def test_a_newer_edit_supersedes_an_older_check(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", SLOW)
        await asyncio.sleep(1)  # it is being checked
        for version, block in enumerate("5533445", 2):
            client.change("a.py", source(block), version)
        begun = time.monotonic()
        assert await client.hover("none.py", 0, 0) is None  # nothing keeps other answers
        assert time.monotonic() - begun < 5
        (found,) = await client.diagnostics("a.py", 8)
        assert "pages_per_compute_block = 5" in found.message
        assert {each.version for each in client.published} == {8}

    play(tmp_path, scene)


def test_a_worker_that_dies_is_told_and_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    question = Check(Ask(path, {path: source("4").encode()}, EditorSettings(), "utf-16"))

    async def run() -> list[object]:
        worker = Worker()
        await worker.start()
        assert worker._process is not None
        worker._process.kill()
        await worker._process.wait()
        answers = [await worker.ask(question), await worker.ask(question)]
        worker.stop()
        await asyncio.sleep(0.1)
        return [codes(each.diagnostic for each in answer.told) for answer in answers if isinstance(answer, Checked)]

    assert asyncio.run(run()) == [["SC901"], ["SC102"]]


# ---- what can be done


def test_safe_fixes_are_preferred_and_made_when_they_are_chosen(tmp_path: Path) -> None:
    text = '"🙂"\n' + source("4").replace("out =", '"🙂"; out =') + source("5").removeprefix(IMPORT)

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        assert codes(await client.diagnostics("a.py")) == ["SC102", "SC102"]
        fix, ignore, everything = await client.actions("a.py", CALL + 1)
        assert (fix.title, fix.kind, fix.is_preferred) == ("replace 4 by 3 (SC102)", "quickfix", True)
        assert codes(fix.diagnostics) == ["SC102"]
        assert (ignore.title, ignore.is_preferred) == ("ignore here: # shapecheck: ignore[SC102]", None)
        assert everything.kind == "source.fixAll.shapecheck"
        assert fix.edit is None
        uri = client.uri("a.py")
        one = applied(text, (await client.code_action_resolve_async(fix)).edit, uri)
        assert one == text.replace("block=4", "block=3")
        all_ = applied(text, (await client.code_action_resolve_async(everything)).edit, uri)
        assert all_ == text.replace("block=4", "block=3").replace("block=5", "block=3")
        silent = applied(text, (await client.code_action_resolve_async(ignore)).edit, uri)
        assert silent == text.replace("block=4)", "block=4)  # shapecheck: ignore[SC102]")
        client.change("a.py", silent, 2)
        assert len(await client.diagnostics("a.py", 2)) == 1
        assert [each.kind for each in await client.actions("a.py", 0, ["source.fixAll"])] == ["source.fixAll.shapecheck"]
        assert await client.actions("a.py", CALL + 1, ["refactor"]) == []

    play(tmp_path, scene)


def test_fixes_that_are_not_safe_say_so(tmp_path: Path) -> None:
    call = "paged_attention(q, k_pages, k_pages, lengths, table, pages_per_compute_block=4)"
    text = f"{IMPORT}def f(q, k_pages, lengths, table):\n    return {call}\n"

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        found = await client.diagnostics("a.py")
        assert {each.severity for each in found} == {types.DiagnosticSeverity.Warning}
        assert "SC102" in codes(found)
        actions = await client.actions("a.py", 3)
        (fix,) = [each for each in actions if each.title.endswith("(SC102, unsafe)")]
        assert fix.is_preferred is False
        assert not any(each.kind == "source.fixAll.shapecheck" for each in actions)
        edit = (await client.code_action_resolve_async(fix)).edit
        after = applied(text, edit, client.uri("a.py"))
        assert "pages_per_compute_block=largest_divisor(" in after
        assert "import largest_divisor" in after

    play(tmp_path, scene, settings={"unproven": True})


def test_an_action_of_an_older_text_is_not_made(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", source("4"))
        fix, *_ = await client.actions("a.py", CALL)
        client.change("a.py", source("5"), 2)
        with pytest.raises(JsonRpcException, match="no edit to make"):
            await client.code_action_resolve_async(fix)
        assert client.messages == ["shapecheck: the document was changed meanwhile"]

    play(tmp_path, scene)


def test_an_editor_that_cannot_resolve_gets_the_edits_at_once(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", source("4"))
        fix, ignore, everything = await client.actions("a.py", CALL)
        assert applied(source("4"), fix.edit, client.uri("a.py")) == source("3")
        assert applied(source("4"), everything.edit, client.uri("a.py")) == source("3")
        assert applied(source("4"), ignore.edit, client.uri("a.py")) == source("4", after="  # shapecheck: ignore[SC102]")

    play(tmp_path, scene, resolves=False)


# ---- hover


def test_pointing_at_a_call_tells_its_geometry_and_the_verdicts(tmp_path: Path) -> None:
    text = source("4") + (
        "def f(table, block):\n    return paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block=block)\n"
    )

    async def scene(client: Editor) -> None:
        client.open("a.py", text)
        hover = await client.hover("a.py", CALL, 12)
        assert hover is not None
        assert isinstance(hover.contents, types.MarkupContent)
        told = hover.contents.value
        assert told.startswith("**paged_attention**: ")
        assert "| `pages_per_sequence` | `6` | `table.shape[1]` |" in told
        assert "| `q_dtype` | `'bfloat16'` | `q.dtype` |" in told
        assert "| `megacore_mode` | `None` |  |" in told
        assert "- **violated** `SC102` block-not-dividing: " in told
        assert "- proven: SC101, " in told
        assert hover.range is not None
        assert part(text, hover.range).startswith("paged_attention(q")
        hover = await client.hover("a.py", CALL + 2, 15)
        assert hover is not None
        assert isinstance(hover.contents, types.MarkupContent)
        assert "| `pages_per_sequence` | ? | `table.shape[1]` |" in hover.contents.value
        assert "- unproven `SC102` block-not-dividing: " in hover.contents.value
        assert "fails when" in hover.contents.value
        assert await client.hover("a.py", 0, 3) is None

    play(tmp_path, scene)


# ---- settings

ON_A_CHIP = source("3").replace("block=3", "block=3, megacore_mode='kv_head'")


def test_settings_are_those_of_the_project_with_those_of_the_editor_on_top(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nchips = ['v5e']\n")

    async def of_the_project(client: Editor) -> None:
        client.open("a.py", ON_A_CHIP)
        assert codes(await client.diagnostics("a.py")) == ["SC204"]

    async def of_the_editor(client: Editor) -> None:
        client.open("a.py", ON_A_CHIP)
        assert await client.diagnostics("a.py") == ()
        client.published.clear()
        client.workspace_did_change_configuration(types.DidChangeConfigurationParams({"shapecheck": {"chips": ["v6e"]}}))
        assert codes(await client.diagnostics("a.py")) == ["SC204"]

    play(tmp_path, of_the_project)
    play(tmp_path, of_the_editor, options={"chips": ["v5p"]})


def test_wrong_settings_are_told_and_left_out(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        client.open("a.py", source("4"))
        assert codes(await client.diagnostics("a.py")) == ["SC102"]
        (message,) = client.messages
        assert "chip: there is no such setting; there are: chips, select, ignore, unproven" in message
        assert "ignore: 'SC9999' is no code" in message
        assert "unproven: must be true or false, not 1" in message

    play(tmp_path, scene, options={"chip": ["v5p"], "ignore": ["SC9999"], "unproven": 1})


def test_a_broken_pyproject_is_told_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nchip = 'v5e'\n")

    async def scene(client: Editor) -> None:
        client.open("a.py", source("4"))
        (found,) = await client.diagnostics("a.py")
        assert found.code == "SC901"
        assert "pyproject.toml:2: [tool.shapecheck] has no key 'chip'" in found.message

    play(tmp_path, scene)


# ---- notebooks


def test_the_cells_of_a_notebook_are_one_program(tmp_path: Path) -> None:
    lines = source("4").splitlines(keepends=True)
    texts = {"1": "# about\n", "2": "".join(lines[:CALL]), "3": "%time 1\n" + lines[CALL]}
    uri = (tmp_path / "a.ipynb").as_uri()
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    async def scene(client: Editor) -> None:
        kinds = {"1": types.NotebookCellKind.Markup}
        cells = [types.NotebookCell(kinds.get(name, types.NotebookCellKind.Code), f"{uri}#{name}") for name in texts]
        items = [types.TextDocumentItem(f"{uri}#{name}", "python", 1, text) for name, text in texts.items()]
        notebook = types.NotebookDocument(uri, "jupyter-notebook", 1, cells)
        client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
        published = await client.publication(f"{uri}#3", lambda each: bool(each.diagnostics))
        (found,) = published.diagnostics
        assert found.code == "SC102"
        assert part(texts["3"], found.range) == "4"
        identified = types.TextDocumentIdentifier(f"{uri}#3")
        params = types.CodeActionParams(identified, found.range, types.CodeActionContext([]))
        fix, *_ = await client.text_document_code_action_async(params) or []
        assert isinstance(fix, types.CodeAction)
        edit = (await client.code_action_resolve_async(fix)).edit
        assert applied(texts["3"], edit, f"{uri}#3") == texts["3"].replace("block=4", "block=3")
        change = types.TextDocumentContentChangePartial(found.range, "6")
        cell = types.NotebookDocumentCellContentChanges(types.VersionedTextDocumentIdentifier(2, f"{uri}#3"), [change])
        client.published.clear()
        client.notebook_document_did_change(
            types.DidChangeNotebookDocumentParams(
                types.VersionedNotebookDocumentIdentifier(2, uri),
                types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[cell])),
            )
        )
        assert (await client.publication(f"{uri}#3", lambda each: True)).diagnostics == ()

    play(tmp_path, scene)


# ---- without the extra


def test_without_pygls_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['pygls'] = None\nfrom codemods.cli import main\nsys.exit(main(['lsp']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr == "shapecheck: the language server needs pygls: pip install 'shapecheck-pallas[lsp]'\n"
    assert done.stdout == ""
