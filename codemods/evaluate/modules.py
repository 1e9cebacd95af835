"""Modules of the scanned tree, and imports."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.callees import CALLEES, PACKAGES
from codemods.disk import entries, is_file
from codemods.evaluate import havoc
from codemods.evaluate.library import MODELS
from codemods.evaluate.machine import MAX_STEPS, Dies, Exhausted, Frame, Leaves, Machine
from codemods.evaluate.memory import Cell
from codemods.evaluate.program import Scope
from codemods.evaluate.relevance import asks_for_its_name
from codemods.evaluate.state import ABSL_FLAGS, PATCHED, UNBOUND
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
    load(machine, path)
    return Module(path)


def load(machine: Machine, path: str) -> None:
    """Import a module of the tree: what it does to other modules is done from here on, as far as this execution knows.

    For other executions it is not known: who imports what before them is not certain.
    """
    program = machine.program
    if path not in program.executed:
        why = "what it is depends on which modules are imported before"
        changed = [cell for cell in machine.state.cells if ABSL_FLAGS != cell[0] < machine.frame.scope.module]
        before = {cell: machine.unknown(cell[1], why) for cell in changed}
        for cell, value in run(program, path, before=before).items():
            machine.state.cells[cell] = value
    _attach(program, path)


def _attach(program: Program, path: str) -> None:
    """Make a module an attribute of its package, whose top level is being executed."""
    parent, name = _package(program, path)
    if parent in program.running and path not in program.attached:
        program.attached.add(path)
        program.executed[parent].state.cells[(program.module_scopes[parent], name)] = Module(path)


def _package(program: Program, path: str) -> tuple[str, str]:
    """Return the file of the package that a module lies in, and the module's name there."""
    file = Path(os.path.abspath(path))
    inner = file.parent if file.stem == "__init__" else file.with_suffix("")
    return program.path_of(inner.parent / "__init__.py"), inner.name


def _forget_submodules(machine: Machine, path: str, scope_id: int) -> None:
    """Forget what a package holds under the name of a module in it that is not imported there: whoever imports it replaces it."""
    if Path(path).name != "__init__.py":
        return
    for entry in (Path(each.path) for each in entries(str(Path(path).parent))):
        cell = (scope_id, entry.stem)
        inner = entry / "__init__.py" if entry.suffix == "" else entry
        held = machine.state.read(cell) if entry.suffix in ("", ".py") else UNBOUND
        if (
            held is not UNBOUND
            and not isinstance(held, Module | External)
            and str(inner) not in machine.program.attached
            and is_file(str(inner))
        ):
            why = f"importing the module `{entry.stem}` of the package replaces it"
            machine.state.cells[cell] = machine.unknown(entry.stem, why)


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
        patched = machine.state.read((PATCHED, f"{module}.{name}"))
        return External(f"{module}.{name}") if patched is UNBOUND else patched
    parent = resolve(machine, module)
    return External(f"{parent.path}.{name}") if isinstance(parent, External) else member(machine, parent, name)


def member(machine: Machine, module: Module, name: str) -> Value:
    """Return an attribute of a module of the tree, which may be a submodule."""
    program, path = machine.program, module.name
    dotted = program.dotted(path)
    if _is_callee(machine, dotted, name) or _is_modelled(f"{dotted}.{name}"):
        return External(f"{dotted}.{name}")
    if machine.state.read((program.module_scopes[path], "__class__")) is not UNBOUND:
        return machine.unknown(name, "its module is given another class")
    held = machine.read((program.module_scopes[path], name))
    if held is not UNBOUND:
        return held
    if path.endswith("__init__.py") and (inner := program.find(f"{program.package_of(path)}.{name}", path)) is not None:
        load(machine, inner)
        held = machine.read((program.module_scopes[path], name))  # which importing it may set
        return Module(inner) if held is UNBOUND else held
    given = machine.read((program.module_scopes[path], "__getattr__"))
    if given is not UNBOUND:
        havoc.maybe(machine, lambda: machine.call(given, (name,)), "`__getattr__` of a module changes it")
        return machine.unknown(name, "`__getattr__` of its module gives it")
    reached = program.executed[path]
    if reached.steps > reached.limit:
        why = "too much is imported to follow"
    else:  # it may come from a module that was left out, by `import *`
        why = f"`{name}` was not found in {path}{': too much is imported to follow all of it' if program.left_out else ''}"
    return Opaque(("imported", path, name), name, machine.reason(why))


