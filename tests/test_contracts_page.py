"""Every block of docs/contracts.md, executed. `python -m tests.test_contracts_page` brings its outputs up to date."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "contracts.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def outputs() -> dict[int, str]:
    """Execute the Python blocks in one namespace; return what each prints and raises, by where the block after it begins."""
    namespace: dict[str, Any] = {"__name__": "page"}
    found = list(BLOCK.finditer(PAGE.read_text()))
    return {after.start(2): executed(block[2], namespace) for block, after in itertools.pairwise(found) if block[1] == "python"}


def executed(source: str, namespace: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(source, str(PAGE), "exec", dont_inherit=True), namespace)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return printed.getvalue()


def shown() -> list[Any]:
    return [block for block in BLOCK.finditer(PAGE.read_text()) if block[1] == "text"]


@pytest.mark.parametrize("position", range(len(shown())))
def test_a_block_prints_what_the_page_says(position: int) -> None:
    block = shown()[position]
    assert block[2] == outputs()[block.start(2)]


def update() -> None:
    text = PAGE.read_text()
    for block in reversed(shown()):
        text = text[: block.start(2)] + outputs()[block.start(2)] + text[block.end(2) :]
    PAGE.write_text(text)


if __name__ == "__main__":
    update()
