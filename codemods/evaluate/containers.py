"""Tuples, lists, sets and dicts: how they are made, and their items."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codemods import formulas
from codemods.evaluate import arrays, configs, havoc, iteration, mutation, names, objects, specials
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.shape_parts import part_of
from codemods.evaluate.state import UNBOUND
from codemods.values import (
    COUNTER,
    Array,
    Bound,
    Choice,
    Class,
    DictRef,
    External,
    Filtered,
    Instance,
    Iterator,
    ListRef,
    Module,
    Names,
    Opaque,
    Parser,
    SetRef,
    Slice,
    Term,
    Value,
    View,
    describe,
    is_constant,
    same,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def make_list(machine: Machine, elements: Sequence[Value]) -> ListRef:
    made = ListRef(machine.new_id())
    machine.state.cells[(made.id, "contents")] = tuple(elements)
    return made


def make_set(machine: Machine, elements: Sequence[Value]) -> SetRef:
    """Make a set; of integers, in the order in which Python gives them. Of elements that are not known, some may be equal."""
    if all(map(iteration.is_known, elements)):
        distinct = dict.fromkeys(elements)
        integers = all(isinstance(each, int) for each in distinct)
        elements = tuple(set(distinct)) if integers else tuple(distinct)
    made = SetRef(machine.new_id())
    machine.state.cells[(made.id, "contents")] = tuple(elements)
    return made


def make_dict(machine: Machine, items: Sequence[tuple[Value, Value]], missing: Value = None) -> DictRef:
    """Make a dict; of equal keys the last value counts, as in Python."""
    made = DictRef(machine.new_id(), missing)
    contents: list[tuple[Value, Value]] = []
    for key, value in items:
        contents = _with_item(contents, key, value)
    machine.state.cells[(made.id, "contents")] = tuple(contents)
    return made


def _with_item(contents: Sequence[tuple[Value, Value]], key: Value, value: Value) -> list[tuple[Value, Value]]:
    if not _is_key(key):
        raise Unmodelled("a dict with an unknown key")
    changed = [(known, value if known == key else held) for known, held in contents]
    return changed if any(known == key for known, _ in contents) else [*changed, (key, value)]


def _is_key(key: Value) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_key, key))
    return not isinstance(key, Opaque | Term | Choice | Array | ListRef | DictRef)


def forget(machine: Machine, container: ListRef | DictRef | Parser, text: str, why: str, node: ast.AST | None = None) -> None:
    havoc.leak_elements(machine, container)
    machine.state.cells[(container.id, "contents")] = machine.unknown(text, why, node)


def item_of_any(machine: Machine, value: Value, index: Value, text: str | ast.expr) -> Value:
    """Return `value[index]`, where each may be one of several values."""
    if isinstance(value, Choice) or isinstance(index, Choice):
        for each in (each for _, each in value.alternatives) if isinstance(value, Choice) else (value,):
            if isinstance(each, DictRef) and each.missing is not None:
                forget(machine, each, "a dict", "which key it is given a value for is not known")
    return machine.spread(lambda a, b: item(machine, a, b), value, index, text=text)


def item(machine: Machine, value: Value, index: Value) -> Value:
    """Return `value[index]`."""
    if isinstance(index, Instance | tuple):
        specials.may_run(machine, index)
    match value:
        case Array():
            return arrays.index(value, index, lambda part: iteration.elements(machine, part))
        case Opaque():
            return value.item(index) if not isinstance(index, int) or (part := part_of(value)) is None else part.item(index)
        case Instance(cls=Class(kind=configs.KIND)) if isinstance(index, str) and "." not in index:
            held = machine.read((value.id, index))
            if held is UNBOUND:
                raise Dies
            return held
        case Instance():
            fields = iteration.named_fields(machine, value)
            if fields is not None:
                return item(machine, fields, index)
            found = objects.special(machine, value, "__getitem__", index)
            if found is UNBOUND:
                raise Unmodelled(f"an item of an object of `{value.cls.name}` is not followed")
            return found
        case External("sys.modules") if (module := _module_named(machine, index)) is not None:
            return module
        case Names(owner) if isinstance(index, str):
            held = machine.read((owner, index))
            if held is UNBOUND:
                raise Unmodelled("a name that the scanned source does not show")
            return held
        case Iterator() | View():
            raise Dies
        case DictRef():
            return _dict_item(machine, value, index)
        case Class() if (found := objects.class_member(machine, value, "__class_getitem__")) is not UNBOUND:
            return machine.call(Bound(value, found), (index,))
        case Class(kind="enum") if isinstance(index, str):
            if index not in value.members:
                raise Dies
            return machine.read((value.scope, index))
        case Filtered(parts) if index in (0, -1):
            return first_of(machine, parts if index == 0 else parts[::-1])
        case _:
            return _sequence_item(machine, iteration.elements(machine, value), value, index)


def _module_named(machine: Machine, name: Value) -> Module | None:
    """Return the module of the tree that has this name; a module finds itself by its `__name__`."""
    scope = machine.program.scopes[machine.frame.scope.module]
    if name == machine.state.read((scope.id, "__name__")):
        return Module(scope.path)
    path = machine.program.find(name, scope.path) if isinstance(name, str) else None
    return Module(path) if path in machine.program.module_scopes else None


def _dict_item(machine: Machine, value: DictRef, key: Value) -> Value:
    contents = machine.contents(value)
    if value.missing is not None:
        return _item_or_default(machine, value, contents, key)
    if contents is None:
        held = machine.read((value.id, "contents"))
        if isinstance(held, Opaque):
            return held.item(key)
        raise Unmodelled("the contents of the dict are not known")
    if isinstance(key, Opaque):
        return _entry(contents, key)
    for known, held in contents:
        if same(known, key) or (is_constant(known) and is_constant(key) and known == key):
            return held
    if not _is_key(key):
        raise Unmodelled(f"which item is at `{describe(key)}` is not known")
    raise Dies


def _item_or_default(machine: Machine, value: DictRef, contents: tuple[tuple[Value, Value], ...] | None, key: Value) -> Value:
    """Return `value[key]` of a dict that makes a value for a key that is missing."""
    if contents is None or not all(map(iteration.is_known, (key, *(known for known, _ in contents)))):
        forget(machine, value, "a dict", "whether it has the key is not known")
        raise Unmodelled("whether the dict has the key is not known")
    for known, held in contents:
        if known == key:
            return held
    if value.missing == COUNTER:
        return 0
    made = machine.call(value.missing)
    set_item(machine, value, key, made)
    return made


def entry(machine: Machine, value: DictRef, key: Opaque, default: Value) -> Value:
    """Return `value.get(key, default)` for an unknown key."""
    contents = machine.contents(value)
    if contents is None:
        raise Unmodelled("the contents of the dict are not known")
    return _entry(contents, key, default)


def _entry(contents: tuple[tuple[Value, Value], ...], key: Opaque, default: Any = Dies) -> Value:
    """Return one of the entries, each under the condition that this is its key."""
    from codemods.evaluate.operators import equals
    from codemods.evaluate.state import choose

    found = [(equals(key, known), held) for known, held in contents]
    if default is not Dies:
        found.append((formulas.both(*(formulas.invert(formula) for formula, _ in found)), default))
    if not found:
        raise Dies
    return choose(found)


def _sequence_item(machine: Machine, parts: tuple[Value, ...], value: Value, index: Value) -> Value:
    if isinstance(index, bool):
        index = int(index)
    if isinstance(index, int):
        if not -len(parts) <= index < len(parts):
            raise Dies
        return parts[index]
    if isinstance(index, Slice):
        bounds = (index.lower, index.upper, index.step)
        if not all(bound is None or isinstance(bound, int) for bound in bounds):
            raise Unmodelled(f"the bounds `{describe(index)}` of a slice are not known")
        if bounds[2] == 0:
            raise Dies
        chosen = parts[slice(*bounds)]
        if isinstance(value, ListRef):
            return make_list(machine, chosen)
        return _joined(value, chosen)
    raise Unmodelled(f"which item is at `{describe(index)}` is not known")


def _joined(value: Value, chosen: tuple[Any, ...]) -> Value:
    return type(value)().join(chosen) if isinstance(value, str | bytes) else chosen


def set_item(machine: Machine, receiver: Value, index: Value, value: Value) -> None:
    """Execute `receiver[index] = value`."""
    if isinstance(index, Instance | tuple):
        specials.may_run(machine, index)
    match receiver:
        case DictRef() if (contents := machine.contents(receiver)) is not None and _is_key(index):
            machine.state.cells[(receiver.id, "contents")] = tuple(_with_item(contents, index, value))
        case ListRef() if (contents := machine.contents(receiver)) is not None and isinstance(index, int):
            if not -len(contents) <= index < len(contents):
                raise Dies
            changed = list(contents)
            changed[index] = value
            machine.state.cells[(receiver.id, "contents")] = tuple(changed)
        case DictRef() | ListRef():
            iteration.forget(machine, value)
            forget(machine, receiver, "a container", "an item of it was set at an unknown place")
        case Choice(alternatives):
            for _, each in alternatives:
                havoc.leak(machine, each)
            havoc.disturb(machine, "it may have been changed")
        case Array():
            mutation.elements_change(machine)
        case Names(owner) if isinstance(index, str):
            names.store(machine, (owner, index), value)
        case Names():
            havoc.everything(machine, "a name that is not known is set", names=True)
        case Instance(cls=Class(kind=configs.KIND)) if isinstance(index, str) and "." not in index:
            configs.put(machine, receiver, index, value)
        case Instance(cls=Class(kind=configs.KIND)):
            objects.forget(machine, receiver)
        case Instance() if objects.special(machine, receiver, "__setitem__", index, value) is not UNBOUND:
            pass
        case External("sys.modules"):
            havoc.everything(machine, "a module is replaced", names=True)
        case Opaque(key=(_, ".", "f_globals" | "f_locals" | "__globals__" | "__dict__", *_)) | Bound(
            _, "__globals__" | "__dict__"
        ):
            havoc.everything(machine, "a name is set in a dict of names", names=True)
        case _:
            mutation.elements_change(machine)  # an unknown object may be an array, or one of ours
            havoc.disturb(machine, "it may have been changed under another name")
            machine.state.epoch += 1


def first_of(machine: Machine, parts: Sequence[tuple[formulas.Formula, Value]], default: Any = Dies) -> Value:
    """Return the first element whose condition holds, in the order given; `default` where none does."""
    from codemods.evaluate.state import choose

    alternatives: list[tuple[formulas.Formula, Value]] = []
    none_before: formulas.Formula = True
    for formula, value in parts:
        alternatives.append((formulas.both(none_before, formula), value))
        none_before = formulas.both(none_before, formulas.invert(formula))
    if default is not Dies:
        alternatives.append((none_before, default))
    possible = [(formula, value) for formula, value in alternatives if machine.possible(formula)]
    if not possible:
        raise Dies
    return choose(possible)
