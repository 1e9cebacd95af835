"""What a function may do when code that is not followed calls it.

Such a call has unknown arguments, which may stand for whatever has escaped. A function that reaches no other object of the source
changes nothing else, and comes to no kernel: that is known without executing it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from codemods.callees import CALLEES
from codemods.evaluate import havoc, mutation
from codemods.evaluate.aliases import parameters_of
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.frameworks import PATCHING
from codemods.evaluate.memory import Cell
from codemods.evaluate.program import Scope
from codemods.evaluate.relevance import FUNCTIONS, KERNELS
from codemods.evaluate.state import PATCHED, UNBOUND
from codemods.nodes import children
from codemods.values import (
    Array,
    Bound,
    Class,
    Contracted,
    External,
    Function,
    Instance,
    Opaque,
    Partial,
    Transformed,
    Value,
    is_constant,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_DECLARING = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef)
_ACTING = (ast.Call, ast.With, ast.AsyncWith, ast.Await)
_REFLECTING = frozenset({
    *("globals", "locals", "vars", "exec", "eval", "super", "type", "__import__", "__class__", "__dict__"),
    *("__globals__", "__builtins__", "f_globals", "f_locals"), *PATCHING,
    *("__setattr__", "__delattr__", "getmodule"),
})  # fmt: skip
"""Names by which a function may reach an object that it was not given."""

_KEEPING = frozenset({"absl", "importlib", "mock", "pytest", "sys", "unittest"})
"""Libraries that keep what one call of them says for the others."""


class Unseen:
    """What is known of a function, and of those that it names, before it is called.

    Attributes:
        cells: the names in them that are not their own. What these are bound to later, they may reach then.
        harmless: they reach no object of the source but by what they are given, and no kernel.
    """

    def __init__(self, machine: Machine, value: Value) -> None:
        self._machine = machine
        self._acts = False
        self._sets_items = False
        self._sets_attributes = False
        self._names_library = False
        self._read: set[tuple[int, int]] = set()
        self.cells: set[Cell] = set()
        self.harmless = isinstance(value, Function) and not machine.members(PATCHED)
        self._hold(value)
        self.harmless &= not (self._sets_attributes and self._names_library)  # for which a local name may stand

    def disturb(self, why: str) -> None:
        """Do to the state what a call of a function that is harmless may do."""
        if self._sets_items:
            mutation.elements_change(self._machine)
        if self._acts:
            havoc.disturb(self._machine, why)

    def _hold(self, value: Value) -> None:
        """Take note of what a name holds."""
        match value:
            case Function():
                self._follow(value)
            case Transformed(function=function):
                self._hold(function)
            case Contracted(function=function) | Partial(function=function) | Bound(function=function):
                self.harmless = False
                self._hold(function)
            case Class() | Instance(cls=Class()):
                self.harmless = False
                cls = value if isinstance(value, Class) else value.cls
                for member in self._machine.members(cls.scope).values():
                    if isinstance(member, Function):
                        self._follow(member)
            case tuple():
                for each in value:
                    self._hold(each)
            case External(path):
                self._names_library = True
                self.harmless &= path not in CALLEES and path.partition(".")[0] not in _KEEPING
            case Array():
                self.harmless &= not mutation.may_change(value)
            case _:
                self.harmless &= isinstance(value, Opaque) or is_constant(value)

    def _follow(self, function: Function) -> None:
        key = (id(function.node), function.scope)
        if key in self._read:
            return
        self._read.add(key)
        scope = self._machine.program.scopes[function.scope]
        for name in dict.fromkeys(self._free(function.node, frozenset())):
            cells = list(self._cells(scope, name))
            self.cells.update(cells)
            for held in map(self._machine.state.read, cells):
                if held is not UNBOUND:
                    self._hold(held)
                    break
        for _, value in function.defaults:
            self._hold(value)

    def _cells(self, scope: Scope, name: str) -> Iterator[Cell]:
        """Yield the cells that a free name of a function in this scope may be found in, the innermost first."""
        scopes = self._machine.program.scopes
        around: Scope | None = scope
        while around is not None:
            if around.kind != "class":  # whose names are not seen from inside its functions
                yield around.id, name
            around = scopes[around.parent] if around.parent is not None else None

    def _free(self, function: Any, around: frozenset[str]) -> Iterator[str]:
        """Yield the names in a function that are not its own, nor those of the functions around it."""
        own = around | Bindings.of(function).bound
        waiting: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
        while waiting:
            part = waiting.pop()
            self._inspect(part, own, function)
            if isinstance(part, ast.Name) and part.id not in own:
                yield part.id
            if isinstance(part, FUNCTIONS):
                yield from self._free(part, own)
                waiting += [*getattr(part, "decorator_list", ()), part.args, *filter(None, [getattr(part, "returns", None)])]
            else:
                waiting += children(part)

    def _inspect(self, part: ast.AST, own: frozenset[str], function: Any) -> None:
        """Take note of what a part of a function says of it."""
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in KERNELS or name in _REFLECTING:
                self.harmless = False
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                root: ast.AST = part
                while isinstance(root, ast.Attribute | ast.Subscript):
                    root = root.value
                self.harmless &= not isinstance(root, ast.Name) or root.id in own
                self._acts = True
                self._sets_items |= isinstance(part, ast.Subscript)
                self._sets_attributes |= isinstance(part, ast.Attribute) and getattr(root, "id", "") not in _given(function)
            case ast.Constant(value=str(text)):
                self.harmless &= text not in KERNELS and (text[:2] != "__" or text not in _REFLECTING)
            case ast.Call(ast.Name("getattr"), [_, name, *_]) if not isinstance(name, ast.Constant):
                self.harmless = False
            case ast.AugAssign():
                self._sets_items = True
            case _:
                self.harmless &= not isinstance(part, _DECLARING)
                self._acts |= isinstance(part, _ACTING)


def _given(function: Any) -> set[str]:
    """Return the parameters of a function that hold what it was given as long as it runs."""
    bindings = Bindings()
    for part in function.body if isinstance(function.body, list) else [function.body]:
        bindings.visit(part)
    return set(parameters_of(function)) - bindings.bound - bindings.foreign
