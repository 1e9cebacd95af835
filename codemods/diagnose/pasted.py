"""Text as people paste it, without the colors, prefixes and line breaks that tools add, and with the frames of its tracebacks."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# What tools put before each line: pytest, mail, exception groups, boxes; processes, times and levels of logs.
_PREFIX = re.compile(
    r"(?:E {2,}|E$|> |[|│] ?|\s*(?:[|│]|\+-)(?=\s|$)"
    r"|\s?\([\w .:=#-]{1,60}\) |\[[\w .:/=#-]{1,60}\]:? |(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)\b:? ?"
    r"|[IWEF]?\d{2,4}[-/ ]?\d{2}[-/ ]?(?:\d{2})?[T ]?\d{2}:\d{2}:\d{2}(?:[.,]\d+)?Z? ?)+"
)
_LIBRARIES = (
    *(".site-packages.", ".dist-packages.", ".lib.python", ".importlib."),
    *(".jax._src.", ".jax.experimental.", ".torch_xla.experimental.", ".ejkernel.kernels."),
)
_SEPARATORS = re.compile(r"[/\\]+")
_LEFT_OUT = re.compile(r"\s*\.\.\.<\d+ lines>\.\.\.")
_FRAME = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?')
_IPYTHON_FRAME = re.compile(r"File (?P<path>[^\s:\"]+):(?P<line>\d{1,9})(?:, in (?P<function>\w+))?")
_PYTEST_FRAME = re.compile(r"(?P<path>[^\s:]+\.py):(?P<line>\d{1,9}): *(?:in (?P<function>\S+)|(?P<raised>\w*)$)")
_HEADER = re.compile(r"Traceback \(most recent call last\)|^_{3,} \S.* _{3,}$|^={5,}")
_CAUSES = re.compile(r"was the direct cause of the following exception|During handling of the above exception")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|ExceptionGroup)(?::|$)")

_FROM_FRAME = 20  # lines, from a frame of a traceback to the error at its end
_BEHIND = 8  # lines, from an error in pytest's report to where it was raised
_AHEAD = 2  # lines before words that are no part of a traceback
_WRAPPED = 8  # lines from the name of an error to the words by which it is known
_LONG = 160  # characters
_MESSAGE = 60  # lines of an error


class Frame(NamedTuple):
    """A place in a traceback: what is executed there, and in which line of the text it is told."""

    path: str
    line: int
    function: str
    told: int

    @property
    def module(self) -> str:
        """The dotted path of the file, with a dot at both ends."""
        dotted = _SEPARATORS.sub(".", self.path.removesuffix(".py"))
        return f".{dotted.strip('.')}."

    @property
    def is_library(self) -> bool:
        """Whether it is code that someone installed, and nobody's own."""
        return self.path.startswith("<") or any(part in self.module for part in _LIBRARIES)


