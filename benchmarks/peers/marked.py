"""Makes the marked calls of a source, and notes on stderr when the one in question is entered and left."""

import sys
from collections.abc import Callable


class Marked:
    """Takes the place of the marked calls of a file, of which the one on line `kept` is in question."""

    def __init__(self, file: str, kept: int) -> None:
        self.tag, self.kept = f"{file}:{kept}", kept

    def __call__(self, line: int, call: Callable[[], object]) -> object:
        """Make the call; only the one in question may fail."""
        if line != self.kept:
            try:
                return call()
            except (Exception, SystemExit):
                return None
        print("entered", self.tag, file=sys.stderr)
        result = call()
        print("left", self.tag, file=sys.stderr)
        return result
