"""The distinct calls of kernels that a run of tests has made, with what was said of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from shapecheck.arguments import ArrayArgument
from shapecheck.contract import Contract
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.rule import Verdict

_PLAIN = (int, float, str, bool, type(None))


@dataclass
class Call:
    """One of them.

    Attributes:
        callee: the name of its contract.
        text: shapes, dtypes and parameters, as one would write them.
        geometry: the values of the contract's names, those that can be sent from one process to another.
        test: the test that made it first.
        broken: the codes of the rules that it breaks, each with the chips on which it does; none: on every device.
        open: the same for rules of which it cannot be told.
        chips: those that it was judged for.
        of_front_door: whether it is a call of the function of `kernel`, and not of the kernel itself.
        by_xla: whether XLA computed it in place of the kernel.
    """

    callee: str
    text: str
    geometry: dict[str, Any]
    test: str
    broken: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    open: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    chips: list[str] = field(default_factory=list[str])
    of_front_door: bool = False
    by_xla: bool = False

    @property
    def name(self) -> str:
        return f"kernel.{self.callee}" if self.of_front_door else self.callee

    def __str__(self) -> str:
        return f"{self.name}({self.text})"

    def judged(self, chip: str, verdicts: Mapping[str, Verdict]) -> None:
        """Note what the rules say of it on a chip."""
        if chip in self.chips:
            return
        self.chips.append(chip)
        for code, verdict in verdicts.items():
            kept = {Verdict.VIOLATED: self.broken, Verdict.UNPROVEN: self.open}.get(verdict)
            if kept is not None:
                kept.setdefault(code, []).append(chip)

    def refused(self, codes: Iterable[str]) -> None:
        """Note that it was refused on the device where it was made."""
        self.broken |= {code: [] for code in codes}

    @property
    def verdict(self) -> str:
        """What there is to say of it."""
        if self.broken:
            return f"refused: {_listed(self.broken)}"
        on = f" on {', '.join(self.chips)}" if self.chips else ""
        return f"unproven: {_listed(self.open)}" if self.open else f"legal{on}"


class CallsSeen:
    """Calls that differ in shapes, dtypes or parameters."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def add(self, contract: Contract, geometry: Values, test: str) -> Call:
        """Return what is known of a call, which is seen now by a test."""
        text = _written(contract, geometry)
        plain = {name: value for name, value in geometry.items() if _is_plain(value)}
        call = Call(contract.name, text, plain, test, of_front_door=contract.elsewhere is not None)
        return self._calls.setdefault(str(call), call)

    def plain(self) -> list[dict[str, Any]]:
        """Return them as what one process can send to another."""
        return [asdict(call) for call in self._calls.values()]

    def merge(self, sent: Iterable[dict[str, Any]]) -> None:
        """Add what another process has seen."""
        for each in sent:
            call = Call(**each)
            self._calls.setdefault(str(call), call)

    def accepted(self) -> list[Call]:
        return [call for call in self._calls.values() if not call.broken]

    def lines(self) -> Iterator[str]:
        """Yield a report: how many, then each, those that were refused first."""
        refused = sum(bool(call.broken) for call in self._calls.values())
        what = f"{len(self._calls)} distinct calls of kernels" if len(self._calls) != 1 else "1 call of a kernel"
        yield f"{what}, {refused} refused" if self._calls else "no call of a kernel that has a contract"
        for call in sorted(self._calls.values(), key=lambda call: (not call.broken, call.name, call.text)):
            yield f"  {call.verdict:<12} {call}"
            if call.broken:
                yield f"               first in {call.test}"
        for name in dict.fromkeys(call.callee for call in self._calls.values() if call.by_xla):
            yield f"XLA has computed JAX's {name}, by kernel.{name}: Pallas' interpreter cannot run it"


def _written(contract: Contract, geometry: Values) -> str:
    arrays = (f"{array.name} {_typed(array, geometry)}" for array in contract.arrays)
    changed = (each for each in contract.parameters if geometry.get(each.name, UNKNOWN) not in (UNKNOWN, each.default))
    return ", ".join((*arrays, *(f"{each.name}={geometry[each.name]!r}" for each in changed)))


def _typed(array: ArrayArgument, geometry: Values) -> str:
    shape: Any = geometry.get(f"{array.name}_shape")
    sizes = ",".join(map(str, cast("tuple[Any, ...]", shape))) if isinstance(shape, tuple) else "?"
    scales = geometry.get(f"{array.name}_scales_dtype") if array.quantizable else None
    return f"{geometry.get(f'{array.name}_dtype', '?')}[{sizes}]{f' with scales {scales}' if scales else ''}"


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else type(value) in _PLAIN


def _listed(codes: Mapping[str, Iterable[str]]) -> str:
    return ", ".join(f"{code} on {' and '.join(chips)}" if chips else code for code, chips in codes.items())
