"""Which variable a name of a file stands for, and all that binds and reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from codemods.nodes import children

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope: TypeAlias = Function | ast.ClassDef | ast.Module
Import: TypeAlias = ast.Import | ast.ImportFrom
Path: TypeAlias = tuple[Any, ...]
"""The indices and keys by which a part of a value is reached, from the outside to the inside."""

_TYPE_PARAMETERS = frozenset(("TypeVar", "ParamSpec", "TypeVarTuple"))  # PEP 695; Python 3.11 has no such nodes
BINDERS: Sequence[type[ast.AST]] = (
    *(ast.Name, ast.arg, ast.alias, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
    *(getattr(ast, name) for name in sorted(_TYPE_PARAMETERS) if hasattr(ast, name)),
)
"""The kinds of nodes that bind names; see `bindings`."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


class Variable(NamedTuple):
    """A name in the scope that binds it."""

    scope: Scope
    name: str

    def __hash__(self) -> int:
        return hash((id(self.scope), self.name))


@dataclass
class Uses:
    """All that is done with a variable.

    Attributes:
        values: the expressions that it is set to by a plain assignment.
        parts: the expressions that it is set to together with other names, each with the path to its own part of the value.
        loops: the expressions whose elements it is set to, one after the other, each with the path to its own part of an element.
        imports: the statements that import it, each with the part that names it.
        reads: where it is read.
        parameter: whether it is a parameter of its function.
        annotated: whether it has a type annotation.
        otherwise: whether it is bound by anything else: `global`, `del`, unpacking, ...
    """

    values: list[ast.expr] = field(default_factory=list[ast.expr])
    parts: list[tuple[ast.expr, Path]] = field(default_factory=list[tuple[ast.expr, Path]])
    loops: list[tuple[ast.expr, Path]] = field(default_factory=list[tuple[ast.expr, Path]])
    imports: list[tuple[Import, ast.alias]] = field(default_factory=list[tuple[Import, ast.alias]])
    reads: list[ast.Name] = field(default_factory=list[ast.Name])
    parameter: bool = False
    annotated: bool = False
    otherwise: bool = False

    @property
    def lone_value(self) -> ast.expr | None:
        """What it always holds, if it is set only once."""
        return self.values[0] if self._is_bound_once and self.values else None

    @property
    def lone_part(self) -> tuple[ast.expr, Path] | None:
        """What it always holds a part of, if it is set only there: `a = b = 4`, `a, b = 4, 6`."""
        return self.parts[0] if self._is_bound_once and self.parts else None

    @property
    def lone_loop(self) -> tuple[ast.expr, Path] | None:
        """What it runs through, if it is bound only there."""
        return self.loops[0] if self._is_bound_once and self.loops else None

    @property
    def lone_import(self) -> tuple[Import, ast.alias] | None:
        """What imports it, if nothing else binds it."""
        return self.imports[0] if self._is_bound_once and self.imports else None

    @property
    def only_parameter(self) -> bool:
        return self._is_bound_once and self.parameter

    @property
    def _is_bound_once(self) -> bool:
        bound = len(self.values) + len(self.parts) + len(self.loops) + len(self.imports) + self.parameter
        return bound == 1 and not self.otherwise


