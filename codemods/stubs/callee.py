"""The stub of one function with a contract: its rules as functions of shapes, and its overloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter

from codemods.callees import Callee
from codemods.stubs.language import Language, Sentence, Untellable
from shapecheck.axes import VARIADIC
from shapecheck.rule import Rule

HEAD = """\
from typing import Any, Literal, overload

import shape_extensions.dsl as dsl
from jax import Array
from shape_extensions import Flag, Int, IntTuple, IntVar, type_shape_dsl_function
"""


_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


@dataclass(frozen=True)
class Stub:
    """What a type checker is told of a function with a contract.

    Attributes:
        callee: the function.
        is_own: whether it is one of the user's, of which only what the rules speak of is declared.
        like_first: whether its result has the shape of its first array.
    """

    callee: Callee
    is_own: bool = False
    like_first: bool = True

    @cached_property
    def text(self) -> str:
        """What declares the function, below `HEAD`."""
        lines = [f"# The contract of {self.callee.name}. An error is certain; silence says nothing.\n"]
        if self.untold:
            lines += ["# `shapecheck check` tells of these rules too, for which there are no words here:\n"]
            lines += [f"#   {each}\n" for each in self.untold]
        return "\n".join(["".join(lines), *map(self._rule, self.told), *self._overloads()])

    @cached_property
    def untold(self) -> list[str]:
        """Each rule that cannot be said, with the reason."""
        return [each for each in self._said if isinstance(each, str)]

    @cached_property
    def told(self) -> list[Sentence]:
        """Each rule that can be said."""
        return [each for each in self._said if isinstance(each, Sentence)]

    @cached_property
    def _said(self) -> list[Sentence | str]:
        said: list[Sentence | str] = []
        for rule in self.callee.contract.rules:
            if not rule.is_hint:
                try:
                    said.append(self._sentence(rule))
                except Untellable as reason:
                    said.append(f"{rule.code} {rule.name}: {reason}")
        return said

    def _sentence(self, rule: Rule) -> Sentence:
        """Return a rule about arguments that every call gives as they are.

        Raises:
            Untellable: there is another in it.
        """
        sentence, signature = self._language.sentence(rule), self.callee.signature.parameters
        given = {self.callee.contract_name(name): each for name, each in signature.items()}
        for array in map(self.callee.contract.array, sentence.arrays):
            if array.name not in given or given[array.name].default is not Parameter.empty:
                raise Untellable("an array that is inside of an argument, or that may be left out, is not known")
            if VARIADIC in array.axes:
                raise Untellable("how many axes there are is not known")
        if not given.keys() >= set(sentence.parameters):
            raise Untellable("what is inside of an argument is not known")
        return sentence

    def _function(self, sentence: Sentence) -> str:
        """Return the name of the function of a rule; several of a user have one code."""
        place = [each.rule for each in self.told if each.rule.code == sentence.rule.code].index(sentence.rule)
        return f"{sentence.rule.code}_{self.callee.name}{f'_{place + 1}' if self.is_own else ''}"

    @cached_property
    def _language(self) -> Language:
        return Language(self.callee.contract)

    @cached_property
    def _first(self) -> str:
        return self.callee.contract.arrays[0].name

    def _rule(self, sentence: Sentence) -> str:
        """Return the function that gives the shape of the result, or, where a rule is broken, `Invalid`."""
        rule = sentence.rule
        result = "result" if self.like_first else "dsl.IntTuple.gradual()"
        arguments = ["result: IntTuple", *(f"{name}: IntTuple" for name in sentence.arrays)]
        arguments += [f"{name}: {self._kind(name)}" for name in sentence.parameters]
        lines = [f"@type_shape_dsl_function\ndef {self._function(sentence)}({', '.join(arguments)}) -> IntTuple:"]
        if not any(name.endswith("_rank") for name in sentence.sizes) and sentence.arrays:
            ranks = (f"len({name}) != {len(self.callee.contract.array(name).axes)}" for name in sentence.arrays)
            lines += [f"    if {' or '.join(ranks)}:", f"        return {result}"]
        lines += [f"    {name} = {size}" for name, size in sentence.sizes.items()]
        message = f"{rule.code} {rule.name}: {rule.message}"
        return "\n".join(
            [*lines, f"    if {sentence.broken}:", f"        return dsl.Invalid({message!r})", f"    return {result}\n"]
        )

    def _kind(self, name: str) -> str:
        """Return what a rule takes a parameter as: a size, or a literal."""
        if name in self._language.literals:
            return "str | None"
        if name in self._language.measures:
            return "Int"
        return "int | None" if name in self._language.optional else "int"

    def _overloads(self) -> Iterator[str]:
        """Yield first the overload that binds what the rules speak of, then those for what has no shape or value there.

        The result of the first is a union with a member for each rule, all of one type: what one rule does not know then hides no
        other. A call that is split over devices keeps some rules on each of them only: it is left to the others.
        """
        arrays, split = self.callee.contract.arrays, self.callee.contract.split
        bound = {
            name: each
            for name, each in self.callee.signature.parameters.items()
            if split is None or self.callee.contract_name(name) not in split.names
        }
        types = {array.name: f"Array[{_variable(array.name)}]" for array in arrays}
        variables = [f"{_variable(array.name)}: IntTuple" for array in arrays]
        spoken_of = dict.fromkeys(name for each in self.told for name in each.parameters)
        for name in spoken_of:
            is_size = self._kind(name) == "Int"
            types[name] = f"Int[{_variable(name)}]" if is_size else _variable(name)
            variables.append(f"{_variable(name)}: {'IntVar' if is_size else f'Flag[{self._kind(name)}]'}")
        if not self.told:
            return
        results = "\n    | ".join(f"Array[{self._called(each, types)}]" for each in self.told)
        yield self._overload(variables, bound, types, f"(\n    {results}\n)")

        if self.is_own:
            yield self._overload([], self.callee.signature.parameters, {}, "Array")
            return
        loose = {name: self._loosely(name) for name in spoken_of} | {array.name: "Array | ndarray" for array in arrays}
        quantized = {array.name: "QuantizedTensor" for array in arrays if array.quantizable}
        first = _variable(self._first)
        for others in (quantized, {}) if quantized else ({},):
            types = {**loose, **others, self._first: f"Array[{first}] | ndarray"}
            yield self._overload([f"{first}: IntTuple"], self.callee.signature.parameters, types, f"Array[{first}]")

    def _called(self, sentence: Sentence, types: Mapping[str, str]) -> str:
        arguments = [_variable(each) for each in (self._first, *sentence.arrays)] + [types[each] for each in sentence.parameters]
        return f"{self._function(sentence)}({', '.join(arguments)})"

    def _overload(self, variables: list[str], declared: Mapping[str, Parameter], types: Mapping[str, str], result: str) -> str:
        bound = f"[{', '.join(variables)}]" if variables else ""
        lines = [f"@overload\ndef {self.callee.name}{bound}("]
        kinds = [each.kind for each in declared.values()]
        for position, (name, each) in enumerate(declared.items()):
            if each.kind is Parameter.KEYWORD_ONLY and not {*kinds[:position]} & {each.kind, Parameter.VAR_POSITIONAL}:
                lines.append("    *,")
            named = self.callee.contract_name(name)
            default = "" if each.default is Parameter.empty else f" = {self._defaults.get(named, '...')}"
            lines.append(f"    {_STARS.get(each.kind, '')}{name}: {types.get(named, 'Any')}{default},")
            if each.kind is Parameter.POSITIONAL_ONLY and each.kind not in kinds[position + 1 :]:
                lines.append("    /,")
        return "\n".join([*lines, f") -> {result}: ...\n"])

    @cached_property
    def _defaults(self) -> dict[str, str]:
        """The defaults of those parameters of which the language knows literals."""
        known = self._language.literals.keys() | (self._language.integers - self._language.measures)
        return {each.name: repr(each.default) for each in self.callee.contract.parameters if each.name in known}

    def _loosely(self, name: str) -> str:
        """Return the type of a parameter of which no value is known."""
        if name not in self._language.literals:
            return "int" if self._kind(name) == "Int" else self._kind(name)
        return f"Literal[{', '.join(map(repr, self._language.literals[name]))}] | None"


def _variable(name: str) -> str:
    """Return the name of the type variable of an argument."""
    return "".join(part.capitalize() for part in name.split("_"))
