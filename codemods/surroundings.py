"""The files of a project that are scanned together, and which of them have to do with each other."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from codemods.callers import Neighbours
from codemods.evaluate.program import Program
from codemods.source import Source


class Surroundings:
    """What is known of some files before any is executed.

    Args:
        sources: the files; they are parsed when they are needed.
        root: the folder from which the tree's modules are imported.
    """

    def __init__(self, sources: Collection[Source], root: Path) -> None:
        self.sources = list(sources)
        self.root = root

    @cached_property
    def neighbours(self) -> Neighbours:
        """The other files of the tree that may import one of them."""
        return Neighbours(self.sources, self.root)

    def program(self) -> Program:
        """Return the program that they belong to, of which nothing is executed."""
        self._program.restart()
        return self._program

    def groups(self) -> list[list[Source]]:
        """Return the files in groups that can be analysed one after the other: neither executes what another one holds.

        A file that no other one imports, and that imports nothing of the tree, is a group. All others are one, in their order.
        """
        program = self._program
        files = {source.path: program.tree.file(source.path) for source in self.sources}
        named = set[bytes]().union(*(file.imported for file in files.values()))
        needed = {
            path: {each for module in file.modules for each in program.executed_by(module, path)} for path, file in files.items()
        }
        of_others = set[str]().union(*needed.values())
        alone, together = list[list[Source]](), list[Source]()
        for source in self.sources:
            if needed[source.path] or source.path in of_others or files[source.path].stem in named:
                together.append(source)
            else:
                alone.append([source])
        return [together, *alone] if together else alone

    @cached_property
    def _program(self) -> Program:
        program = Program(self.sources, self.root)
        for candidate in self.neighbours.importers:
            program.tree.add_importer(candidate.path, candidate.data)
        program.tree.settle()
        return program
