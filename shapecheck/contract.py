"""What one callee demands: its arguments and its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shapecheck.arguments import ArrayArgument, Parameter
from shapecheck.axes import VARIADIC
from shapecheck.chip import CHIP_FACTS, CHIPS, FIRST_GENERATION, Chip
from shapecheck.measure import Measure, extremes
from shapecheck.outcome import UNKNOWN, Values
from shapecheck.paths import root_of
from shapecheck.relation import Relation, RelationError
from shapecheck.rule import Fix, Rule, Verdict

_REMEMBERED = 1024  # geometries

ON_TPU = "on_tpu"
"""What says of a call whether it runs on a TPU, beside the names that relations use."""


@dataclass(frozen=True)
class Contract:
    """The demands of one callee, stated once for run time, static check, fix, documentation and compiler check.

    Attributes:
        name: the callee's name, e.g. `"paged_attention"`.
        arrays: its array arguments, in the order of the signature.
        parameters: its other arguments.
        rules: its rules, in the order of their codes.
        aliases: further names that `geometry` takes, each standing for several:
            `{"pages_dtype": ("k_pages_dtype", "v_pages_dtype")}`.
        elsewhere: what holds of calls that do not run on a TPU, also where there is one; None where all do.
        split: what holds of calls that are split over several devices, each of which judges what it gets; None where none are.
        others: the numbers that stand for elements of arrays, besides the least and the greatest of each, or in their place.
        values_parameter: the parameter by which a call asks for the rules about elements; empty where none does.
        sample: the source of a legal call, which the examples of the rules are edits to.
        sources: what the explanations of the rules were read off; Markdown.

    Raises:
        RelationError: a rule uses a name that no argument defines.
    """

    name: str
    arrays: tuple[ArrayArgument, ...]
    parameters: tuple[Parameter, ...]
    rules: tuple[Rule, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    elsewhere: Relation | None = None
    split: Relation | None = None
    others: tuple[Measure, ...] = ()
    values_parameter: str = ""
    sample: str = ""
    sources: str = ""

    def __post_init__(self) -> None:
        for rule in self.rules:
            if unknown := [name for name in rule.names if name not in self.origins]:
                from shapecheck.stated import no_such_name  # only where something is wrong

                raise RelationError(f"{rule.relation.text!r}: {no_such_name(self, unknown[0])}")

    @cached_property
    def origins(self) -> dict[str, str]:
        """Every name a relation may use, with where its value comes from: `{"head_dim": "q.shape[2]", ...}`."""
        origins = {name: origin for array in self.arrays for name, origin in array.origins()}
        origins |= {name: measure.origin for name, measure in self.measures.items()}
        for axis, qualified in self.axes.items():
            origins.setdefault(axis, origins[qualified[0]])
        for parameter in self.parameters:
            origins[parameter.name] = parameter.place
            origins[f"{parameter.name}_type"] = f"type({parameter.place})"
            if parameter.names_axis:
                origins[f"{parameter.name}_size"] = f"mesh.shape[{parameter.place}]"
        return dict.fromkeys(CHIP_FACTS, "the chip") | origins

    @cached_property
    def owners(self) -> dict[str, str]:
        """The argument that each name belongs to; an axis belongs to the first that has it, the chip's names to none."""
        roots = {array.name: root_of(array.place) for array in self.arrays}
        owners = {name: roots[array.name] for array in self.arrays for name, _ in array.origins()}
        owners |= {name: roots[measure.arrays[0]] for name, measure in self.measures.items()}
        for axis, qualified in self.axes.items():
            owners.setdefault(axis, owners[qualified[0]])
        for parameter in self.parameters:
            owners[parameter.name] = owners[f"{parameter.name}_type"] = root_of(parameter.place)
            if parameter.names_axis:
                owners[f"{parameter.name}_size"] = root_of(parameter.place)
        return owners

    @cached_property
    def occasional(self) -> frozenset[str]:
        """The names that a call defines only on occasion: where a chip is declared, or the elements of an array are known."""
        parameters = {parameter.name for parameter in self.parameters}
        return CHIP_FACTS.difference(parameters, self.axes) | self.value_names

    @cached_property
    def value_names(self) -> frozenset[str]:
        """The names that stand for elements of arrays, which differ from one call to the next although the sizes do not."""
        return frozenset(self.measures)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """The numbers that stand for elements of arrays, by name."""
        found = (measure for array in self.arrays for measure in extremes(array.name, array.place))
        return {measure.name: measure for measure in (*found, *self.others)}

    def array(self, name: str) -> ArrayArgument:
        """Return the array argument of that name."""
        return next(each for each in self.arrays if each.name == name)

    @cached_property
    def about_values(self) -> Contract:
        """The same contract with only its rules about the elements of arrays."""
        return replace(self, rules=tuple(rule for rule in self.rules if not self.value_names.isdisjoint(rule.names)))

    @cached_property
    def unsteady_names(self) -> frozenset[str]:
        """The names that may stand for something else in the next call of the same signature; the mesh may be the context's."""
        return self.value_names.union(f"{each.name}_size" for each in self.parameters if each.names_axis)

    @cached_property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Every axis with the qualified name of each occurrence, first occurrence first."""
        axes: dict[str, tuple[str, ...]] = {}
        for array in self.arrays:
            for axis in array.positions:
                axes[axis] = (*axes.get(axis, ()), f"{array.name}_{axis}")
        return axes

    def complete(self, values: Values) -> dict[str, Any]:
        """Add to a call's names those that follow: plain axes from their first occurrence, widths and types."""
        plain = {axis: values.get(qualified[0], UNKNOWN) for axis, qualified in self.axes.items()}
        types = {
            f"{parameter.name}_type": _type_name(value)
            for parameter in self.parameters
            if (value := values.get(parameter.name, UNKNOWN)) is not UNKNOWN
        }
        widths = {name: width for array in self.arrays for name, width in array.bits(values).items()}
        return {**plain, **values, **types, **widths}

    def geometry(self, *, chip: Chip | None = None, **stated: Any) -> dict[str, Any]:
        """Return the values of every name, for a geometry stated by axis, parameter, dtype and alias.

        An axis that is stated has that size wherever it occurs; parameters that are left out have their defaults;
        whatever else is left out is unknown.

        Raises:
            TypeError: a name that the contract does not have.
        """
        values: dict[str, Any] = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in stated.items():
            names = self.aliases.get(name) or self.axes.get(name) or (name,)
            if unknown := [each for each in names if each not in self.origins]:
                from shapecheck.stated import no_such_name  # only where something is wrong

                raise TypeError(no_such_name(self, unknown[0]))
            values.update(dict.fromkeys(names, value))
        for array in self.arrays:
            shape = tuple(values.get(f"{array.name}_{axis}", UNKNOWN) for axis in array.axes)
            if VARIADIC in array.axes:
                continue
            values = array.sizes(shape) | values
            scales = values.get(f"{array.name}_scales_dtype", UNKNOWN)
            if array.quantizable and scales is not UNKNOWN:
                values.setdefault(f"{array.name}_scales_shape", None if scales is None else (*shape[:-1], 1))
        if chip is not None:
            values |= chip.facts
        return self.complete(values)

    def judge(self, values: Values) -> dict[str, Verdict]:
        """Return the verdict of every applicable rule but hints, by code, for values as `geometry` gives them."""
        return {rule.code: rule.judge(values) for rule in self.applicable(values) if not rule.is_hint}

    def applicable(self, values: Values) -> Iterator[Rule]:
        """Yield the rules that can be judged: those about a chip, or about elements, only where `values` has those.

        Those about the TPU only where `values` does not say that the call runs elsewhere, and those about what one device gets
        only where it does not say that several share the call.
        """
        elsewhere = values.get(ON_TPU) is False
        lacking = self.occasional - values.keys()
        split = self.split is not None and self.split.evaluate(values) is True
        for rule in self.rules:
            if (rule.on_tpu and (elsewhere or split)) or (rule.per_device and split):
                continue
            if rule.chips and values.get("chip_name") not in rule.chips:
                continue
            if lacking.isdisjoint(rule.names):
                yield rule

    def uses_tpu(self, values: Values) -> bool:
        """Say whether a call with these values is certain to run on the TPU, where there is one."""
        return self.elsewhere is None or self.elsewhere.evaluate(values) is False

    def fails_on_a_chip(self, values: Values) -> bool:
        """Say whether a call breaks a rule about the TPU on one of the chips that the kernels are for, or that the rule names.

        Which is remembered: to judge all rules on all chips takes longer than everything else that a call is checked for.
        """
        try:
            known = frozenset(values.items())
            if (fails := self._failing.get(known)) is None:
                fails = self._fails_on_a_chip(values)
                if len(self._failing) >= _REMEMBERED:
                    self._failing.clear()  # also for other threads, which so must not expect to find what they have put there
                self._failing[known] = fails
            return fails
        except TypeError:  # a value that cannot be hashed
            return self._fails_on_a_chip(values)

    @cached_property
    def _failing(self) -> dict[frozenset[tuple[str, Any]], bool]:
        return {}

    def _fails_on_a_chip(self, values: Values) -> bool:
        return any(
            rule.judge(there) is Verdict.VIOLATED
            for chip, there in ((chip, {**values, **chip.facts}) for chip in CHIPS)
            for rule in self._about_chips
            if (chip.name in rule.chips if rule.chips else chip.generation >= FIRST_GENERATION)
        )

    @cached_property
    def _about_chips(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if not rule.is_hint and (rule.on_tpu or rule.needs_chip))

    def permits(self, parameter: str, value: Any, values: Values, chips: Sequence[Chip] = ()) -> Verdict:
        """Return the verdict of all rules that speak of a parameter, taken together, if it had this value.

        It may break none on any of the `chips` either; what cannot be told of a chip is no obstacle.
        """
        changed = self.complete({**values, parameter: value})
        if any(self._permits(parameter, {**changed, **chip.facts}) is Verdict.VIOLATED for chip in chips):
            return Verdict.VIOLATED
        return self._permits(parameter, changed)

    def _permits(self, parameter: str, values: Values) -> Verdict:
        speaking = (rule for rule in self.applicable(values) if parameter in rule.names and not rule.is_hint)
        verdicts = ((rule, rule.judge(values)) for rule in speaking)
        # What is not known of the elements of arrays is not for the parameter to settle.
        return Verdict.worst(
            verdict for rule, verdict in verdicts if verdict is not Verdict.UNPROVEN or self.value_names.isdisjoint(rule.names)
        )

    def choices(self, rule: Rule, values: Values, chips: Sequence[Chip] = ()) -> Iterator[Any]:
        """Yield the values that `rule.fix` offers, best first, as far as they are certain to break no rule; see `permits`.

        It stops before a better value of which that cannot be told, so that the first one is the best.
        """
        if not isinstance(rule.fix, Fix):
            return
        for choice in rule.fix.choices(values):
            verdict = self.permits(rule.fix.parameter, choice, values, chips)
            if verdict is Verdict.UNPROVEN:
                return
            if verdict is Verdict.PROVEN:
                yield choice

    def advice(self, rule: Rule, values: Values, chips: Sequence[Chip] = ()) -> str:
        """Return in words what would be legal instead; empty where nothing can be said."""
        legal = list(self.choices(rule, values, chips))
        if all(isinstance(choice, int) for choice in legal):
            legal.sort()
        shown = legal if len(legal) <= 12 else [*legal[:6], "...", *legal[-5:]]
        offers = [f"legal {rule.fix.noun}: {', '.join(map(str, shown))}"] if isinstance(rule.fix, Fix) and legal else []
        if other := rule.advice(values):
            offers.append(other)
        return "; or ".join(offers)


def _type_name(value: Any) -> str:
    return "int" if isinstance(value, int) and not isinstance(value, bool) else type(value).__name__  # an IntEnum is an int
