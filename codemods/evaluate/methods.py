"""Methods of lists, dicts, strings, functions and named tuples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from codemods.evaluate import configs, containers, counters, fields, iteration, objects
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.transforms import call_traced
from codemods.values import (
    COUNTER,
    Class,
    DictRef,
    External,
    Function,
    Instance,
    ListRef,
    Names,
    Opaque,
    Partial,
    Transformed,
    Value,
    View,
    describe,
    is_constant,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

Method: TypeAlias = "Callable[[Machine, Any, Arguments], Value]"


def _contents(machine: Machine, container: ListRef | DictRef) -> tuple[Any, ...]:
    contents = machine.contents(container)
    if contents is None:
        raise Unmodelled("the contents of the container are not known")
    return contents


def _append(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    contents = machine.contents(receiver)
    if contents is not None and len(contents) < iteration.MAX_ELEMENTS:
        machine.state.cells[(receiver.id, "contents")] = (*contents, arguments.positional[0])
    else:
        containers.forget(machine, receiver, "a list", "it grows beyond what is followed", arguments.node)


def _extend(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    try:
        added = iteration.elements(machine, arguments.positional[0])
        if len(added) > iteration.MAX_ELEMENTS:
            raise Unmodelled("it grows beyond what is followed")
        machine.state.cells[(receiver.id, "contents")] = (*_contents(machine, receiver), *added)
    except Unmodelled as why:
        containers.forget(machine, receiver, "a list", str(why), arguments.node)


def _pop(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    contents = _contents(machine, receiver)
    index = arguments.positional[0] if arguments.positional else -1
    if not isinstance(index, int):
        containers.forget(machine, receiver, "a list", "an unknown element is gone", arguments.node)
        raise Unmodelled("which element is popped is not known")
    if not -len(contents) <= index < len(contents):
        raise Dies
    kept = list(contents)
    value = kept.pop(index)
    machine.state.cells[(receiver.id, "contents")] = tuple(kept)
    return value


def _insert(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    contents, (index, value) = list(_contents(machine, receiver)), arguments.positional
    if type(index) is not int or len(contents) >= iteration.MAX_ELEMENTS:
        raise Unmodelled("where an element is inserted is not known")
    contents.insert(index, value)
    machine.state.cells[(receiver.id, "contents")] = tuple(contents)


def _reverse(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    machine.state.cells[(receiver.id, "contents")] = _contents(machine, receiver)[::-1]


def _sort(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    contents, backwards = _contents(machine, receiver), arguments.keywords.get("reverse", False)
    if (
        not all(type(part) is int for part in contents)
        or not arguments.keywords.keys() <= {"reverse"}
        or type(backwards) is not bool
    ):
        raise Unmodelled("the order of the elements is not known")
    machine.state.cells[(receiver.id, "contents")] = tuple(sorted(contents, reverse=backwards))


def _remove(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    contents, (value,) = list(_contents(machine, receiver)), arguments.positional
    if not all(map(is_constant, (*contents, value))):
        raise Unmodelled("which element is removed is not known")
    if value not in contents:
        raise Dies
    contents.remove(value)
    machine.state.cells[(receiver.id, "contents")] = tuple(contents)


def _copy_list(machine: Machine, receiver: ListRef, arguments: Arguments) -> Value:
    return containers.make_list(machine, _contents(machine, receiver))


def _keys(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    return View(receiver, "keys")


def _values(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    return View(receiver, "values")


def _items(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    return View(receiver, "items")


def _get(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    contents = _contents(machine, receiver)
    key = arguments.positional[0]
    if any(is_constant(known) and is_constant(key) and known == key for known, _ in contents):
        return containers.item(machine, receiver, key)
    default = arguments.positional[1] if len(arguments.positional) > 1 else None
    if isinstance(key, Opaque):
        return containers.entry(machine, receiver, key, default)
    if not is_constant(key):
        raise Unmodelled(f"which item is at `{describe(key)}` is not known")
    return default


def _known_key(arguments: Arguments) -> Value:
    """Return the key of an item that is set or taken out."""
    key = arguments.positional[0]
    if not is_constant(key):
        raise Unmodelled(f"which item is at `{describe(key)}` is not known")
    return key


def _pop_item(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    key = _known_key(arguments)
    value = _get(machine, receiver, arguments)
    kept = tuple(pair for pair in _contents(machine, receiver) if pair[0] != key)
    if len(kept) == len(_contents(machine, receiver)) and len(arguments.positional) < 2:
        raise Dies
    machine.state.cells[(receiver.id, "contents")] = kept
    return value


def _setdefault(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    key = _known_key(arguments)
    if not any(known == key for known, _ in _contents(machine, receiver)):
        default = arguments.positional[1] if len(arguments.positional) > 1 else None
        containers.set_item(machine, receiver, key, default)
    return _get(machine, receiver, arguments)


def _update(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    if receiver.missing == COUNTER:
        counters.count(machine, receiver, arguments)
        return
    for other in arguments.positional:
        contents = machine.contents(other) if isinstance(other, DictRef) else None
        if contents is None:
            containers.forget(machine, receiver, "a dict", "it was updated with unknown items", arguments.node)
            return
        for key, value in contents:
            containers.set_item(machine, receiver, key, value)
    for key, value in arguments.keywords.items():
        containers.set_item(machine, receiver, key, value)


def _copy_dict(machine: Machine, receiver: DictRef, arguments: Arguments) -> Value:
    return containers.make_dict(machine, _contents(machine, receiver), receiver.missing)


def _update_names(machine: Machine, receiver: Names, arguments: Arguments) -> Value:
    items: list[tuple[Value, Value]] = list(arguments.keywords.items())
    for other in arguments.positional:
        contents = machine.contents(other) if isinstance(other, DictRef) else None
        items += contents if contents is not None and not arguments.spread else [(None, None)]
    for name, value in items:
        containers.set_item(machine, receiver, name, value)


def _look_at_names(machine: Machine, receiver: Names, arguments: Arguments) -> Value:
    raise Unmodelled("the names of an object")


_SAFE_STRING = (
    "lower",
    "upper",
    "strip",
    "lstrip",
    "rstrip",
    "startswith",
    "endswith",
    "replace",
    "removeprefix",
    "removesuffix",
)


def _string(name: str) -> Method:
    def method(machine: Machine, receiver: str, arguments: Arguments) -> Value:
        if not all(isinstance(value, str) for value in arguments.values()):
            raise Unmodelled("a string made of unknown parts")
        if math.prod(map(len, (receiver, *arguments.positional))) > 1_000_000:
            raise Unmodelled("a string too long to reason about")
        try:
            return getattr(receiver, name)(*arguments.positional)
        except TypeError:
            raise Dies from None

    return method


def _split(machine: Machine, receiver: str, arguments: Arguments) -> Value:
    if not all(isinstance(value, str) and value for value in arguments.positional) or arguments.keywords:
        raise Unmodelled("a string made of unknown parts")
    return containers.make_list(machine, receiver.split(*arguments.positional))


def _join(machine: Machine, receiver: str, arguments: Arguments) -> Value:
    parts = iteration.elements(machine, arguments.positional[0])
    if not all(isinstance(part, str) for part in parts):
        raise Unmodelled("a string made of unknown parts")
    return receiver.join(parts)


def _replace(machine: Machine, receiver: Instance, arguments: Arguments) -> Value:
    if arguments.spread or arguments.positional:
        raise Unmodelled("the copy of an object")
    return objects.changed_copy(machine, receiver, arguments)


def _model_copy(machine: Machine, receiver: Instance, arguments: Arguments) -> Value:
    """pydantic's copy: its `update` is not validated."""
    update = arguments.keywords.get("update")
    contents = _contents(machine, update) if isinstance(update, DictRef) else ()
    if arguments.spread or arguments.positional or not arguments.keywords.keys() <= {"update"} or (update and not contents):
        raise Unmodelled("the copy of an object")
    return objects.copy_with(machine, receiver, dict(contents))


