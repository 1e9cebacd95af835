"""A picture of plans: the vector memory that each block takes, with what there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from codemods.config import ConfigError
from shapecheck.planner import Plan
from shapecheck.rule import Verdict

_MIB = 2**20
_MARKS = {Verdict.PROVEN: ("o", "legal"), Verdict.UNPROVEN: ("d", "cannot be told"), Verdict.VIOLATED: ("x", "breaks a rule")}


def draw(plans: Sequence[Plan], path: str) -> None:
    """Draw plans into a file, whose ending says in which format.

    Raises:
        ConfigError: matplotlib is not there, or cannot write that.
    """
    try:
        figures: Any = import_module("matplotlib.figure")  # without pyplot, no screen is needed
    except ImportError:
        raise ConfigError("--plot needs matplotlib: pip install 'shapecheck-pallas[plot]'") from None
    figure = figures.Figure(figsize=(7, 3.5 * len(plans)), layout="constrained")
    for axes, each in zip(figure.subplots(len(plans), squeeze=False)[:, 0], plans, strict=True):
        _draw(axes, each)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be drawn: {error}") from None


def _draw(axes: Any, each: Plan) -> None:
    options = sorted((option for option in each.options if option.megacore_mode is None), key=lambda option: option.vmem_bytes)
    blocks = [option.pages_per_compute_block for option in options]
    least, most = ([option.vmem_bytes[bound] / _MIB for option in options] for bound in (0, 1))
    axes.fill_between(blocks, least, most, alpha=0.3, label="VMEM that it takes")
    for verdict, (mark, label) in _MARKS.items():
        if shown := [position for position, option in enumerate(options) if option.verdict is verdict]:
            axes.plot([blocks[position] for position in shown], [most[position] for position in shown], mark, label=label)
    axes.axhline(each.chip.vmem_bytes / _MIB, linestyle="--", color="black", label=f"VMEM of {each.chip.name}")
    sizes = each.geometry
    title = f"{each.chip.name}: pages of {sizes['page_size']} tokens, {sizes['pages_dtype']}, head_dim {sizes['head_dim']}"
    axes.set(xlabel="pages_per_compute_block", ylabel="MiB", xscale="log", yscale="log", title=title)
    axes.legend()
