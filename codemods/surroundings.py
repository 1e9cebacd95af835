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
        alone, together = list[list[Source]](), list[Source]()
        names = set[bytes]().union(*(self._program.tree.file(source.path).imported for source in self.sources))
        for source in self.sources:
            if self._is_alone(source.path, names):
                alone.append([source])
            else:
                together.append(source)
        return [together, *alone] if together else alone

    def _is_alone(self, path: str, imported: Collection[bytes]) -> bool:
        file = self._program.tree.file(path)
        return file.stem not in imported and not any(self._program.holds(module, path) for module in file.modules)

    @cached_property
    def _program(self) -> Program:
        program = Program(self.sources, self.root)
        for candidate in self.neighbours.importers:
            program.tree.add_importer(candidate.path, candidate.data)
        program.tree.settle()
        return program