def _as_dict(machine: Machine, receiver: Instance, arguments: Arguments) -> Value:
    return containers.make_dict(machine, tuple((name, machine.read((receiver.id, name))) for name in receiver.cls.fields))


def _make(machine: Machine, receiver: Class, arguments: Arguments) -> Value:
    """`Point._make(parts)` of a named tuple."""
    parts = iteration.elements(machine, arguments.positional[0])
    if len(parts) != len(receiver.fields):
        raise Dies
    return objects.construct(machine, receiver, Arguments(tuple(parts), node=arguments.node))


def _same_call(machine: Machine, receiver: Value, arguments: Arguments) -> Value:
    """`jit(f).lower(x)` and `.trace(x)` look at the arguments as `f(x)` does."""
    call(machine, receiver, arguments)
    return machine.unknown("a lowered function", "it is not followed", arguments.node, pure=True)


def _same_call_traced(machine: Machine, receiver: Value, arguments: Arguments) -> Value:
    """`jit(f).eval_shape(x)` does so too, but lowers nothing."""
    call_traced(machine, receiver, arguments)
    return machine.unknown("a shape", "it is not followed", arguments.node, pure=True)


def _item(machine: Machine, receiver: int, arguments: Arguments) -> Value:
    """NumPy's integer scalars are numbers here."""
    return receiver


