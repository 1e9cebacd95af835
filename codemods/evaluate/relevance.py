"""What of a file is worth executing, by the names that it mentions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from codemods.callees import WORDS
from codemods.evaluate.bindings import Bindings
from codemods.nodes import children, nodes, walk
from codemods.values import Class, Function, lineage

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

KERNELS = frozenset(word.decode() for word in WORDS)
"""The names of the kernels, and what a file must name to state a contract."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

Word: TypeAlias = str | tuple[int, str]
"""A name that is seen in the whole file, or a local one of a function, by the id of its node."""


@lru_cache(maxsize=16)
def relevance(tree: ast.Module, words: frozenset[str], namesakes: frozenset[str]) -> Relevance:
    """Return what of a file may reach a kernel; see `Relevance`."""
    return Relevance(tree, words, namesakes)


class Relevance:
    """What of a file may reach a kernel, as far as the names in it tell.

    A name does that reaches a kernel, one that is bound to something that mentions such a name, and an attribute of that
    name. The local names of a function are its own.

    Attributes:
        words: the names that may stand for a kernel or for something that reaches one.
    """

    def __init__(self, tree: ast.Module, words: Iterable[str], namesakes: Iterable[str]) -> None:
        """Read a file.

        Args:
            tree: the file.
            words: further names that reach a kernel, by what other files tell. So does a function with a contract.
            namesakes: names of kernels that the file's top level binds to something else. A function of that name that it
                defines is one of them anyway.
        """
        self.words: set[Word] = {*KERNELS, *words, *_contracted(tree)}
        reader = _Reader({*_defined(tree), *namesakes} & KERNELS - {*words})
        reader.read(tree)
        self._mentioned = reader.mentioned
        self._inner: dict[int, Sequence[_Function]] = {}
        grown = True
        while grown:
            grown = False
            for bound, mentioned in reader.bindings:
                if not (bound <= self.words or mentioned.isdisjoint(self.words)):
                    self.words |= bound
                    grown = True

    def reaches(self, node: _Function | ast.stmt) -> bool:
        """Say whether a function, or a statement of one or of the top level, may reach a kernel."""
        return not self._mentioned[id(node)].isdisjoint(self.words)

    def inner(self, function: _Function) -> Sequence[_Function]:
        """Return the functions defined inside a function that may reach a kernel."""
        if id(function) not in self._inner:
            roots: list[ast.AST] = [function]
            if not (isinstance(function, ast.Lambda) or Bindings.of(function).inner):  # then there is none in its body
                roots = [function.args, *function.decorator_list]
            inside = (part for root in roots for part in walk(root) if isinstance(part, FUNCTIONS) and part is not function)
            # one in an annotation has not been read: nobody calls it
            self._inner[id(function)] = [part for part in inside if id(part) in self._mentioned and self.reaches(part)]
        return self._inner[id(function)]

    def needed(self, function: _Function) -> list[ast.stmt] | None:
        """Return the statements of a function up to the last that may reach a kernel; None stands for all.

        Where an inner function may, all are needed: it is executed in the end, and sees what the names hold then.
        """
        if isinstance(function, ast.Lambda) or self.inner(function):
            return None
        reaching = [position for position, statement in enumerate(function.body) if self.reaches(statement)]
        return function.body[: reaching[-1] + 1] if reaching else []

    def names(self) -> set[str]:
        """Return those of the words that the whole file sees."""
        return {word for word in self.words if isinstance(word, str)}


_BINDING = frozenset((*FUNCTIONS, ast.ClassDef, ast.alias, ast.Assign, ast.AnnAssign, ast.NamedExpr))


