"""Calls that were accepted, by what the verdict on them depends on, so that the next one like them is not checked again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from shapecheck.contract import Contract
from shapecheck.hints import looks_at_values
from shapecheck.keys import ARRAYS, LOOKS, Key, Keying, Part, Unkeyed, add_to, is_told_at_once, keying, part_of, type_of
from shapecheck.observe import ANYWHERE, NARROWED, Place, is_here
from shapecheck.scope import Bindings, Scope

REMEMBERED = 1024
"""Signatures of each function; then it begins anew."""

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """That calls of one signature are legal.

    Attributes:
        bindings: the sizes that jaxtyping found for the axes.
        place: the chip on which they are; `ANYWHERE` where they are on all.
        x64: whether 64-bit types stayed what they are, where it matters; else None.
        is_conditional: whether it takes `holds` to say whether they are so here.
        results: the keys of the results that were accepted as well.
    """

    bindings: Bindings
    place: Place = ANYWHERE
    x64: bool | None = None
    is_conditional: bool = False
    results: set[Key] = field(default_factory=set[Key])

    @classmethod
    def of(cls, bindings: Bindings, place: Place, key: Key) -> Acceptance:
        """Return that calls with this key are legal."""
        wide = any(str(getattr(each, "name", each)).rpartition(".")[2] in NARROWED for each in _flat(key))
        return cls(bindings, place, _x64() if wide else None, is_conditional=wide or place is not ANYWHERE)

    def holds(self) -> bool:
        """Say whether they are legal here and now."""
        return (self.x64 is None or self.x64 == _x64()) and is_here(self.place)


class Recall:
    """Remembers what of a function's calls was accepted.

    It is asked and told by several threads at once: each of its steps is one operation of a dict or a set. What two of them
    find out at the same time is the same.

    Attributes:
        keyings: each gives the key of a call and its arguments by name, the quickest first; none where no call can be remembered.
        accepted: what is legal, by key. One that no keying can give a key to is there under that of `key`.
    """

    def __init__(self, signature: inspect.Signature, contract: Contract) -> None:
        parameters = signature.parameters.values()
        self._parameters = signature.parameters
        judging = (*contract.rules, contract.elsewhere, contract.split)
        names = {name for each in judging if each is not None for name in each.names}
        named = {contract.owners[name] for name in names if name in contract.owners}
        valued = named.intersection(parameter.name for parameter in contract.parameters)
        self._parts: Mapping[str, Part] = {each.name: part_of(each, named, valued) for each in parameters}
        self._steady_result = not looks_at_values(signature.return_annotation)
        steady = not any(
            each.kind in _VARIABLE or looks_at_values(each.annotation) or not _has_steady_default(each, self._parts[each.name])
            for each in parameters
        )
        arrays = [each.name for each in contract.arrays if not each.path]
        self.keyings: Sequence[Keying] = [keying(signature, self._parts, arrays, each) for each in LOOKS] if steady else []
        self.accepted: dict[Key, Acceptance] = {}

    def key(self, arguments: Mapping[str, Any]) -> Key | None:
        """Return what the verdict on a call depends on, given all its arguments; None where it must be asked for each time."""
        key: list[Any] = [...]  # no key of a keying begins so
        try:
            for name, value in arguments.items() if self.keyings else ():
                add_to(key, self._parts[name], value)
        except Unkeyed:
            return None
        return tuple(key) if self.keyings else None

    def found(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Acceptance | None]:
        """Return the arguments of a call by name, and what is known of it, where the quickest key does not tell; or nothing."""
        for look in self.keyings[1:]:
            try:
                key, arguments = look(*args, **kwargs)
                return arguments, self.accepted[key]
            except Exception:  # not seen before, or not to be told by such a key: of an argument anything may go wrong
                continue
        return {}, None

    def quick_keys(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Key]:
        """Yield the keys by which such a call is found at once, if it has any."""
        for look in self.keyings:
            try:
                key, arguments = look(*args, **kwargs)
                hash(key)
            except Exception:
                continue
            if all(is_told_at_once(self._parameters[name], self._parts[name], value) for name, value in arguments.items()):
                yield key

    def accept(self, acceptance: Acceptance, *keys: Key) -> None:
        if len(self.accepted) >= REMEMBERED:
            self.accepted.clear()
        self.accepted.update(dict.fromkeys(keys, acceptance))

    def accepts_result(self, result: Any, acceptance: Acceptance, scope: Scope) -> bool:
        """Say whether such a result was accepted before, while the names of axes stood for the same sizes as in this scope."""
        kind = type_of(result)
        key = (kind, result.shape, result.dtype) if kind in ARRAYS else _key_of(result)  # what that does, in less time
        return key in acceptance.results and scope[:3] == acceptance.bindings

    def accept_result(self, result: Any, acceptance: Acceptance) -> None:
        """Remember a result that was accepted under the bindings of the call alone."""
        key = _key_of(result)
        if key is not None and self._steady_result:
            if len(acceptance.results) >= REMEMBERED:
                acceptance.results.clear()
            acceptance.results.add(key)


def _flat(key: Key) -> Iterator[Any]:
    for each in key:
        if isinstance(each, tuple):
            yield from _flat(cast(Key, each))
        else:
            yield each


def _key_of(result: Any) -> Key | None:
    key: list[Any] = []
    try:
        add_to(key, Part.SHAPES, result)
    except Unkeyed:
        return None
    return tuple(key)


def _has_steady_default(parameter: inspect.Parameter, part: Part) -> bool:
    try:
        add_to([], part, None if parameter.default is parameter.empty else parameter.default)
    except Unkeyed:
        return False
    return True


def _x64() -> bool:
    """Say whether 64-bit types stay what they are."""
    jax = sys.modules.get("jax")
    return jax is not None and jax.config.jax_enable_x64
