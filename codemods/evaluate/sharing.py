"""Which objects of a module its functions may change: between two of its functions, any others may have run.

It reads the source without executing it. An object is known by the names that may stand for it (`codemods.evaluate.aliases`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from codemods.evaluate.aliases import Aliases, called_name, parameters_of
from codemods.evaluate.bindings import Bindings
from codemods.evaluate.relevance import MUTATORS, main_blocks

ANYTHING = "*"
"""Stands for all names: code in a string, or a name that is computed."""

ANY_ATTRIBUTE = ".*"
"""Stands for all attributes of all objects."""

_MAKING = ("__init__", "__post_init__", "setUp")
_CHANGING = frozenset({"shuffle", "heappush", "heappop", "heapify", "heappushpop", "heapreplace", "insort", "insort_left",
                       "insort_right", "setitem", "delitem", "iadd", "appendleft", "extendleft", "popleft", "move_to_end",
                       "__setitem__", "__delitem__", "__iadd__"})  # fmt: skip


@dataclass
class Changes:
    """What the functions of a module may change.

    Attributes:
        names: the names of the objects that they change in place, `.NAME` for what an attribute holds.
        attributes: the attributes that they set, of whatever object but the `self` of a method.
        own: those that methods set of their `self`, but for the methods that make an object.
        bound: the names that they bind by way of `globals()`.
        parameters: for each function, by its node's id, the parameters whose objects they change.
    """

    names: set[str] = field(default_factory=set[str])
    attributes: set[str] = field(default_factory=set[str])
    own: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    parameters: dict[int, set[str]] = field(default_factory=dict[int, set[str]])

    @property
    def any_attribute(self) -> bool:
        return ANY_ATTRIBUTE in self.names

    @property
    def anything(self) -> bool:
        return ANYTHING in self.names


_known: WeakKeyDictionary[ast.Module, dict[bool, Changes]] = WeakKeyDictionary()


def changes(tree: ast.Module, *, main: bool = False) -> Changes:
    """Return what the functions of a module may change; with `main`, and what it does when it is run as a script."""
    known = _known.setdefault(tree, {})
    if main not in known:
        known[main] = _read(tree, main_blocks(tree) if main else ())
    return known[main]


def _read(tree: ast.Module, blocks: Sequence[ast.If]) -> Changes:
    reader = _Reader(blocks, [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)])
    try:
        reader.read(tree)
    except RecursionError:  # an expression that is too deep to read
        return Changes({ANYTHING})
    changed, waiting = set[str](), list(reader.changed)
    while waiting:
        name = waiting.pop()
        if name not in changed:
            changed.add(name)
            waiting += reader.aliases.get(name, ())
    found = Changes({name for name in changed if ":" not in name}, reader.attributes, reader.own, reader.bound)
    for node in reader.functions:
        found.parameters[id(node)] = {name for name in parameters_of(node) if f"{id(node)}:{name}" in changed}
    return found


class _Rebound(Bindings):
    """The names that a block of a module binds; what the module itself imports as well stays what it is."""

    def __init__(self, imports: Sequence[ast.Import | ast.ImportFrom]) -> None:
        super().__init__()
        self._imported = {each for node in imports for each in _imported(node)}

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        if not self._imported.issuperset(_imported(node)):
            super().visit_Import(node)

    visit_ImportFrom = visit_Import


def _imported(node: ast.Import | ast.ImportFrom) -> list[tuple[str | None, int, str, str | None]]:
    module, level = (node.module, node.level) if isinstance(node, ast.ImportFrom) else (None, 0)
    return [(module, level, alias.name, alias.asname) for alias in node.names]


class _Reader(Aliases):
    """Gathers who is changed as well: by functions, and in these blocks of the top level."""

    def __init__(self, blocks: Sequence[ast.If], imports: Sequence[ast.Import | ast.ImportFrom]) -> None:
        super().__init__()
        self._blocks = blocks
        self._imports = imports
        self._in_block = False
        self.changed: set[str] = set()
        self.attributes: set[str] = set()
        self.own: set[str] = set()
        self.bound: set[str] = set()

    @property
    def _runs_later(self) -> bool:
        """Whether what is read is not executed where the module is."""
        return bool(self._inside) or self._in_block

    def _makes(self) -> bool:
        """Say whether what is read makes an object."""
        return bool(self._inside) and getattr(self._inside[0][0], "name", "") in _MAKING

    def visit_If(self, node: ast.If) -> None:
        if node not in self._blocks:
            self.generic_visit(node)
            return
        self._in_block = True
        rebound = _Rebound(self._imports)
        for part in (*node.body, *node.orelse):
            rebound.visit(part)
        self.bound |= rebound.bound
        self.changed.update({ANYTHING} & self.bound)
        self.generic_visit(node)  # its test as well, which changes nothing
        self._in_block = False

    def _change(self, target: ast.expr) -> None:
        """Take note that the object which `target` stands for is changed in place."""
        if not self._runs_later:
            return  # the module itself is executed
        while isinstance(target, ast.Subscript | ast.Starred):
            target = target.value
        match target:
            case ast.Name(name):
                self.changed.add(self._name(name))
            case ast.Attribute(attr=name):
                self.changed.add(f".{name}")
            case ast.Call(func=ast.Name("globals" | "vars" | "locals")):
                pass  # see `_set_names`
            case _:
                self.changed.update(self._stood_for(target))

    def _set_names(self, target: ast.expr, key: str | None) -> None:
        """Take note that an item is set of the dict of the names of an object or the module; `key` is None if not known."""
        if not self._runs_later:
            return
        match target:
            case ast.Call(func=ast.Name("globals" | "vars" | "locals"), args=[]):
                self.changed.add(ANYTHING if key is None else key)
                self.bound.update([] if key is None else [key])
            case ast.Attribute(ast.Name("self"), "__dict__") if self._makes():
                pass  # the attributes of an object that is being made
            case ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name("vars")):
                self.changed.update([ANY_ATTRIBUTE] if key is None else [])
                self.attributes.update([] if key is None else [key])
            case _:
                pass

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load) and self._runs_later:
            if not (self._inside and isinstance(node.value, ast.Name) and node.value.id == "self"):
                self.attributes.add(node.attr)
            elif not self._makes():
                self.own.add(node.attr)
            if node.attr == "__dict__":
                self.changed.add(ANY_ATTRIBUTE)
        elif node.attr in MUTATORS | _CHANGING:  # called or not
            self._change(node.value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            self._set_names(node.value, key if isinstance(key, str) else None)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._change(node.target)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = called_name(node)
        if name in ("exec", "eval") and isinstance(node.func, ast.Name) and self._runs_later:
            self.changed.add(ANYTHING)
        if name in ("setattr", "delattr", "__setattr__", "object") and len(node.args) > 1 and self._runs_later:
            given = next(
                (each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)), None
            )
            if given is None:
                self.changed.add(ANYTHING)
            else:
                self.attributes.add(given)
        if name in _CHANGING and node.args:
            self._change(node.args[0])
        if isinstance(node.func, ast.Attribute) and name in MUTATORS:
            for keyword in [None] if node.args or name != "update" else [keyword.arg for keyword in node.keywords]:
                self._set_names(node.func.value, keyword)
        if isinstance(node.func, ast.Name) and ":" in self._name(name) and not self._defined(name):  # a function that it is given
            for each in node.args:
                self._change(each)
        self._hand_on(node)
        self.generic_visit(node)