class _Reader:
    """Reads which names each binding of a file rests on.

    Attributes:
        bindings: the words that each binds, and those that stand in what they are bound to.
        mentioned: the words in each function, lambda, and statement of a function or of the top level, by the id of its node.
    """

    def __init__(self, namesakes: set[str]) -> None:
        self._namesakes = namesakes
        self.bindings: list[tuple[set[Word], set[Word]]] = []
        self.mentioned: dict[int, set[Word]] = {}
        self._locals: list[tuple[int, set[str]]] = []  # of the functions around, the innermost last
        self._words: dict[str, Word] = {}  # those that names have stood for in the innermost function

    def _word(self, name: str) -> Word:
        if name not in self._words:
            owners = (owner for owner, names in reversed(self._locals) if name in names)
            owner = next(owners, 0 if name in self._namesakes else None)
            self._words[name] = name if owner is None else (owner, name)
        return self._words[name]

    def read(self, tree: ast.Module) -> None:
        """Read a file."""
        for statement in tree.body:
            self.mentioned[id(statement)] = self.mentions_in(statement)

    def mentions_in(self, node: ast.AST) -> set[Word]:
        """Return the words that stand in a piece of source."""
        found: set[Word] = set()
        rest = [node]
        while rest:  # an expression may be nested deeper than Python's stack is
            part = rest.pop()
            if type(part) is ast.Name:  # most nodes are names
                found.add(self._words.get(part.id) or self._word(part.id))
                continue
            if type(part) is ast.Attribute:
                found.add(part.attr)
                rest.append(part.value)
                continue
            if type(part) not in _BINDING:
                rest += children(part)
                continue
            match part:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    found |= self._function(part)
                case ast.ClassDef():
                    found |= self._class(part)
                case ast.alias():
                    found |= self._import(part)
                case ast.Assign(targets, value):
                    found |= self._bind(targets, value)
                    rest += targets
                case ast.AnnAssign(target, value=ast.expr() as value) | ast.NamedExpr(target, value):
                    found |= self._bind([target], value)
                    rest.append(target)
                case _:  # an annotation without a value
                    rest += children(part)
        return found

    def _bind(self, targets: Sequence[ast.expr], value: ast.expr) -> set[Word]:
        """Take note of an assignment; return the words in its value. What a kernel returns is no kernel."""
        held = self.mentions_in(value)
        match value:
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in KERNELS:
                pass
            case _:
                self.bindings.append((set[Word]().union(*map(self._bound, targets)), held))
        return held

    def _class(self, node: ast.ClassDef) -> set[Word]:
        found = set[Word]().union(*map(self.mentions_in, children(node)))
        self.bindings.append(({self._word(node.name)}, found))
        return found

    def _function(self, node: _Function) -> set[Word]:
        outside = [*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ())]
        found = set[Word]().union(*(self.mentions_in(part) for part in outside if part is not None))
        self._locals.append((id(node), Bindings.of(node).bound))
        around, self._words = self._words, {}
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.mentioned[id(part)] = self.mentions_in(part)
            found |= self.mentioned[id(part)]
        self._locals.pop()
        self._words = around
        self.mentioned[id(node)] = found
        if not isinstance(node, ast.Lambda):
            self.bindings.append(({self._word(node.name)}, found))
        return found

    def _import(self, alias: ast.alias) -> set[Word]:
        bound = self._word(alias.asname or alias.name.partition(".")[0])
        mentioned: set[Word] = {bound if bound == (0, alias.name) else alias.name.rpartition(".")[2]}
        self.bindings.append(({bound}, mentioned))
        return mentioned

    def _bound(self, target: ast.expr) -> set[Word]:
        match target:
            case ast.Name(name):
                return {self._word(name)}
            case ast.Attribute(_, name):
                return {name}
            case ast.Subscript(value) | ast.Starred(value):
                return self._bound(value)
            case ast.Tuple(targets) | ast.List(targets):
                return set[Word]().union(*map(self._bound, targets))
            case _:
                return set()


def main_blocks(tree: ast.Module) -> list[ast.If]:
    """Return what the file does only when it is run as a script."""
    return [node for node in tree.body if isinstance(node, ast.If) and "__name__" in ast.dump(node.test)]


def asks_for_its_name(tree: ast.Module) -> bool:
    """Say whether the file compares its `__name__` elsewhere than where a block of the top level begins."""
    blocks = {id(part) for block in main_blocks(tree) for part in walk(block.test)}
    compared = (node for node in nodes(tree, ast.Compare) if id(node) not in blocks)
    return any(isinstance(part, ast.Name) and part.id == "__name__" for node in compared for part in walk(node))


def states_contract(tree: ast.Module) -> bool:
    """Say whether a function of the file has a contract of its own."""
    return bool(_contracted(tree))


def _contracted(tree: ast.Module) -> set[str]:
    functions = nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in functions if any(map(_is_contract, node.decorator_list))}


def _defined(tree: ast.Module) -> set[str]:
    """Return the functions of the top level whose names nothing is imported under."""
    imported = {alias.asname or alias.name for node in nodes(tree, ast.Import, ast.ImportFrom) for alias in node.names}
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)} - imported


def _is_contract(decorator: ast.expr) -> bool:
    parts = list(ast.walk(decorator))
    return any(getattr(part, "id", getattr(part, "attr", None)) == "contract" for part in parts)


def rebound(tree: ast.Module) -> set[str]:
    """Return the globals that some function rebinds: when another function runs, they may hold anything."""
    return {name for node in nodes(tree, ast.Global) for name in node.names}


MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
    )
)


def changed(node: ast.AST) -> str | None:
    """Return the name of an object that a piece of source changes in place."""
    match node:
        case ast.Attribute(value=target, ctx=ast.Store() | ast.Del()) | ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(name), attr=method)):
            return name if method in MUTATORS else None
        case ast.Call(func=ast.Name("setattr" | "delattr"), args=[target, *_]):
            pass
        case _:
            return None
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


INITIALIZERS = ("__init__", "setUp")
"""The methods that have run before any other method of an object does."""


def assigned_attributes(owner: Class, machine: Machine, *, initializers: bool = False) -> set[str]:
    """Return the attributes that methods of a class and its bases set; those of its initializers only on request."""
    methods = [(name, held) for each in lineage(owner) for name, held in machine.members(each.scope).items()]
    return {
        attribute
        for name, held in methods
        if isinstance(held, Function) and (initializers or name not in INITIALIZERS)
        for attribute in Bindings.of(held.node).attributes
    }
