"""The files of the tree as repairs see them: whose variable a name stands for, also where it is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Sequence, Set

from codemods.evaluate.program import Program
from codemods.files import NOTEBOOK
from codemods.nodes import holds, nodes
from codemods.repairs.scopes import Scopes, Uses, Variable
from codemods.source import Source
from codemods.suppress import skips_file

_LONGEST = 24  # modules that one name is imported through
_REFLECTION = frozenset(
    ("globals", "locals", "eval", "exec", "vars()", "f_globals", "f_locals", "sys.modules", "__main__", "__import__")
)


def _names_enum(text: str) -> bool:
    """Say whether a class is an enum, or its metaclass that of enums, by its name."""
    return text.endswith(("Enum", "Flag", "EnumMeta", "EnumType"))


class Tree:
    """The variables of all files, which are read as they are needed.

    Args:
        program: the files.
        editable: the paths of those that a repair may change.
    """

    def __init__(self, program: Program, editable: Container[str]) -> None:
        self._program = program
        self._editable = editable
        self._scopes: dict[str, Scopes | None] = {}
        self._mentions: dict[tuple[str, str], Sequence[str]] = {}

    def scopes(self, path: str) -> Scopes | None:
        """Return the variables of a file; None if it cannot be parsed."""
        if path not in self._scopes:
            source = self._program.source(path) if path.endswith(".py") or path in self._program.scanned else None
            self._scopes[path] = Scopes(source.tree) if source is not None else None
        return self._scopes[path]

    def holds(self, node: ast.AST) -> bool:
        """Say whether a node is part of one of the files."""
        return self._path(node) is not None

    def scopes_of(self, node: ast.AST) -> Scopes:
        """Return the variables of the file that a node is part of."""
        scopes = self.scopes(self.path_of(node))
        assert scopes is not None, "the node is part of a file"
        return scopes

    def source_of(self, node: ast.AST) -> Source:
        source = self._program.source(self.path_of(node))
        assert source is not None, "the node is part of a file"
        return source

    def path_of(self, node: ast.AST) -> str:
        path = self._path(node)
        assert path is not None, "the node is part of a file"
        return path

    def uses(self, variable: Variable) -> Uses:
        return self.scopes_of(variable.scope).uses[variable]

    def may_edit(self, node: ast.AST) -> bool:
        """Say whether the file that a node is part of may be changed."""
        return self.path_of(node) in self._editable and not skips_file(self.source_of(node))

    def variables(self, node: ast.expr) -> tuple[Variable, ...]:
        """Return the variables that `name` or `module.name` stands for: the last is not imported from another file.

        There are none for a builtin, for what a foreign module has, and where it is not certain what is imported.
        """
        variable = self._first(node)
        found: list[Variable] = []
        while variable is not None and len(found) < _LONGEST:
            found.append(variable)
            if (imported := self.uses(variable).lone_import) is None:
                return tuple(found)
            variable = self._imported(*imported)
        return ()

    def value(self, node: ast.expr) -> ast.expr | None:
        """Return what the variable that an expression stands for always holds, if it is set only once."""
        variables = self.variables(node)
        return self.uses(variables[-1]).lone_value if variables else None

    def is_enum(self, cls: ast.ClassDef) -> bool:
        """Say whether a class is an enum, by its bases: `Block(16)` is then a member of that value, wherever it stands."""
        pending, seen = [cls], {cls}
        while pending:
            each = pending.pop()
            if any(_names_enum(ast.unparse(base)) for base in (*each.bases, *(keyword.value for keyword in each.keywords))):
                return True
            for base in each.bases:
                first = self._first(base)
                imported = self.uses(first).lone_import if first is not None else None
                if imported is not None and _names_enum(imported[1].name):
                    return True
                for variable in self.variables(base)[-1:]:
                    named = {node for node in nodes(self._tree_of(variable), ast.ClassDef) if node.name == variable.name}
                    pending += named - seen
                    seen |= named
        return False

    def _tree_of(self, variable: Variable) -> ast.Module:
        return self.scopes_of(variable.scope).tree

    def has_no_other_reads(self, variable: Variable, reads: Set[int]) -> bool:
        """Say whether nothing but these expressions reads a variable, in its own file or in another.

        A file that has its name in a string, or as that of an attribute or argument of something unknown, may read it.
        """
        pending, seen = [variable], {variable}
        while pending:
            each = pending.pop()
            if any(id(node) not in reads for node in self.uses(each).reads) or self._is_reflected(each):
                return False
            if not isinstance(each.scope, ast.Module):
                continue
            for path in self._mentioning(each.name, self.path_of(each.scope)):
                scopes = self.scopes(path) if not path.endswith(NOTEBOOK) else None  # whose user may be about to read it
                if scopes is None or not self._spells_only(scopes, each, reads):
                    return False
                importers = [
                    Variable(scopes.scope_of(statement), alias.asname or alias.name)
                    for statement in nodes(scopes.tree, ast.ImportFrom)
                    for alias in statement.names
                    if alias.name == each.name and self._imported(statement, alias) == each
                ]
                pending += [importer for importer in importers if importer not in seen]
                seen.update(importers)
        return True

    def files_with(self, variable: Variable) -> Iterator[ast.Module]:
        """Yield the file of a variable, and the others that may have it from there."""
        path = self.path_of(variable.scope)
        others = self._mentioning(variable.name, path) if isinstance(variable.scope, ast.Module) else ()
        yield from (scopes.tree for each in (path, *others) if (scopes := self.scopes(each)) is not None)

    def files_mentioning(self, name: str, file: ast.Module) -> Iterator[ast.Module | None]:
        """Yield a file, and the others that may have its attributes of this name: None for one that nothing is known of."""
        yield file
        for other in self._mentioning(name, self.path_of(file)):
            scopes = self.scopes(other) if not other.endswith(NOTEBOOK) else None  # whose user may be about to read it
            yield scopes.tree if scopes is not None else None

    def class_of(self, node: ast.expr) -> ast.ClassDef | None:
        """Return the class that an expression names, if nothing else has the name."""
        for variable in self.variables(node)[-1:]:
            found = [each for each in nodes(self._tree_of(variable), ast.ClassDef) if each.name == variable.name]
            bound = [each for each in found if self.scopes_of(each).scope_of(each) is variable.scope]
            return bound[0] if len(bound) == 1 else None
        return None

    def calls_of(self, cls: ast.ClassDef) -> Iterator[ast.Call]:
        """Yield the calls by which objects of a class are made, in all files."""
        variable = Variable(self.scopes_of(cls).scope_of(cls), cls.name)
        for file in self.files_with(variable):
            for call in nodes(file, ast.Call):
                if self.variables(call.func)[-1:] == (variable,):
                    yield call

    def _is_reflected(self, variable: Variable) -> bool:
        """Say whether the file of a variable may read it without a name that tells: `globals()["BLOCK"]`."""
        return not _REFLECTION.isdisjoint(_spelled(self.scopes_of(variable.scope).tree))

    def _mentioning(self, name: str, path: str) -> Sequence[str]:
        if (name, path) not in self._mentions:
            self._mentions[name, path] = list(self._program.mentioning(name, beside=path, renamed=True))
        return self._mentions[name, path]

    def _spells_only(self, scopes: Scopes, variable: Variable, reads: Set[int]) -> bool:
        """Say whether each place of a file that has the name is an import of it, a variable, or one of the reads."""
        path = self.path_of(variable.scope)
        for node in nodes(scopes.tree, ast.ImportFrom):
            all_names = node.names[0].name == "*"
            if all_names and self._program.find(self._program.absolute(node, self.path_of(node)), self.path_of(node)) == path:
                return False
        word = re.compile(rf"\b{re.escape(variable.name)}\b")
        for node in nodes(scopes.tree, ast.Name, ast.Attribute, ast.keyword, ast.Constant):
            match node:
                case ast.Name(id=name) if name == variable.name and scopes.variable(node) is None:
                    return False
                case ast.Attribute(attr=name) if name == variable.name and id(node) not in reads:
                    return False
                case ast.keyword(arg=name) if name == variable.name:
                    return False
                case ast.Constant(value=str(text)) if word.search(text):
                    return False
                case _:
                    pass
        return True

    def _path(self, node: ast.AST) -> str | None:
        known = (path for path, scopes in self._scopes.items() if scopes is not None and scopes.holds(node))
        return next(known, None) or next(self._unread(node), None)

    def _unread(self, node: ast.AST) -> Iterator[str]:
        """Yield the file that a node is part of, if its variables have not been read: for most nodes, nobody asks for them."""
        for path in self._program.scanned & self._program.executed.keys():  # nodes of others are nowhere among the values
            source = self._program.source(path) if path not in self._scopes else None
            if source is not None and holds(source.tree, node):
                yield path

    def _first(self, node: ast.expr) -> Variable | None:
        if isinstance(node, ast.Name):
            return self.scopes_of(node).variable(node)
        module = self._module(node.value) if isinstance(node, ast.Attribute) else None
        return self._member(module, node.attr, self.path_of(node)) if module and isinstance(node, ast.Attribute) else None

    def _member(self, module: str, name: str, importer: str) -> Variable | None:
        path = self._program.find(module, importer)
        scopes = self.scopes(path) if path is not None else None
        if scopes is None or (variable := Variable(scopes.tree, name)) not in scopes.uses:
            return None
        return variable

    def _imported(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> Variable | None:
        """Return the variable of another module that an import makes a name for."""
        if isinstance(statement, ast.Import):
            return None
        importer = self.path_of(statement)
        return self._member(self._program.absolute(statement, importer), alias.name, importer)

    def _module(self, node: ast.expr) -> str | None:
        """Return the dotted name of the module that an expression stands for."""
        if isinstance(node, ast.Attribute):
            outer = self._module(node.value)
            return f"{outer}.{node.attr}" if outer is not None else None
        variable = self.scopes_of(node).variable(node) if isinstance(node, ast.Name) else None
        imported = self.uses(variable).lone_import if variable is not None else None
        if imported is None:
            return None
        statement, alias = imported
        if isinstance(statement, ast.ImportFrom):
            return f"{self._program.absolute(statement, self.path_of(statement))}.{alias.name}"
        return alias.name if alias.asname else alias.name.partition(".")[0]


def _spelled(file: ast.Module) -> Iterator[str]:
    """Yield the names in a file, its attributes, with the names that they are of, and calls of names without arguments."""
    for node in nodes(file, ast.Name, ast.Attribute, ast.Call):
        match node:
            case ast.Name(id=name):
                yield name
            case ast.Attribute(value=ast.Name(id=holder), attr=name):
                yield from (name, f"{holder}.{name}")
            case ast.Attribute(attr=name):
                yield name
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
                yield f"{name}()"
            case _:
                pass