class Pasted:
    """A text, cleaned.

    Attributes:
        lines: its lines.
        squeezed: all of it without spaces and line breaks.
    """

    def __init__(self, text: str) -> None:
        plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        self.lines = [_cleaned(line) for line in plain.split("\n")]
        pieces = ["".join(line.split()) for line in self.lines]
        self.squeezed = "".join(pieces)
        self._starts = list(itertools.accumulate(map(len, pieces), initial=0))

    def line_at(self, offset: int) -> int:
        """Return the index of the line that a place in the squeezed text is in."""
        return bisect_right(self._starts, offset) - 1

    def shown(self, start: int, end: int) -> str:
        """Return the lines of a place in the squeezed text, on one; of a long line, only what begins there."""
        first, last = self.line_at(start), self.line_at(max(start, end - 1))
        line = self.lines[first]
        if len(line) > _LONG:  # the place in the line, for that in the line without spaces
            columns = (column for column, character in enumerate(line) if not character.isspace())
            line = "..." + line[next(itertools.islice(columns, start - self._starts[first], None), 0) :]
        return snippet(" ".join([line, *self.lines[first + 1 : last + 1]]))

    def within_line(self, start: int, end: int) -> int:
        """Return the end of what starts at a place in the squeezed text and ends on the same line."""
        return min(end, self._starts[self.line_at(start) + 1])

    @cached_property
    def frames(self) -> list[Frame]:
        """The frames of all tracebacks, Python's and pytest's."""
        return [frame for told, line in enumerate(self.lines) if (frame := _frame(line, told))]

    @cached_property
    def _told(self) -> list[int]:
        return [frame.told for frame in self.frames]

    @cached_property
    def _headers(self) -> list[int]:
        return [number for number, line in enumerate(self.lines) if _HEADER.search(line)]

    @cached_property
    def _raised(self) -> list[int]:
        """The lines at which a traceback ends."""
        return [number for number, line in enumerate(self.lines) if _RAISED.match(line)]

    def raised_in(self, line: int) -> Frame | None:
        """Return the innermost frame of the traceback that ends with an error on a line; None where there is none."""
        for told in range(line, min(line + _BEHIND, len(self.lines))):
            if (found := _PYTEST_FRAME.match(self.lines[told])) and found["raised"]:
                return _frame(self.lines[told], told)
        error = self._error(line)
        last = bisect_right(self._told, error) - 1
        if last < 0 or error - self._told[last] > _FROM_FRAME or self._end_before(error) > self._told[last]:
            return None
        return self.frames[last]

    def section(self, line: int) -> range:
        """Return the lines of the traceback and of the message that an error on a line belongs to."""
        error = self._error(line)
        headers = bisect_right(self._headers, error)
        start = max(self._headers[headers - 1] if headers else 0, self._end_before(error) + 1)
        if self.raised_in(line) is None:
            start = max(start, error - _AHEAD)
        ends = bisect_right(self._raised, line)
        following = (*self._headers[headers : headers + 1], *self._raised[ends : ends + 1])
        return range(start, min(*following, line + _MESSAGE, len(self.lines)))

    def calls(self, function: str, frame: Frame, line: int) -> bool:
        """Say whether the frame before an error shows that it calls a function, whose own frame some tracebacks leave out."""
        return not frame.is_library and re.search(rf"\b{function}\(", self.text_of(range(frame.told + 1, line))) is not None

    def message(self, line: int) -> str:
        """Return the message that a line belongs to, on as many lines as it has."""
        return self.text_of(range(self._error(line), self.section(line).stop))

    def _error(self, line: int) -> int:
        """Return the line on which the message begins that a line belongs to: it names the error, but seldom the words."""
        for each in range(line, max(-1, line - _WRAPPED - 1), -1):
            if _RAISED.match(self.lines[each]):
                return each
            if not self.lines[each].strip():
                break
        return line

    def _end_before(self, line: int) -> int:
        """Return the line on which the last traceback before a line ends; -1 where there is none."""
        ends = bisect_right(self._raised, line - 1)
        return self._raised[ends - 1] if ends else -1

    def frames_in(self, section: range) -> list[Frame]:
        """Return the frames that are told in a section."""
        return self.frames[bisect_right(self._told, section.start - 1) : bisect_right(self._told, section.stop - 1)]

    def text_of(self, section: range) -> str:
        return "\n".join(self.lines[section.start : section.stop])

    def own_frame(self, line: int) -> Frame | None:
        """Return the innermost frame that is of nobody's library, of the traceback that ends on a line, or of what it caused."""
        section = self.section(line)
        if own := [frame for frame in self.frames_in(section) if not frame.is_library]:
            return own[-1]
        following = next((each for each in self._raised[bisect_right(self._raised, line) :]), None)
        is_cause = any(_CAUSES.search(each) for each in self.lines[line : section.stop])
        return self.own_frame(following) if is_cause and following is not None else None


def _cleaned(line: str) -> str:
    """Return a line without what is put before and behind it; of marks below code, nothing."""
    stripped = line.lstrip()
    boxed = stripped.startswith(("|", "│", "+"))
    bare = stripped if boxed else line
    found = _PREFIX.match(bare)
    rest = bare[found.end() :] if found else line
    if boxed:
        rest = rest.rstrip().removesuffix("│")
    return "" if _is_mark(rest) else rest


def _is_mark(line: str) -> bool:
    """Say whether a line only points at code in the one above, or stands for lines of code."""
    return ("^" in line and not line.strip("^~ \t")) or ("..." in line and _LEFT_OUT.fullmatch(line) is not None)


def _frame(line: str, told: int) -> Frame | None:
    if "File " in line:
        found = _FRAME.search(line) or _IPYTHON_FRAME.match(line)
    else:
        found = _PYTEST_FRAME.match(line) if ".py:" in line else None
    if found is None:
        return None
    return Frame(found["path"], int(found["line"]), found["function"] or "", told)


def decoded(data: bytes) -> str:
    """Return the text of standard input, whatever its encoding; PowerShell writes UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def snippet(text: str, most: int = _LONG) -> str:
    """Return the beginning of a text on one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}..."