def _star(machine: Machine, module: str) -> None:
    """Bind what `from module import *` brings: what `__all__` lists, else the public names."""
    from codemods.evaluate import names

    value = resolve(machine, module)
    mine = machine.members(machine.frame.scope.id)
    if not isinstance(value, Module):
        for name, own in mine.items():
            if is_constant(own) and not name.startswith("_"):
                names.bind(machine, name, machine.unknown(name, f"`from {module} import *` may replace it"))
        return
    scope = machine.program.module_scopes[value.name]
    held = machine.members(scope)
    listed = machine.read((scope, "__all__"))
    contents = machine.contents(listed) if isinstance(listed, ListRef) else listed
    if isinstance(contents, tuple):
        for name in contents:
            if isinstance(name, str):
                names.bind(machine, name, member(machine, value, name))
        return
    for name in {*held, *(mine if Path(value.name).name == "__init__.py" or listed is not UNBOUND else ())}:
        if listed is not UNBOUND and name in mine:  # nobody knows what is listed
            names.bind(machine, name, machine.unknown(name, f"`from {module} import *` may replace it"))
        elif name.startswith("_"):
            pass
        elif name in held:
            names.bind(machine, name, held[name])
        elif machine.program.find(f"{machine.program.package_of(value.name)}.{name}", value.name) is not None:
            why = f"`from {module} import *` brings the module `{name}` if it has been imported"
            names.bind(machine, name, machine.unknown(name, why))


def _top_level(machine: Machine, node: ast.stmt) -> None:
    """Execute a statement of a module. Behind one that ends the program there is code that may run after all: for a tool to be
    of use there, it is executed, but as a branch.
    """
    try:
        machine.execute([node])
    except (Dies, Leaves):
        machine.state = machine.state.assume(machine.coin("the module is executed to its end"), branch=True) or machine.state


def run(program: Program, path: str, limit: int = MAX_STEPS, before: Mapping[Cell, Value] | None = None) -> Mapping[Cell, Value]:
    """Execute a module of the tree once; its cells are in `program.cells` from then on. `limit` is for one that is scanned.

    A module that is being executed already (a cycle of imports) is left as far as it has come. Modules that are only
    imported share an allowance of steps: how deep a tree's imports go must not decide how long a run takes.

    Args:
        before: what those who import it have set so far of other modules.

    Returns:
        What it has set of other modules.
    """
    if path in program.executed:
        return {}
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
        return {}
    if path not in program.scanned:
        program.allowance -= len(source.text) // BYTES_PER_STEP
    machine.state.cells.update(before or {})
    runs_as_script = path in program.scanned and b"__main__" in source.text and asks_for_its_name(source.tree)
    with machine.entered(Frame(scope)):
        name = machine.unknown("__name__", "the file may be run as a script") if runs_as_script else "__imported__"
    machine.state.cells[(scope_id, "__name__")] = name
    machine.state.cells[(scope_id, "__file__")] = path
    program.running.add(path)
    _attach(program, path)
    from codemods.evaluate import outside

    with machine.entered(Frame(scope)):
        try:
            for node in source.tree.body:
                _top_level(machine, node)
            havoc.settle(machine)
            _forget_submodules(machine, path, scope_id)
            outside.settle(machine, path, scope_id)
        except (Exhausted, RecursionError):  # what was bound so far is bound
            machine.steps = max(machine.steps, machine.limit + 1)  # so that nobody takes it for followed to its end
        program.running.discard(path)
        others = {cell: value for cell, value in machine.state.cells.items() if ABSL_FLAGS != cell[0] < scope_id}
        unknown = {cell: machine.unknown(cell[1], "what it is depends on which modules are imported before") for cell in others}
    program.keep({**machine.state.cells, **unknown})
    program.left_out += machine.steps > machine.limit
    if path not in program.scanned:
        program.allowance -= machine.steps
    return {cell: value for cell, value in others.items() if value is not (before or {}).get(cell, UNBOUND)}
