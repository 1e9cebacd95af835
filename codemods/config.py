"""Settings of a run: `[tool.shapecheck]` of the nearest pyproject.toml, overlaid with the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from codemods.codes import HINTS, code_of, known_codes
from codemods.disk import read

_PYPROJECT = "pyproject.toml"
_TABLE = re.compile(r"""\s*(?:\[?\s*tool\s*\.\s*)?["']?shapecheck\b""")
_AT_LINE = re.compile(r"at line (\d+)")


class ConfigError(Exception):
    """A setting that cannot be used; the message names the file and the key."""


class SettingsError(ConfigError):
    """A pyproject.toml that holds something that is no setting."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message


class Settings(NamedTuple):
    """What applies to one file.

    Attributes:
        select: prefixes of the codes to report; empty: all but the hints.
        ignore: prefixes of codes not to report; the longer prefix wins over `select`.
        chips: names of the TPUs the code runs on.
        exclude: patterns as `exclusion` returns them.
        unproven: report what cannot be told as well.
        strict: report it, and let it count for the exit status.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    unproven: bool = False
    strict: bool = False

    def reports(self, code: str) -> bool:
        """Say whether findings of this code are reported."""
        ignore = self.ignore if self.select else (*self.ignore, *HINTS)
        return _longest(self.select or ("SC",), code) > _longest(ignore, code)


class Configuration:
    """Finds the settings of each folder; `overlay` puts the command line on top of them."""

    def __init__(self, overlay: Callable[[Settings], Settings] = lambda settings: settings) -> None:
        self._overlay = overlay
        self._nearest: dict[str, Settings] = {}

    def nearest(self, folder: str) -> Settings:
        """Return the settings of the nearest pyproject.toml with a `[tool.shapecheck]`, at `folder` or above it.

        Raises:
            SettingsError: the table holds something that is no setting.
        """
        if folder not in self._nearest:
            found = next((own for each in parents(folder) if (own := self.own(each))), None)
            self._nearest[folder] = found or self._overlay(Settings())
        return self._nearest[folder]

    def own(self, folder: str) -> Settings | None:
        """Return the settings that the pyproject.toml of this very folder states, if it does.

        Raises:
            SettingsError: the table holds something that is no setting.
        """
        path = os.path.join(folder, _PYPROJECT)
        try:
            data, _ = read(path)
        except OSError:  # mostly: there is none
            return None
        table = _table(path, data) if b"shapecheck" in data else None
        return None if table is None else self._overlay(_settings(path, data, table))


def parents(folder: str) -> Iterator[str]:
    """Yield the folder and those above it, as absolute paths, up to the root."""
    folder = os.path.abspath(folder)
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def exclusion(pattern: str, base: str) -> str:
    """Return a pattern as `Settings.exclude` holds it: a name matches anywhere, a path only at its place under `base`."""
    import glob

    pattern = pattern.rstrip("/")
    return os.path.join(glob.escape(os.path.abspath(base)), pattern.removeprefix("./")) if "/" in pattern else pattern


def code_prefix(text: str) -> str:
    """Return a prefix of rule codes, checked.

    Raises:
        ValueError: no code starts with it.
    """
    if not text or not any(code.startswith(text) for code in known_codes()):
        meant = f" (did you mean {code}?)" if (code := code_of(text)) else ""
        raise ValueError(f"{text!r} is no code, nor the beginning of one{meant}; known: {', '.join(known_codes())}")
    return text


def chip_name(text: str) -> str:
    """Return the name of a chip, checked.

    Raises:
        ValueError: there is no such chip.
    """
    from shapecheck.chip import chip_of

    return chip_of(text).name


def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)


def _table(path: str, data: bytes) -> Mapping[str, Any] | None:
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise SettingsError(path, data.count(b"\n", 0, error.start) + 1, f"is not UTF-8: {error.reason}") from None
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        raise SettingsError(path, int(found[1]) if found else 1, f"is not TOML: {error}") from None
    tool = document.get("tool", {})
    table = tool.get("shapecheck") if isinstance(tool, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if table is not None and not isinstance(table, dict):
        raise SettingsError(path, _line_of(data, "shapecheck"), "tool.shapecheck must be a table")
    return table  # pyright: ignore[reportUnknownVariableType]


def _settings(path: str, data: bytes, table: Mapping[str, Any]) -> Settings:
    """Turn a table into settings; every key is that of a field, and has its type."""
    checks: Mapping[str, Callable[[str], str]] = {
        "select": code_prefix,
        "ignore": code_prefix,
        "chips": chip_name,
        "exclude": lambda pattern: exclusion(pattern, os.path.dirname(path)),
    }
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            if key not in Settings._fields:
                raise ValueError(f"has no key {key!r}; it has: {', '.join(Settings._fields)}")
            if key in checks:
                values[key] = _strings(key, value, checks[key])
            elif isinstance(value, bool):
                values[key] = value
            else:
                raise ValueError(f"{key} must be true or false, not {value!r}")
        except ValueError as error:
            raise SettingsError(path, _line_of(data, key), f"[tool.shapecheck] {error}") from None
    return Settings(**values)


def _strings(key: str, value: Any, check: Callable[[str], str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
        raise ValueError(f"{key} must be an array of strings, not {value!r}")
    try:
        return tuple(check(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _line_of(data: bytes, key: str) -> int:
    """Return the line that sets a key of the table, as far as it is written in the usual way: else that of the table's name."""
    lines = data.decode().splitlines()
    table = next((number for number, line in enumerate(lines, 1) if _TABLE.match(line)), 1)
    named = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    return next((number for number, line in enumerate(lines[table - 1 :], table) if named.match(line)), table)
