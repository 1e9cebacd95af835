"""The language server: what the editor sends, and what it is answered."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, cast

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcInternalError
from pygls.lsp.server import LanguageServer

from codemods.lsp import actions
from codemods.lsp.diagnostics import NAME
from codemods.lsp.documents import Document, Documents
from codemods.lsp.jobs import Checks, Worker
from codemods.lsp.session import Ask, Check, Checked, Edited
from codemods.lsp.settings import EditorSettings, read_settings
from codemods.version import version

_WATCHED = ("**/*.py", "**/*.pyi", "**/*.ipynb", "**/pyproject.toml")
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            cells=[types.NotebookCellLanguage("python"), types.NotebookCellLanguage("markdown")]
        )
    ]
)


class Server(LanguageServer):
    """One editor: what it has open, and how it wants it checked."""

    def __init__(self) -> None:
        # pygls takes a form feed for the end of a line, and moves the positions of a change to fit that: whole texts have none.
        super().__init__("shapecheck", version(), types.TextDocumentSyncKind.Full, _NOTEBOOKS)
        self.documents = Documents()
        self.settings = EditorSettings()
        self._given: list[Any] = [None, None]  # what came with `initialize`, and what the workspace says
        self.checks = Checks(self._question, self._publish)
        self.editing = Worker()  # of its own: an edit is not to wait for the checks

    def begin(self, first: Iterable[Document] = ()) -> None:
        """Check the documents that changed, and then the others, as they may import these."""
        first = list(first)
        self.checks.begin([*first, *(each for each in self.documents if each not in first)])

    def configure(self, *, initial: Any = None, workspace: Any = None) -> None:
        """Take settings; those of the workspace win over those that came first."""
        self._given = [initial or self._given[0], workspace or self._given[1]]
        self.settings, wrong = read_settings(*self._given)
        if wrong:
            message = f"shapecheck: settings: {'; '.join(wrong)}"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))

    def capability(self, name: Any) -> Any:
        """Return what the editor says that it can do."""
        return get_capability(self.client_capabilities, name)

    def ask(self, document: Document) -> Ask:
        """Return what the worker is to know of a document."""
        return Ask(document.path, self.documents.buffers(), self.settings, self.documents.encoding)

    async def edit(self, data: Any) -> types.WorkspaceEdit | None:
        """Make the edit of an action; None where there is none to make any more, of which the user is told."""
        found = self.documents.find(data["uri"])
        if found is None or found[0].revision != data["revision"]:
            edited = Edited({}, "the document was changed meanwhile")
        else:
            edited = cast(Edited, await self.editing.ask(actions.question(data, self.ask(found[0]))))
        if not edited.edits:
            self.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"shapecheck: {edited.reason}"))
            return None
        versioned = bool(self.capability("workspace.workspace_edit.document_changes"))
        return actions.workspace_edit(edited, self.documents, versioned=versioned)

    def _question(self, document: Document) -> Check:
        return Check(self.ask(document))

    def _publish(self, document: Document, checked: Checked) -> None:
        cells = range(1, len(document.cells) + 1) if document.is_notebook else (None,)
        for cell in cells:
            own = [each.diagnostic for each in checked.told if (each.cell or (1 if document.is_notebook else None)) == cell]
            number = None if document.is_notebook else document.version
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri_of(cell), own, version=number))

    def clear(self, document: Document) -> None:
        """Show nothing of a document any more."""
        self.checks.forget(document)
        self._publish(document, Checked())


def serve() -> None:
    """Serve an editor until it ends the server."""
    # It complains of the parts of a text that editors send of a notebook; its copy of the text is not looked at.
    logging.getLogger("pygls.workspace.text_document").setLevel(logging.CRITICAL)
    _server().start_io()


def _server() -> Server:
    server = Server()

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.documents.encoding = types.PositionEncodingKind(server.workspace.position_encoding or "utf-16").value
        server.configure(initial=params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(_: types.InitializedParams) -> None:
        await register()
        await pull()

    async def register() -> None:
        """Ask to be told of files that change on disk, and of settings that change."""
        wanted = []
        if server.capability("workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            wanted.append(types.Registration("watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if server.capability("workspace.did_change_configuration.dynamic_registration"):
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": NAME}))
        if wanted:
            await server.client_register_capability_async(types.RegistrationParams(wanted))

    async def pull() -> None:
        """Fetch the settings of the workspace."""
        if server.capability("workspace.configuration"):
            asked = types.ConfigurationParams([types.ConfigurationItem(section=NAME)])
            (settings,) = await server.workspace_configuration_async(asked) or [None]
            if settings:
                server.configure(workspace=settings)
                server.begin()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration_changed(params: types.DidChangeConfigurationParams) -> None:
        if params.settings:
            server.configure(workspace=params.settings)
            server.begin()
        else:
            await pull()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        server.begin()

    _add_documents(server)
    _add_answers(server)
    return server


def _add_documents(server: Server) -> None:
    documents = server.documents

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        server.begin([documents.open(item.uri, item.version, [item])])

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        item = params.text_document
        documents.change(item.uri, params.content_changes)
        server.begin([documents.changed(item.uri, item.version)])

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        close(params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def notebook_opened(params: types.DidOpenNotebookDocumentParams) -> None:
        item = params.notebook_document
        server.begin([documents.open(item.uri, item.version, params.cell_text_documents, list(item.cells))])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def notebook_changed(params: types.DidChangeNotebookDocumentParams) -> None:
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is not None and cells.structure is not None:
            now = server.workspace.get_notebook_document(notebook_uri=uri)
            gone = [each.uri for each in cells.structure.did_close or ()]
            documents.rearrange(uri, now.cells if now is not None else [], cells.structure.did_open or (), gone)
        for text in (cells.text_content if cells is not None else None) or ():
            documents.change(text.document.uri, text.changes)
        server.begin([documents.changed(uri, params.notebook_document.version)])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(params: types.DidCloseNotebookDocumentParams) -> None:
        close(params.notebook_document.uri)

    def close(uri: str) -> None:
        if (document := documents.close(uri)) is not None:
            server.clear(document)
            server.begin()


def _add_answers(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        found = server.documents.find(params.text_document.uri)
        if found is None:
            return None
        document, cell = found
        here = [
            each
            for each in (await server.checks.current(document)).pointed
            if each.cell == cell and each.range.start <= params.position <= each.range.end
        ]
        if not here:
            return None
        innermost = max(here, key=lambda each: (each.range.start.line, each.range.start.character))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, innermost.markdown), innermost.range)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=actions.KINDS, resolve_provider=True)
    )
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        found = server.documents.find(params.text_document.uri)
        if found is None:
            return []
        document, cell = found
        checked = await server.checks.current(document)
        offered = actions.offered(checked.told, document, cell, params)
        support = server.capability("text_document.code_action.resolve_support")
        if support is not None and "edit" in support.properties:
            return offered
        for each in offered:
            each.edit = await server.edit(each.data)
        return [each for each in offered if each.edit is not None]

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        action.edit = await server.edit(action.data)
        if action.edit is None:
            raise JsonRpcInternalError("there is no edit to make")
        return action

    @server.feature(types.SHUTDOWN)
    def shutdown(_: None) -> None:
        server.checks.stop()
        server.editing.stop()
