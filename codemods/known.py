"""What is known of the sizes with which a call is reached, for a compiler that needs all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods import geometry
from codemods.callees import CALLEES, Callee
from codemods.formulas import both
from codemods.splitting import consistent
from codemods.values import Reason
from codemods.verdicts import MAX_COMBINATIONS, Judge, certain
from shapecheck.compiler.kernels import Kernel, kernel_of
from shapecheck.compiler.question import missing


@dataclass(frozen=True)
class Geometry:
    """The values with which a call is reached, or may be.

    Attributes:
        kernel: what is called.
        values: the names of the contract whose value is certain.
        unknown: the other names that a compiler needs, each with the reason.
        certain: whether the source spells out that the call is reached with them.
    """

    kernel: Kernel
    values: Mapping[str, Any]
    unknown: Mapping[str, str]
    certain: bool


def geometries(judges: Sequence[Judge], *, unreached: Reason | None, unseen: Reason | None) -> Iterator[Geometry]:
    """Yield what is known of each execution that reaches a call, and of each alternative of its arguments.

    Nothing is yielded for a kernel that the compiler does not have, or where it is not run on a TPU, or is expected to fail.

    Args:
        judges: the executions.
        unreached: why none is known, if none is.
        unseen: why there may be others, if there may.
    """
    reached = [
        (judge, kernel)
        for judge in judges
        if not (judge.arrival.expected or judge.arrival.interpreted) and (kernel := _kernel(judge.callee))
    ]
    if unseen:
        yield from (_unknown(kernel, unseen) for _, kernel in reached[:1])
    for judge, kernel in reached:
        owners = list(judge.arguments)
        spread = [geometry.alternatives(judge.arguments[owner]) for owner in owners]
        combinations = list(itertools.islice(itertools.product(*spread), MAX_COMBINATIONS + 1))
        if len(combinations) > MAX_COMBINATIONS:
            yield _unknown(kernel, "the arguments may have too many values")
            continue
        for combination in combinations:
            condition = both(*(formula for formula, _ in combination))
            if condition is False or not consistent([*(each.formula for each in judge.arrival.path), condition]):
                continue
            arguments = {owner: value for owner, (_, value) in zip(owners, combination, strict=True)}
            values = certain(geometry.values_of(judge.callee, arguments))
            if values.get("implementation") in ("interpret", "xla"):  # of our front door, elsewhere than on a TPU
                continue
            if (split := judge.callee.contract.split) is not None and split.evaluate(values) is not False:
                yield _unknown(kernel, "over how many devices the call is split")
                continue
            if judge.callee.contract is kernel.front_door:
                values = kernel.handed_on(values)
            unknown = {
                name: str(unreached or judge.why(name, arguments) or "not known") for name in missing(kernel.contract, values)
            }
            yield Geometry(kernel, values, unknown, certain=len(combinations) == 1 and not judge.conditional)


def _unknown(kernel: Kernel, reason: object) -> Geometry:
    return Geometry(kernel, {}, dict.fromkeys(missing(kernel.contract, {}), str(reason)), certain=False)


def _kernel(callee: Callee) -> Kernel | None:
    """Return the kernel of JAX that it is under whatever name; a function of the user that is called so is none."""
    return kernel_of(callee.contract) if any(each is callee for each in CALLEES.values()) else None
