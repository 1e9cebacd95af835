"""The codes that can be reported: those of the contracts, and those about the source itself."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class OwnCode(NamedTuple):
    """A code that belongs to no contract; the example is a program with such a finding, and the program repaired."""

    name: str
    message: str
    explanation: str
    example: tuple[str, str] | None = None


SIGNATURE, FILE_ERROR, UNUSED = "SC116", "SC901", "SC902"
REFUSED, DISPUTED = "SC399", "SC903"

_KERNEL = "from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention\n\n\n"
_FUNCTION = f"""\
{_KERNEL}def decode(q, k_pages, v_pages, lengths, page_indices):
    return paged_attention(q, k_pages, v_pages, lengths, page_indices"""
_LEGAL = f"{_FUNCTION}, pages_per_compute_block=1)\n"
_OWN_CONTRACT = """\
import jax.numpy as jnp
from jaxtyping import Array, Float
from shapecheck import contract


@contract("num_q_heads % num_kv_heads == 0")
def attend(q: Float[Array, "num_q_heads head_dim"], k: Float[Array, "num_kv_heads head_dim"]): ...


attend(jnp.ones(({heads}, 128)), jnp.ones((8, 128)))
"""

HINTS = ("SC5", UNUSED)
"""Prefixes of the codes that are off unless selected."""

OWN_CODES = {
    "SC001": OwnCode(
        "contract-relation",
        "a relation of your own contract must hold",
        "A call of a function decorated with `@shapecheck.contract(...)` breaks one of its relations; the message quotes it.",
        (_OWN_CONTRACT.format(heads=30), _OWN_CONTRACT.format(heads=32)),
    ),
    SIGNATURE: OwnCode(
        "signature",
        "the arguments must fit the parameters",
        (
            "Python raises a TypeError for a call without an argument that has no default, with a keyword that the function does "
            "not have, with too many arguments by position, or with one given twice. At call time that error is Python's own, or "
            "a RuntimeError of torch's. A kernel that several versions of a library define takes here what any of these versions "
            "takes. Code in a `try` that catches a TypeError may be meant to find out which version it has: there such a call is "
            "not reported."
        ),
        (f"{_FUNCTION})\n", _LEGAL),
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
            "same, and the exit status is 2. So it is where a pyproject.toml below the folder that is checked holds what is no "
            "setting: the files there are checked by the settings from above. The code cannot be ignored: exclude the file "
            "instead."
        ),
        (f"{_FUNCTION}, pages_per_compute_block=1\n", _LEGAL),
    ),
    UNUSED: OwnCode(
        "unused-suppression",
        "a suppression comment must suppress something",
        (
            "A `# shapecheck: ignore` comment names a rule that is neither violated nor unproven there, or none at all. Remove "
            "it, so that it does not hide a later defect: `shapecheck fix --select SC902`. Comments of the form `# noqa` are not "
            "looked at."
        ),
        (_LEGAL.replace(")\n", ")  # shapecheck: ignore[SC114]\n"), _LEGAL),
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
def names() -> Mapping[str, str]:
    """Return the name of every code, in the order of the codes."""
    from shapecheck.contracts import CONTRACTS, FRONT_DOORS  # not needed by a run that finds nothing

    found = {rule.code: rule.name for contract in (*CONTRACTS.values(), *FRONT_DOORS) for rule in contract.rules}
    found |= {code: own.name for code, own in OWN_CODES.items()}
    return dict(sorted(found.items()))


def known_codes() -> tuple[str, ...]:
    """Return every code, in order."""
    return tuple(names())


def code_of(word: str) -> str | None:
    """Return the code that a word gives, or that has it for a name; None where there is none."""
    if word.upper() in names():
        return word.upper()
    return next((code for code, name in names().items() if name == word.lower()), None)


def no_rule(word: str) -> str:
    """Say that a word is neither a code nor the name of a rule, and what comes near to it."""
    import difflib  # not needed where all is well

    if len(word) > 2 and (beginning := [code for code in names() if code.startswith(word.upper())]):
        return f"no rule {word!r}; codes that begin with it: {', '.join(beginning)}"

    def in_place(code: str) -> int:  # a slip in a code, unlike in a name, leaves its other characters where they were
        return sum(map(operator.eq, code, word.upper()))

    codes = difflib.get_close_matches(word.upper(), known_codes(), n=len(known_codes()))
    near = sorted(sorted(codes), key=in_place, reverse=True)[:3] + difflib.get_close_matches(word.lower(), names().values())
    return f"no rule {word!r}; nearest: {', '.join(near) or 'none, see `shapecheck explain`'}"


def severity(code: str) -> str:
    """Return `"hint"` or `"error"`."""
    return "hint" if code.startswith(HINTS) else "error"
