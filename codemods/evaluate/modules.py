"""Modules of the scanned tree, and imports."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from codemods.callees import CALLEES, PACKAGES
from codemods.evaluate import havoc
from codemods.evaluate.library import MODELS
from codemods.evaluate.machine import MAX_STEPS, Dies, Exhausted, Frame, Leaves, Machine
from codemods.evaluate.program import Scope
from codemods.evaluate.state import UNBOUND
from codemods.values import External, ListRef, Module, Opaque, Value, is_constant

if TYPE_CHECKING:
    from codemods.evaluate.program import Program

_LIBRARIES = frozenset({"jax", "numpy", "torch", "torch_xla", "einops"})

MAX_IMPORT_STEPS = 6_000
BYTES_PER_STEP = 25  # to parse this much of a module takes as long as a step

_MODELLED = frozenset({"jax", "jaxlib", "numpy", "torch"})


def statement(machine: Machine, node: ast.Import | ast.ImportFrom) -> None:
    """Execute an import statement. What a module does that is not executed to its end, nobody knows."""
    left_out = machine.program.left_out
    _bind_names(machine, node)
    if machine.recording and machine.program.left_out > left_out:
        havoc.everything(machine, "a module that is imported is too long to follow", node)
        for cell, value in machine.program.cells.items():
            scope = machine.program.scopes.get(cell[0])
            if scope is not None and scope.kind == "module" and scope.path not in machine.program.scanned and is_constant(value):
                machine.state.cells[cell] = machine.unknown(cell[1], "a module that is too long to follow may set it", node)


def _bind_names(machine: Machine, node: ast.Import | ast.ImportFrom) -> None:
    from codemods.evaluate import names

    for alias in node.names:
        if isinstance(node, ast.Import):
            value = resolve(machine, alias.name)
            if alias.asname is None and "." in alias.name:
                value = resolve(machine, alias.name.partition(".")[0])
            names.bind(machine, alias.asname or alias.name.partition(".")[0], value)
        elif alias.name == "*":
            _star(machine, machine.program.absolute(node, machine.frame.scope.path))
        else:
            value = _from(machine, machine.program.absolute(node, machine.frame.scope.path), alias.name)
            names.bind(machine, alias.asname or alias.name, value)


def resolve(machine: Machine, module: str) -> Value:
    """Return the module of a dotted name: of the scanned tree, if it is there, or a foreign one."""
    path = _in_tree(machine, module)
    if path is None:
        return External(module)
    run(machine.program, path)  # now: what it does to other modules is done from here on
    return Module(path)


def _in_tree(machine: Machine, module: str) -> str | None:
    """Return the file of a module of the tree; a library whose functions are known is foreign even in its own checkout."""
    if module.partition(".")[0] in _MODELLED:
        return None
    path = machine.program.find(module, machine.frame.scope.path)
    if path is not None and module.partition(".")[0] in PACKAGES:
        source = machine.program.source(path)
        if source is not None and b"shapecheck" in source.text:
            return None
    return path


def _is_callee(machine: Machine, module: str, name: str) -> bool:
    """Say whether a module's function is a known kernel: also in a checkout of the project that defines it."""
    if f"{module}.{name}" not in CALLEES:
        return False
    return module.partition(".")[0] not in PACKAGES or _in_tree(machine, module) is None


def _is_modelled(path: str) -> bool:
    """Say whether a model says what a function does: also in a checkout of the library that defines it."""
    from codemods.evaluate.interpreted import INTERPRETED

    return path.partition(".")[0] in _LIBRARIES and (path in MODELS or path in INTERPRETED)


def _from(machine: Machine, module: str, name: str) -> Value:
    if _is_callee(machine, module, name):
        return External(f"{module}.{name}")
    parent = resolve(machine, module)
    return External(f"{parent.path}.{name}") if isinstance(parent, External) else member(machine, parent, name)


def member(machine: Machine, module: Module, name: str) -> Value:
    """Return an attribute of a module of the tree, which may be a submodule."""
    program, path = machine.program, module.name
    dotted = program.dotted(path)
    if _is_callee(machine, dotted, name) or _is_modelled(f"{dotted}.{name}"):
        return External(f"{dotted}.{name}")
    held = machine.read((program.module_scopes[path], name))
    if held is not UNBOUND:
        return held
    if path.endswith("__init__.py") and (inner := program.find(f"{program.package_of(path)}.{name}", path)) is not None:
        run(program, inner)
        return Module(inner)
    reached = program.executed[path]
    why = "too much is imported to follow" if reached.steps > reached.limit else f"`{name}` was not found in {path}"
    return Opaque(("imported", path, name), name, machine.reason(why))


def _star(machine: Machine, module: str) -> None:
    """Bind what `from module import *` brings: what `__all__` lists, else the public names."""
    from codemods.evaluate import names

    value = resolve(machine, module)
    if not isinstance(value, Module):
        return
    scope = machine.program.module_scopes[value.name]
    held = machine.members(scope)
    listed = machine.read((scope, "__all__"))
    contents = machine.contents(listed) if isinstance(listed, ListRef) else listed
    chosen = contents if isinstance(contents, tuple) else [name for name in held if not name.startswith("_")]
    for name in chosen:
        if name in held:
            names.bind(machine, name, held[name])


def _top_level(machine: Machine, node: ast.stmt) -> None:
    """Execute a statement of a module. Behind one that ends the program there is code that may run after all: for a tool to be
    of use there, it is executed, but as a branch.
    """
    try:
        machine.execute([node])
    except (Dies, Leaves):
        machine.state = machine.state.assume(machine.coin("the module is executed to its end"), branch=True) or machine.state


def run(program: Program, path: str, limit: int = MAX_STEPS) -> None:
    """Execute a module of the tree once; its cells are in `program.cells` from then on. `limit` is for one that is scanned.

    A module that is being executed already (a cycle of imports) is left as far as it has come. Modules that are only
    imported share an allowance of steps: how deep a tree's imports go must not decide how long a run takes.
    """
    if path in program.executed:
        return
    if path in program.scanned:
        machine = Machine(program, limit=limit)
    else:
        machine = Machine(program, limit=min(MAX_IMPORT_STEPS, program.allowance), recording=False)
    source = program.source(path) if machine.limit > 0 else None
    scope_id = program.new_id()
    scope = Scope(scope_id, path, "<module>", "module", None, scope_id)
    program.scopes[scope_id] = scope
    program.module_scopes[path] = scope_id
    program.executed[path] = machine
    if source is None:
        if machine.limit <= 0:
            machine.steps += 1
            program.left_out += 1
        return
    if path not in program.scanned:
        program.allowance -= len(source.text) // BYTES_PER_STEP
    machine.state.cells[(scope_id, "__name__")] = "__imported__"
    machine.state.cells[(scope_id, "__file__")] = path
    with machine.entered(Frame(scope)), suppress(Exhausted, RecursionError):  # what was bound so far is bound
        for node in source.tree.body:
            _top_level(machine, node)
        havoc.settle(machine)
    program.keep(machine.state.cells)
    program.left_out += machine.steps > machine.limit
    if path not in program.scanned:
        program.allowance -= machine.steps
