"""The settings of the editor, which go on top of those of the project as the command line does."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from codemods.arguments import overlay
from codemods.config import Settings, chip_name, code_prefix

_LISTS: Mapping[str, Callable[[str], str]] = {"chips": chip_name, "select": code_prefix, "ignore": code_prefix}
_SECTION = "shapecheck"


class EditorSettings(NamedTuple):
    """What an editor may set; empty: nothing."""

    chips: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unproven: bool = False

    def overlay(self, settings: Settings) -> Settings:
        """Return the settings of a project with these on top."""
        return overlay(Namespace(**self._asdict(), exclude=(), strict=False), settings)


def read_settings(*given: Any) -> tuple[EditorSettings, list[str]]:
    """Return the settings that an editor sends, of which later ones win, and what is wrong with them, which is left out.

    They may stand in a section called `shapecheck`, as some editors send it.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for each in given:
        table = each[_SECTION] if isinstance(each, Mapping) and _SECTION in each else each
        if table is None:
            continue
        if not isinstance(table, Mapping):
            wrong.append(f"must be an object, not {table!r}")
            continue
        for key, value in table.items():
            try:
                values[key] = _value(key, value)
            except ValueError as error:
                wrong.append(f"{key}: {error}")
    return EditorSettings(**{key: value for key, value in values.items() if value is not None}), wrong


def _value(key: str, value: Any) -> Any:
    if key not in EditorSettings._fields:
        raise ValueError(f"there is no such setting; there are: {', '.join(EditorSettings._fields)}")
    if value is None:
        return None
    if key in _LISTS:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise ValueError(f"must be an array of strings, not {value!r}")
        return tuple(map(_LISTS[key], value))
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value
