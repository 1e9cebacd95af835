"""Statements: what they do to the state, and where executions part and meet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codemods.evaluate import (
    annotations,
    definitions,
    exceptions,
    expressions,
    havoc,
    loops,
    methods,
    modules,
    mutation,
    names,
    objects,
    operators,
    patterns,
)
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.machine import Dies, Leaves
from codemods.evaluate.state import UNBOUND
from codemods.values import COUNTER, Array, Choice, DictRef, External, Instance, ListRef, Opaque, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


def execute(machine: Machine, statements: Sequence[ast.stmt]) -> None:
    """Execute statements in order; raises `Dies` where no execution gets to their end."""
    for statement in statements:
        machine.step()
        machine.frame.statement = statement
        executor = _EXECUTORS.get(type(statement))
        if executor is not None:
            executor(machine, statement)


def _expression(machine: Machine, node: ast.Expr) -> None:
    machine.evaluate(node.value)


def _assign(machine: Machine, node: ast.Assign) -> None:
    value = machine.evaluate(node.value)
    for target in node.targets:
        names.assign(machine, target, value)


def _annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        names.assign(machine, node.target, machine.evaluate(node.value))
    if machine.frame.scope.kind != "function":
        annotations.run(machine, node.annotation)


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    """`x op= y`; a list is extended in place, everything else is made anew."""
    place = names.place(machine, node.target)
    left, right = names.held(machine, place), machine.evaluate(node.value)

    def apply(held: Value, by: Value) -> Value:
        match held:
            case ListRef() if isinstance(node.op, ast.Add):
                methods.METHODS[(ListRef, "extend")](machine, held, Arguments((by,), node=node.value))
            case DictRef(missing=missing) if isinstance(node.op, ast.BitOr) and missing != COUNTER:
                methods.METHODS[(DictRef, "update")](machine, held, Arguments((by,), node=node.value))
            case ListRef() | DictRef():
                objects.forget(machine, held, node)
            case Instance():
                name = f"__i{operators.DUNDERS[type(node.op)]}__"
                changed = objects.special(machine, held, name, by)
                return expressions.augmented(machine, node.op, held, by) if changed is UNBOUND else changed
            case _:
                return expressions.augmented(machine, node.op, held, by)
        return held

    if isinstance(left, Choice) and any(isinstance(each, ListRef | DictRef | Instance) for _, each in left.alternatives):
        havoc.leak(machine, left)
        havoc.disturb(machine, "one of several objects is changed in place", node)
    if isinstance(left, Array):
        mutation.method_changes(machine, left, "augmented", node)
    if isinstance(left, Opaque):
        havoc.disturb(machine, "it may be extended in place under another name", node)
    names.put(machine, place, machine.spread(apply, left, right, text=ast.unparse(node)[:60]))


def _if(machine: Machine, node: ast.If) -> None:
    condition = machine.truth(machine.evaluate(node.test))
    machine.part(condition, (lambda: machine.execute(node.body), lambda: machine.execute(node.orelse)))


def _return(machine: Machine, node: ast.Return) -> None:
    value = machine.evaluate(node.value) if node.value is not None else None
    machine.frame.returns.append((machine.state, value))
    raise Dies


def _raise(machine: Machine, node: ast.Raise) -> None:
    raised = machine.evaluate(node.exc) if node.exc is not None else None
    havoc.leak(machine, raised)  # to whoever handles it
    if isinstance(raised, External) and raised.path.rpartition(".")[2] in ("SkipTest", "Skipped"):
        raise Leaves
    raise Dies


def _assert(machine: Machine, node: ast.Assert) -> None:
    formula = machine.truth(machine.evaluate(node.test))
    if node.msg is not None and machine.decide(formula) is not True:  # it is evaluated, for a handler to see, where it fails
        machine.part(formula, (lambda: None, lambda: _fail(machine, node.msg)), branches=(False, False))
    assumed = machine.state.assume(formula, branch=False)
    if assumed is None:
        raise Dies
    machine.state = assumed


def _fail(machine: Machine, message: ast.expr | None) -> None:
    if message is not None:
        machine.evaluate(message)
    raise Dies


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            names.bind(machine, target.id, UNBOUND)
        elif isinstance(target, ast.Attribute):
            objects.delete_attribute(machine, machine.evaluate(target.value), target.attr)
        elif isinstance(target, ast.Subscript):
            receiver = machine.evaluate(target.value)
            machine.evaluate(target.slice)
            objects.forget(machine, receiver, node)
            if not isinstance(receiver, ListRef | DictRef):
                havoc.disturb(machine, "it may have been changed under another name", node)


def _match(machine: Machine, node: ast.Match) -> None:
    """Try the cases in order; a pattern of constants is compared, any other may match or not."""
    subject = machine.evaluate(node.subject)

    def attempt(cases: Sequence[ast.match_case]) -> None:
        if not cases:
            return None
        case, *rest = cases
        cells = [names.cell_of(machine, name) for name in patterns.captured(case.pattern)]
        before = [(cell, machine.state.read(cell)) for cell in cells]
        matches = patterns.match(machine, case.pattern, subject)

        def matched() -> None:
            if case.guard is None:
                return machine.execute(case.body)
            guard = machine.truth(machine.evaluate(case.guard))
            return machine.part(guard, (lambda: machine.execute(case.body), lambda: attempt(rest)))

        def failed() -> None:  # then nothing is captured, unlike where a guard fails
            machine.state.cells.update(before)
            attempt(rest)

        return machine.part(matches, (matched, failed))

    attempt(node.cases)


_EXECUTORS: Mapping[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: loops.for_loop,
    ast.AsyncFor: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Break: loops.leave,
    ast.Continue: loops.next_round,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.With: exceptions.with_statement,
    ast.AsyncWith: exceptions.with_statement,
    ast.Try: exceptions.try_statement,
    ast.TryStar: exceptions.try_statement,
    ast.Import: modules.statement,
    ast.ImportFrom: modules.statement,
    ast.FunctionDef: definitions.function_statement,
    ast.AsyncFunctionDef: definitions.function_statement,
    ast.ClassDef: definitions.class_statement,
    ast.Delete: _delete,
    ast.Match: _match,
}
