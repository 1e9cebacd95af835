"""An editor for tests of the language server: a client of pygls that talks to the real process over its standard streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).parent.parent
PATIENCE = 60

IMPORT = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\nimport jax.numpy as jnp\n"


def source(block: str = "4", pages: int = 6, before: str = "", after: str = "", heads: int = 8) -> str:
    """Return a program whose call takes six pages a sequence, in blocks of four."""
    return (
        f"{IMPORT}{before}"
        f"q = jnp.zeros((2, {heads}, 128), jnp.bfloat16)\n"
        "k_pages = v_pages = jnp.zeros((2, 16, 16, 128), jnp.bfloat16)\n"
        "lengths = jnp.full((2,), 3, jnp.int32)\n"
        f"table = jnp.zeros((2, {pages}), jnp.int32)\n"
        f"out = paged_attention(q, k_pages, v_pages, lengths, table, pages_per_compute_block={block}){after}\n"
    )


class Editor(LanguageClient):
    """Keeps what the server publishes."""

    def __init__(self, folder: Path, settings: Any = None) -> None:
        super().__init__("editor", "1")
        self.folder = folder
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self.settings = settings
        self._news = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            self._news.set()

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.feature(types.WORKSPACE_CONFIGURATION)
        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [self.settings for _ in params.items]

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str, version: int = 1) -> None:
        item = types.TextDocumentItem(self.uri(name), types.LanguageKind.Python, version, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str, version: int, place: types.Range | None = None) -> None:
        whole = types.TextDocumentContentChangeWholeDocument(text)
        change = whole if place is None else types.TextDocumentContentChangePartial(place, text)
        named = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        self.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    async def diagnostics(self, name: str, version: int | None = 1) -> Sequence[types.Diagnostic]:
        """Return what is published of a version of a file, as soon as it is."""
        return (await self.publication(self.uri(name), lambda each: each.version == version)).diagnostics

    async def publication(
        self, uri: str, wanted: Callable[[types.PublishDiagnosticsParams], bool]
    ) -> types.PublishDiagnosticsParams:
        async with asyncio.timeout(PATIENCE):
            while True:
                for each in reversed(self.published):
                    if each.uri == uri and wanted(each):
                        return each
                self._news.clear()
                await self._news.wait()

    async def actions(self, name: str, line: int, only: list[types.CodeActionKind | str] | None = None) -> list[types.CodeAction]:
        """Return what is offered on a line, with its edits."""
        place = types.Range(types.Position(line, 0), types.Position(line, 200))
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(name)), place, types.CodeActionContext([], only=only)
        )
        return [each for each in await self.text_document_code_action_async(params) or [] if isinstance(each, types.CodeAction)]

    async def hover(self, name: str, line: int, character: int) -> types.Hover | None:
        named = types.TextDocumentIdentifier(self.uri(name))
        return await self.text_document_hover_async(types.HoverParams(named, types.Position(line, character)))


def capabilities(*, resolves: bool = True, configures: bool = False, encoding: str | None = None) -> types.ClientCapabilities:
    action = types.CodeActionClientCapabilities(
        data_support=True, resolve_support=types.ClientCodeActionResolveOptions(["edit"]) if resolves else None
    )
    return types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(code_action=action),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True), configuration=configures
        ),
        general=types.GeneralClientCapabilities(position_encodings=[encoding]) if encoding else None,
    )


@asynccontextmanager
async def editor(
    folder: Path, *, options: Any = None, settings: Any = None, workspace: bool = True, started: Path | None = None, **able: Any
) -> AsyncIterator[Editor]:
    """Start the server, and end it as editors do."""
    client = Editor(folder, settings)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    await client.start_io(sys.executable, "-P", "-m", "codemods", "lsp", "--stdio", env=environment, cwd=started)
    try:
        await client.initialize_async(
            types.InitializeParams(
                capabilities(configures=settings is not None, **able),
                process_id=os.getpid(),
                root_uri=folder.as_uri() if workspace else None,
                initialization_options=options,
            )
        )
        client.initialized(types.InitializedParams())
        yield client
    finally:
        async with asyncio.timeout(PATIENCE):
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()


def applied(text: str, edit: types.WorkspaceEdit | None, uri: str) -> str:
    """Return a text with the edits of a file made; columns are those of UTF-16."""
    assert edit is not None
    assert edit.document_changes is not None
    edits = [
        each
        for change in edit.document_changes
        if isinstance(change, types.TextDocumentEdit) and change.text_document.uri == uri
        for each in change.edits
    ]
    lines = text.splitlines(keepends=True)
    for each in reversed(edits):
        assert isinstance(each, types.TextEdit)
        start, end = (
            sum(map(len, lines[: p.line])) + _characters(lines[p.line] if p.line < len(lines) else "", p.character)
            for p in (each.range.start, each.range.end)
        )
        text = text[:start] + each.new_text + text[end:]
    return text


def _characters(line: str, units: int) -> int:
    return len(line.encode("utf-16-le")[: 2 * units].decode("utf-16-le"))
