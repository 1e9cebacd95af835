"""What MkDocs does not know of this repository: pages that stand outside of `docs/`, and the many pages of the rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""The pages outside of `docs/`, with their names on the site."""
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Put the pages of a folder in place of its name; leave out a page that is not there yet."""
    assert config.nav is not None
    config.nav = [entry for each in config.nav for entry in _entries(each, Path(config.docs_dir))]


def _entries(entry: Any, docs: Path) -> list[Any]:
    match entry:
        case dict():
            ((title, inside),) = entry.items()
            if isinstance(inside, list):
                return [{title: [each for item in inside for each in _entries(item, docs)]}]
            return [entry] if inside in OUTSIDE.values() or (docs / inside).exists() else []
        case str() if entry.endswith("/"):
            folder = docs / entry
            return [{"Each rule": [page.relative_to(docs).as_posix() for page in sorted(folder.glob("*.md"))]}]
        case _:
            return [entry]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that stand outside of `docs/`."""
    for source, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages; what is no page is not linked."""
    names = {name: source for source, name in OUTSIDE.items()}
    source = ROOT / names[page.file.src_uri] if page.file.src_uri in names else Path(config.docs_dir) / page.file.src_uri

    def linked(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = (source.parent / target).resolve()
        if path.is_relative_to(config.docs_dir):
            name = path.relative_to(config.docs_dir).as_posix()
        elif (outside := path.relative_to(ROOT).as_posix()) in OUTSIDE:
            name = OUTSIDE[outside]
        else:
            return text
        above = "../" * page.file.src_uri.count("/")
        return f"[{text}]({above}{name}{anchor or ''})"

    return _LINK.sub(linked, markdown)
