"""What a run prints, in each of the formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codemods.check import Run

PEOPLE = ("text", "concise")
FORMATS = (*PEOPLE, "json", "github", "gitlab", "junit", "sarif")


def render(run: Run, output_format: str, *, color: bool = False, width: int | None = None, statistics: bool = False) -> str:
    """Return the report in one of the `FORMATS`, with a final newline.

    Args:
        run: what there is to report.
        output_format: its form.
        color: highlight with terminal escapes, in the formats for people.
        width: columns to fit the shown code into, in the format that shows it; None: as many as are good to read.
        statistics: count the findings of each code instead of listing them, in the formats for people.
    """
    if statistics:
        from codemods.report.statistics import render as render_statistics

        return render_statistics(run)
    if output_format in PEOPLE:
        from codemods.report.frame import WIDEST
        from codemods.report.text import render as render_text

        return render_text(run, color=color, frames=output_format == "text", width=min(width or WIDEST, WIDEST))
    return import_module(f"codemods.report.{output_format}").render(run)
