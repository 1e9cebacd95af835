"""By what a text shows that it is about one of the known kernels."""

from __future__ import annotations

import re
from functools import cache

from codemods.callees import CALLEES
from codemods.diagnose.pasted import Frame
from shapecheck.compiler.kernels import KERNELS
from shapecheck.contract import Contract

_OURS = "kernel."  # front doors raise errors of their own; below one on the stack is the kernel itself


def is_of(contract: Contract, frame: Frame) -> bool:
    """Say whether a frame of a traceback is in the code of the kernel."""
    return any(module in frame.module for module in _modules(contract.name))


def names(contract: Contract, text: str) -> bool:
    """Say whether a message names the kernel, as Pallas or the compiler does; a name may be broken over two lines."""
    pattern = _shown(contract.name)
    return pattern is not None and any(pattern.search(each) for each in (text, text.replace("\n", "")))


def is_name(contract: Contract, word: str) -> bool:
    """Say whether the compiler calls the kernel so."""
    pattern = _shown(contract.name)
    return pattern is not None and pattern.fullmatch(word) is not None


@cache
def _modules(callee: str) -> tuple[str, ...]:
    """Return the modules of the kernel, each with a dot at both ends."""
    paths = (path for path, each in CALLEES.items() if each.contract.name == callee and not path.startswith(_OURS))
    return tuple(dict.fromkeys(f".{path.rpartition('.')[0]}." for path in paths))


@cache
def _shown(callee: str) -> re.Pattern[str] | None:
    kernel = KERNELS.get(callee)
    return re.compile(rf"(?<![\w.])(?:{'|'.join(kernel.shown_as)})(?!\w)") if kernel else None