def _bit_length(machine: Machine, receiver: int, arguments: Arguments) -> Value:
    return receiver.bit_length()


def _bit_count(machine: Machine, receiver: int, arguments: Arguments) -> Value:
    return receiver.bit_count()


def _count(machine: Machine, receiver: Any, arguments: Arguments) -> Value:
    parts = iteration.elements(machine, receiver)
    if not all(map(is_constant, (*parts, *arguments.positional))):
        raise Unmodelled("a count of unknown elements")
    return parts.count(arguments.positional[0])


def _index(machine: Machine, receiver: Any, arguments: Arguments) -> Value:
    parts = iteration.elements(machine, receiver)
    if not all(map(is_constant, (*parts, *arguments.positional))):
        raise Unmodelled("a position among unknown elements")
    if arguments.positional[0] not in parts:
        raise Dies
    return parts.index(arguments.positional[0])


METHODS: dict[tuple[type, str], Method] = {
    (ListRef, "append"): _append,
    (ListRef, "extend"): _extend,
    (ListRef, "pop"): _pop,
    (ListRef, "copy"): _copy_list,
    (ListRef, "insert"): _insert,
    (ListRef, "remove"): _remove,
    (ListRef, "reverse"): _reverse,
    (ListRef, "sort"): _sort,
    (ListRef, "count"): _count,
    (ListRef, "index"): _index,
    (tuple, "count"): _count,
    (tuple, "index"): _index,
    (DictRef, "keys"): _keys,
    (DictRef, "values"): _values,
    (DictRef, "items"): _items,
    (DictRef, "get"): _get,
    (DictRef, "pop"): _pop_item,
    (DictRef, "setdefault"): _setdefault,
    (DictRef, "update"): _update,
    (DictRef, "copy"): _copy_dict,
    (DictRef, "most_common"): counters.most_common,
    (DictRef, "total"): counters.total,
    (Names, "update"): _update_names,
    **{(Names, name): _look_at_names for name in ("get", "keys", "values", "items", "copy")},
    (str, "split"): _split,
    (str, "join"): _join,
    **{(str, name): _string(name) for name in _SAFE_STRING},
    (int, "bit_length"): _bit_length,
    (int, "bit_count"): _bit_count,
    (int, "item"): _item,
    (Class, "_make"): _make,
    (Partial, "validator"): fields.hook(fields.VALIDATOR),
    (Partial, "default"): fields.hook(fields.DEFAULT),
    (Instance, "_replace"): _replace,
    (Instance, "replace"): _replace,
    (Instance, "model_copy"): _model_copy,
    (Instance, "_asdict"): _as_dict,
    **{(Instance, name): method for name, method in configs.METHODS.items()},
    **{(kind, name): _same_call for kind in (Function, Partial, Transformed, External) for name in objects.LOOKING},
    **{(kind, "eval_shape"): _same_call_traced for kind in (Function, Partial, Transformed, External)},
}
