"""`[tool.shapecheck]` of a pyproject.toml: found, read, and its strings checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PYPROJECT = "pyproject.toml"
_TABLE = re.compile(r"""\s*(?:\[?\s*tool\s*\.\s*)?["']?shapecheck\b""")
_AT_LINE = re.compile(r"at line (\d+)")


class TableError(ValueError):
    """A pyproject.toml that cannot be read, or that holds something that is no setting."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message


@dataclass(frozen=True)
class Table:
    """The table of one file.

    Attributes:
        path: the file.
        text: what is in it.
        settings: what the table sets.
    """

    path: str
    text: str
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, folder: str) -> Table | None:
        """Return that of the pyproject.toml in this very folder, if there is one.

        Raises:
            TableError: it cannot be read, or is none.
        """
        path = os.path.join(folder, _PYPROJECT)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:  # mostly: there is none
            return None
        return _table(path, data) if b"shapecheck" in data else None

    @classmethod
    def nearest(cls, folder: str) -> Table | None:
        """Return that at the folder or above it, if there is one.

        Raises:
            TableError: it cannot be read, or is none.
        """
        here = Path(folder).absolute()
        return next((table for each in (here, *here.parents) if (table := cls.of(str(each)))), None)

    def strings(self, key: str, check: Callable[[str], str]) -> tuple[str, ...]:
        """Return the strings that a key is set to, each as `check` returns it; none where it is not set.

        Raises:
            TableError: it is set to something else, or `check` raises a ValueError.
        """
        value = self.settings.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
            raise self.error(key, f"{key} must be an array of strings, not {value!r}")
        try:
            return tuple(check(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        except ValueError as error:
            raise self.error(key, f"{key}: {error}") from None

    def error(self, key: str, message: str) -> TableError:
        """Return the error that tells what is wrong with a key."""
        return TableError(self.path, _line_of(self.text, key), f"[tool.shapecheck] {message}")


def _table(path: str, data: bytes) -> Table | None:
    import tomllib

    try:
        text = data.decode()
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise TableError(path, data.count(b"\n", 0, error.start) + 1, f"is not UTF-8: {error.reason}") from None
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        raise TableError(path, int(found[1]) if found else 1, f"is not TOML: {error}") from None
    tool = document.get("tool", {})
    table = tool.get("shapecheck") if isinstance(tool, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if table is None:
        return None
    if not isinstance(table, dict):
        raise TableError(path, _line_of(text, "shapecheck"), "tool.shapecheck must be a table")
    return Table(path, text, table)  # pyright: ignore[reportUnknownArgumentType]


def _line_of(text: str, key: str) -> int:
    """Return the line that sets a key of the table, as far as it is written in the usual way: else that of the table's name."""
    lines = text.splitlines()
    table = next((number for number, line in enumerate(lines, 1) if _TABLE.match(line)), 1)
    named = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    return next((number for number, line in enumerate(lines[table - 1 :], table) if named.match(line)), table)
