"""The codes that can be reported: those of the contracts, and those about the source itself."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class OwnCode(NamedTuple):
    """A code that belongs to no contract."""

    name: str
    message: str
    explanation: str


FILE_ERROR, UNUSED = "SC901", "SC902"
REFUSED, DISPUTED = "SC399", "SC903"

HINTS = ("SC5", UNUSED)
"""Prefixes of the codes that are off unless selected."""

OWN_CODES = {
    "SC001": OwnCode(
        "contract-relation",
        "a relation of your own contract must hold",
        "A call of a function decorated with `@shapecheck.contract(...)` breaks one of its relations; the message quotes it.",
    ),
    REFUSED: OwnCode(
        "compiler-refusal",
        "the TPU compiler must take the call",
        (
            "`check --compile` and `compile` have libtpu compile the call, and it fails in a way that no rule describes; the "
            "message quotes it. Where the compiler gives no answer, it is unproven."
        ),
    ),
    FILE_ERROR: OwnCode(
        "file-error",
        "a file must be readable, valid Python and, to be fixed, writable",
        (
            "The file names a kernel but cannot be read, decoded or parsed, so nothing can be said about its calls; or a fix was "
            "refused because it would change more than it says, or could not be written. The other files are dealt with all the "
            "same, and the exit status is 2. The code cannot be ignored: exclude the file instead."
        ),
    ),
    UNUSED: OwnCode(
        "unused-suppression",
        "a suppression comment must suppress something",
        (
            "A `# shapecheck: ignore` comment names a rule that is neither violated nor unproven there. Remove it, so that it "
            "does not hide a later defect: `shapecheck fix --select SC902`. Comments of the form `# noqa` are not looked at."
        ),
    ),
    DISPUTED: OwnCode(
        "compiler-disagreement",
        "a call that breaks a rule about compiling must not compile",
        (
            "`check --compile` finds that libtpu compiles a call of which the contract says that it cannot. The contract is "
            "wrong there, or made for another version of JAX or libtpu: please report it."
        ),
    ),
}


@cache
def known_codes() -> tuple[str, ...]:
    """Return every code, in order."""
    from shapecheck.contracts import CONTRACTS  # not needed by a run that finds nothing

    return tuple(sorted({rule.code for contract in CONTRACTS.values() for rule in contract.rules} | set(OWN_CODES)))


def severity(code: str) -> str:
    """Return `"hint"` or `"error"`."""
    return "hint" if code.startswith(HINTS) else "error"
