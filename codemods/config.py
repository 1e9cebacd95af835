"""Settings of a run: `[tool.shapecheck]` of the nearest pyproject.toml, overlaid with the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from codemods.codes import HINTS, code_of, known_codes

if TYPE_CHECKING:
    from shapecheck.pyproject import Table


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
        baseline: absolute path of the file of findings that are accepted; empty: there is none.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    unproven: bool = False
    strict: bool = False
    baseline: str = ""

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
        try:
            with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
                if b"shapecheck" not in file.read():
                    return None
        except OSError:  # mostly: there is none
            return None
        from shapecheck.pyproject import Table, TableError  # takes longer than a run without call sites

        try:
            table = Table.of(folder)
            return None if table is None else self._overlay(_settings(table))
        except TableError as error:
            raise SettingsError(error.path, error.line, error.message) from None


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


def _settings(table: Table) -> Settings:
    """Turn a table into settings; every key is that of a field, and has its type."""
    checks: Mapping[str, Callable[[str], str]] = {
        "select": code_prefix,
        "ignore": code_prefix,
        "chips": chip_name,
        "exclude": lambda pattern: exclusion(pattern, os.path.dirname(table.path)),
    }
    values: dict[str, Any] = {}
    for key, value in table.settings.items():
        if key not in Settings._fields:
            raise table.error(key, f"has no key {key!r}; it has: {', '.join(Settings._fields)}")
        if key in checks:
            values[key] = table.strings(key, checks[key])
        elif key == "baseline":
            values[key] = _path(table, key, value)
        elif isinstance(value, bool):
            values[key] = value
        else:
            raise table.error(key, f"{key} must be true or false, not {value!r}")
    return Settings(**values)


def _path(table: Table, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise table.error(key, f"{key} must be the path of a file, not {value!r}")
    return os.path.abspath(os.path.join(os.path.dirname(table.path), value))
