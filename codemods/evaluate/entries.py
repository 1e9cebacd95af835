"""The executions of a file: its top level, and each of its functions with arguments of which little is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codemods.callees import Callee
from codemods.evaluate import cases, modules, names, objects
from codemods.evaluate.annotations import annotated
from codemods.evaluate.calls import execute, open_scope
from codemods.evaluate.contracts import assume
from codemods.evaluate.escaping import escapes
from codemods.evaluate.frameworks import is_failure_expected
from codemods.evaluate.machine import MAX_STEPS, Arrival, Dies, Exhausted, Frame, Leaves, Machine
from codemods.evaluate.program import Program, Scope
from codemods.evaluate.relevance import assigned_attributes, changed_in_functions, mentions, reaching, rebound
from codemods.evaluate.state import UNBOUND, State
from codemods.source import Source
from codemods.values import Class, Contracted, External, Function, Instance, Value

FILE_STEPS = 100_000  # of all executions of one file


@dataclass(frozen=True)
class Entry:
    """A function to execute: the class it is a method of, and the contract that it checks before it starts."""

    function: Function
    owner: Class | None = None
    callee: Callee | None = None


def _receiver_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the parameter that a method is called on, None where it is called on no object."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return first[0].arg if first and not decorators & {"staticmethod", "classmethod"} else None


def _contract(held: Value) -> Callee | None:
    return held.callee if isinstance(held, Contracted) else None


class Execution:
    """All executions of one file.

    Attributes:
        arrived: what reaches kernel calls, each with the test case it belongs to.
        unfinished: the nodes whose execution used up its steps: their call sites may have executions that were not seen.
    """

    def __init__(self, program: Program, source: Source, words: Iterable[str] = ()) -> None:
        self.program = program
        self.reaching = reaching(source.tree, words)
        self.source = source
        self.arrived: list[Arrival] = []
        self.unfinished: list[ast.AST] = []
        self._called: set[int] = set()
        self._allowance = FILE_STEPS

    def run(self) -> None:
        """Execute the top level, then each function that may reach a kernel."""
        modules.run(self.program, self.source.path)
        machine = self.program.executed[self.source.path]
        if machine.steps > machine.limit:
            self.unfinished.append(self.source.tree)
        self._keep(machine)
        scope_id = self.program.module_scopes[self.source.path]
        module = self._machine(State({}, self.program.cells), scope_id)
        with module.entered(Frame(self.program.scopes[scope_id])):
            self._forget_changeable(module, scope_id)
        self._main(module.state, scope_id)
        for entry in self._functions(self.source.tree.body, scope_id, module.state):
            self._enter(entry, module.state, scope_id)

    def _forget_changeable(self, machine: Machine, scope_id: int) -> None:
        """Forget of the module's objects what a function may have changed before another one runs."""
        for name in rebound(self.source.tree):
            names.forget(machine, {name}, f"a function rebinds the global `{name}`", self.source.tree.body[0])
        changed = changed_in_functions(self.source.tree)
        for name, value in machine.members(scope_id).items():
            attributes: Iterable[str] = ()
            if isinstance(value, Class) and name in changed:
                attributes = [each for each, held in machine.members(value.scope).items() if not isinstance(held, Function)]
            elif isinstance(value, Instance):
                attributes = assigned_attributes(value.cls, machine)
            for attribute in attributes:
                owner = value.scope if isinstance(value, Class) else value.id
                why = f"a function may change `{name}.{attribute}`"
                machine.state.cells[(owner, attribute)] = machine.unknown(f"{name}.{attribute}", why)
            if name in changed:
                objects.forget(machine, value)

    def _machine(self, module: State, scope_id: int) -> Machine:
        machine = Machine(self.program, limit=min(MAX_STEPS, self._allowance))
        machine.state = module.fork()
        return machine

    def _keep(self, machine: Machine, case: Mapping[str, Any] | None = None) -> None:
        self.arrived += [replace(arrival, case=case or {}) for arrival in machine.arrivals]
        self._called |= machine.called
        self._allowance -= machine.steps

    def _main(self, module: State, scope_id: int) -> None:
        """Execute what the file does when it is run as a script."""
        blocks = [node for node in self.source.tree.body if isinstance(node, ast.If) and "__name__" in ast.dump(node.test)]
        machine = self._machine(module, scope_id)
        machine.state.cells[(scope_id, "__name__")] = "__main__"
        for block in blocks:
            with machine.entered(Frame(self.program.scopes[scope_id])):
                self._guarded(machine, block, lambda block=block: machine.execute([block]))
        self._keep(machine)

    def _guarded(self, machine: Machine, node: ast.AST, run: Any) -> None:
        try:
            run()
        except (Dies, Leaves):
            pass
        except (Exhausted, RecursionError):
            self.unfinished.append(node)

    def _functions(self, body: Iterable[ast.stmt], scope_id: int, module: State) -> Iterator[Entry]:
        """Yield the module's functions and the methods of its classes that may reach a kernel."""
        for node in body:
            held = module.read((scope_id, getattr(node, "name", "")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in self.reaching:
                yield Entry(Function(node, self.source.path, node.name, scope_id), None, _contract(held))
            elif isinstance(node, ast.ClassDef) and isinstance(held, Class):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name in self.reaching:
                        function = Function(inner, self.source.path, inner.name, held.scope)
                        yield Entry(function, held, _contract(module.read((held.scope, inner.name))))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
                yield from self._functions(parts, scope_id, module)

    def _enter(self, entry: Entry, module: State, scope_id: int) -> None:
        """Execute a function for each case that its decorators spell out, or with unknown arguments."""
        node: Any = entry.function.node
        machine = self._machine(module, scope_id)
        with machine.entered(Frame(self.program.scopes[entry.function.scope])):
            try:
                spelled = cases.of(machine, node)
            except (cases.TooMany, Exhausted):
                self.unfinished.append(node)
                return
        for case in spelled or [{}]:
            machine = self._machine(module, scope_id)
            machine.expected = int(any(is_failure_expected(decorator) for decorator in node.decorator_list))
            self._guarded(machine, node, lambda case=case, machine=machine: self._call(machine, entry, case))
            self._keep(machine, case)

    def _call(self, machine: Machine, entry: Entry, case: Mapping[str, Value]) -> None:
        function, owner = entry.function, entry.owner
        node: Any = function.node
        scope = open_scope(machine, function)
        with machine.entered(Frame(scope)):
            values = dict(case)
            if owner is not None and (receiver := _receiver_name(node)) is not None:
                values[receiver] = self._receiver(machine, owner)
            values = annotated(machine, function, values)
            machine.state.cells.update({(scope.id, name): value for name, value in values.items()})
            if entry.callee is not None:
                assume(machine, entry.callee, values)
        self._run_body(machine, scope, node)

    def _run_body(self, machine: Machine, scope: Scope, node: Any) -> None:
        before = set(machine.called)
        try:
            execute(machine, scope, node)
        finally:
            self._inner(machine, scope, node, before)

    def _inner(self, machine: Machine, scope: Scope, node: Any, before: set[int]) -> None:
        """Execute the functions defined in this one that it does not call, or that outlive it, with unknown arguments."""

        def path_of(expression: ast.expr) -> str:
            if not all(isinstance(part, ast.Name | ast.Attribute | ast.expr_context) for part in ast.walk(expression)):
                return ""
            held = machine.state.fork()
            try:
                with machine.entered(Frame(scope)):
                    found = machine.evaluate(expression)
            except (Dies, Exhausted):
                found = None
            machine.state = held
            return found.path if isinstance(found, External) else ""

        for inner in ast.walk(node):
            if inner is node or not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if not mentions(inner, self.reaching) or (id(inner) in machine.called and not escapes(node, inner, path_of)):
                continue
            name = getattr(inner, "name", "<lambda>")
            entry = Entry(Function(inner, scope.path, name, scope.id))
            self._guarded(machine, inner, lambda entry=entry: self._call(machine, entry, {}))

    def _receiver(self, machine: Machine, owner: Class) -> Value:
        """Make an object on which a method is called: what its class shows of it, the rest unknown."""
        made = Instance(machine.new_id(), owner)
        for name in ("__init__", "setUp"):
            initializer = objects.class_member(machine, owner, name)
            if isinstance(initializer, Function):
                self._initialize(machine, made, initializer)
        for name in owner.fields if owner.kind in ("dataclass", "namedtuple", "open") else ():
            key = (made.id, name)
            machine.state.cells[key] = objects.unknown_field(machine, owner, name, f"self.{name}", f"a field of `{owner.name}`")
        for name in assigned_attributes(owner, machine):
            if machine.read((made.id, name)) is not UNBOUND:
                why = f"a method of `{owner.name}` sets `{name}`"
                machine.state.cells[(made.id, name)] = machine.unknown(f"self.{name}", why)
        return made

    def _initialize(self, machine: Machine, made: Instance, initializer: Function) -> None:
        node: Any = initializer.node
        scope = open_scope(machine, initializer)
        with machine.entered(Frame(scope)):
            first = [*node.args.posonlyargs, *node.args.args][:1]
            values = annotated(machine, initializer, {first[0].arg: made} if first else {})
            machine.state.cells.update({(scope.id, name): value for name, value in values.items()})
        base = machine.state.fork()
        try:
            execute(machine, scope, node)
        except (Dies, Leaves):
            machine.state = base
