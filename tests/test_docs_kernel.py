"""The pages about the front door: every Python block of each is executed in order, and prints, or raises, what is shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from shapecheck import ContractError

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output(code: str, namespace: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, namespace)
        except ContractError as error:
            print(f"ContractError: {error}")
    return printed.getvalue()


@pytest.mark.parametrize("page", ["sharding.md", "training.md"])
def test_the_examples_do_what_the_page_shows(page: str) -> None:
    namespace: dict[str, Any] = {"__name__": page}
    blocks = BLOCK.findall((DOCS / page).read_text())
    assert blocks
    for (language, code), (following, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            assert output(code, namespace) == (shown if following == "text" else "")
