"""The plugin of flake8: what `shapecheck check` says of a file, from the tree that flake8 has parsed."""

from __future__ import annotations

import ast
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from codemods.words import Words

# flake8 loads this for every run, and calls it for every file: what only a file with a kernel needs is imported for that file.
if TYPE_CHECKING:
    from codemods.check import Examination
    from codemods.config import Settings
    from codemods.files import Project
    from codemods.source import Source

_WORDS = Words()
_WHOLE = "SC"


class Plugin:
    """Checks one file."""

    name = "shapecheck"
    _chips: ClassVar[tuple[str, ...]] = ()
    _unproven: ClassVar[bool] = False
    _selected: ClassVar[tuple[str, ...]] = ()

    def __init__(self, tree: ast.Module, filename: str, lines: Sequence[str]) -> None:
        self._tree = tree
        self._filename = filename
        self._lines = lines

    @staticmethod
    def add_options(parser: Any) -> None:
        """Add what flake8 itself has no option for; all of it can stand in its configuration file."""
        parser.add_option(
            "--shapecheck-chips",
            metavar="CHIP",
            default="",
            parse_from_config=True,
            comma_separated_list=True,
            help="the TPUs that the code runs on, e.g. v5p; in place of those that [tool.shapecheck] names",
        )
        parser.add_option(
            "--shapecheck-unproven",
            action="store_true",
            default=False,
            parse_from_config=True,
            help="report also what cannot be told",
        )

    @classmethod
    def parse_options(cls, options: Namespace) -> None:
        """Take the options of a run.

        Raises:
            ExecutionError: there is no such chip.
        """
        if options.shapecheck_chips:
            from codemods.config import chip_name

            try:
                cls._chips = tuple(map(chip_name, options.shapecheck_chips))
            except ValueError as error:
                from flake8.exceptions import ExecutionError

                raise ExecutionError(f"--shapecheck-chips: {error}") from None
        cls._unproven = options.shapecheck_unproven
        selected = [*(options.select or ()), *(options.extend_select or ())]
        cls._selected = tuple(each for each in selected if each.startswith(_WHOLE) and each != _WHOLE)

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Yield the line, the column from 0 and the text of each finding, in order."""
        text = "".join(self._lines).encode(errors="replace")
        if _WORDS.occur_in(text):
            for line, column, message in self._findings(text):
                yield line, column, message, type(self)

    def _findings(self, text: bytes) -> Iterator[tuple[int, int, str]]:
        from codemods.codes import FILE_ERROR, OWN_CODES
        from codemods.config import ConfigError, Configuration
        from codemods.files import left_out, project_of, shown
        from codemods.report.wording import sentence
        from codemods.source import Source, SourceError

        failure = f"{FILE_ERROR} {OWN_CODES[FILE_ERROR].name}"
        try:
            project = project_of(os.path.dirname(self._filename), Configuration(self._overlaid))
            if left_out(self._filename, project.settings):
                return
            source = Source(shown(self._filename), text, "utf-8")  # flake8 has decoded it, whatever it declares
            source.tree = self._tree
            examination = _examined(source, project)
        except ConfigError as error:
            yield 1, 0, f"{failure}: {error}"
        except SourceError as error:
            yield error.line, 0, f"{failure}: {error}"
        else:
            for each in examination.errors:
                yield each.line, 0, f"{failure}: {each.message}"
            for finding in examination.findings:
                yield finding.span.line, finding.span.column - 1, f"{finding.code} {finding.name}: {sentence(finding)}"

    def _overlaid(self, settings: Settings) -> Settings:
        """Put the options on top of what the project states; a code that flake8 is told to select is reported, be it a hint."""
        from codemods.codes import HINTS

        select, ignore = settings.select, settings.ignore
        if self._selected:
            ignore = ignore if select else (*ignore, *(each for each in HINTS if each not in self._selected))
            select = (*(select or (_WHOLE,)), *self._selected)
        return settings._replace(
            select=select, ignore=ignore, chips=self._chips or settings.chips, unproven=self._unproven or settings.unproven
        )


def _examined(source: Source, project: Project) -> Examination:
    from codemods.analyse import analyse
    from codemods.check import Examination, admits, examine

    if not admits(source):
        return Examination(project, {}, [], [])
    asked = project.settings.unproven or project.settings.strict
    return examine(project, {source.path: source}, analyse, unproven=asked, noqa=False)  # flake8 obeys that itself
