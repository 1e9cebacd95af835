"""What others write where a call breaks a rule: JAX, Pallas, the TPU compiler, and wrappers of the kernels."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shapecheck.dtypes import DTYPES, SHORT_NAMES

ANYTHING, KERNEL = "...", "kernel"
_FARTHEST = 6000  # characters that `{...}` may stand for: compilers quote the operation, and where it comes from
_HOLE = re.compile(r"\{([a-z_0-9.]+)\}")
_DTYPE = "|".join(
    sorted(
        {*DTYPES, *SHORT_NAMES, r"f8E\w+?"} - {"half", "float", "single", "double", "short", "int", "long"}, key=len, reverse=True
    )
)
_NUMBER = r"-?\d{1,15}%s(?:\.\d{1,15}%s)%s"


class Seen(enum.Enum):
    """What must be seen beside the words, so that they are known to be about the kernel."""

    WORDS = enum.auto()  # nothing: nobody else says so; unless a traceback shows that somebody did
    RAISED = enum.auto()  # a traceback whose last frame is the kernel's: they are Python's words
    CALLED = enum.auto()  # a traceback whose last own line calls the kernel: what it hands over may be at fault
    NAMED = enum.auto()  # the kernel, by a frame of the traceback or in the message: they are said of every kernel


@dataclass(frozen=True)
class Symptom:
    """A text by which a call that breaks a rule shows itself.

    Attributes:
        text: the words, of which the first must not be a value. `{pages_per_sequence}` stands for the value of that name, of a
            dtype or shape if the name ends so; `{kernel}` for what the compiler calls the kernel; `{...}` for anything. Spaces
            and ends of lines do not count, so that a text may be wrapped; a line of source before an error is part of it.
        seen: what must be seen besides.
        values: what else is known then; a relation, what its expression comes to.
        argument: the argument that it is about, where that is not the rule's.
    """

    text: str
    seen: Seen = Seen.WORDS
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    argument: str = ""

    def __hash__(self) -> int:
        return hash((self.text, self.seen))

    @cached_property
    def anchor(self) -> str:
        """The words before the first value, without spaces: what to look for."""
        return _squeezed(_HOLE.split(self.text)[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the values in the text."""
        return tuple(name for name in _HOLE.findall(self.text) if name not in (ANYTHING, KERNEL))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The text as a pattern, for text without spaces; made when it is first needed."""
        words, *rest = _HOLE.split(self.text)
        parts = [re.escape(_squeezed(words))]
        for name, words in zip(rest[::2], rest[1::2], strict=True):
            parts += [_hole(name, last=not words.strip()), re.escape(_squeezed(words))]
        return re.compile("".join(parts))

    def read(self, name: str, text: str) -> Any:
        """Return the value that a text stands for, where that of a name is expected."""
        if name.endswith("_dtype"):
            spelled = text.lower().replace("f8e", "float8_e")
            return SHORT_NAMES.get(spelled, spelled)
        if name.endswith("_shape"):
            return tuple(int(size) for size in text.strip("()").split(",") if size)
        return float(text) if "." in text else int(text)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _hole(name: str, *, last: bool) -> str:
    if name == ANYTHING:
        return f".{{0,{_FARTHEST}}}?"
    if name == KERNEL:
        return r"(?P<kernel>[\w.-]{1,100})"
    if name.endswith("_dtype"):
        return f"(?P<{name}>{_DTYPE})"
    if name.endswith("_shape"):
        return rf"(?P<{name}>\([\d,]{{0,200}}\))"
    # What ends a text is as long as it can be; before more words, as short: `24.` may be followed by a date.
    return f"(?P<{name}>{_NUMBER % (('', '', '?') if last else ('?', '?', '??'))})"


# What several kernels share: what Pallas says of a block of q or of the result, and the TPU compiler of memory.
BLOCK_SHAPE = (
    "The Pallas TPU lowering currently requires that the last two dimensions of your block shape are divisible by 8 and 128"
    " respectively, or be equal to the respective dimensions of the overall array."
    " Block spec for {...} in pallas_call {kernel} at {...} has block shape "
)
NO_BROADCAST = (
    Symptom("'vector.broadcast' op failed to verify that source operand and result have same element type", Seen.NAMED),
)
SMEM_FULL = (
    Symptom("Ran out of memory in memory space smem", Seen.NAMED),
    Symptom("would exceed memory (size={smem_bytes}) {...}space=smem", Seen.NAMED),
)
VMEM_FULL = (
    Symptom("Ran out of memory in memory space vmem while allocating on stack for %{kernel} = "),
    Symptom("Ran out of memory in memory space vmem. Used", Seen.NAMED),
)
HBM_FULL = (Symptom("Ran out of memory on HBM", Seen.NAMED), Symptom("Ran out of memory in memory space hbm", Seen.NAMED))
