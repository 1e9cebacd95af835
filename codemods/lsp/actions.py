"""What an editor offers to do about a finding; the edit itself is made when it is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path

from codemods.lsp.diagnostics import NAME, Told
from codemods.lsp.documents import Document, Documents
from codemods.lsp.session import Ask, Edited, Fix, Ignore
from codemods.promises import Key

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.{NAME}"
KINDS = (types.CodeActionKind.QuickFix, FIX_ALL)


def offered(told: Iterable[Told], document: Document, cell: int | None, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return the actions for a range of a document."""
    told = [each for each in told if each.repair is not None]
    here = [each for each in told if each.cell == cell and _overlap(each.diagnostic.range, params.range)]
    actions = [*_fixes(here, document), *_ignores(here, document)]
    if any(each.repair is not None and each.repair.safe for each in told):
        actions.append(types.CodeAction("shapecheck: fix all that is safe to fix", kind=FIX_ALL, data=_data("fix all", document)))
    only = params.context.only
    return [
        each
        for each in actions
        if only is None or any(_is_kind(str(each.kind and _text(each.kind)), _text(kind)) for kind in only)
    ]


def question(data: Any, ask: Ask) -> Fix | Ignore:
    """Return what the worker is to be asked for, from what an action carries."""
    match data:
        case {"do": "fix all"}:
            return Fix(ask)
        case {"do": "fix", "key": [*key]}:
            return Fix(ask, Key(*key))
        case {"do": "ignore", "key": [*key]}:
            return Ignore(ask, Key(*key))
        case _:
            raise ValueError(f"no action of shapecheck: {data!r}")


def workspace_edit(edited: Edited, documents: Documents, *, versioned: bool) -> types.WorkspaceEdit:
    """Return the edits as the editor is to make them: if it can tell, only to the text that they were made for."""
    changes: dict[str, Sequence[types.TextEdit]] = {}
    versions: dict[str, int | None] = {}
    for (path, cell), edits in edited.edits.items():
        document = documents.at(path)
        uri = from_fs_path(path) or path if document is None else document.uri_of(cell)
        changes[uri] = edits
        versions[uri] = document.version if document is not None and cell is None else None
    if not versioned:
        return types.WorkspaceEdit(changes=changes)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), list(edits))
            for uri, edits in changes.items()
        ]
    )


def _fixes(told: Iterable[Told], document: Document) -> Iterator[types.CodeAction]:
    for each in told:
        if each.repair is not None and each.repair.message is not None:
            yield types.CodeAction(
                f"{each.repair.message} ({each.diagnostic.code}{'' if each.repair.safe else ', unsafe'})",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[each.diagnostic],
                is_preferred=each.repair.safe,
                data=_data("fix", document, each.repair.key),
            )


def _ignores(told: Iterable[Told], document: Document) -> Iterator[types.CodeAction]:
    for each in told:
        if each.repair is not None and each.diagnostic.tags is None:  # to ignore that a comment is unused makes no sense
            yield types.CodeAction(
                f"ignore here: # shapecheck: ignore[{each.diagnostic.code}]",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[each.diagnostic],
                data=_data("ignore", document, each.repair.key),
            )


def _data(do: str, document: Document, key: Key | None = None) -> Mapping[str, Any]:
    return {"do": do, "uri": document.uri, "revision": document.revision, **({"key": list(key)} if key else {})}


def _overlap(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _is_kind(kind: str, wanted: str) -> bool:
    """Say whether a kind of action is the one that is wanted, or below it."""
    return kind == wanted or kind.startswith(f"{wanted}.") or wanted == ""


def _text(kind: types.CodeActionKind | str) -> str:
    return kind.value if isinstance(kind, types.CodeActionKind) else kind
