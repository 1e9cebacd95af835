"""By what a text shows that it is about one of the known kernels."""

from __future__ import annotations

import re
from functools import cache

from codemods.callees import CALLEES
from codemods.diagnose.pasted import Frame
from shapecheck.compiler.kernels import KERNELS
from shapecheck.contract import Contract

_ANY = re.compile(r"(?:tpu_)?custom[-_]call(?:\.\d+)?|closed_call(?:\.\d+)?")
_ORIGIN = re.compile(r'op_name="([^"]*)"')
_SEPARATORS = re.compile(r"[/\\]")
_OURS = "kernel."  # front doors raise errors of their own; below one on the stack is the kernel itself


def is_of(contract: Contract, frame: Frame) -> bool:
    """Say whether a frame of a traceback is in the code of the kernel."""
    return any(module in frame.module for module in _modules(contract.name))


def names(contract: Contract, text: str) -> bool:
    """Say whether a message names the kernel, as Pallas or the compiler does; a name may be broken over two lines."""
    pattern = _shown(contract.name)
    return pattern is not None and any(pattern.search(each) for each in (text, text.replace("\n", "")))


def is_operation(contract: Contract, name: str, message: str) -> bool:
    """Say whether an operation is the kernel, by its name or, where that tells nothing, by where it comes from."""
    pattern = _shown(contract.name)
    if pattern is None:
        path = _SEPARATORS.sub(".", message)
        return any(module in path for module in _modules(contract.name))
    if pattern.fullmatch(name):
        return True
    origin = _ORIGIN.search(message) if _ANY.fullmatch(name) else None
    return origin is not None and pattern.search(origin[1]) is not None


@cache
def _modules(callee: str) -> tuple[str, ...]:
    """Return the modules of the kernel, each with a dot at both ends."""
    paths = (path for path, each in CALLEES.items() if each.contract.name == callee and not path.startswith(_OURS))
    return tuple(dict.fromkeys(f".{path.rpartition('.')[0]}." for path in paths))


@cache
def _shown(callee: str) -> re.Pattern[str] | None:
    kernel = KERNELS.get(callee)
    return re.compile(rf"(?<![\w.])(?:{'|'.join(kernel.shown_as)})(?!\w)") if kernel else None
