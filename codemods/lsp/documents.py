"""What the editor has open: Python files and notebooks, with the text that it has not saved."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lsprotocol import types
from pygls.uris import to_fs_path, uri_scheme

from codemods.files import NOTEBOOK
from codemods.lsp.positions import Text
from codemods.source import SourceError, encoding_of


@dataclass
class Document:
    """A file that is open.

    Attributes:
        uri: what the editor calls it.
        path: where it lies, or would.
        version: the editor's number of its text, where it has one.
        revision: counts the changes, from 1.
        cells: of a notebook, the kinds and the URIs of its cells; of a file, none.
    """

    uri: str
    path: str
    version: int | None
    revision: int = 1
    cells: Sequence[types.NotebookCell] = ()

    @property
    def is_notebook(self) -> bool:
        return self.path.endswith(NOTEBOOK)

    def uri_of(self, cell: int | None) -> str:
        """Return the URI of a cell, by its number from 1; without one, that of the document."""
        return self.cells[cell - 1].document if cell is not None and cell <= len(self.cells) else self.uri


@dataclass
class Documents:
    """All that is open, by URI; `encoding` is how the editor counts in a line."""

    encoding: str = types.PositionEncodingKind.Utf16.value
    _documents: dict[str, Document] = field(default_factory=dict[str, Document])
    _texts: dict[str, str] = field(default_factory=dict[str, str])

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def open(
        self, uri: str, version: int | None, texts: Iterable[types.TextDocumentItem], cells: Sequence[types.NotebookCell] = ()
    ) -> Document:
        """Take a file, or a notebook with its cells."""
        self._texts.update((each.uri, each.text) for each in texts)
        self._documents[uri] = Document(uri, _path(uri, notebook=bool(cells)), version, cells=cells)
        return self._documents[uri]

    def change(self, uri: str, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Change the text of a file or of a cell."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                text = Text(self._texts[uri], self.encoding)
                start, end = text.offset(change.range.start), text.offset(change.range.end)
                self._texts[uri] = text.text[:start] + change.text + text.text[end:]
            else:
                self._texts[uri] = change.text

    def changed(self, uri: str, version: int | None) -> Document:
        """Count a change of a document."""
        document = self._documents[uri]
        document.version = version
        document.revision += 1
        return document

    def rearrange(
        self, uri: str, cells: Sequence[types.NotebookCell], opened: Iterable[types.TextDocumentItem], closed: Iterable[str]
    ) -> None:
        """Give a notebook other cells."""
        self._documents[uri].cells = list(cells)
        self._texts.update((each.uri, each.text) for each in opened)
        self._forget(closed)

    def close(self, uri: str) -> Document | None:
        """Forget a document."""
        document = self._documents.pop(uri, None)
        self._forget([uri, *(cell.document for cell in document.cells)] if document else ())
        return document

    def find(self, uri: str) -> tuple[Document, int | None] | None:
        """Return the document of a URI, with the number of the cell where it is that of one."""
        if uri in self._documents:
            return self._documents[uri], None
        for document in self._documents.values():
            for number, cell in enumerate(document.cells, 1):
                if cell.document == uri:
                    return document, number
        return None

    def at(self, path: str) -> Document | None:
        """Return the document that lies at a path."""
        real = os.path.realpath(path)
        return next((each for each in self._documents.values() if os.path.realpath(each.path) == real), None)

    def text(self, uri: str) -> Text:
        """Return the text of a file or of a cell."""
        return Text(self._texts[uri], self.encoding)

    def data(self, document: Document) -> bytes:
        """Return the bytes that the document would be saved as."""
        if not document.is_notebook:
            return _encoded(self._texts[document.uri])
        cells = [
            {
                "cell_type": "code" if cell.kind is types.NotebookCellKind.Code else "markdown",
                "metadata": {},
                "source": self._texts[cell.document],
                **({"execution_count": None, "outputs": []} if cell.kind is types.NotebookCellKind.Code else {}),
            }
            for cell in document.cells
        ]
        notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(notebook, ensure_ascii=False).encode(errors="replace")

    def buffers(self) -> Mapping[str, bytes]:
        """Return what takes the place of the files on disk."""
        return {document.path: self.data(document) for document in self._documents.values()}

    def _forget(self, uris: Iterable[str]) -> None:
        for uri in uris:
            self._texts.pop(uri, None)


def _path(uri: str, *, notebook: bool) -> str:
    """Return the path of a document; one that was never saved lies in the working folder."""
    suffix = NOTEBOOK if notebook else ".py"
    if uri_scheme(uri) == "file" and (path := to_fs_path(uri)):
        return path
    name = "".join(each if each.isalnum() else "_" for each in uri.rpartition(":")[2].rpartition("/")[2]) or "untitled"
    return os.path.abspath(name + suffix)


def _encoded(text: str) -> bytes:
    """Return the bytes of a text in the encoding that it declares; should that not do, the checker says why."""
    data = text.encode(errors="replace")
    try:
        return text.encode(encoding_of(data))
    except (LookupError, UnicodeError, SourceError):
        return data
