"""What may have changed of a module before a function runs: other files change it, when, nobody knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codemods.evaluate import names, objects
from codemods.evaluate.relevance import rebound
from codemods.evaluate.sharing import ANYTHING, Changes, changes
from codemods.evaluate.state import PATCHED
from codemods.evaluate.tree import File
from codemods.values import DictRef, Instance, ListRef, Opaque, Reason

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine
    from codemods.evaluate.program import Program

_STRANGE = re.compile(rb"\b(?:globals|exec|eval|setattr|vars|__dict__)\b")

_WHY = "another file may change it"
CHANGED = "another file or function may change it"
_REBOUND = "a function rebinds the global"


def may_be_as_before(value: Opaque) -> bool:
    """Say whether an unknown value may still be what a module has set: others may have changed it, or not."""
    return value.reason.text.startswith((_WHY, CHANGED, _REBOUND, "a function may ", "a method of "))


def rebound_reason(name: str) -> str:
    return f"{_REBOUND} `{name}`"


def settle(machine: Machine, path: str, scope_id: int) -> None:
    """Forget of a module that was executed what others may have changed of it, and had changed by its own functions, before
    somebody imports it.
    """
    tree, source = machine.program.tree, machine.program.source(path)
    if source is not None and b"global" in source.text and tree.runs_before(path, machine.program.running):
        for name in sorted(rebound(source.tree)):
            names.forget(machine, {name}, rebound_reason(name), source.tree.body[0])
    bound, changed = tree.before_import(path, machine.program.running)
    for name, value in machine.members(scope_id).items() if bound | changed else ():
        if name in bound | changed or ANYTHING in bound:
            objects.forget(machine, value)
        if name in bound or ANYTHING in bound:
            machine.state.cells[(scope_id, name)] = machine.unknown(name, _WHY)


def changes_before(machine: Machine, path: str, scope_id: int, *, mine: bool) -> Changes:
    """Return what may have changed of a module before a function runs: other files change it, and its own functions."""
    program = machine.program
    key = (path, mine)
    if key not in program.tree.changes:
        others = program.tree.before_call(path)
        found = Changes(set(others), set(others), set(), set(others))
        source = program.source(path)
        if not mine and source is not None:
            held = [machine.state.read((scope_id, name)) for name in program.names.get(scope_id, ())]
            if any(isinstance(value, ListRef | DictRef | Instance | tuple) for value in held) or _STRANGE.search(source.text):
                own = changes(source.tree)
                found = Changes({*own.names, *others}, {*own.attributes, *others}, own.own, {*own.bound, *others})
            else:  # only names can be bound anew, and attributes of classes
                found.attributes.update(File(path, source.text).lasting)
            if b"global" in source.text:
                found.bound.update(rebound(source.tree))
        program.tree.changes[key] = found
    return program.tree.changes[key]


def replace_kernels(program: Program, path: str) -> None:
    """Take note that a kernel is another function."""
    for kernel, by in program.tree.replaced_kernels(path).items():
        program.cells[(PATCHED, kernel)] = Opaque(
            (program.new_id(),), kernel, Reason("a file puts another function in its place", by)
        )
