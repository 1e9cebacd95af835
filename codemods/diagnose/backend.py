"""A kernel for the TPU that is run where there is none: the call may be legal, and still fails."""

from __future__ import annotations

from typing import NamedTuple

from codemods.diagnose.kernels import is_of, names
from codemods.diagnose.pasted import Pasted
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS, FRONT_DOORS
from shapecheck.symptom import Symptom

_ON_CPU = Symptom("Only interpret mode is supported on CPU backend.")


class Remark(NamedTuple):
    """Words that no broken rule is told by, and what they mean."""

    line: int
    text: str
    message: str


def remarked(text: str) -> list[Remark]:
    """Return what a text says of the hardware that a kernel is run on."""
    pasted = Pasted(text)
    at = pasted.squeezed.find(_ON_CPU.anchor)
    if at < 0:
        return []
    line = pasted.line_at(at)
    contract = _kernel(pasted, line)
    if contract is None and pasted.frames:  # it is another kernel
        return []
    return [Remark(line + 1, pasted.shown(at, at + len(_ON_CPU.anchor)), _meaning(contract))]


def _kernel(pasted: Pasted, line: int) -> Contract | None:
    """Return the kernel that the traceback shows; JAX has the frame of the operation in the first one of two."""
    frames = pasted.frames_in(pasted.section(line))
    own = pasted.own_frame(line)
    for contract in CONTRACTS.values():
        shown = any(is_of(contract, frame) for frame in frames) or names(contract, pasted.message(line))
        if shown or (own is not None and pasted.calls(contract.name, own, line)):
            return contract
    return None


def _meaning(contract: Contract | None) -> str:
    doors = [f"kernel.{each.name}" for each in FRONT_DOORS if contract is None or each.name == contract.name]
    name = contract.name if contract else "a kernel of Pallas"
    typed = f" On a CPU too, the same call runs with {' or '.join(doors)}." if doors else ""
    return (
        f"No rule is broken: {name} is for the TPU, and was called on a CPU.{typed} In tests, `pytest --shapecheck` checks calls"
        " of JAX's kernels without a TPU."
    )
