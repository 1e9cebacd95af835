"""Scripts that complete the command line in a shell, made by shtab from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from codemods.codes import known_codes, names
from shapecheck.chip import CHIPS

SHELLS = ("bash", "zsh", "fish")
_FILES = ("CONFIG", "FILE", "PATH")  # what stands for the name of a file in the help


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for one of the `SHELLS`; a process ends here that has no shtab."""
    try:
        import shtab
    except ImportError:
        parser.error("--completion needs shtab: pip install 'shapecheck-pallas[completion]'")
    for action in _actions(parser):
        if words := _words().get(action.dest):
            action.choices = words  # which would be wrong for parsing: it takes lists of them
        elif action.metavar in _FILES:
            vars(action)["complete"] = shtab.FILE
    return shtab.complete(parser, shell)


def _words() -> Mapping[str, Sequence[str]]:
    codes = known_codes()
    selectable = sorted({*codes, *(code[:3] for code in codes)})
    return {
        "select": selectable,
        "ignore": selectable,
        "codes": [*codes, *names().values()],
        "chips": [chip.name for chip in CHIPS],
    }


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        yield action
        if action.dest == "command" and action.choices:
            for command in dict.fromkeys(action.choices.values()):  # pyright: ignore
                yield from _actions(command)  # pyright: ignore