class Scopes:
    """The variables of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.uses: dict[Variable, Uses] = {}
        self._scope_of: dict[int, Scope] = {}
        self._sharing: dict[int, list[tuple[Variable, Path]]] = {}  # by the id of the expression that several names are set to
        plain: set[int] = set()  # ids of the nodes that bind what an assignment, a loop or an import says
        shared: set[str] = set()
        reads: list[ast.Name] = []
        for scope, node in _walk(tree):
            self._scope_of[id(node)] = scope
            match node:
                case ast.Name(ctx=ast.Load()):
                    reads.append(node)
                case ast.Assign(targets=[ast.Name() as target, *others], value=value) if not others:
                    plain.add(id(target))
                    self._of(scope, target.id).values.append(value)
                case ast.Assign(targets=targets, value=value) if len(targets) == 1 or all(map(_has_only_names, targets)):
                    for path, each in (found for target in targets for found in _names_in(target)):
                        plain.add(id(each))
                        self._of(scope, each.id).parts.append((value, path))
                        self._sharing.setdefault(id(value), []).append((Variable(scope, each.id), path))
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                    plain.add(id(target))
                    self._of(scope, target.id).values.append(value)
                    self._of(scope, target.id).annotated = True
                case ast.NamedExpr(target=target, value=value):
                    plain.add(id(target))
                    self._of(scope, target.id).values.append(value)
                case ast.For(target=target, iter=elements) | ast.comprehension(target=target, iter=elements):
                    for path, each in _names_in(target):
                        plain.add(id(each))
                        self._of(scope, each.id).loops.append((elements, path))
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    for alias in names:
                        plain.add(id(alias))
                        for name in bindings(alias):
                            self._of(scope, name).imports.append((node, alias))
                case ast.arg(arg=name, annotation=annotation):
                    self._of(scope, name).parameter = True
                    self._of(scope, name).annotated = annotation is not None
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    shared.update(names)
                case _ if id(node) not in plain:
                    for name in bindings(node):
                        self._of(scope, name).otherwise = True
                case _:
                    pass
        for variable, uses in self.uses.items():
            uses.otherwise = uses.otherwise or variable.name in shared
        for node in reads:
            if (variable := self.variable(node)) is not None:
                self.uses[variable].reads.append(node)

    def holds(self, node: ast.AST) -> bool:
        """Say whether a node is part of this file."""
        return id(node) in self._scope_of

    def scope_of(self, node: ast.AST) -> Scope:
        return self._scope_of[id(node)]

    def variable(self, name: ast.Name) -> Variable | None:
        """Return the variable that a name stands for; None for a builtin."""
        scope = self._scope_of[id(name)]
        found, inner = Variable(scope, name.id), scope
        while found not in self.uses:
            if isinstance(inner, ast.Module):
                return None
            inner = self._scope_of[id(inner)]
            if not isinstance(inner, ast.ClassDef):  # what a class binds is not seen inside its functions
                found = Variable(inner, name.id)
        return found

    def sharing(self, value: ast.expr, path: Path) -> Iterator[Variable]:
        """Yield the variables that an assignment to several names sets to this part of its value, or to what holds it."""
        for variable, other in self._sharing.get(id(value), ()):
            if all(a == b for a, b in zip(path, other, strict=False)):
                yield variable

    def _of(self, scope: Scope, name: str) -> Uses:
        return self.uses.setdefault(Variable(scope, name), Uses())


def _walk(tree: ast.Module) -> Iterator[tuple[Scope, ast.AST]]:
    """Yield every node with the scope in which its names are looked up; an assignment comes before its parts."""
    pending: list[tuple[Scope, ast.AST]] = [(tree, tree)]
    while pending:
        outer, node = pending.pop()
        yield outer, node
        inner = node if isinstance(node, _SCOPES) else outer
        outside = _outside(node)
        for child in children(node):
            if isinstance(child, ast.arguments):  # defaults and annotations stand outside of the function
                pending += ((inner if isinstance(each, ast.arg) else outer, each) for each in children(child))
            else:
                pending.append((outer if id(child) in outside else inner, child))


def _names_in(target: ast.expr) -> Iterator[tuple[Path, ast.Name]]:
    """Yield the names of a target, each with the path to what it is set to."""
    if isinstance(target, ast.Name):
        yield (), target
    elif isinstance(target, ast.Tuple | ast.List) and not any(isinstance(each, ast.Starred) for each in target.elts):
        for position, each in enumerate(target.elts):
            yield from (((position, *path), name) for path, name in _names_in(each))


def _has_only_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_has_only_names, target.elts))
    return isinstance(target, ast.Name)


def _outside(node: ast.AST) -> set[int]:
    """The ids of the children of a scope that are evaluated outside of it."""
    outside: list[ast.AST] = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ()), *getattr(node, "keywords", ())]
    return {id(each) for each in outside} if isinstance(node, _SCOPES) else set()


def bindings(node: Any) -> Iterator[str]:
    """Yield the names that a node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=context) if not isinstance(context, ast.Load):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.alias(name=original, asname=renamed):
            yield renamed or original.partition(".")[0]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name
        case _ if type(node).__name__ in _TYPE_PARAMETERS:
            yield node.name
        case _:
            pass
