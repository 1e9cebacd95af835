"""The executions of a file: its top level, and each of its functions with arguments of which little is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from codemods.callees import Callee
from codemods.evaluate import cases, changeable, fixtures, foreign, havoc, modules, objects, outside
from codemods.evaluate.annotations import annotated
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import execute, open_scope
from codemods.evaluate.constructors import unknown_field
from codemods.evaluate.contracts import assume
from codemods.evaluate.escaping import escapes
from codemods.evaluate.frameworks import is_failure_expected
from codemods.evaluate.machine import MAX_STEPS, Arrival, Dies, Exhausted, Frame, Leaves, Machine
from codemods.evaluate.memory import Cells
from codemods.evaluate.program import IMPORT_STEPS, Program, Scope
from codemods.evaluate.relevance import FUNCTIONS, INITIALIZERS, KERNELS, assigned_attributes, changed, main_blocks, relevance
from codemods.evaluate.state import UNBOUND, State
from codemods.source import Source
from codemods.values import Class, Contracted, External, Function, Instance, Value

FILE_STEPS = 100_000  # of all executions of one file, with those that it takes to read it
LEAST_FILE_STEPS = 40_000
FEW_STEPS = 4_000  # of one function
LEAST_STEPS = 400
RECEIVER_STEPS = 6_000  # to make an object for its methods to be called on


@dataclass(frozen=True)
class Entry:
    """A function to execute: the class it is a method of, and the contract that it checks before it starts."""

    function: Function
    owner: Class | None = None
    callee: Callee | None = None


def _receiver_name(node: Any) -> str | None:
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

    def __init__(self, program: Program, source: Source, words: Iterable[str] = (), allowance: int = FILE_STEPS) -> None:
        self.program = program
        self.source = source
        self._words = frozenset(words)
        self.relevance = relevance(source.tree, self._words, frozenset())
        self.arrived: list[Arrival] = []
        self.unfinished: list[ast.AST] = []
        self._allowance = max(LEAST_FILE_STEPS, allowance - len(source.text) // modules.BYTES_PER_STEP)
        self._receivers: dict[int, tuple[Machine, Instance]] = {}  # by the scope of their class
        self._complete = True  # whether the top level was executed to its end

    def run(self) -> None:
        """Execute the top level, then each function that may reach a kernel."""
        self.program.allowance = max(self.program.allowance, IMPORT_STEPS // 3)
        outside.replace_kernels(self.program, self.source.path)
        if b"def test" in self.source.text:
            fixtures.load(self.program, self.source.path)
        modules.run(self.program, self.source.path, min(MAX_STEPS, self._allowance))
        machine = self.program.executed[self.source.path]
        self._complete = machine.steps <= machine.limit
        if not self._complete:
            self.unfinished.append(self.source.tree)
        self._keep(machine)
        scope_id = self.program.module_scopes[self.source.path]
        module = self._machine(machine)
        with module.entered(Frame(self.program.scopes[scope_id])):
            try:
                changeable.forget(module, self.source, scope_id)
            except (Exhausted, RecursionError):  # nobody knows in which state a function finds the module
                self.unfinished.append(self.source.tree)
                return
            self.relevance = relevance(self.source.tree, self._words, self._namesakes(module, scope_id))
        if blocks := main_blocks(self.source.tree):
            self._main(module, scope_id, blocks)
            with module.entered(Frame(self.program.scopes[scope_id])):
                try:
                    changeable.forget(module, self.source, scope_id, main=True)
                except (Exhausted, RecursionError):
                    self.unfinished.append(self.source.tree)
                    return
        self._enter(list(self._functions(self.source.tree.body, scope_id, module.state)), module)

    def _namesakes(self, machine: Machine, scope_id: int) -> frozenset[str]:
        """Return the names of kernels that this file imports from a module of the tree that has another function of that name."""
        held = {name: machine.read((scope_id, name)) for name in KERNELS}
        return frozenset(name for name, value in held.items() if isinstance(value, Function) and not self._reaches(value))

    def _reaches(self, function: Function) -> bool:
        source = self.program.source(function.path)
        return source is None or relevance(source.tree, frozenset(), frozenset()).reaches(function.node)

    def _machine(self, before: Machine, limit: int = MAX_STEPS) -> Machine:
        """Make a machine that goes on where another has ended."""
        machine = Machine(self.program, limit=min(limit, self._allowance))
        machine.memory.volatile.update(before.memory.volatile)
        machine.escaped |= before.escaped
        machine.named_unseen |= before.named_unseen
        state = before.state
        own = {cell: value for cell, value in state.cells.items() if state.shared.get(cell) is not value}  # it is copied often
        machine.state = State(Cells(own, machine.memory), state.shared, state.path, state.epoch)
        return machine

    def _keep(self, machine: Machine, case: Mapping[str, Any] | None = None) -> None:
        self.arrived += [replace(arrival, case=case) if case else arrival for arrival in machine.arrivals]
        self._allowance -= machine.steps

    def _main(self, module: Machine, scope_id: int, blocks: Sequence[ast.If]) -> None:
        """Execute what the file does when it is run as a script, if that may reach a kernel."""
        if not any(map(self.relevance.reaches, blocks)):
            return
        machine = self._machine(module)
        machine.state.cells[(scope_id, "__name__")] = "__main__"
        for block in blocks:
            with machine.entered(Frame(self.program.scopes[scope_id])):
                self._guarded(machine, block, lambda block=block: machine.execute([block]))
        self._keep(machine)

    def _guarded(self, machine: Machine, node: ast.AST, run: Any) -> None:
        try:
            with suppress(Dies, Leaves):
                run()
            havoc.settle(machine)
        except (Exhausted, RecursionError):
            self.unfinished.append(node)

    def _functions(self, body: Iterable[ast.stmt], scope_id: int, module: State) -> Iterator[Entry]:
        """Yield the module's functions and the methods of its classes that may reach a kernel."""
        for node in body:
            held = module.read((scope_id, getattr(node, "name", "")))
            if held is UNBOUND and self._complete and not isinstance(node, ast.If | ast.Try | ast.With):
                continue  # the module does not get there
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and self.relevance.reaches(node):
                yield Entry(Function(node, self.source.path, node.name, scope_id), None, _contract(held))
            elif isinstance(node, ast.ClassDef) and isinstance(held, Class):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and self.relevance.reaches(inner):
                        function = Function(inner, self.source.path, inner.name, held.scope)
                        yield Entry(function, held, _contract(module.read((held.scope, inner.name))))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
                yield from self._functions(parts, scope_id, module)

    def _enter(self, entries: Sequence[Entry], module: Machine) -> None:
        """Execute functions, first those that take few steps, then the others: each within its share of the steps."""
        waiting = [(entry, self._cases(entry, module)) for entry in entries]
        for most, last in ((FEW_STEPS, False), (FILE_STEPS, True)):
            unfinished: list[tuple[Entry, Sequence[Mapping[str, Value]]]] = []
            for position, (entry, spelled) in enumerate(waiting):
                if self._allowance < LEAST_STEPS:  # too little to get anywhere
                    unfinished += waiting[position:]
                    break
                end = self._allowance - min(most, max(LEAST_STEPS, self._allowance // (len(waiting) - position)))
                for done, case in enumerate(spelled):
                    if not self._execute(entry, case, module, limit=min(MAX_STEPS, self._allowance - end), last=last):
                        unfinished.append((entry, spelled[done:]))
                        break
            waiting = unfinished
        self.unfinished += [entry.function.node for entry, _ in waiting]

    def _cases(self, entry: Entry, module: Machine) -> Sequence[Mapping[str, Value]]:
        """Return the cases that a function's decorators spell out: one without arguments where they spell out none."""
        node: Any = entry.function.node
        machine = self._machine(module)
        first = machine.new_id()
        with machine.entered(Frame(self.program.scopes[entry.function.scope])):
            try:
                spelled = cases.of(machine, node) or [{}]
                made = [(cell, value) for cell, value in machine.state.cells.items() if cell[0] > first]
                module.state.cells.update(made)  # the lists and dicts among the arguments
                return spelled
            except (cases.TooMany, Exhausted):
                self.unfinished.append(node)
                return ()

    def _execute(self, entry: Entry, case: Mapping[str, Value], module: Machine, *, limit: int, last: bool) -> bool:
        """Execute a function; say whether that came to its end. What it came to before that is kept if it is the last try."""
        node: Any = entry.function.node
        known = len(self.unfinished)
        base, receiver = module, None
        if entry.owner is not None and _receiver_name(node) is not None:
            base, receiver = self._receiver(entry.owner, module)
        machine = self._machine(base, limit)
        machine.expected = int(any(is_failure_expected(decorator) for decorator in node.decorator_list))
        with machine.entered(Frame(self.program.scopes[entry.function.scope])):
            self._guarded(machine, node, lambda: self._call(machine, entry, case, receiver))
        finished = machine.steps <= machine.limit
        if finished or last:
            self._keep(machine, case)
        else:
            del self.unfinished[known:]
            self._allowance -= machine.steps
        return finished

    def _call(self, machine: Machine, entry: Entry, case: Mapping[str, Value], receiver: Instance | None = None) -> None:
        """Call a function with the arguments of a case; of the others only the annotations tell."""
        function = entry.function
        scope = open_scope(machine, function)
        with machine.entered(Frame(scope)):
            name = _receiver_name(function.node) if receiver is not None else None
            values = annotated(machine, function, {**case, **({name: receiver} if name else {})})
            machine.state.cells.bind(scope.id, values.items())
            if entry.callee is not None:
                assume(machine, entry.callee, values)
        self._run_body(machine, scope, function.node)

    def _run_body(self, machine: Machine, scope: Scope, node: Any) -> None:
        try:
            execute(machine, scope, node, self.relevance.needed(node))
        finally:
            self._inner(machine, scope, node)

    def _inner(self, machine: Machine, scope: Scope, node: Any) -> None:
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

        forgotten = False
        for inner in self.relevance.inner(node):
            if id(inner) not in machine.defined or (id(inner) in machine.called and not escapes(node, inner, path_of)):
                continue
            if not forgotten:
                self._forget_shared(machine, scope, node)
                forgotten = True
            name = getattr(inner, "name", "<lambda>")
            entry = Entry(Function(inner, scope.path, name, scope.id))
            self._guarded(machine, inner, lambda entry=entry: self._call(machine, entry, {}))

    def _forget_shared(self, machine: Machine, scope: Scope, node: ast.AST) -> None:
        """Forget what functions that are defined in one may change of its names and their objects: they run in any order."""
        parts = [
            part for inner in ast.walk(node) if isinstance(inner, FUNCTIONS) and inner is not node for part in ast.walk(inner)
        ]
        rebound = {name for part in parts if isinstance(part, ast.Nonlocal) for name in part.names}
        with machine.entered(Frame(scope)):
            for name, value in machine.members(scope.id).items():
                if name in rebound:
                    machine.state.cells[(scope.id, name)] = machine.unknown(name, "an inner function rebinds it")
                elif any(changed(part) == name for part in parts):
                    objects.forget(machine, value)

    def _receiver(self, owner: Class, module: Machine) -> tuple[Machine, Instance]:
        """Make an object on which a method is called: what its class shows of it, the rest unknown."""
        if owner.scope not in self._receivers:
            machine = self._machine(module, RECEIVER_STEPS)
            with machine.entered(Frame(self.program.scopes[owner.scope])):
                made = Instance(machine.new_id(), owner)
                self._furnish(machine, made)
            self._allowance -= machine.steps
            self._receivers[owner.scope] = (machine, made)
        return self._receivers[owner.scope]

    def _furnish(self, machine: Machine, made: Instance) -> None:
        """Set the attributes of an object as its initializers do, and forget those that other methods may have changed."""
        owner, base = made.cls, machine.state
        changed = assigned_attributes(owner, machine) | self.program.tree.attributes(owner.name, self.source.path)
        try:
            for name in INITIALIZERS:
                initializer = objects.class_member(machine, owner, name)
                if isinstance(initializer, Function):
                    self._initialize(machine, made, initializer)
                elif name == "__init__" and owner.kind == "open" and (above := foreign.base_of(owner)) is not None:
                    foreign.initialize(machine, made, above, Arguments())
        except (Exhausted, RecursionError):
            machine.state = base
            changed = assigned_attributes(owner, machine, initializers=True)
        for name in owner.fields if owner.kind in ("dataclass", "namedtuple", "open") else ():
            key = (made.id, name)
            machine.state.cells[key] = unknown_field(machine, owner, name, f"self.{name}", f"a field of `{owner.name}`")
        changeable.forget_growing(machine, machine.members(made.id).values())
        for name in changed:
            why = f"a method of `{owner.name}` sets `{name}`"
            machine.state.cells[(made.id, name)] = machine.unknown(f"self.{name}", why)

    def _initialize(self, machine: Machine, made: Instance, initializer: Function) -> None:
        node: Any = initializer.node
        scope = open_scope(machine, initializer)
        with machine.entered(Frame(scope)):
            first = [*node.args.posonlyargs, *node.args.args][:1]
            values = annotated(machine, initializer, {first[0].arg: made} if first else {})
            machine.state.cells.bind(scope.id, values.items())
        base = machine.state.fork()
        try:
            execute(machine, scope, node)
        except (Dies, Leaves):
            machine.state = base
